"""Speed of the linear learners: `python tests/benchmarks/linear.py`.

XLA's CPU compiler turns only small loop bodies into one kernel; beyond that size each operation of
a round is dispatched by itself, fast if they are at most 8 (`noisy_jax.xla`).
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import river.linear_model
import sklearn.linear_model
from timing import at_least, median_time, median_times, reached, report, shown

import noisy_jax as nj

HORIZON, RIVER_HORIZON, MONTE_CARLO_HORIZON = 200_000, 5_000, 16_384
SEEDS, SEEDS_HORIZON, STUDY_SEEDS = 256, 4_096, 64
RADIUS, LEARNING_RATE, VARIANCE = 1.0, 0.05, 0.1
DIMENSIONS = 20, 64, 256, 784
QUICK = {
    "HORIZON": 20_000, "SEEDS_HORIZON": 512, "MONTE_CARLO_HORIZON": 512, "RIVER_HORIZON": 2_000,
    "DIMENSIONS": (64, 784),
}  # fmt: skip

KEY = jax.random.key(0)
LEARNER = nj.learners.two_copies(radius=RADIUS, learning_rate=LEARNING_RATE)
NOISE = nj.noise.Gaussian(VARIANCE)


def noisy(stream, key=KEY):
    """All rounds of a stream as the learner sees them, `[T]`."""
    samples = shown(stream, key[None], NOISE, copies=LEARNER.needs.copies)
    return jax.tree.map(lambda leaf: leaf[0], samples)


@jax.jit
def learned(samples):
    """The learner's state after one step on each of the samples."""

    def one_round(state, sample):
        return LEARNER.step(state, sample, KEY), None

    return jax.lax.scan(one_round, LEARNER.init(samples.x.shape[-1]), samples)[0]


def millions(rounds, function):
    """Millions of rounds per second of a function that goes through `rounds` of them."""
    return rounds / median_time(function) / 1e6


def speed():
    """Rows on one stream against its peers, and on many seeds against one stream."""
    unit = "M rounds/s"
    stream = nj.streams.resampled(KEY, nj.streams.dataset("diabetes"), HORIZON)
    samples = noisy(stream)
    ours = millions(HORIZON, lambda: learned(samples))

    x, y = np.array(samples.x[:, 0], np.float64), np.array(samples.y, np.float64)
    sklearn_rate = millions(HORIZON, lambda: _sgd().fit(x, y))

    rows = [dict(enumerate(row)) for row in x[:RIVER_HORIZON].tolist()]
    pairs = list(zip(rows, y.tolist(), strict=False))

    def river_loop():
        model = river.linear_model.LinearRegression()
        for features, target in pairs:
            model.predict_one(features)
            model.learn_one(features, target)

    river_rate = millions(RIVER_HORIZON, river_loop)

    # The first rounds of the stream above, for seeds[0] under the same noise as there.
    head = jax.tree.map(lambda a: a[:SEEDS_HORIZON], stream)
    seeds = jnp.concatenate([KEY[None], jax.random.split(KEY, SEEDS - 1)])
    time_major = jax.jit(jax.vmap(lambda key: noisy(head, key), out_axes=1))(seeds)
    learned_all = jax.jit(jax.vmap(learned, in_axes=1))
    all_rate = millions(SEEDS * SEEDS_HORIZON, lambda: learned_all(time_major))

    run = full_run()
    study_seeds, study = seeds[:STUDY_SEEDS], jax.jit(jax.vmap(run))
    whole = millions(STUDY_SEEDS * MONTE_CARLO_HORIZON, lambda: study(study_seeds))

    return [
        reached(f"{STUDY_SEEDS} seeds, noise drawn on the way", whole, unit, 5),
        at_least("two_copies / scikit-learn", ours, sklearn_rate, 1.1),
        at_least("two_copies / river", ours, river_rate, 45),
        at_least(f"{SEEDS} seeds [T, S, 2, d] / one stream", all_rate, ours, 2),
    ]


def _sgd():
    """scikit-learn's linear regression by one pass of gradient descent over the rows."""
    return sklearn.linear_model.SGDRegressor(max_iter=1, tol=None, shuffle=False)


def dimensions():
    """Rows on the time of one round as the dimension grows, against scikit-learn's."""
    rows = []
    for dim in DIMENSIONS:
        rounds = min(HORIZON, 2**24 // dim)
        samples = noisy(nj.streams.linear(KEY, rounds, dim))
        x, y = np.array(samples.x[:, 0], np.float64), np.array(samples.y, np.float64)
        seconds = median_times(
            functools.partial(learned, samples), functools.partial(_sgd().fit, x, y)
        )
        ours, peer = (rounds / each / 1e6 for each in seconds)
        rows.append(at_least(f"two_copies / scikit-learn, d = {dim}", ours, peer, 1.3))
    return rows


def full_run():
    """The regret of one seed, with the noise drawn on the way."""
    stream = nj.streams.linear(KEY, MONTE_CARLO_HORIZON, 10, radius=RADIUS)
    comparator = nj.comparators.linear_ball(stream, RADIUS).predictions

    def run(key):
        return nj.simulated.final_regret(
            LEARNER, stream, NOISE, key, loss=nj.losses.squared(), comparator=comparator
        )

    return run


def rows():
    return [*speed(), *dimensions()]


if __name__ == "__main__":
    report(
        f"float32; data set diabetes (d = 10), T = {HORIZON:,}, noise of variance {VARIANCE}, "
        f"radius {RADIUS}, learning rate {LEARNING_RATE}\n"
        f"{SEEDS} seeds: T = {SEEDS_HORIZON:,}; river: T = {RIVER_HORIZON:,}; noise "
        f"drawn on the way: T = {MONTE_CARLO_HORIZON:,}; dimensions: streams.linear",
        rows,
    )
