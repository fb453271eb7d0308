"""The window that grows, against a plain loop."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.engine import growing
from noisy_jax.learners import norma
from tests.learners import references
from tests.learners.runs import both_ways, unrolled

T, DIM, START, EXCESS = 60, 2, 9, 0.1
KERNEL = nj.kernels.gaussian(length_scale=0.75**0.5)


def windows(start=START):
    """s_t in rounds t = 1, 2, …, T + 1."""
    return np.maximum(start, np.ceil(np.arange(1, T + 2) ** (0.5 + EXCESS))).astype(int)


@pytest.mark.slow
@pytest.mark.claim("NORMA-Thm6")
def test_growing_equals_the_loop(x64, rng):
    x = rng.normal(size=(T, DIM))
    y = np.where(x[:, 0] * x[:, 1] > 0, 1.0, -1.0)
    learner = norma(
        KERNEL, losses.hinge(), learning_rate=0.3, regularization=0.05,
        buffer=growing(T, start=START, excess=EXCESS), block=64,
    )  # fmt: skip

    def reference(window):
        return references.norma(
            references.gaussian_kernel(0.75**0.5),
            lambda t, p, y, s: (0.3 * y * (y * p <= 1), s), lambda t, added: 1 - 0.015, x, y,
            oldest=lambda t: t - window[t],
        )[0]  # fmt: skip

    predictions = reference(windows())
    assert windows()[-1] == 12  # it has grown
    for other in (np.full(T + 1, START), np.full(T + 1, 12), windows(start=1)):
        assert np.abs(reference(other) - predictions).max() > 0.01
    for _, made in both_ways(learner, x, y):
        np.testing.assert_allclose(made, predictions, atol=1e-12)


@pytest.mark.slow
def test_a_start_beyond_the_horizon_drops_nothing(rng):
    x, made = rng.normal(size=(T, DIM)), []
    for buffer in (growing(T, start=10**6, excess=0.3), T):
        learner = norma(
            KERNEL, losses.hinge(), learning_rate=0.3, regularization=0.05, buffer=buffer
        )
        made.append(unrolled(learner, x, np.sign(x[:, 0]))[1])
    np.testing.assert_allclose(*made, atol=1e-6)
