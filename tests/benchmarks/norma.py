"""Speed of NORMA: `python tests/benchmarks/norma.py`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDOneClassSVM
from timing import by_round, faster, median_times, report

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.base import Sample, Stream, unrolled

HORIZON, STREAMS = 32_768, 16
DIM, SIZE, LENGTH_SCALE = 10, 512, 2.0
RATE, DECAY = 1.0, 0.01
FEATURES, NU = 256, 0.05
QUICK = {"HORIZON": 4_096, "STREAMS": 8}
KEY = jax.random.key(0)
KERNEL = nj.kernels.gaussian(length_scale=LENGTH_SCALE)


def classes(key, horizon):
    """A stream with y = sign(x_0 x_1) of x ~ N(0, I)."""
    x = jax.random.normal(key, (horizon, DIM))
    return Stream(x, jnp.where(x[:, 0] * x[:, 1] > 0, 1.0, -1.0))


def hinge():
    """NORMA on a ring of the newest `SIZE` rounds."""
    return nj.learners.norma(
        KERNEL, losses.hinge(), learning_rate=RATE, regularization=DECAY / RATE, buffer=SIZE
    )


def run(learner):
    """A jitted function to the predictions in one clean stream."""

    def predictions(stream):
        keys = jax.random.split(KEY, len(stream.y))  # of the learner's own randomness: not read
        samples = Sample(stream.x[:, None], stream.y)
        return unrolled(learner)(learner.init(DIM), samples, stream.x, keys)[1]

    return jax.jit(predictions)


def numpy_loop(x, y):
    """The same by a ring buffer, as NumPy users write it; f_t is evaluated once a round."""
    stored = np.zeros((SIZE, DIM), np.float32)
    alpha, predictions = np.zeros(SIZE, np.float32), np.zeros(len(y), np.float32)
    for t in range(len(y)):
        kernel = np.exp(-np.sum((stored - x[t]) ** 2, axis=1) / (2 * LENGTH_SCALE**2))
        predictions[t] = alpha @ kernel
        alpha *= 1 - DECAY
        alpha[t % SIZE] = RATE * y[t] * (y[t] * predictions[t] <= 1)
        stored[t % SIZE] = x[t]
    return predictions


def ring():
    """Rows on one stream and on many, against the scan over `step` and against NumPy."""
    one = classes(KEY, HORIZON)
    many = jax.vmap(lambda key: classes(key, HORIZON))(jax.random.split(KEY, STREAMS))
    unroll, scan = run(hinge()), run(by_round(hinge()))
    unrolls, scans = jax.jit(jax.vmap(unroll)), jax.jit(jax.vmap(scan))
    rows, setting = [], f"T = {HORIZON:,}, τ = {SIZE}"
    for streams, *both, shown, bound in (
        (1, unroll, scan, one, 5),
        (STREAMS, unrolls, scans, many, 5),
    ):
        seconds = median_times(*(functools.partial(each, shown) for each in both), repeats=3)
        name = f"{streams} stream{'s' if streams > 1 else ''}, {setting}"
        rows.append(faster(f"scan / unroll, {name}", *seconds, bound))
    x, y = map(np.asarray, one)
    np.testing.assert_allclose(numpy_loop(x, y), unroll(one), atol=1e-3)
    ours, loop = median_times(lambda: unroll(one), lambda: numpy_loop(x, y), repeats=3)
    return [*rows, faster(f"NumPy loop / unroll, 1 stream, {setting}", ours, loop, 9)]


def novelty():
    """A row on novelty detection by random features against scikit-learn, one pass."""
    features = nj.worlds.fourier_gaussian(
        KEY, FEATURES, dim=DIM, length_scale=LENGTH_SCALE, noise=nj.noise.Gaussian(0.0)
    )
    learner = nj.learners.norma(
        features, losses.novelty(nu=NU), learning_rate=0.01, regularization=0.1, copies=1,
        decay="on_update",
    )  # fmt: skip
    stream = classes(KEY, HORIZON)
    x, ours = np.asarray(stream.x), run(learner)

    def theirs():
        sampler = RBFSampler(gamma=0.5 / LENGTH_SCALE**2, n_components=FEATURES, random_state=0)
        mapped = sampler.fit_transform(x)
        peer = SGDOneClassSVM(nu=NU, max_iter=1, tol=None, shuffle=False, random_state=0)
        return peer.fit(mapped).decision_function(mapped)

    seconds = median_times(functools.partial(ours, stream), theirs)
    return faster("scikit-learn / novelty on features", *seconds, 1.1)


def rows():
    return [*ring(), novelty()]


if __name__ == "__main__":
    report(
        f"float32; x ~ N(0, I), d = {DIM}, Gaussian kernel of length scale {LENGTH_SCALE}, soft "
        f"margin 1, ηλ = {DECAY}, η = {RATE}; novelty: ν = {NU}",
        rows,
    )
