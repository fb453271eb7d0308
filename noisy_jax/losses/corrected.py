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
from noisy_jax.validation.arrays import real, shape_of
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
        """Returns ℓ̂(p, y, v) `[...]` for predictions p = ⟨w, x̃⟩ `[...]` and targets y.

        v ≥ 0 is the variance wᵀΣw of the noise in p. For Laplace noise v is `[..., d]`, the part
        2b_i²w_i² of this variance from each feature.
        """
        v = real("v", v)
        if (array := concrete(v)) is None:
            v = jnp.where(v >= -_ROUNDING, v, jnp.nan)
        elif not np.all(array >= -_ROUNDING):
            raise ValueError(
                f"v must be >= 0, got {given(v)}: it is the variance of the noise in p"
            )
        predicted = shape_of("p", p) or shape_of("y", y)
        given_one = np.shape(v)[:-1] if self.noise == "laplace" else np.shape(v)
        if self.noise == "laplace" and np.shape(v)[-1:] == (0,):
            raise ValueError("v must have a variance for each feature, got none")
        try:
            np.broadcast_shapes(predicted, given_one)
        except ValueError:
            wanted = "[..., d] for predictions" if self.noise == "laplace" else "[] or"
            raise ValueError(
                f"v must be {wanted} {list(predicted)}, as p, got {list(np.shape(v))}"
            ) from None
        return self.loss._replace(value=functools.partial(self.value, v=v))(p, y)

    def __repr__(self) -> str:
        return f"corrected({self.loss}, noise={self.noise!r})"


def corrected(loss: Loss, *, noise: Literal["gaussian", "laplace"] = "gaussian") -> CorrectedLoss:
    """Corrects a loss of a linear predictor for noise in x: E ℓ̂(⟨w, x̃⟩, y, v) = ℓ(⟨w, x⟩, y).

    ℓ is the given loss, w the weights `[d]`, x̃ = x + n a noisy copy of x `[d]`, and n has mean
    zero and covariance Σ. The mean is over n, and the equation holds at every w. So the gradient of
    ℓ̂ in w is unbiased, if v = wᵀΣw is differentiated too (`learners.known_covariance` does so).

    **Gaussian noise**: v = wᵀΣw is the variance of the noise in the prediction, and ℓ̂(p, y, v) is

    - for `squared` (p − y)² − v, for `exponential` e^(−yp − v/2), for `poisson` e^(p − v/2) − yp.
    - for `smoothed(…, width=δ)` the same loss of width √(δ² − v). `smoothed_absolute` and
      `smoothed_hinge` of sharpness s have δ² = 1/(2s²). They need v < δ²: choose δ² > B²‖Σ‖ if
      ‖w‖ ≤ B. A larger v raises ValueError if it is concrete, and gives NaN if it is traced.
    - none for `logistic`, as its derivative has poles at ±iπ.

    **Laplace noise** with independent coordinates of scales b_i: ℓ̂ is Π_i (1 − b_i²w_i² ∂²/∂p²)
    ℓ(p, y) for smooth losses and d ≤ 4. ℓ̂ grows quickly with d, for the logistic loss like
    (2d)!/d! (b‖w‖/π)^(2d). `exponential` and `poisson` give NaN unless all b_i|w_i| < 1.

    Corrected exponential and Poisson losses have heavy tails: keep wᵀΣw below about 1. ℓ̂ need not
    be convex in w, but its mean is if ℓ is. A `flipped` loss may be corrected as well.

    Args:
        loss: ℓ, a `Loss`.
        noise: "gaussian", the default, or "laplace" (`noise.Gaussian`, `noise.Laplace`). For the
            squared loss "gaussian" is right for every distribution of covariance Σ.

    Returns:
        A `CorrectedLoss`: `loss(p, y, v)` is ℓ̂ `[...]` for predictions p = ⟨w, x̃⟩ `[...]`,
        targets y and v ≥ 0 `[...]`; under Laplace noise v is `[..., d]`, with 2b_i²w_i² for each
        feature.

    Raises:
        ValueError: there is no correction: for a loss with kinks, such as `hinge`, and for
            `logistic` under Gaussian noise. The message names a similar loss that has one. Calls
            with d > 4 features of Laplace noise raise it, too.

    Example:
        >>> import jax, noisy_jax as nj
        >>> loss = nj.losses.smoothed_hinge(sharpness=0.5)
        >>> noisy = 0.3 + jax.random.normal(jax.random.key(0), (100_000,))  # v = 1
        >>> right = nj.losses.corrected(loss)(noisy, 1.0, 1.0).mean()
        >>> print(f"{loss(0.3, 1.0):.2f} clean, {right:.2f} corrected, "
        ...       f"{loss(noisy, 1.0).mean():.2f} uncorrected")
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
