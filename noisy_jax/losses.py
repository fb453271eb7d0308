"""Losses by which predictions on clean data are judged."""

from collections.abc import Callable
from typing import NamedTuple

import chex


class Loss(NamedTuple):
    """A loss ℓ(p, y) of a prediction p for a target y, with its derivative in p.

    Attributes:
        value: `(prediction[...], y[...]) -> [...]`, ℓ(p, y).
        derivative: `(prediction[...], y[...]) -> [...]`, ∂ℓ/∂p.
    """

    value: Callable[[chex.Array, chex.Array], chex.Array]
    derivative: Callable[[chex.Array, chex.Array], chex.Array]


def squared() -> Loss:
    """Squared loss ℓ(p, y) = (p − y)², without a factor ½, so that ∂ℓ/∂p = 2(p − y).

    Source: the squared loss of all three papers on learning from noisy copies.

    Example:
        >>> squared().value(1.0, 3.0), squared().derivative(1.0, 3.0)
        (4.0, -4.0)
    """
    return Loss(_squared_value, _squared_derivative)


def _squared_value(p, y):
    return (p - y) ** 2


def _squared_derivative(p, y):
    return 2 * (p - y)
