import jax
import numpy as np
import pytest

import noisy_jax as nj
from unknown_noise_gradients import base_for, measured


@pytest.mark.slow
def test_measured_gradients_are_those_of_the_function_that_was_learnt():
    # A linear kernel without noise draws nothing at random: the estimate is the gradient.
    rate, rounds = 0.3, 20
    stream = nj.streams.linear(jax.random.key(0), rounds, 3, label_noise=0.5)
    kernel, loss = nj.kernels.linear(), nj.losses.squared()
    estimator = nj.unbiased.kernel_gradient(kernel, loss, radius=5.0, x_second_moment=1.0)
    key = jax.random.key(1)
    result = measured(estimator, rate, stream, nj.noise.Gaussian(0.0), key, num_seeds=1).mean
    x, y = (np.asarray(leaf, float) for leaf in stream)
    weights = np.zeros(3)
    for t in range(rounds):
        weights -= 2 * rate * (weights @ x[t] - y[t]) * x[t]
    squares = 4 * np.sum(x**2, axis=1) * np.array([(x @ weights - y) ** 2, y**2])
    after, before = squares.mean(axis=1)
    assert abs(after - before) > 0.1 * before
    assert float(result["second_moment"]) == pytest.approx(after, rel=1e-4)
    assert abs(float(result["variance"])) < 1e-4 * after
    assert float(result["copies"]) == 2


def test_base_for_finds_the_geometric_distribution_of_a_budget():
    def mean_copies(p):
        return nj.unbiased.truncation.geometric([1.0, 0.0, 2.0, 1.0], p=p).mean

    assert base_for(mean_copies, mean_copies(2.5)) == pytest.approx(2.5, rel=1e-12)
