"""NORMA against plain loops, and against itself in other units."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.engine.memory import Space
from noisy_jax.learners import norma
from noisy_jax.learners.norma import _of_strong_convexity
from tests.learners import references
from tests.learners.norma_runs import FAR, KERNEL, PLAIN, T, kept, labelled, scanned, valued
from tests.learners.runs import unrolled

NU, SIGMA = 0.3, 0.6

# Each loss as it is given to `norma`, and (α_t, s_{t+1}) of a round as the corrected claims write
# them, from the rate e, the prediction p, the target y and the scale s.
CLASSES = {
    "soft margin": (losses.hinge(margin=0.4), lambda e, p, y, s: (e * y * (y * p <= 0.4), s)),
    "logistic": (losses.logistic(), lambda e, p, y, s: (e * y / (1 + np.exp(y * p)), s)),
    "nu": (
        losses.nu_hinge(nu=NU),
        lambda e, p, y, s: (e * y * (y * p <= s), s + e * (NU - (y * p <= s))),
    ),
    "novelty": (
        losses.novelty(nu=NU),
        lambda e, p, y, s: (e, s - e * (1 - NU)) if p <= s else (0.0, s + e * NU),
    ),
}
VALUES = {
    "squared": (losses.squared(), lambda e, p, y, s: (2 * e * (y - p), s)),
    "tube": (
        losses.epsilon_insensitive(epsilon=0.2),
        lambda e, p, y, s: (e * np.sign(y - p) * (abs(y - p) > 0.2), s),
    ),
    "nu tube": (
        losses.nu_epsilon_insensitive(nu=NU, initial=0.5),
        lambda e, p, y, s: (
            (e * np.sign(y - p), s + (1 - NU) * e) if abs(y - p) > s else (0.0, s - NU * e)
        ),
    ),
    "huber": (
        losses.huber(width=SIGMA),
        lambda e, p, y, s: (e * np.sign(y - p) if abs(y - p) > SIGMA else e * (y - p) / SIGMA, s),
    ),
    "huber quantile": (
        losses.nu_huber(nu=NU),
        lambda e, p, y, s: (e * np.clip((y - p) / s, -1, 1), s + e * ((abs(y - p) > s) - NU)),
    ),
    "huber joint": (
        losses.nu_huber(nu=NU, tracker="joint"),
        lambda e, p, y, s: (
            e * np.clip((y - p) / s, -1, 1),
            s + e * ((0.5 if abs(y - p) > s else (y - p) ** 2 / (2 * s**2)) - NU),
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.claim("NORMA-Eq10-12", "NORMA-offset", "NORMA-Eq13-16,18", "NORMA-Eq19", "NORMA-Eq20")
@pytest.mark.claim("NORMA-Eq24", "NORMA-adaptive-σ", "NORMA-Fig1")
@pytest.mark.parametrize("name", [*CLASSES, *VALUES])
def test_constant_rate_and_small_ring_equal_the_loop(x64, rng, name):
    loss, step = {**CLASSES, **VALUES}[name]
    x, y = (labelled if name in CLASSES else valued)(rng)
    offset, rate, decay, size = name != "novelty", 0.1, 0.04, 20
    options = {"learning_rate": rate, "regularization": decay / rate, "buffer": size}
    with warnings.catch_warnings(action="ignore"):  # few support vectors
        learner = norma(KERNEL, loss, offset=offset, **options)
    predictions, scales, alpha, b, scale = references.norma(
        PLAIN, lambda t, *values: step(rate, *values), lambda t, added: 1 - decay, x, y,
        oldest=lambda t: t - size, offset=offset, scale=getattr(loss, "initial", 0.0),
    )  # fmt: skip
    if name == "novelty":
        predictions = predictions - scales
    state, made, rules = scanned(learner, x, y)  # the test below unrolls
    np.testing.assert_allclose(made, predictions, atol=1e-12)
    np.testing.assert_allclose(state.weights[:size], kept(alpha, size), atol=1e-12)
    np.testing.assert_allclose(state.rule.offset, b, atol=1e-12)
    assert np.any(rules.offset != 0) == offset
    if name in FAR:
        np.testing.assert_allclose(rules.scale, scales, atol=1e-12)
        np.testing.assert_allclose(state.rule.scale, scale, atol=1e-12)
        share = np.mean(FAR[name](np.asarray(made), y, np.asarray(rules.scale)))
        change = float(state.rule.scale) - loss.initial
        np.testing.assert_allclose(abs(share - NU), abs(change) / (rate * T), atol=1e-12)
        assert change != 0
    else:
        assert state.rule.scale is None


@pytest.mark.slow
@pytest.mark.claim("NORMA-Eq7-9")
@pytest.mark.parametrize("name", ["soft margin", "novelty", "huber joint"])
def test_schedule_and_decay_on_updates_equal_the_loop(x64, rng, name):
    loss, step = {**CLASSES, **VALUES}[name]
    x, y = (labelled if name in CLASSES else valued)(rng)
    learner = norma(
        KERNEL, loss, learning_rate=lambda t: 0.5 / jnp.sqrt(t + 1), regularization=0.3,
        buffer=T + 7, decay="on_update",
    )  # fmt: skip
    predictions, scales, alpha, _, scale = references.norma(
        PLAIN, lambda t, *values: step(0.5 / np.sqrt(t + 1), *values),
        lambda t, added: 1 - 0.15 / np.sqrt(t + 1) * (added != 0), x, y,
        oldest=lambda t: 0, scale=getattr(loss, "initial", 0.0),
    )  # fmt: skip
    if name == "novelty":
        predictions = predictions - scales
    state, made = unrolled(learner, x, y)
    np.testing.assert_allclose(made, predictions, atol=1e-12)
    np.testing.assert_allclose(state.weights[:T], alpha, atol=1e-12)
    if name in FAR:
        np.testing.assert_allclose(state.rule.scale, scale, atol=1e-12)


def test_the_default_rate_is_that_of_strong_convexity_up_to_a_third_of_the_buffer():
    """1/(λt) in round t = 1, 2, …, and constant from a third of the buffer on.

    With the squared loss and an offset it is 1/(λ min(t, τ/3) + 2(‖φ‖² + 1)).
    """
    kernel = nj.kernels.linear()
    ring, everything = nj.engine.ring, nj.engine.everything
    for make, longest in ((ring(9), 3.0), (ring(2), 1.0), (everything(5), 5.0)):
        memory = make(Space(kernel.gram, kernel.gram))
        grown = 0.5 * np.minimum(np.arange(1, 6), longest)
        rate = _of_strong_convexity(0.5, memory, losses.hinge(), False)
        np.testing.assert_allclose([float(rate(t, 3.0)) for t in range(5)], 1 / grown)
        rate = _of_strong_convexity(0.5, memory, losses.squared(), True)
        np.testing.assert_allclose([float(rate(t, 3.0)) for t in range(5)], 1 / (grown + 8))
