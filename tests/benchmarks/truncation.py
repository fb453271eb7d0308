"""Speed under unknown noise: `python tests/benchmarks/truncation.py`.

NumPy is given the random orders, and pays for neither them nor the noise.
"""

import functools

import jax
import numpy as np
from timing import against_scan, descent, faster, judged, median_time, report, shown

import noisy_jax as nj

HORIZON, SEEDS, DIM, DEGREE = 2_048, 32, 8, 2
NUMPY_SEEDS = 2
RADIUS, LEARNING_RATE, VARIANCE = 1.0, 0.02, 0.05
QUICK = {"HORIZON": 512, "SEEDS": 8, "NUMPY_SEEDS": 1}

KEY = jax.random.key(0)
NOISE = nj.noise.Gaussian(VARIANCE)
KERNEL = nj.kernels.polynomial(degree=DEGREE)
ESTIMATOR = nj.unbiased.kernel_gradient(
    KERNEL, nj.losses.squared(), radius=RADIUS, x_second_moment=1 + DIM * VARIANCE
)


def made(horizon):
    """A stream, noisy copies of it `[S, T]`, and a learner with room for it."""
    stream = nj.streams.teacher(KEY, horizon, DIM, kernel=KERNEL)
    keys = jax.random.split(jax.random.key(1), SEEDS)
    samples = shown(stream, keys, NOISE, copies=ESTIMATOR.copies)
    learner = nj.learners.random_truncation(ESTIMATOR, horizon=horizon, learning_rate=LEARNING_RATE)
    return learner, samples, stream


@functools.partial(jax.jit, static_argnums=0)
def drawn_orders(horizon):
    """Orders of both estimates of each round, `[S, T, 2]`, as the learner draws them."""

    def one_seed(key):
        return jax.vmap(ESTIMATOR.draw_orders)(jax.random.split(key, horizon)).maps.tensor

    return jax.vmap(one_seed)(jax.random.split(KEY, SEEDS))


def plain_numpy(copies, orders, x, y):
    """Predictions of Algorithm 1 for the squared loss, with the recursion for ‖f‖².

    `copies[T, 2·DEGREE, d]` are of the stored estimate, then of the one that f is read at; orders
    are `[T, 2]`, of both.
    """
    beta = np.asarray(KERNEL.series(DEGREE).coefficients, np.float32)
    chances = np.asarray(ESTIMATOR.maps.orders.probabilities, np.float32)
    stored, query_points = copies[:, :DEGREE], copies[:, DEGREE:]

    def at_estimate(weights, order, instances):
        """Σ_i w_i ⟨Ψ̃_i, Ψ̃⟩, for Ψ̃ of an order and of instances."""
        same = np.flatnonzero(orders[: len(weights), 0] == order)
        products = weights[same] * (beta[order] / chances[order] ** 2)
        for j in range(order):
            products = products * (stored[same, j] @ instances[j])
        return products.sum()

    def at_point(weights, point):
        """Σ_i w_i ⟨Ψ̃_i, Ψ(point)⟩."""
        total = 0.0
        for order in range(DEGREE + 1):
            same = np.flatnonzero(orders[: len(weights), 0] == order)
            products = weights[same] * (beta[order] / chances[order])
            for j in range(order):
                products = products * (stored[same, j] @ point)
            total += products.sum()
        return total

    def read(t, weights):
        order, probe_order = orders[t]
        value = at_estimate(weights, probe_order, query_points[t])
        own = at_estimate(weights, order, stored[t])
        norm = beta[order] / chances[order] ** 2 * np.prod(np.sum(stored[t, :order] ** 2, axis=1))
        return at_point(weights, x[t]), value, own, norm

    return descent(read, y, radius=RADIUS, learning_rate=LEARNING_RATE)


def rows():
    learner, samples, stream = made(HORIZON)
    unroll = judged(learner)
    ours = median_time(functools.partial(unroll, samples, stream.x))
    copies, orders = np.asarray(samples.x), np.asarray(drawn_orders(HORIZON))
    x, y = map(np.asarray, stream)
    predictions = np.asarray(unroll(samples, stream.x)[1])
    np.testing.assert_allclose(plain_numpy(copies[0], orders[0], x, y), predictions[0], atol=1e-4)

    def some_seeds():
        for seed in range(NUMPY_SEEDS):
            plain_numpy(copies[seed], orders[seed], x, y)

    peer = median_time(some_seeds, repeats=3) * SEEDS / NUMPY_SEEDS
    setting = f"T = {HORIZON:,}, S = {SEEDS}"
    return [
        against_scan(setting, ours, learner, samples, stream.x, 3),
        faster("NumPy loop / unroll", ours, peer),
    ]


if __name__ == "__main__":
    report(
        f"float32; {SEEDS} seeds of random_truncation, squared loss, polynomial kernel of degree "
        f"{DEGREE}, d = {DIM}, noise of variance {VARIANCE}\n"
        f"{ESTIMATOR.copies} noisy copies at hand in a round, {ESTIMATOR.mean_copies:.2f} used on "
        "average",
        rows,
    )
