"""Losses: a convex function of the margin or of the residual, and its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from noisy_jax.base import plain_signature
from noisy_jax.series import PowerSeries
from noisy_jax.validation.arrays import real
from noisy_jax.validation.numbers import check_labels, non_negative, sound_labels
from noisy_jax.validation.objects import choice, function, instance
from noisy_jax.validation.values import Array, ArrayLike, concrete


@plain_signature
class Loss(NamedTuple):
    """A loss ℓ(p, y) of a prediction p for a target y, convex in p, with its derivative in p.

    `loss(p, y)` returns ℓ(p, y), and `loss.gradient(p, y)` returns ∂ℓ/∂p. Functions of `losses`
    make such objects; learners take them as the argument `loss`. A loss of your own is
    `Loss(name, kind, value, derivative)`. Each loss has one of three kinds, with a convex function
    φ:

    - "margin": ℓ(p, y) = φ(y p) for labels y = ±1. Any other label raises ValueError if it is
      concrete, and gives NaN if it is traced.
    - "residual": ℓ(p, y) = φ(p − y) for numbers y.
    - "count": ℓ(p, y) = φ(p) − y p for counts y ≥ 0.

    With `flips`, `loss(p, y)` and `loss.gradient(p, y)` return unbiased estimates at the clean
    label (`at_clean_label`), which need not be convex in p. `value` and `derivative` stay φ and φ'.

    Below, a is the argument of φ: y p, p − y or p. All functions work on each entry of an array.

    Attributes:
        name: text that identifies the loss, with its parameters.
        kind: "margin", "residual" or "count".
        value: `a[...] -> [...]`, the function φ.
        derivative: `a[...] -> [...]`, φ'; a subgradient where φ has a kink.
        series: `(order, center) -> PowerSeries`, the Taylor polynomial of φ' of that order about
            a = center, as `series.power_series` makes it; `None`, the default, if there is none.
        analytic: for a loss whose φ' is no power series (`hinge`, `huber`, …) the name of a similar
            loss in `losses` whose φ' is one; `None`, the default, for all other losses.
        flips: (ρ₊, ρ₋), the probabilities with which labels +1 and −1 are flipped, if the loss
            corrects for that (`losses.flipped`); `None`, the default, if it does not.
        kinks: (k_1, k_2, …) if φ is −(a − k_1) + Σ_i max(0, a − k_i); `()`, the default, otherwise.
        deconvolved: `(a[...], v) -> [...]`, a function with the mean φ(a) if Gaussian noise of
            variance v ≥ 0 is added to a (`losses.corrected`); `None`, the default, if there is
            none.

    Example:
        >>> import noisy_jax as nj
        >>> loss = nj.losses.squared()
        >>> loss(1.0, 3.0), loss.gradient(1.0, 3.0)
        (4.0, -4.0)
    """

    name: str
    kind: Literal["margin", "residual", "count"]
    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    series: Callable[[int, ArrayLike], PowerSeries] | None = None
    analytic: str | None = None
    flips: tuple[ArrayLike, ArrayLike] | None = None
    kinks: tuple[ArrayLike, ...] = ()
    deconvolved: Callable[[Array, ArrayLike], Array] | None = None

    def argument(self, p: Array, y: Array) -> Array:
        """Returns the argument a of φ: the margin y p, the residual p − y, or p for a count.

        Targets y have the shape of the predictions p, or of the last axes of p. With a
        scalar p the result has the shape of y. `flips` has no effect here.
        """
        p, y = real("p", p), real("y", y)
        return self._of(p, self._targets(p, y))

    def __call__(self, p: Array, y: Array) -> Array:
        """Returns ℓ(p, y) for each prediction (see `argument` for the shapes of p and y).

        With `flips` it is the estimate of `at_clean_label`.
        """
        p, y = real("p", p), real("y", y)

        def at(y):
            value = self.value(self._of(p, y))
            return value - y * p if self.kind == "count" else value

        return self.at_clean_label(at, self._targets(p, y))

    def gradient(self, p: Array, y: Array) -> Array:
        """Returns ∂ℓ/∂p for each prediction (see `argument` for the shapes of p and y).

        It is y φ'(y p) for a margin, φ'(p − y) for a residual, and φ'(p) − y for a count. With
        `flips` it is the estimate of `at_clean_label`.
        """
        p, y = real("p", p), real("y", y)

        def at(y):
            derivative = self.derivative(self._of(p, y))
            if self.kind == "count":
                return derivative - y
            return y * derivative if self.kind == "margin" else derivative

        return self.at_clean_label(at, self._targets(p, y))

    def at_clean_label(self, value: Callable[..., Any], y: Any) -> Any:
        """Returns `value(y)`, or with `flips` an unbiased estimate of it at the clean label.

        The estimate combines `value(y)` and `value(-y)` with the weights of `losses.flipped`, so
        that its mean over flips of y is `value` at the label before the flip. `value` is any
        function of y.
        """
        function("value", value)
        if self.flips is None:
            return value(y)
        y = real("y", y)
        positive, negative = self.flips
        rate, other = (jnp.where(y > 0, *pair) for pair in (self.flips, self.flips[::-1]))
        return ((1 - other) * value(y) - rate * value(-y)) / (1 - positive - negative)

    def _of(self, p, y):
        if self.kind == "count":
            return p
        return y * p if self.kind == "margin" else p - y

    def _targets(self, p, y):
        predicted, targets = np.shape(p), np.shape(y)
        if len(targets) == len(predicted):
            pairs = zip(predicted, targets, strict=True)
            fits = all(p == y or 1 in (p, y) for p, y in pairs)
        else:
            fits = not predicted or predicted[len(predicted) - len(targets) :] == targets
        if not fits:
            shapes = f"of their last axes, got {list(targets)} and {list(predicted)}"
            raise ValueError(f"targets y must have the shape of the predictions p, or {shapes}")
        kind = choice("Loss.kind", self.kind, ("margin", "residual", "count"))
        for name in ("value", "derivative", "series", "deconvolved"):
            if name in ("value", "derivative") or getattr(self, name) is not None:
                function(f"Loss.{name}", getattr(self, name))
        if self.flips is not None and not isinstance(self.flips, list):
            instance("Loss.flips", self.flips, tuple, "losses.flipped(loss, rate) sets it")
        if self.flips is not None and len(self.flips) != 2:
            raise ValueError(f"Loss.flips must be (ρ₊, ρ₋), got {len(self.flips)} numbers")
        return sound_labels(y) if kind == "margin" else y

    def __repr__(self) -> str:
        return self.name


def check_loss(loss: Loss, *, flips: bool = True) -> None:
    """Raises ValueError if `loss` is not a `Loss`, or is `flipped` where that is not allowed."""
    instance("loss", loss, Loss, "losses.squared() makes one; give an adaptive loss as .at(scale)")
    if loss.flips is not None and not flips:
        raise ValueError(
            f"loss must not be flipped here, got {loss}: pass the original loss (only learners "
            "accept flipped losses)"
        )


def check_clean_targets(loss: Loss, y: Any) -> None:
    """Raises ValueError if clean targets are no labels −1 and +1, or no counts, as the loss needs.

    Noisy targets of a count may be negative.
    """
    if loss.kind == "margin":
        check_labels("y", y)
    elif loss.kind == "count":
        non_negative("y", y, f"counts, as {loss} needs", shape=None)


def check_smooth(loss: Loss) -> None:
    """Raises ValueError if the loss has kinks, where no estimate from noisy copies is unbiased."""
    if loss.analytic is not None:
        raise ValueError(
            f"loss must have a smooth derivative, got {loss}: losses.{loss.analytic}(sharpness=…) "
            "is close to it"
        )


def flips_of(loss: Any) -> tuple[ArrayLike, ArrayLike] | Literal[False]:
    """`Needs.flips` of a learner with a loss: what it corrects for if it is one of labels."""
    if loss.kind != "margin":
        return False
    return (0.0, 0.0) if loss.flips is None else loss.flips


def takes_noisy_targets(loss: Loss) -> bool:
    """True if ℓ' is linear in the target, so that noise in it leaves the gradient unbiased."""
    return curvature(loss) is not None or loss.kind in ("margin", "count")


def curvature(loss: Any) -> Any:
    """ℓ'' of a quadratic loss, such as 2 of the squared loss; `None` of others."""
    series = getattr(loss, "series", None)
    if series is None or series(1, 0.0).degree != 1:
        return None
    return series(1, 0.0).coefficients[1]


def has_bounded_slope(loss: Loss) -> bool:
    """True if |φ'| is below 10¹⁵ at ±10³⁰, or not known, as with traced parameters."""
    slopes = concrete(loss.derivative(np.array([-1e30, 1e30])))
    return slopes is None or bool(np.all(np.abs(slopes) < 1e15))


def parameter_text(parameter: ArrayLike) -> str:
    """A parameter as it is written in a loss's name."""
    value = concrete(parameter)
    return "traced" if value is None else f"{value:g}"
