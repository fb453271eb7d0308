"""What a loss is: a convex function of the margin or of the residual, and its derivative."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import chex

from noisy_jax.series import PowerSeries
from noisy_jax.validation import concrete


class Loss(NamedTuple):
    """A convex loss ℓ(p, y) = φ(a) of a prediction p for a target y.

    a is the margin y p, for labels y = ±1, or the residual p − y.

    Attributes:
        name: what it is called, with its parameters.
        kind: "margin" or "residual".
        profile: `a[...] -> [...]`, φ.
        slope: `a[...] -> [...]`, φ', a subgradient where φ has a kink.
        series: `(order, center) -> PowerSeries` of φ'; `None` where φ is not analytic.
        analytic: name of an analytic loss that is close, for one that is not.
    """

    name: str
    kind: Literal["margin", "residual"]
    profile: Callable[[chex.Array], chex.Array]
    slope: Callable[[chex.Array], chex.Array]
    series: Callable[[int, chex.Numeric], PowerSeries] | None = None
    analytic: str | None = None

    def argument(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """The margin y p or the residual p − y."""
        return y * p if self.kind == "margin" else p - y

    def value(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """ℓ(p, y), of predictions `[...]` and targets `[...]`."""
        return self.profile(self.argument(p, y))

    def derivative(self, p: chex.Array, y: chex.Array) -> chex.Array:
        """∂ℓ/∂p: y φ'(y p) or φ'(p − y)."""
        slope = self.slope(self.argument(p, y))
        return y * slope if self.kind == "margin" else slope

    def __repr__(self) -> str:
        """The name alone: configurations of studies hold it."""
        return self.name


def check_loss(loss: Loss) -> None:
    """Refuses what is no `Loss`."""
    if not isinstance(loss, Loss):
        raise ValueError(
            "loss must be one of losses, such as losses.squared() (an adaptive one at a scale: "
            f".at(scale)), got {loss!r}"
        )


def shown(parameter: chex.Numeric) -> str:
    """A parameter as it stands in a loss's name."""
    value = concrete(parameter)
    return "traced" if value is None else f"{value:g}"
