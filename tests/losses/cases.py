"""Losses that the tests of this room share."""

import numpy as np
import pytest
from scipy.special import erf

from noisy_jax import losses


def bell(u):
    return np.exp(-(u**2)) / np.sqrt(np.pi)


# Each loss, its value as a function of the margin or residual, and where that has kinks.
LOSSES = {
    "squared": (losses.squared(), lambda a: a**2, ()),
    "logistic": (losses.logistic(), lambda a: np.log1p(np.exp(-a)), ()),
    "exponential": (losses.exponential(), lambda a: np.exp(-a), ()),
    "smoothed_absolute": (
        losses.smoothed_absolute(sharpness=1.7),
        lambda a: a * erf(1.7 * a) + bell(1.7 * a) / 1.7,
        (),
    ),
    "smoothed_hinge": (
        losses.smoothed_hinge(sharpness=1.7),
        lambda a: ((a - 1) * (erf(1.7 * (a - 1)) - 1) + bell(1.7 * (a - 1)) / 1.7) / 2,
        (),
    ),
    "hinge": (losses.hinge(margin=0.6), lambda a: np.maximum(0, 0.6 - a), (0.6,)),
    "perceptron": (losses.hinge(margin=0.0), lambda a: np.maximum(0, -a), (0.0,)),
    "epsilon_insensitive": (
        losses.epsilon_insensitive(epsilon=0.4),
        lambda a: np.maximum(0, np.abs(a) - 0.4),
        (-0.4, 0.4),
    ),
    "absolute": (losses.absolute(), np.abs, (0.0,)),
    "huber": (
        losses.huber(width=0.8),
        lambda a: np.where(np.abs(a) <= 0.8, a**2 / 1.6, np.abs(a) - 0.4),
        (-0.8, 0.8),
    ),
}


every_loss = pytest.mark.parametrize("name", LOSSES)
