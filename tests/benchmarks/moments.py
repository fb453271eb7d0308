"""Speed of moments, of fits and of the corrected leader: `python tests/benchmarks/moments.py`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.linear_model import LinearRegression
from timing import Row, at_most, faster, judged, median_time, median_times, memory, reached, report

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.moments.online import Sums

ROWS, DIM, FEATURES, BLOCK = 1_000_000, 10, 256, 4000
ROUNDS, SEEDS = 262_144, 16
VARIANCE = 0.1
QUICK = {"ROWS": 200_000, "ROUNDS": 65_536, "SEEDS": 4}


def observed(rows):
    """The same in float64, and the table of both."""
    x, y = (np.asarray(a, np.float64) for a in table(rows, DIM))
    return x, y, nj.observations.from_arrays(x, y, noise=VARIANCE)


def table(rows, dim):
    """Noisy float32 rows and their targets."""
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (rows, dim))
    y = x @ jnp.ones(dim) + jax.random.normal(keys[1], (rows,))
    return x + VARIANCE**0.5 * jax.random.normal(keys[2], x.shape), y


def fourier_rows():
    """The sums of Fourier moments in blocks, against the matrix products that they contain."""
    frequencies = nj.moments.gaussian_frequencies(
        jax.random.key(1), FEATURES, dim=DIM, length_scale=2.0,
        characteristic=nj.noise.Gaussian(VARIANCE),
    )  # fmt: skip
    moments = nj.moments.fourier(frequencies)
    empty = Sums(*map(jnp.zeros, ((FEATURES, FEATURES), FEATURES, (), ())))

    def blocks(a):
        return a.reshape(-1, BLOCK, *a.shape[1:])

    def sums(x, y):
        def block(total, rows):
            own = moments.sums(Sample(rows[0][:, None], rows[1]), jnp.ones(BLOCK))
            return jax.tree.map(jnp.add, total, own), None

        return jax.lax.scan(block, empty, (blocks(x), blocks(y)))[0]

    def waves(x):
        def block(total, rows):
            return total + jnp.sum(moments.features(rows), axis=0), None

        return jax.lax.scan(block, jnp.zeros(FEATURES), blocks(x))[0]

    def product(z):
        def block(total, _):
            return total + z.T @ (z + total[0, 0]), None

        return jax.lax.scan(block, jnp.zeros((FEATURES, FEATURES)), None, length=ROWS // BLOCK)[0]

    x, y = table(ROWS, DIM)
    half = x[: ROWS // 2], y[: ROWS // 2]
    compiled, smaller = (jax.jit(sums).lower(*data).compile() for data in ((x, y), half))
    z = jax.random.normal(jax.random.key(2), (BLOCK, FEATURES)) * 1e-3
    together, features, products = median_times(
        functools.partial(compiled, x, y),
        functools.partial(jax.jit(waves), x),
        functools.partial(jax.jit(product), z),
        repeats=3,
    )
    programs = (compiled, (x, y)), (smaller, half)
    inside = [(memory(c) - sum(a.nbytes for a in data)) / 2**20 for c, data in programs]
    flops = 2 * FEATURES**2 * ROWS / 1e9
    return [
        Row(f"Fourier moments, n = {ROWS:,}, D = {FEATURES}", together, "s"),
        Row("of which cosines and sines", features, "s"),
        Row("matrix products of the same size", flops / products, "Gflop/s"),
        faster("D² part: rate / that of matrix products", together - features, products, 0.5),
        at_most("memory beside the rows, n / half of n", *inside, 1.1, "MiB"),
    ]


def linear_fit():
    """`nj.fit` against ordinary least squares."""
    x, y, rows = observed(ROWS)
    ours, theirs, pass_ = median_times(
        lambda: nj.fit(rows).coefficients,
        lambda: LinearRegression().fit(x, y).coef_,
        lambda: nj.fit(rows, errors="jackknife").coefficients,
        repeats=5,
    )
    return [
        at_most(f"fit / LinearRegression, n = {ROWS:,}, d = {DIM}", ours, theirs, 2),
        Row("fit by the jackknife / LinearRegression", pass_ / theirs, "ratio"),
    ]


def leader(dim, seeds, required):
    """Rounds of the corrected leader in a second, a solution every 64."""
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    x, y = table(ROUNDS, dim)
    samples = jax.tree.map(
        lambda a: jnp.broadcast_to(a, (seeds, *a.shape)),
        Sample(x[:, None], y, jnp.full(ROUNDS, VARIANCE)),
    )
    seconds = median_time(functools.partial(judged(learner), samples, x), repeats=3)
    what = f"corrected_ftrl, d = {dim}, {seeds} streams"
    return reached(what, seeds * ROUNDS / seconds / 1e6, "M rounds/s", required)


def leader_of_a_table():
    """`nj.learn` of a table that is at hand, from its second call on."""
    rows = observed(ROWS)[-1]
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    seconds = median_time(lambda: nj.learn(learner, rows, jax.random.key(0)).state)
    return reached(f"learn, corrected_ftrl, d = {DIM}", ROWS / seconds / 1e6, "M rows/s", 2)


def rows():
    leaders = [leader(10, 1, 3.0), leader(10, SEEDS, 4.5), leader(64, 1, 0.4), leader_of_a_table()]
    return [*fourier_rows(), *linear_fit(), *leaders]


if __name__ == "__main__":
    report(f"float32; noise of variance {VARIANCE}", rows)
