"""Speed of moments, of fits and of the corrected leader: `python tests/benchmarks/moments.py`.

Needs the extra `benchmark` (scikit-learn is the peer) and a machine that does nothing else. It
reports which requirements are met; its exit status is 0 in any case.
"""

import functools
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import pandas
from sklearn.linear_model import LinearRegression
from timing import Row, at_most, faster, judged, machine, median_times, memory, print_table

import noisy_jax as nj
from noisy_jax.base import Sample

ROWS, DIM, FEATURES, BLOCK = 1_000_000, 10, 256, 4000
SIMEX_ROWS, DRAWS = 100_000, 100
CSV_ROWS = 1_000_000
ROUNDS, SEEDS = 262_144, 16
VARIANCE = 0.1
QUICK = {"ROWS": 200_000, "SIMEX_ROWS": 20_000, "ROUNDS": 65_536, "SEEDS": 4}


def table(rows, dim):
    """Noisy float32 rows and their targets."""
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (rows, dim))
    y = x @ jnp.ones(dim) + jax.random.normal(keys[1], (rows,))
    return x + VARIANCE**0.5 * jax.random.normal(keys[2], x.shape), y


def fourier_rows():
    """The sums of Fourier moments in blocks, against the matrix products that they contain."""
    frequencies = nj.moments.gaussian_frequencies(
        jax.random.key(1),
        FEATURES,
        dim=DIM,
        length_scale=2.0,
        characteristic=nj.noise.Gaussian(VARIANCE),
    )
    moments = nj.moments.fourier(frequencies)

    empty = nj.moments.Sums(
        jnp.zeros((FEATURES, FEATURES)), jnp.zeros(FEATURES), jnp.zeros(()), jnp.zeros(())
    )

    def sums(x, y):
        def block(total, rows):
            own = moments.sums(Sample(rows[0][:, None], rows[1]), jnp.ones(BLOCK))
            return jax.tree.map(jnp.add, total, own), None

        count = len(y) // BLOCK
        rows = (
            x[: count * BLOCK].reshape(count, BLOCK, DIM),
            y[: count * BLOCK].reshape(count, BLOCK),
        )
        return jax.lax.scan(block, empty, rows)[0]

    def waves(x):
        def block(total, rows):
            return total + jnp.sum(moments.features(rows), axis=0), None

        count = len(x) // BLOCK
        rows = x[: count * BLOCK].reshape(count, BLOCK, DIM)
        return jax.lax.scan(block, jnp.zeros(FEATURES), rows)[0]

    def product(z):
        def block(total, _):
            return total + z.T @ (z + total[0, 0]), None

        return jax.lax.scan(block, jnp.zeros((FEATURES, FEATURES)), None, length=ROWS // BLOCK)[0]

    x, y = table(ROWS, DIM)
    half = x[: ROWS // 2], y[: ROWS // 2]
    compiled = jax.jit(sums).lower(x, y).compile()
    smaller = jax.jit(sums).lower(*half).compile()
    z = jax.random.normal(jax.random.key(2), (BLOCK, FEATURES)) * 1e-3
    times = median_times(
        functools.partial(compiled, x, y),
        functools.partial(jax.jit(waves), x),
        functools.partial(jax.jit(product), z),
        repeats=3,
    )
    together, features, products = times
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
    x, y = (np.asarray(a, np.float64) for a in table(ROWS, DIM))
    observed = nj.observations.from_arrays(x, y, noise=VARIANCE)
    ours, theirs, pass_ = median_times(
        lambda: nj.fit(observed).coefficients,
        lambda: LinearRegression().fit(x, y).coef_,
        lambda: nj.fit(observed, errors="jackknife").coefficients,
        repeats=5,
    )
    return [
        at_most(f"fit / LinearRegression, n = {ROWS:,}, d = {DIM}", ours, theirs, 2),
        Row("fit by the jackknife / LinearRegression", pass_ / theirs, "ratio"),
    ]


def chunks_of_a_file():
    """`nj.fit` from chunks of a CSV file, against scikit-learn on what pandas reads of it."""
    x, y = (np.asarray(a, np.float64) for a in table(CSV_ROWS, DIM))
    names = [f"x{j}" for j in range(DIM)]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.csv"
        pandas.DataFrame(np.column_stack([x, y]), columns=[*names, "y"]).to_csv(path, index=False)
        noise = dict.fromkeys(names, VARIANCE)
        observed = nj.observations.chunks(path, target="y", noise=noise, rows=50_000)

        def theirs():
            frame = pandas.read_csv(path)
            return LinearRegression().fit(frame[names], frame["y"]).coef_

        ours, peer = median_times(lambda: nj.fit(observed).coefficients, theirs, repeats=3)
    rate = CSV_ROWS / ours / 1e6
    return [
        faster(f"fit from CSV chunks / pandas and LinearRegression, d = {DIM}", ours, peer),
        Row(f"fit from CSV chunks, d = {DIM}", rate, "M rows/s", ">= 1.5 on AMD", rate >= 1.5),
    ]


def simex():
    """`nj.methods.SIMEX`, 4 levels, against a loop over scikit-learn that adds noise to rows."""
    x, y = (np.asarray(a, np.float64) for a in table(SIMEX_ROWS, DIM))
    observed = nj.observations.from_arrays(x, y, noise=VARIANCE)
    method, random = nj.methods.SIMEX(draws=DRAWS), np.random.default_rng(0)

    def loop():
        found = [LinearRegression().fit(x, y).coef_]
        for level in method.levels:
            scale = (level * VARIANCE) ** 0.5
            each = [
                LinearRegression().fit(x + scale * random.standard_normal(x.shape), y).coef_
                for _ in range(DRAWS)
            ]
            found.append(np.mean(each, axis=0))
        curve = np.polyfit([0.0, *method.levels], np.array(found), 2)
        return curve[0] - curve[1] + curve[2]

    np.testing.assert_allclose(nj.fit(observed, method).coefficients, loop(), rtol=0.02)
    ours, theirs = median_times(lambda: nj.fit(observed, method).coefficients, loop, repeats=3)
    what = f"SIMEX of linear regression, n = {SIMEX_ROWS:,}, d = {DIM}, 4 × {DRAWS} draws"
    return [at_most(f"{what} / LinearRegression", ours, theirs, 0.05)]


def leader(dim, seeds, required):
    """Rounds of the corrected leader in a second, a solution every 64."""
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    x, y = table(ROUNDS, dim)
    samples = Sample(
        jnp.broadcast_to(x[None, :, None], (seeds, ROUNDS, 1, dim)),
        jnp.broadcast_to(y, (seeds, ROUNDS)),
        jnp.full((seeds, ROUNDS), VARIANCE),
    )
    (seconds,) = median_times(functools.partial(judged(learner), samples, x), repeats=3)
    rate = seeds * ROUNDS / seconds / 1e6
    what = f"corrected_ftrl, d = {dim}, {seeds} streams"
    return Row(what, rate, "M rounds/s", f">= {required}", rate >= required)


def leader_of_a_table():
    """`nj.learn` of a table that is at hand, from its second call on."""
    x, y = (np.asarray(a, np.float64) for a in table(ROWS, DIM))
    observed = nj.observations.from_arrays(x, y, noise=VARIANCE)
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    (seconds,) = median_times(lambda: nj.learn(learner, observed, jax.random.key(0)).state)
    rate = ROWS / seconds / 1e6
    return Row(f"learn, corrected_ftrl, d = {DIM}", rate, "M rows/s", ">= 2", rate >= 2)


def rows():
    """All rows."""
    leaders = [leader(10, 1, 3.0), leader(10, SEEDS, 4.5), leader(64, 1, 0.4), leader_of_a_table()]
    return [*fourier_rows(), *linear_fit(), *chunks_of_a_file(), *simex(), *leaders]


if __name__ == "__main__":
    print(machine(), end="\n\n")
    print_table(rows())
