"""Speed, memory and traces of the linear learners: `python tests/benchmarks/linear.py`.

XLA's CPU compiler turns only small loop bodies into one kernel; beyond that size each operation of
a round is dispatched by itself, fast if they are at most 8 (`noisy_jax.xla`).
"""

import functools
import resource
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import river.linear_model
import sklearn.linear_model
from timing import Row, at_least, limited, median_time, median_times, reached, report

import noisy_jax as nj
from noisy_jax.noise.observation import observe_block
from noisy_jax.simulated.rollouts import scan_in_blocks

HORIZON, RIVER_HORIZON, MONTE_CARLO_HORIZON = 200_000, 5_000, 16_384
SEEDS, SEEDS_HORIZON, STUDY_SEEDS = 256, 4_096, 64
RADIUS, LEARNING_RATE, VARIANCE = 1.0, 0.05, 0.1
PEAKS, DIMENSIONS = True, (20, 64, 256, 784)
QUICK = {
    "HORIZON": 20_000, "SEEDS_HORIZON": 512, "MONTE_CARLO_HORIZON": 512, "RIVER_HORIZON": 2_000,
    "PEAKS": False, "DIMENSIONS": (64, 784),
}  # fmt: skip

KEY = jax.random.key(0)
LEARNER = nj.learners.two_copies(radius=RADIUS, learning_rate=LEARNING_RATE)
NOISE = nj.noise.Gaussian(VARIANCE)
COMPILED = "/jax/core/compile/backend_compile_duration"
PEAK_MEMORY = "--peak-memory"


def noisy(stream, key):
    """All rounds of a stream as the learner sees them, drawn as in `nj.rollout`."""

    def block(_, inputs):
        rounds, clean = inputs
        samples, _ = observe_block(key, rounds, 0, *clean, NOISE, None, copies=LEARNER.needs.copies)
        return None, samples._replace(cov=None)  # two_copies does not read it

    _, blocks = scan_in_blocks(block, None, (jnp.arange(len(stream.y)), stream))
    joined = [jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), b) for b in blocks]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *joined)


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
    draw = jax.jit(noisy)
    samples = draw(stream, KEY)
    drawing = millions(HORIZON, lambda: draw(stream, KEY))
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
    draw_all = jax.jit(jax.vmap(noisy, in_axes=(None, 0), out_axes=1))
    time_major = draw_all(head, seeds)
    drawing_all = millions(SEEDS * SEEDS_HORIZON, lambda: draw_all(head, seeds))
    learned_all = jax.jit(jax.vmap(learned, in_axes=1))
    all_rate = millions(SEEDS * SEEDS_HORIZON, lambda: learned_all(time_major))

    run, _ = full_run()
    study_seeds, study = seeds[:STUDY_SEEDS], jax.jit(jax.vmap(run))
    whole = millions(STUDY_SEEDS * MONTE_CARLO_HORIZON, lambda: study(study_seeds))

    return [
        reached(f"{STUDY_SEEDS} seeds, noise drawn on the way", whole, unit, 5),
        Row("noise drawn, 1 seed", drawing, unit),
        Row(f"noise drawn, {SEEDS} seeds", drawing_all, unit),
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
        samples = jax.jit(noisy)(nj.streams.linear(KEY, rounds, dim), KEY)
        x, y = np.array(samples.x[:, 0], np.float64), np.array(samples.y, np.float64)
        seconds = median_times(
            functools.partial(learned, samples), functools.partial(_sgd().fit, x, y)
        )
        ours, peer = (rounds / each / 1e6 for each in seconds)
        rows.append(at_least(f"two_copies / scikit-learn, d = {dim}", ours, peer, 1.3))
    return rows


def full_run():
    """A run for `nj.monte_carlo`, and a list that grows by one at each trace of it."""
    stream = nj.streams.linear(KEY, MONTE_CARLO_HORIZON, 10, radius=RADIUS)
    comparator = nj.comparators.linear_ball(stream, RADIUS).predictions
    traced = []

    def run(key):
        traced.append(key)
        return nj.simulated.final_regret(
            LEARNER, stream, NOISE, key, loss=nj.losses.squared(), comparator=comparator
        )

    return run, traced


def print_peak_memory(num_seeds, batch_size):
    """Prints this process's peak resident memory in KiB (on Linux), after one Monte Carlo."""
    run, _ = full_run()
    nj.monte_carlo(run, num_seeds, KEY, batch_size=batch_size)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def memory():
    """Rows on the peak memory of Monte Carlo, each case in a fresh process."""
    rows, peaks = [], []
    for num_seeds, batch_size in ((256, 64), (2_048, 64), (2_048, 512)):
        command = [sys.executable, __file__, PEAK_MEMORY, str(num_seeds), str(batch_size)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        peaks.append(int(done.stdout) / 1024)
        what = f"peak memory, {num_seeds:,} seeds, {batch_size} at once"
        rows.append(Row(what, peaks[-1], "MiB"))
    # Peaks of equal runs differ by some 20 MiB; predictions kept for all seeds would take 128 more.
    by_seeds, by_batch = peaks[1] - peaks[0], peaks[2] - peaks[1]
    return [
        *rows,
        limited("growth with 8 times the seeds", by_seeds, "MiB", 64),
        Row("growth with 8 times the batch", by_batch, "MiB"),
    ]


def traces():
    """Rows on how often Python code is traced, and XLA compiles, when a call is repeated."""
    run, traced = full_run()
    nj.monte_carlo(run, SEEDS, KEY)
    traced.clear()
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **__: compiled.append(event) if event == COMPILED else None
    )
    nj.monte_carlo(run, SEEDS, KEY)
    second = len(traced), len(compiled)

    stream = nj.streams.resampled(KEY, nj.streams.dataset("diabetes"), MONTE_CARLO_HORIZON)
    swept = []

    @jax.jit
    def predictions(radius, learning_rate, variance):
        swept.append(radius)
        learner = nj.learners.two_copies(radius=radius, learning_rate=learning_rate)
        return nj.rollout(learner, stream, nj.noise.Gaussian(variance), KEY).predictions

    for factor in (1.0, 2.0, 3.0):
        predictions(factor * RADIUS, factor * LEARNING_RATE, factor * VARIANCE)
    return [
        limited("traces by a second monte_carlo of the same run", second[0], "count", 1),
        limited("compilations by a second monte_carlo of the same run", second[1], "count", 0),
        limited("traces by a sweep of radius, rate and variance", len(swept), "count", 1),
    ]


def rows():
    """All rows; the order matters, as a process starts with the peak of the one that started it."""
    peaks = memory() if PEAKS else []
    return [*speed(), *dimensions(), *peaks, *traces()]


if __name__ == "__main__":
    if sys.argv[1:2] == [PEAK_MEMORY]:
        print_peak_memory(*map(int, sys.argv[2:]))
        sys.exit()
    report(
        f"float32; data set diabetes (d = 10), T = {HORIZON:,}, noise of variance {VARIANCE}, "
        f"radius {RADIUS}, learning rate {LEARNING_RATE}\n"
        f"{SEEDS} seeds: T = {SEEDS_HORIZON:,}; river: T = {RIVER_HORIZON:,}; memory: "
        f"final_regret, T = {MONTE_CARLO_HORIZON:,}; dimensions and memory: streams.linear",
        rows,
    )
