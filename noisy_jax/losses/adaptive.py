"""Losses whose scale is learned along with the predictor: margin ρ, tube ε or Huber's width σ.

ν is the share of the rounds that should lie beyond the scale. Each round adds to the scale the
learning rate times `AdaptiveLoss.descent`. Where `descent` is an indicator minus ν (or ν minus an
indicator), a run of T rounds at a constant rate η satisfies exactly

    |share of rounds beyond the scale − ν| = |s_{T+1} − s_1|/(ηT)     while s is not clamped.

Source: Online Learning with Kernels, Sec. III, with the signs corrected so that the scale descends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax.numpy as jnp

from noisy_jax.losses.loss import Loss, parameter_text
from noisy_jax.losses.piecewise import huber
from noisy_jax.validation.arrays import check_axes
from noisy_jax.validation.numbers import between, non_negative, not_below, number, positive
from noisy_jax.validation.objects import choice
from noisy_jax.validation.values import Array, ArrayLike


class AdaptiveLoss(NamedTuple):
    """A loss ℓ(p, y; s) = φ(a; s) of a prediction p for a target y, with a scale s that is learned.

    The argument a is the margin y p, for labels y = ±1, or the residual p − y. The scale is a
    margin ρ, a tube ε or Huber's width σ. In round t the learner sets s to
    s_{t+1} = max(smallest, s_t + η_t descent(a_t, s_t)), where η_t is its learning rate.

    Attributes:
        name: its name, with its parameters.
        kind: "margin" for a = y p, or "residual" for a = p − y.
        value: `(a[...], s) -> [...]`, φ, including the term that depends on s only.
        derivative: `(a[...], s) -> [...]`, ∂φ/∂a, a subgradient at kinks.
        descent: `(a[...], s) -> [...]`, the direction in which s moves: −∂φ/∂s, except in
            `nu_huber(tracker="quantile")`.
        nu: ν, the share of rounds that should lie beyond the scale (for `nu_huber` with
            tracker="joint" see there).
        initial: s_1, the scale before the first round.
        smallest: lower bound on s.
        labelled: whether the loss reads targets; if not, y = 1 in every round.
        flips: (ρ₊, ρ₋), the probabilities of flipped labels that the loss corrects for
            (`losses.flipped`); `None` if it does not.
    """

    name: str
    kind: Literal["margin", "residual"]
    value: Callable[[Array, ArrayLike], Array]
    derivative: Callable[[Array, ArrayLike], Array]
    descent: Callable[[Array, ArrayLike], Array]
    nu: ArrayLike
    initial: ArrayLike = 0.0
    smallest: ArrayLike = -jnp.inf
    labelled: bool = True
    flips: tuple[ArrayLike, ArrayLike] | None = None

    def at(self, scale: ArrayLike) -> Loss:
        """The `Loss` at one fixed scale s."""
        scale = number("scale", scale)
        return Loss(
            f"{self.name} at {parameter_text(scale)}",
            self.kind,
            lambda a: self.value(a, scale),
            lambda a: self.derivative(a, scale),
            analytic="smoothed_hinge" if self.kind == "margin" else "smoothed_absolute",
            flips=self.flips,
        )

    def __repr__(self) -> str:
        return self.name


def nu_hinge(*, nu: ArrayLike, initial: ArrayLike = 0.0) -> AdaptiveLoss:
    """Returns a hinge loss max(0, ρ − yp) − νρ whose margin ρ is learned from labels y = ±1.

    In each round a learner with the learning rate η sets ρ ← ρ + η(ν − 1{yp ≤ ρ}), where p is its
    prediction and 1{…} is 1 if the condition holds and 0 otherwise. Margin errors are rounds with
    yp ≤ ρ. In T rounds of constant η their share differs from ν by |ρ_{T+1} − ρ_1|/(ηT).

    ρ is not kept above 0: while it is negative, some mistakes (yp ≤ 0) are no margin errors.
    Scaling p and ρ by one factor scales the loss by it.

    Args:
        nu: 0 < ν < 1, the share of rounds that shall be margin errors.
        initial: ρ_1, the margin before the first round, in the unit of p; 0 by default.

    Returns:
        An `AdaptiveLoss`, for `learners.norma`. Its method `at(ρ)` is the `Loss` with ρ held fixed.

    Source: Online Learning with Kernels, Eq. 19, which prints ρ + η(1{yp ≤ ρ} − ν). That ascends: ρ
    grows without limit and every round is a margin error.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.nu_hinge(nu=0.2).at(1.0)(0.25, 1.0))
        0.55
    """
    return _nu_margin("nu_hinge", nu, initial, labelled=True)


def novelty(
    *, nu: ArrayLike, initial: ArrayLike = 0.0, smallest: ArrayLike = -jnp.inf
) -> AdaptiveLoss:
    """Returns a loss for novelty detection, max(0, ρ − f(x)) − νρ, whose threshold ρ is learned.

    It reads no labels. A round with f(x) ≤ ρ is an alarm, where f is the function that the learner
    fits. In each round a learner with the learning rate η sets

        ρ ← max(ρ_min, ρ + η(ν − 1{f(x) ≤ ρ})),   1{…} = 1 if the condition holds, 0 otherwise.

    In T rounds of constant η the share of alarms differs from ν by |ρ_{T+1} − ρ_1|/(ηT), as long as
    ρ_min is not reached.

    If the kernel is non-negative, so is f, and there is no alarm while ρ < 0. At a large η the
    first alarm makes ρ negative, and at a small ν thousands of rounds without alarms follow: then
    set `smallest=0.0`. The best ρ is never negative.

    Args:
        nu: 0 < ν < 1, the share of rounds that shall be alarms.
        initial: ρ_1 ≥ ρ_min, the threshold before the first round; 0 by default.
        smallest: ρ_min, a lower bound on ρ; −∞, the default, for none.

    Returns:
        An `AdaptiveLoss`, for `learners.norma`. `descent(f(x), ρ)` is the step ν − 1{f(x) ≤ ρ}.

    Source: Online Learning with Kernels, Eq. 20, with the sign of the step in ρ corrected. With the
    printed sign either no round or every round becomes an alarm.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.novelty(nu=0.25).descent(0.5, 1.0))
        -0.75
    """
    loss = _nu_margin("novelty", nu, initial, labelled=False)
    check_axes("smallest", smallest, "[]")
    initial = not_below("initial", loss.initial, "smallest", smallest)
    return loss._replace(initial=initial, smallest=smallest)


def _nu_margin(name, nu, initial, *, labelled) -> AdaptiveLoss:
    nu, initial = between("nu", nu, 0, 1), number("initial", initial)
    return AdaptiveLoss(
        f"{name}(nu={parameter_text(nu)})",
        "margin",
        value=lambda a, s: jnp.maximum(s - a, 0.0) - nu * s,
        derivative=lambda a, s: -jnp.where(a <= s, 1.0, 0.0),
        descent=lambda a, s: nu - jnp.where(a <= s, 1.0, 0.0),
        nu=nu,
        initial=initial,
        labelled=labelled,
    )


def nu_epsilon_insensitive(*, nu: ArrayLike, initial: ArrayLike = 0.0) -> AdaptiveLoss:
    """Returns an ε-insensitive loss max(0, |p − y| − ε) + νε whose tube width ε ≥ 0 is learned.

    In each round a learner with the learning rate η sets ε ← max(0, ε + η(1{|p − y| > ε} − ν)),
    where p is its prediction and 1{…} is 1 if the condition holds and 0 otherwise. In T rounds of
    constant η the share of rounds outside the tube, |p − y| > ε, differs from ν by
    |ε_{T+1} − ε_1|/(ηT), as long as ε does not reach 0.

    Args:
        nu: 0 < ν < 1, the share of rounds that shall lie outside the tube.
        initial: ε_1 ≥ 0, half the width of the tube before the first round, in the unit of y; 0 by
            default.

    Returns:
        An `AdaptiveLoss`, for `learners.norma`. Its method `at(ε)` is the `Loss` with ε held fixed.

    Source: Online Learning with Kernels, Eq. 22, with the maximum with 0 added. The text below it
    swaps the two step sizes, which leaves a share 1 − ν outside.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.nu_epsilon_insensitive(nu=0.5).at(1.0)(1.0, 4.0))
        2.5
    """
    nu, initial = between("nu", nu, 0, 1), non_negative("initial", initial)
    return AdaptiveLoss(
        f"nu_epsilon_insensitive(nu={parameter_text(nu)})",
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
    nu: ArrayLike,
    tracker: Literal["quantile", "joint"] = "quantile",
    initial: ArrayLike = 1.0,
    smallest: ArrayLike = 1e-3,
) -> AdaptiveLoss:
    """Returns Huber's loss (`losses.huber`) + νσ whose width σ ≥ σ_min is learned from residuals.

    In each round a learner with the learning rate η changes σ by the residual a = p − y. With
    `tracker="quantile"` σ follows the (1 − ν)-quantile of |a|: in the long run a share ν of the
    rounds are outliers, |a| > σ. This step is not the gradient of the loss in σ.

        σ ← max(σ_min, σ + η(1{|a| > σ} − ν)),   1{…} = 1 if the condition holds, 0 otherwise

    With `tracker="joint"` the step is minus the gradient of the loss, which is jointly convex in p
    and σ. It converges to the σ with E min(1, a²/σ²) = 2ν, Huber's "Proposal 2":

        σ ← max(σ_min, σ + η(½ min(1, a²/σ²) − ν))

    Args:
        nu: 0 < ν < 1, the share of outliers; for "joint" 0 < ν < ½.
        tracker: "quantile", the default, or "joint".
        initial: σ_1 ≥ σ_min, the width before the first round, in the unit of y; 1 by default.
        smallest: σ_min > 0, the least width; 0.001 by default.

    Returns:
        An `AdaptiveLoss`, for `learners.norma`. `descent(a, σ)` is the step in σ without η, and
        `at(σ)` is the `Loss` with σ held fixed.

    Source: Online Learning with Kernels, below Eq. 24. The printed σ-step is "quantile"; the
    printed step in f lacks η in the quadratic branch and λ in the decay.

    Example:
        >>> import noisy_jax as nj
        >>> loss = nj.losses.nu_huber(nu=0.25, tracker="joint")
        >>> print(loss.descent(0.5, 1.0), loss.descent(2.0, 1.0))
        -0.125 0.25
    """
    if choice("tracker", tracker, ("quantile", "joint")) == "quantile":
        nu = between("nu", nu, 0, 1)
    else:
        nu = between("nu", nu, 0, 0.5, "the joint gradient has no fixed point for larger ν")
    initial, smallest = positive("initial", initial), positive("smallest", smallest)
    initial = not_below("initial", initial, "smallest", smallest)

    unit = huber(width=1.0)

    def joint(a, s):
        return jnp.minimum(jnp.square(a / s), 1.0) / 2 - nu

    return AdaptiveLoss(
        f'nu_huber(nu={parameter_text(nu)}, tracker="{tracker}")',
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
