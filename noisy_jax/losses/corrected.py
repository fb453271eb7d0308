"""Losses of a linear predictor that are right on average at one noisy copy of known distribution.

At a noisy copy x̃ = x + n the prediction ⟨w, x̃⟩ has noise ⟨w, n⟩, of variance v = wᵀΣw. A corrected
loss ℓ̂ has the mean E ℓ̂(⟨w, x̃⟩, y, v) = ℓ(⟨w, x⟩, y), at all w. Its gradient in w, through v too, is
therefore unbiased for the clean gradient (`learners.known_covariance`).

| loss | ℓ̂(p, y, v) under Gaussian noise |
|---|---|
| squared | (p − y)² − v |
| exponential | e^(−yp − v/2) |
| Poisson | e^(p − v/2) − yp |
| piecewise linear, smoothed by N(0, δ²) | smoothed by N(0, δ² − v) |

Sources: Stefanski, Unbiased estimation of a nonlinear function of a normal mean (1989); Nakamura,
Corrected score function for errors-in-variables models (1990), for Poisson. Wang, Stefanski and
Zhu, Corrected-loss estimation for quantile regression with covariate measurement errors (2012),
for kinks and for Laplace noise; Hong and Tamer, A simple estimator for nonlinear error in variable
models (2003), for Laplace noise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.experimental.jet import jet

from noisy_jax.losses.loss import Loss, check_loss
from noisy_jax.series import floating
from noisy_jax.validation.arrays import real
from noisy_jax.validation.messages import given
from noisy_jax.validation.objects import choice
from noisy_jax.validation.values import Array, ArrayLike, concrete

_MOST_FEATURES = 4
_ROUNDING = 1e-6  # a variance of zero, computed from a covariance, may be below zero by so much


class CorrectedLoss(NamedTuple):
    """A corrected loss ℓ̂(p, y, v) (`corrected`).

    Attributes:
        loss: the loss ℓ that it estimates without bias.
        noise: "gaussian" or "laplace".
        value: `(a, v) -> [...]`, what takes the place of φ(a) (see `Loss`).
    """

    loss: Loss
    noise: Literal["gaussian", "laplace"]
    value: Callable[..., Any]

    def __call__(self, p: Array, y: Array, v: ArrayLike) -> Array:
        """ℓ̂(p, y, v) at predictions p = ⟨w, x̃⟩ `[...]` on noisy copies, of the variance v = wᵀΣw.

        For Laplace noise v is `[..., d]`, the part 2b_i²w_i² of this variance from each feature.
        """
        v = real("v", v)
        if (array := concrete(v)) is not None and not np.all(array >= -_ROUNDING):
            raise ValueError(
                f"v must be >= 0, got {given(v)}: it is the variance of the noise in p"
            )
        return self.loss._replace(value=functools.partial(self.value, v=v))(p, y)

    def __repr__(self) -> str:
        return f"corrected({self.loss}, noise={self.noise!r})"


def corrected(loss: Loss, *, noise: Literal["gaussian", "laplace"] = "gaussian") -> CorrectedLoss:
    """Corrects a loss for noise in the prediction: E ℓ̂(⟨w, x̃⟩, y, v) = ℓ(⟨w, x⟩, y).

    ℓ̂(p, y, v) takes predictions p = ⟨w, x̃⟩ `[...]` at noisy copies x̃ = x + n, targets y, and the
    variance v = wᵀΣw of the noise in p; for Laplace noise v is `[..., d]`, with 2b_i²w_i² for each
    feature.

    - **Gaussian noise**: `squared`, `exponential`, `poisson`, `smoothed_absolute`,
      `smoothed_hinge` and `smoothed` have a correction (the formulas are in the module). The last
      three need v < δ², where δ² is 1/(2s²) for a sharpness s: choose δ² > B²‖Σ‖ for weights of
      norm at most B. A larger v raises ValueError if it is concrete, and gives NaN if it is traced.
      The logistic loss has no correction, as its derivative has poles at ±iπ.
    - **Laplace noise** of scales b_i: Π_i (1 − b_i²w_i² ∂²/∂p²) ℓ(p, y), exact for smooth losses
      and d ≤ 4 features; more raise ValueError. ℓ̂ grows quickly with d, for the logistic loss like
      (2d)!/d! (b‖w‖/π)^(2d). `exponential` and `poisson` have a mean only if all b_i|w_i| < 1, and
      give NaN otherwise.

    Exponential and Poisson losses have heavy tails: keep B²‖Σ‖ below about 1.

    A loss of flipped labels (`flipped`) may be corrected as well. ℓ̂ need not be convex in w, but
    its mean is convex if ℓ is.

    Args:
        loss: ℓ, one of `losses`.
        noise: the distribution, "gaussian" or "laplace" (`noise.Gaussian`, `noise.Laplace`). The
            correction depends on it, except for the squared loss, which needs the covariance only.

    Returns:
        A `CorrectedLoss`, the function ℓ̂.

    Raises:
        ValueError: the loss has no correction: for Gaussian noise `logistic`, and for both a loss
            with kinks, such as `hinge`. The message names a loss that has one.

    Example:
        >>> import jax, noisy_jax as nj
        >>> loss = nj.losses.smoothed_hinge(sharpness=0.5)
        >>> noisy = 0.3 + jax.random.normal(jax.random.key(0), (100_000,))  # v = 1
        >>> right, blind = corrected(loss)(noisy, 1.0, 1.0).mean(), loss(noisy, 1.0).mean()
        >>> print(f"{loss(0.3, 1.0):.2f} clean, {right:.2f} corrected, {blind:.2f} uncorrected")
        0.98 clean, 0.98 corrected, 1.10 uncorrected
    """
    check_loss(loss)
    if choice("noise", noise, ("gaussian", "laplace")) == "laplace":
        if loss.analytic is not None:
            smooth = f"losses.{loss.analytic}(sharpness=…) is close to it"
            raise ValueError(f"loss must be smooth for Laplace noise, got {loss}: {smooth}")
        return CorrectedLoss(loss, noise, functools.partial(_laplace, loss))
    if loss.deconvolved is None:
        other = f"losses.{loss.analytic or 'smoothed_hinge'}(sharpness=…) has one"
        if loss.kinks:
            other = f"losses.smoothed({loss}, width=…) has one"
        elif loss.kind == "margin" and loss.analytic is None:
            other += ', and fit(…, model="logistic") needs none'
        raise ValueError(f"loss must have a correction for Gaussian noise, got {loss}: {other}")
    return CorrectedLoss(loss, noise, loss.deconvolved)


def _laplace(loss: Loss, a, v):
    """Π_i (1 − ½v_i ∂²) φ(a), from derivatives of φ up to order 2d."""
    v = jnp.atleast_1d(floating(v))
    shares = [v[..., i] for i in range(v.shape[-1])]
    if len(shares) > _MOST_FEATURES:
        raise ValueError(
            f"Laplace noise must have at most {_MOST_FEATURES} features, got {len(shares)}: the "
            "variance grows too fast; the squared loss takes any number with noise='gaussian'"
        )
    powers = [1.0]  # coefficients of Π_i (1 − ½v_i z), z = ∂²
    for share in shares:
        shifted = [0.0, *(-share / 2 * power for power in powers)]
        powers = [power + shift for power, shift in zip([*powers, 0.0], shifted, strict=True)]
    a = floating(a)
    along = [jnp.ones_like(a)] + [jnp.zeros_like(a)] * (2 * len(shares) - 1)
    first, rest = jet(loss.derivative, (a,), (along,))
    terms = [loss.value(a), *[first, *rest][1::2]]
    # Losses that grow exponentially have no mean if b_i|w_i| ≥ 1. A factor keeps the gradient NaN.
    steep = ~jnp.all(jnp.isfinite(loss.value(jnp.array([-1e4, 1e4]))))
    lost = jnp.where(steep & jnp.any(v >= 2, axis=-1), jnp.nan, 1.0)
    return lost * sum(power * term for power, term in zip(powers, terms, strict=True))
