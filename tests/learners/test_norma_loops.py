"""NORMA against plain loops."""

import warnings

import numpy as np
import pytest

from noisy_jax import losses
from noisy_jax.learners import norma
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


LOSSES = CLASSES | VALUES
FALLING = ("soft margin", "novelty", "huber joint")


@pytest.mark.slow
@pytest.mark.claim("NORMA-Eq10-12", "NORMA-offset", "NORMA-Eq13-16,18", "NORMA-Eq19", "NORMA-Eq20")
@pytest.mark.claim("NORMA-Eq7-9", "NORMA-Eq24", "NORMA-adaptive-σ", "NORMA-Fig1")
@pytest.mark.parametrize(
    ("name", "falls"), [*((name, False) for name in LOSSES), *((name, True) for name in FALLING)]
)
def test_equals_the_loop(x64, rng, name, falls):
    """At a constant rate with a small ring, or at a falling one with decay in updates only."""
    (loss, step), offset = LOSSES[name], name != "novelty" and not falls
    x, y = (labelled if name in CLASSES else valued)(rng)
    regularization, size = (0.3, T + 7) if falls else (0.4, 20)

    def rate(t):
        return 0.5 / (t + 1) ** 0.5 if falls else 0.1

    with warnings.catch_warnings(action="ignore"):  # few support vectors
        learner = norma(
            KERNEL, loss, learning_rate=rate if falls else 0.1, regularization=regularization,
            buffer=size, offset=offset, decay="on_update" if falls else "always",
        )  # fmt: skip
    predictions, scales, alpha, b, scale = references.norma(
        PLAIN, lambda t, *values: step(rate(t), *values),
        lambda t, added: 1 - rate(t) * regularization * (not falls or added != 0), x, y,
        oldest=lambda t: t - size, offset=offset, scale=getattr(loss, "initial", 0.0),
    )  # fmt: skip
    if name == "novelty":
        predictions = predictions - scales
    state, made, rules = scanned(learner, x, y)
    np.testing.assert_allclose(made, predictions, atol=1e-12)
    if falls:  # in blocks, whose rounds have rates of their own
        np.testing.assert_allclose(unrolled(learner, x, y)[1], predictions, atol=1e-12)
    np.testing.assert_allclose(state.weights[:size], kept(alpha, size), atol=1e-12)
    np.testing.assert_allclose(state.rule.offset, b, atol=1e-12)
    assert np.any(rules.offset != 0) == offset
    if name not in FAR:
        assert state.rule.scale is None
        return
    np.testing.assert_allclose(rules.scale, scales, atol=1e-12)
    np.testing.assert_allclose(state.rule.scale, scale, atol=1e-12)
    if not falls:
        share = np.mean(FAR[name](np.asarray(made), y, np.asarray(rules.scale)))
        change = float(state.rule.scale) - loss.initial
        np.testing.assert_allclose(abs(share - NU), abs(change) / (0.1 * T), atol=1e-12)
        assert change != 0
