"""Speed and memory of the kernel learners: `python tests/benchmarks/kernel.py`.

The floor under `unroll` is what no exact kernel learner is spared: the surrogate of each stored
copy at both copies of every later round, and its clean kernel at the clean instance.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import sklearn
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDRegressor
from timing import (
    Row,
    against_scan,
    at_least,
    at_most,
    descent,
    faster,
    growth,
    judged,
    median_time,
    median_times,
    memory,
    report,
)

import noisy_jax as nj
from noisy_jax.noise import observe

HORIZON, SEEDS = 2_048, 64
ONE_STREAM_HORIZON = 16_384
NUMPY_SEEDS = 4
DIM, LENGTH_SCALE, VARIANCE = 16, 2.0, 0.5
DESCENT = {"radius": 3.0, "learning_rate": 0.02}
BLOCK, CHUNK = 64, 256  # of the floor, as in the engine

FEATURES, FEATURES_DIM = 256, 10
FOURIER_HORIZON, STREAMS_HORIZON, AT_ONCE = 100_000, 20_000, 2_000
LONG, DRAWN_AT_ONCE = 10, 800

QUICK = {
    "HORIZON": 512, "SEEDS": 16, "ONE_STREAM_HORIZON": 2_048, "NUMPY_SEEDS": 1,
    "FOURIER_HORIZON": 16_000, "STREAMS_HORIZON": 4_000,
}  # fmt: skip

KEY = jax.random.key(0)
NOISE = nj.noise.Gaussian(VARIANCE)
WORLD = nj.worlds.gaussian(dim=DIM, length_scale=LENGTH_SCALE, noise=NOISE)


def smooth(key, horizon, dim):
    """A stream with y = sin(3x_0) of x ~ N(0, I/d)."""
    x = jax.random.normal(key, (horizon, dim)) / np.sqrt(dim)
    return nj.Stream(x, jnp.sin(3 * x[:, 0]))


@jax.jit
def noisy(stream, key):
    """All rounds of a stream as the learner sees them, a key for each."""

    def one_round(t, x, y):
        sample = observe(jax.random.fold_in(key, t), x, y, NOISE, copies=2)
        return sample._replace(cov=None)  # worlds of one distribution do not read it

    return jax.vmap(one_round)(jnp.arange(len(stream.y)), *stream)


noisy_by_seed = jax.jit(jax.vmap(noisy, in_axes=(None, 0)))


@jax.jit
def floor(samples, x, weights):
    """Values at both copies and at the clean instance of every round, from weights of before it.

    Nothing but kernel evaluations, and the product that sums each up: weights are of `[S, T]` and
    known beforehand. The triangle inside a block is evaluated whole, as in the engine.
    """

    def one_seed(samples, weights):
        def rows(a, start, count):
            return jax.lax.dynamic_slice_in_dim(a, start, count)

        def one_block(_, start):
            copies = rows(samples.x, start, BLOCK)
            queries, points = copies.reshape(-1, DIM), rows(x, start, BLOCK)

            def values(first, count):
                stored, own = rows(samples.x[:, 0], first, count), rows(weights, first, count)
                return WORLD.values(own, stored, queries, points)

            def add_chunk(chunk, sums):
                return jax.tree.map(jnp.add, sums, values(chunk * CHUNK, CHUNK))

            return None, jax.lax.fori_loop(0, -(-start // CHUNK), add_chunk, values(start, BLOCK))

        return jax.lax.scan(one_block, None, jnp.arange(0, len(x), BLOCK))[1]

    return jax.vmap(one_seed)(samples, weights)


def by_differences(stored, z):
    """‖x_i − z‖² as it is written, `[n]`."""
    return np.sum((stored - z) ** 2, axis=1)


def by_products(stored, z):
    """‖x_i − z‖² by a matrix-vector product, `[n]`."""
    return np.sum(stored**2, axis=1) + z @ z - 2 * stored @ z


def plain_numpy(samples, x, y, squared_distances=by_differences):
    """Predictions of Algorithm 2 with the recursion for ‖w‖², as NumPy users write it."""
    scale = np.float32((1 - VARIANCE / LENGTH_SCALE**2) ** (-DIM / 2))

    def surrogate(stored, z):
        return scale * np.exp(-squared_distances(stored, z) / (2 * (LENGTH_SCALE**2 - VARIANCE)))

    def kernel(stored, z):
        return np.exp(-squared_distances(stored, z) / (2 * LENGTH_SCALE**2))

    def read(t, weights):
        stored, (own, query) = samples[:t, 0], samples[t]
        values = kernel(stored, x[t]), surrogate(stored, query), surrogate(stored, own)
        return *(weights @ value for value in values), scale

    return descent(read, y, **DESCENT)


def tuned_numpy(samples, x, y):
    """The same by one product, one exp and one weighted sum a round, as far as NumPy goes."""
    squares = LENGTH_SCALE**2 - VARIANCE * np.array([1, 1, 0], np.float32)
    scale = np.array([(1 - VARIANCE / LENGTH_SCALE**2) ** (-DIM / 2)] * 2 + [1], np.float32)
    # −‖z − x̃‖²/2ℓ² as an inner product of (2z, −1, −‖z‖²)/2ℓ² and (x̃, ‖x̃‖², 1).
    stored = np.concatenate([samples[:, 0].T, np.sum(samples[:, 0] ** 2, axis=1)[None]])
    stored = np.concatenate([stored, np.ones((1, len(y)), np.float32)])
    z = np.concatenate([samples, x[:, None]], axis=1)
    ones = np.ones((len(y), 3, 1), np.float32)
    queries = np.concatenate([2 * z, -ones, -np.sum(z**2, axis=2, keepdims=True)], axis=2)
    queries /= 2 * squares[:, None]

    def read(t, weights):
        gram = queries[t] @ stored[:, :t]
        own, query, prediction = scale * (np.exp(gram, out=gram) @ weights)
        return prediction, query, own, scale[0]

    return descent(read, y, **DESCENT)


def engine():
    """Rows on parallel worlds: against the scan, the floor, NumPy, and with twice the rounds."""
    rows, runs = [], []
    for horizon, seeds in ((HORIZON, SEEDS), (2 * HORIZON, SEEDS // 2)):
        stream = smooth(KEY, horizon, DIM)
        keys = jax.random.split(KEY, seeds)
        samples = noisy_by_seed(stream, keys)
        weights = jax.random.normal(KEY, (seeds, horizon))
        learner = nj.learners.parallel_worlds(WORLD, horizon=horizon, **DESCENT)
        unroll = judged(learner)
        ours, least, drawing = median_times(
            functools.partial(unroll, samples, stream.x),
            functools.partial(floor, samples, stream.x, weights),
            functools.partial(noisy_by_seed, stream, keys),
        )
        setting = f"T = {horizon:,}, S = {seeds}"
        rows += [
            Row(f"noise drawn, {setting}", drawing, "s"),
            against_scan(setting, ours, learner, samples, stream.x, 6),
            at_most(f"unroll / floor, {setting}", ours, least, 1.4),
        ]
        if seeds == SEEDS:
            rows += against_numpy(ours, unroll, samples, stream)
        runs.append((learner, jax.tree.map(lambda a: a[: SEEDS // 2], samples), stream.x))
    return rows + growth(*runs)


def against_numpy(ours, unroll, samples, stream):
    """Rows on NumPy, a seed at a time: a few are timed, the time of all is extrapolated."""
    copies, x, y = np.asarray(samples.x), *map(np.asarray, stream)
    predictions = np.asarray(unroll(samples, stream.x)[1])
    rows = []
    products = functools.partial(plain_numpy, squared_distances=by_products)
    loops = {"plain": plain_numpy, "matrix-vector": products, "tuned": tuned_numpy}
    for name, loop in loops.items():
        np.testing.assert_allclose(loop(copies[0], x, y), predictions[0], atol=1e-4)

        def some_seeds(loop=loop):
            for seed in range(NUMPY_SEEDS):
                loop(copies[seed], x, y)

        seconds = median_time(some_seeds, repeats=3) * len(copies) / NUMPY_SEEDS
        bound = 30 if loop is plain_numpy else None
        rows.append(faster(f"NumPy, {name} loop / unroll", ours, seconds, bound))
    return rows


def one_stream():
    """A row on one stream, where no other seed fills the cores."""
    stream = smooth(KEY, ONE_STREAM_HORIZON, DIM)
    samples = jax.tree.map(lambda a: a[None], noisy(stream, KEY))
    learner = nj.learners.parallel_worlds(WORLD, horizon=ONE_STREAM_HORIZON, **DESCENT)
    ours = median_time(functools.partial(judged(learner), samples, stream.x), repeats=3)
    setting = f"one stream, T = {ONE_STREAM_HORIZON:,}"
    return against_scan(setting, ours, learner, samples, stream.x, 5)


def fourier():
    """Rows on random features against scikit-learn, and over many rounds."""
    world = nj.worlds.gaussian(dim=FEATURES_DIM, length_scale=LENGTH_SCALE, noise=NOISE)
    learner = nj.learners.fourier_worlds(nj.worlds.fourier(KEY, world, FEATURES), **DESCENT)
    rows = _against_scikit_learn(judged(learner))

    @functools.partial(jax.jit, static_argnums=0)
    def drawn_on_the_way(rounds):
        """Sum of squared losses over rounds that are never all in memory."""

        def some_rounds(t, carry):
            state, total = carry
            stream_key, noise_key = jax.random.split(jax.random.fold_in(KEY, t))
            stream = smooth(stream_key, DRAWN_AT_ONCE, FEATURES_DIM)
            samples = noisy(stream, noise_key)
            keys = jax.random.split(KEY, DRAWN_AT_ONCE)
            state, predictions, _ = learner.unroll(state, samples, stream.x, keys)
            return state, total + jnp.sum((predictions - stream.y) ** 2)

        start = learner.init(FEATURES_DIM), jnp.zeros(())
        return jax.lax.fori_loop(0, rounds // DRAWN_AT_ONCE, some_rounds, start)

    short, long = FOURIER_HORIZON, LONG * FOURIER_HORIZON
    compiled = [drawn_on_the_way.lower(rounds).compile() for rounds in (long, short)]
    times = median_times(*compiled, repeats=3)
    held = [memory(program) / 2**20 for program in compiled]
    return [
        *rows,
        at_most(f"time of {long:,} / {short:,} rounds", *times, round(1.1 * LONG, 1)),
        at_most(f"memory of {long:,} / {short:,} rounds", *held, 1, "MiB"),
    ]


def _against_scikit_learn(learn):
    """Rows on random features: both sides map two copies and the clean row, predict and learn.

    scikit-learn's do so `AT_ONCE` rows at a time, which fit the cache, one stream after another.
    """
    np.empty(3 * 2**20)  # once it is freed, glibc keeps memory of such a size for scikit-learn
    sampler = RBFSampler(n_components=FEATURES, gamma=0.5 / LENGTH_SCALE**2, random_state=0)
    rows = []
    for streams, horizon, bound in (
        (1, FOURIER_HORIZON, 0.9), (4, STREAMS_HORIZON, 1.0), (16, STREAMS_HORIZON, 1.4)
    ):  # fmt: skip
        stream = smooth(KEY, horizon, FEATURES_DIM)
        samples = noisy_by_seed(stream, jax.random.split(KEY, streams))
        copies, x, y = np.asarray(samples.x), *map(np.asarray, stream)
        maps = [[first, second, x] for first, second in copies.swapaxes(1, 2).copy()]
        sampler.fit(x)

        def peer(maps=maps, y=y):
            for own in maps:
                model = SGDRegressor(shuffle=False)
                for start in range(0, len(y), AT_ONCE):
                    some = slice(start, start + AT_ONCE)
                    first, _, clean = (sampler.transform(rows[some]) for rows in own)
                    model.partial_fit(first, y[some]).predict(clean)

        ours, theirs = median_times(functools.partial(learn, samples, stream.x), peer)
        rates = (streams * horizon / seconds / 1e6 for seconds in (ours, theirs))
        name = f"fourier_worlds, D = {FEATURES}, {streams} stream{'s' if streams > 1 else ''}"
        rows.append(at_least(f"{name} / scikit-learn {sklearn.__version__}", *rates, bound))
    return rows


def rows():
    return [*engine(), one_stream(), *fourier()]


if __name__ == "__main__":
    report(
        f"float32; x ~ N(0, I/d), y = sin(3x_0), noise of variance {VARIANCE}, Gaussian kernel of "
        f"length scale {LENGTH_SCALE}\nradius {DESCENT['radius']}, learning rate "
        f"{DESCENT['learning_rate']}; "
        f"parallel_worlds: d = {DIM}; fourier_worlds: d = {FEATURES_DIM}, one stream of "
        f"{FOURIER_HORIZON:,} rounds, 4 and 16 of {STREAMS_HORIZON:,}",
        rows,
    )
