"""What a loss is: a convex function of the margin or of the residual, and its derivative."""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.series import PowerSeries
from noisy_jax.validation import check_choice, check_labels, concrete, given

Kind = Literal["margin", "residual"]


class Loss(NamedTuple):
    """A convex loss ℓ(p, y) = φ(a) of a prediction p for a target y.

    a is the margin y p, for labels y = ±1, or the residual p − y. Other labels are refused where
    they are concrete, and give NaN where they are traced.

    Attributes:
        name: what it is called, with its parameters.
        kind: "margin" or "residual".
        value: `a[...] -> [...]`, φ.
        derivative: `a[...] -> [...]`, φ', a subgradient where φ has a kink.
        series: `(order, center) -> PowerSeries` of φ'; `None` where φ is not analytic.
        analytic: name of an analytic loss that is close, for one that is not.
    """

    name: str
    kind: Kind
    value: Callable[[chex.Array], chex.Array]
    derivative: Callable[[chex.Array], chex.Array]
    series: Callable[[int, chex.Numeric], PowerSeries] | None = None
    analytic: str | None = None

    def argument(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """The margin y p or the residual p − y; y has the shape of p, or of its last axes."""
        return self._of(p, self._sound(p, y))

    def __call__(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """ℓ(p, y), of predictions `[...]` and targets of that shape, or of its last axes."""
        return self.value(self.argument(p, y))

    def gradient(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """∂ℓ/∂p: y φ'(y p) or φ'(p − y)."""
        y = self._sound(p, y)
        derivative = self.derivative(self._of(p, y))
        return y * derivative if self.kind == "margin" else derivative

    def _of(self, p, y):
        return y * p if self.kind == "margin" else p - y

    def _sound(self, p, y):
        """The targets, checked against the predictions."""
        check_choice("Loss.kind", self.kind, get_args(Kind))
        predicted, targets = np.shape(p), np.shape(y)
        one_rank = not predicted or len(targets) == len(predicted)
        if not one_rank and predicted[len(predicted) - len(targets) :] != targets:
            raise ValueError(
                "targets must have the shape of the predictions, or of their last axes, got "
                f"{list(targets)} and {list(predicted)}"
            )
        return sound_labels(y) if self.kind == "margin" else y

    def __repr__(self) -> str:
        """The name alone: configurations of studies hold it."""
        return self.name


def sound_labels(y: chex.Array) -> chex.Array:
    """y where it is −1 or +1; others are refused where concrete, and NaN where traced."""
    check_labels("y", y)
    return jnp.where(jnp.abs(y) == 1, y, jnp.nan) if concrete(y) is None else y


def check_loss(loss: Loss) -> None:
    """Refuses what is no `Loss`."""
    if not isinstance(loss, Loss):
        raise ValueError(
            "loss must be one of losses, such as losses.squared() (an adaptive one at a scale: "
            f".at(scale)), got {given(loss)}"
        )


def shown(parameter: chex.Numeric) -> str:
    """A parameter as it stands in a loss's name."""
    value = concrete(parameter)
    return "traced" if value is None else f"{value:g}"
