"""What a loss is: a convex function of the margin or of the residual, and its derivative."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.series import PowerSeries
from noisy_jax.validation import check_labels, choice, concrete, instance


class Loss(NamedTuple):
    """A convex loss ℓ(p, y) = φ(a) of a prediction p for a target y.

    The argument a is either the margin y p, for labels y = ±1, or the residual p − y. If a is the
    margin, other labels raise ValueError if they are concrete, and give NaN if they are traced.

    `loss(p, y)` is ℓ(p, y); `loss.gradient(p, y)` is its derivative ∂ℓ/∂p.

    Attributes:
        name: its name, with its parameters.
        kind: "margin" or "residual".
        value: `a[...] -> [...]`, φ.
        derivative: `a[...] -> [...]`, φ', a subgradient where φ has a kink.
        series: `(order, center) -> PowerSeries`, the power series of φ'; `None` if it has none.
        analytic: for a loss that is not analytic, the name of a similar one that is.

    Example:
        >>> from noisy_jax import losses
        >>> loss = losses.squared()
        >>> loss(1.0, 3.0), loss.gradient(1.0, 3.0)
        (4.0, -4.0)
    """

    name: str
    kind: Literal["margin", "residual"]
    value: Callable[[chex.Array], chex.Array]
    derivative: Callable[[chex.Array], chex.Array]
    series: Callable[[int, chex.Numeric], PowerSeries] | None = None
    analytic: str | None = None

    def argument(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """The margin y p or the residual p − y.

        Args:
            p: `[...]` predictions.
            y: targets, of the shape of `p` or of its last axes.
        """
        return self._of(p, self._targets(p, y))

    def __call__(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """ℓ(p, y), of the shape of `p` (see `argument` for the shapes)."""
        return self.value(self.argument(p, y))

    def gradient(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """∂ℓ/∂p: y φ'(y p) or φ'(p − y) (see `argument` for the shapes)."""
        y = self._targets(p, y)
        derivative = self.derivative(self._of(p, y))
        return y * derivative if self.kind == "margin" else derivative

    def _of(self, p, y):
        return y * p if self.kind == "margin" else p - y

    def _targets(self, p, y):
        predicted, targets = np.shape(p), np.shape(y)
        one_rank = not predicted or len(targets) == len(predicted)
        if not one_rank and predicted[len(predicted) - len(targets) :] != targets:
            shapes = f"of their last axes, got {list(targets)} and {list(predicted)}"
            raise ValueError(f"targets must have the shape of the predictions, or {shapes}")
        kind = choice("Loss.kind", self.kind, ("margin", "residual"))
        return sound_labels(y) if kind == "margin" else y

    def __repr__(self) -> str:
        return self.name


def sound_labels(y: chex.Array) -> chex.Array:
    """The labels −1 and +1; others raise ValueError where concrete, and are NaN where traced."""
    check_labels("y", y)
    return jnp.where(jnp.abs(y) == 1, y, jnp.nan) if concrete(y) is None else y


def check_loss(loss: Loss) -> None:
    """Raises ValueError if `loss` is not a `Loss`."""
    instance("loss", loss, Loss, "losses.squared() makes one; give an adaptive loss as .at(scale)")


def shown(parameter: chex.Numeric) -> str:
    """A parameter as it is written in a loss's name."""
    value = concrete(parameter)
    return "traced" if value is None else f"{value:g}"
