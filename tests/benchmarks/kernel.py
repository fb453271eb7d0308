"""Speed of the kernel learners: `python tests/benchmarks/kernel.py`.

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
    against_scan,
    at_least,
    at_most,
    descent,
    faster,
    judged,
    median_time,
    median_times,
    report,
    shown,
)

import noisy_jax as nj

HORIZON, SEEDS = 2_048, 64
NUMPY_SEEDS = 4
DIM, LENGTH_SCALE, VARIANCE = 16, 2.0, 0.5
DESCENT = {"radius": 3.0, "learning_rate": 0.02}
BLOCK, CHUNK = 64, 256  # of the floor, as in the engine

FEATURES, FEATURES_DIM = 256, 10
FOURIER_HORIZON, STREAMS_HORIZON, AT_ONCE = 100_000, 20_000, 2_000

QUICK = {
    "HORIZON": 512, "SEEDS": 16, "NUMPY_SEEDS": 1,
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
                return own @ WORLD.surrogate(stored, queries), own @ WORLD.kernel(stored, points)

            def add_chunk(chunk, sums):
                return jax.tree.map(jnp.add, sums, values(chunk * CHUNK, CHUNK))

            return None, jax.lax.fori_loop(0, -(-start // CHUNK), add_chunk, values(start, BLOCK))

        return jax.lax.scan(one_block, None, jnp.arange(0, len(x), BLOCK))[1]

    return jax.vmap(one_seed)(samples, weights)


def plain_numpy(samples, x, y):
    """Predictions of Algorithm 2 with the recursion for ‖w‖², as NumPy users write it."""
    scale = np.float32((1 - VARIANCE / LENGTH_SCALE**2) ** (-DIM / 2))

    def squared_distances(stored, z):
        return np.sum((stored - z) ** 2, axis=1)

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
    """Rows on parallel worlds: against the scan, the floor and NumPy."""
    stream, keys = smooth(KEY, HORIZON, DIM), jax.random.split(KEY, SEEDS)
    samples = shown(stream, keys, NOISE, copies=2)
    weights = jax.random.normal(KEY, (SEEDS, HORIZON))
    learner = nj.learners.parallel_worlds(WORLD, horizon=HORIZON, **DESCENT)
    unroll = judged(learner)
    ours, least = median_times(
        functools.partial(unroll, samples, stream.x),
        functools.partial(floor, samples, stream.x, weights),
    )
    setting = f"T = {HORIZON:,}, S = {SEEDS}"
    return [
        against_scan(setting, ours, learner, samples, stream.x, 6),
        at_most(f"unroll / floor, {setting}", ours, least, 1.4),
        *against_numpy(ours, unroll, samples, stream),
    ]


def against_numpy(ours, unroll, samples, stream):
    """Rows on NumPy, a seed at a time: a few are timed, the time of all is extrapolated."""
    copies, x, y = np.asarray(samples.x), *map(np.asarray, stream)
    predictions = np.asarray(unroll(samples, stream.x)[1])
    rows = []
    loops = {"plain": plain_numpy, "tuned": tuned_numpy}
    for name, loop in loops.items():
        np.testing.assert_allclose(loop(copies[0], x, y), predictions[0], atol=1e-4)

        def some_seeds(loop=loop):
            for seed in range(NUMPY_SEEDS):
                loop(copies[seed], x, y)

        seconds = median_time(some_seeds, repeats=3) * len(copies) / NUMPY_SEEDS
        bound = 30 if loop is plain_numpy else None
        rows.append(faster(f"NumPy, {name} loop / unroll", ours, seconds, bound))
    return rows


def fourier():
    """Rows on random features against scikit-learn.

    Both sides map two copies and the clean row, predict and learn; scikit-learn's do so `AT_ONCE`
    rows at a time, which fit the cache, one stream after another.
    """
    world = nj.worlds.gaussian(dim=FEATURES_DIM, length_scale=LENGTH_SCALE, noise=NOISE)
    learn = judged(nj.learners.fourier_worlds(nj.worlds.fourier(KEY, world, FEATURES), **DESCENT))
    np.empty(3 * 2**20)  # once it is freed, glibc keeps memory of such a size for scikit-learn
    sampler = RBFSampler(n_components=FEATURES, gamma=0.5 / LENGTH_SCALE**2, random_state=0)
    rows = []
    for streams, horizon, bound in (
        (1, FOURIER_HORIZON, 0.9), (4, STREAMS_HORIZON, 1.0), (16, STREAMS_HORIZON, 1.4)
    ):  # fmt: skip
        stream = smooth(KEY, horizon, FEATURES_DIM)
        samples = shown(stream, jax.random.split(KEY, streams), NOISE, copies=2)
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
    return [*engine(), *fourier()]


if __name__ == "__main__":
    report(
        f"float32; x ~ N(0, I/d), y = sin(3x_0), noise of variance {VARIANCE}, Gaussian kernel of "
        f"length scale {LENGTH_SCALE}\nradius {DESCENT['radius']}, learning rate "
        f"{DESCENT['learning_rate']}; "
        f"parallel_worlds: d = {DIM}; fourier_worlds: d = {FEATURES_DIM}, one stream of "
        f"{FOURIER_HORIZON:,} rounds, 4 and 16 of {STREAMS_HORIZON:,}",
        rows,
    )
