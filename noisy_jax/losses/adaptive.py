"""Losses whose scale is learnt along with the predictor: margin ρ, tube ε or Huber's width σ.

ν says what share of the rounds shall lie on the far side of the scale. Each round moves the scale
by the learning rate times what `AdaptiveLoss.descent` gives. Where that is an indicator minus ν (or
ν minus an indicator), a run at constant rate η has, as an identity,

    |share of such rounds − ν| = |s_{T+1} − s_1|/(ηT)     as long as s is not clamped.

Source: Online Learning with Kernels, Sec. III, with the signs that descend.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import chex
import jax.numpy as jnp

from noisy_jax.losses.loss import Loss, shown
from noisy_jax.losses.piecewise import huber
from noisy_jax.validation import (
    check_between,
    check_choice,
    check_finite,
    check_non_negative,
    check_not_below,
    check_positive,
)


class AdaptiveLoss(NamedTuple):
    """A loss ℓ(p, y; s) = φ(a; s) of the margin or the residual a, with a scale s to be learnt.

    Attributes:
        name: what it is called, with its parameters.
        kind: "margin" or "residual", as in `Loss`.
        value: `(a[...], s) -> [...]`, φ, with its term in s alone.
        derivative: `(a[...], s) -> [...]`, ∂φ/∂a, a subgradient at kinks.
        descent: `(a[...], s) -> [...]`, where s moves to: −∂φ/∂s, unless the factory says else.
        nu: ν.
        initial: s_1.
        smallest: s is kept at or above this.
        labelled: whether targets are read; without, y = 1 stands for them all.
    """

    name: str
    kind: Literal["margin", "residual"]
    value: Callable[[chex.Array, chex.Numeric], chex.Array]
    derivative: Callable[[chex.Array, chex.Numeric], chex.Array]
    descent: Callable[[chex.Array, chex.Numeric], chex.Array]
    nu: chex.Numeric
    initial: chex.Numeric = 0.0
    smallest: chex.Numeric = -jnp.inf
    labelled: bool = True

    def at(self, scale: chex.Numeric) -> Loss:
        """The loss at one scale."""
        return Loss(
            f"{self.name} at {shown(scale)}",
            self.kind,
            lambda a: self.value(a, scale),
            lambda a: self.derivative(a, scale),
        )

    def __repr__(self) -> str:
        """The name alone: configurations of studies hold it."""
        return self.name


def nu_soft_margin(*, nu: chex.Numeric, initial: chex.Numeric = 0.0) -> AdaptiveLoss:
    """Soft-margin loss max(0, ρ − yp) − νρ that learns its margin ρ, y = ±1.

    ρ ← ρ + η(ν − 1{yp ≤ ρ}): a share ν of the rounds ends as margin errors. Scaling p and ρ alike
    scales the loss, so that λ changes nothing but the unit of f, at constant ηλ. ρ is not clamped:
    below zero, even mistakes count as no error, until their share has come down to ν.

    Source: Online Learning with Kernels, Eq. 19, which prints ρ + η(σ − ν), an ascent: ρ then
    grows for ever and every round is a margin error.

    Args:
        nu: 0 < ν < 1.
        initial: ρ_1.

    Raises:
        ValueError: ν outside (0, 1), or initial not finite.

    Example:
        >>> print(nu_soft_margin(nu=0.2).at(1.0)(0.25, 1.0))
        0.55
    """
    return _nu_margin("nu_soft_margin", nu, initial, labelled=True)


def novelty(
    *, nu: chex.Numeric, initial: chex.Numeric = 0.0, smallest: chex.Numeric = -jnp.inf
) -> AdaptiveLoss:
    """Novelty loss max(0, ρ − f(x)) − νρ, which reads no labels: an alarm is f(x) ≤ ρ.

    ρ ← max(ρ_min, ρ + η(ν − 1{f(x) ≤ ρ})): a share ν of the rounds ends as alarms.

    f ≥ 0 for kernels that are not negative, so that no alarm sounds while ρ < 0, where the first
    alarm takes it at a large η: ρ_min = 0 spares thousands of silent rounds at small ν, and the
    best ρ is never negative.

    Source: Online Learning with Kernels, Eq. 20, whose printed signs of ρ ascend: no round is ever
    an alarm, or every one.

    Args:
        nu: 0 < ν < 1.
        initial: ρ_1.
        smallest: ρ_min; none by default, so that the shares of alarms are an identity.

    Raises:
        ValueError: ν outside (0, 1), initial not finite or below the smallest.

    Example:
        >>> print(novelty(nu=0.25).descent(0.5, 1.0))
        -0.75
    """
    loss = _nu_margin("novelty", nu, initial, labelled=False)
    check_not_below("initial", initial, "smallest", smallest)
    return loss._replace(smallest=smallest)


def _nu_margin(name, nu, initial, *, labelled) -> AdaptiveLoss:
    check_nu(nu)
    check_finite("initial", initial)
    return AdaptiveLoss(
        f"{name}(nu={shown(nu)})",
        "margin",
        value=lambda a, s: jnp.maximum(s - a, 0.0) - nu * s,
        derivative=lambda a, s: -jnp.where(a <= s, 1.0, 0.0),
        descent=lambda a, s: nu - jnp.where(a <= s, 1.0, 0.0),
        nu=nu,
        initial=initial,
        labelled=labelled,
    )


def nu_epsilon_insensitive(*, nu: chex.Numeric, initial: chex.Numeric = 0.0) -> AdaptiveLoss:
    """ε-insensitive loss max(0, |p − y| − ε) + νε that learns its tube, ε ≥ 0.

    ε ← max(0, ε + η(1{|p − y| > ε} − ν)): a share ν of the rounds ends outside the tube.

    Source: Online Learning with Kernels, Eq. 22, right as printed but for the clamp; the text below
    it swaps the two amounts, which leaves a share 1 − ν outside.

    Args:
        nu: 0 < ν < 1.
        initial: ε_1 ≥ 0.

    Raises:
        ValueError: ν outside (0, 1), or initial negative.

    Example:
        >>> print(nu_epsilon_insensitive(nu=0.5).at(1.0)(1.0, 4.0))
        2.5
    """
    check_nu(nu)
    check_non_negative("initial", initial, "it is half the width of the tube")
    return AdaptiveLoss(
        f"nu_epsilon_insensitive(nu={shown(nu)})",
        "residual",
        value=lambda a, s: jnp.maximum(jnp.abs(a) - s, 0.0) + nu * s,
        derivative=lambda a, s: jnp.where(jnp.abs(a) > s, jnp.sign(a), 0.0),
        descent=_excess(nu),
        nu=nu,
        initial=initial,
        smallest=0.0,
    )


def nu_huber(
    *,
    nu: chex.Numeric,
    tracker: Literal["quantile", "joint"] = "quantile",
    initial: chex.Numeric = 1.0,
    smallest: chex.Numeric = 1e-3,
) -> AdaptiveLoss:
    """Huber's loss (`huber`, plus νσ) that learns its width σ ≥ σ_min from the residuals a.

    "quantile" follows the (1 − ν)-quantile of |a|, so that a share ν of the rounds ends as outliers
    (the tube's step; together with Huber's derivative in p it descends on no one function):

        σ ← max(σ_min, σ + η(1{|a| > σ} − ν))

    "joint" descends on Huber's loss + νσ, which is convex in p and σ together; it ends where
    E min(1, a²/σ²) = 2ν, Huber's "Proposal 2":

        σ ← max(σ_min, σ + η(½ min(1, a²/σ²) − ν))

    Source: Online Learning with Kernels, below Eq. 24. The printed σ-step is "quantile"; the
    printed step in f lacks η in the quadratic branch and λ in the decay.

    Args:
        nu: 0 < ν < 1, the share of outliers; for "joint" 0 < ν < ½.
        tracker: "quantile" or "joint".
        initial: σ_1 ≥ σ_min.
        smallest: σ_min > 0.

    Raises:
        ValueError: ν out of range, another tracker, initial or smallest not positive, or initial
            below smallest.

    Example:
        >>> loss = nu_huber(nu=0.25, tracker="joint")
        >>> print(loss.descent(0.5, 1.0), loss.descent(2.0, 1.0))
        -0.125 0.25
    """
    check_choice("tracker", tracker, ("quantile", "joint"))
    check_nu(nu, 1.0 if tracker == "quantile" else 0.5)
    check_positive("initial", initial, "σ before the first round")
    check_positive("smallest", smallest, "the least σ, by which residuals are divided")
    check_not_below("initial", initial, "smallest", smallest)

    unit = huber(width=1.0)

    def joint(a, s):
        return jnp.minimum(jnp.square(a / s), 1.0) / 2 - nu

    return AdaptiveLoss(
        f'nu_huber(nu={shown(nu)}, tracker="{tracker}")',
        "residual",
        value=lambda a, s: s * unit.value(a / s) + nu * s,
        derivative=lambda a, s: unit.derivative(a / s),
        descent=_excess(nu) if tracker == "quantile" else joint,
        nu=nu,
        initial=initial,
        smallest=smallest,
    )


def _excess(nu):
    return lambda a, s: jnp.where(jnp.abs(a) > s, 1.0, 0.0) - nu


def check_nu(nu: chex.Numeric, limit: float = 1.0) -> None:
    """Refuses a share ν that is not one number strictly between 0 and the limit."""
    meaning = "the share of rounds beyond the scale"
    if limit < 1:
        meaning = "the joint gradient's width has no fixed point from 1/2 on"
    check_between("nu", nu, 0, limit, meaning)
