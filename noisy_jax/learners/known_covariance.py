"""Linear predictors from one noisy copy whose noise covariance Σ_t is known.

    ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃_t − 2Σ_t w_t + 2c_t

is unbiased for the clean gradient: one copy used twice adds E[2⟨w, n⟩n] = 2Σw, which is
subtracted. If the noise in ỹ is correlated with n, with c = Cov(n, n^y), it takes 2c away, which is
added; otherwise c = 0.
The paper prints Σ_t w_t instead (Appendix C loses the factor 2 in its last term). That estimate has
bias +Σ_t w_t, the gradient of ½wᵀΣ_t w, so that it shrinks the predictor as ridge regression does,
and its regret grows linearly.

For other losses than the squared one, under Gaussian or Laplace noise, the estimate is the gradient
of a corrected loss (`losses.corrected`).

Source: Learning from Noisy Data under Distributional Assumptions, Sec. 5, Lemma 2, Algorithm 1
(right), corrected. The printed form is an option.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.losses import Loss, corrected
from noisy_jax.losses.corrected import CorrectedLoss
from noisy_jax.losses.loss import flips_of
from noisy_jax.noise import Gaussian, Laplace, covariance_times
from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.numbers import non_negative
from noisy_jax.validation.objects import switch
from noisy_jax.validation.values import ArrayLike
from noisy_jax.varying import of_this_device
from noisy_jax.xla import total


def gradient_estimate(weights: jax.Array, sample: Sample, *, as_printed: bool = False) -> jax.Array:
    """∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃ − 2Σw + 2c, `[d]`; as printed, with Σw for 2Σw, it has bias +Σw."""
    copy, excess = sample.x[0], covariance_times(_covariance(sample), weights)
    gradient = 2 * (total(weights * copy) - sample.y) * copy - (1 if as_printed else 2) * excess
    return gradient if sample.cross_cov is None else gradient + 2 * sample.cross_cov


def corrected_gradient(weights: jax.Array, sample: Sample, *, loss: CorrectedLoss) -> jax.Array:
    """The gradient in w of ℓ̂(⟨w, x̃⟩, ỹ, wᵀΣw), through the variance as well, `[d]`."""
    cov = _covariance(sample)
    if loss.noise == "laplace" and jnp.ndim(cov) == 2:
        raise ValueError("sample.cov must be [] or [d]: Laplace noise has independent coordinates")

    def estimate(weights):
        shares = weights * covariance_times(cov, weights)
        v = shares if loss.noise == "laplace" else jnp.sum(shares)
        return loss(jnp.vdot(weights, sample.x[0]), sample.y, v)

    return jax.grad(estimate)(of_this_device(weights))


def _covariance(sample: Sample) -> ArrayLike:
    if sample.cov is None:
        raise ValueError(
            "known_covariance needs sample.cov, but the covariance of this noise is not known: use "
            "two_copies, or noise.estimate_covariance on replicates"
        )
    check_dimension("sample.cov", sample.cov, sample.x[0].shape)
    if jnp.ndim(sample.cov) > 2:
        raise ValueError(f"sample.cov must be [], [d] or [d, d], got {list(jnp.shape(sample.cov))}")
    if jnp.ndim(sample.cov) < 2:
        return non_negative("sample.cov", sample.cov, shape=None)
    variances = non_negative("the variances in sample.cov", jnp.diagonal(sample.cov), shape=None)
    return jnp.where(jnp.isnan(variances).any(), jnp.nan, sample.cov)


def known_covariance(
    *,
    radius: ArrayLike,
    loss: Loss | CorrectedLoss | None = None,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
    as_printed: bool = False,
) -> Learner:
    """Online learning of a linear predictor from one noisy copy and its noise covariance.

        w_{t+1} = P(w_t − η_t ∇̃_t),   ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃_t − 2Σ_t w_t for the squared
        loss

    x̃_t = x_t + n_t is the copy, Σ_t the covariance of n_t, and P the projection on ‖w‖ ≤ B_w. The
    estimate ∇̃_t of the clean gradient is unbiased under noise of any distribution of mean zero.
    Σ_t is read from `sample.cov` (`[]`, `[d]` or `[d, d]`) in each round; `wrappers.assuming`
    supplies one if there is none. For noise that depends on x an unbiased estimate of Σ_t is
    enough.

    **Other losses** are corrected for one distribution (`losses.corrected`), and need its exact
    covariance; under another distribution `rollout` warns. Where a loss has no correction at w,
    results are NaN from then on: with smoothed losses keep B_w²‖Σ‖ below δ², for a width δ, or
    below 1/(2s²), for a sharpness s. Independent noise in y has no effect on average for the
    squared and the Poisson loss; for other losses it is not corrected.

    Args:
        radius: B_w > 0. Regret is the learner's total loss on clean data over T rounds minus the
            total of the best predictor in this ball.
        loss: `None`, the default, for the squared loss; a `Loss` that has a correction for Gaussian
            noise; or one from `losses.corrected`, for Gaussian or Laplace noise.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate η_t = √2 B_w/√(Σ_{s≤t} ‖∇̃_s‖²). `bounds.known_covariance` gives the
            theorem's constant rate.
        optimizer: an optax transformation of ∇̃_t, in place of the learning rate; none by default.
        as_printed: True to subtract Σw instead of 2Σw, as the paper prints; False by default.

    Returns:
        A `Learner` of 1 copy with O(d) time a round for `[]` or `[d]`, O(d²) for `[d, d]`, and with
        `clean_estimates` (unbiased estimates of f(x) and f(x)² at the clean x). For the squared
        loss its expected regret on clean data is at most 2 B_w B_x (B_w B_x + B_y) √T at the
        theorem's rate, with B_x⁴ ≥ E‖x̃‖⁴ and B_y² ≥ E ỹ², and 2√2 times that at the adaptive rate.
        For other convex losses it is at most 2√2 B_w √(E Σ_t ‖∇̃_t‖²) at the adaptive rate
        (`bounds.adaptive_rate`).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> learner = nj.learners.known_covariance(radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(f"mean squared loss {((run.predictions - stream.y) ** 2).mean():.2f}")
        mean squared loss 0.01
        >>> labels = stream._replace(y=jnp.sign(stream.y))
        >>> hinge = nj.losses.smoothed_hinge(sharpness=0.4)
        >>> learner = nj.learners.known_covariance(radius=2.0, loss=hinge)
        >>> run = nj.rollout(learner, labels, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(f"share of mistakes {jnp.mean(run.predictions * labels.y <= 0):.2f}")
        share of mistakes 0.06

    Source: Learning from Noisy Data under Distributional Assumptions, Algorithm 1 (right) and Sec.
    5, corrected.
    """
    noise, targets, labels, flips = None, "any", False, False
    if loss is None:
        printed = switch("as_printed", as_printed)
        gradient = functools.partial(gradient_estimate, as_printed=printed)
    elif switch("as_printed", as_printed):
        raise ValueError("as_printed must be False with a loss: it is for the squared loss only")
    else:
        loss = loss if isinstance(loss, CorrectedLoss) else corrected(loss)
        gradient = functools.partial(corrected_gradient, loss=loss)
        targets = "independent"
        noise = {"gaussian": Gaussian, "laplace": Laplace}[loss.noise]
        labels, flips = loss.loss.kind == "margin", flips_of(loss.loss)
    learner = gradient_descent(
        gradient, copies=1, radius=radius, learning_rate=learning_rate, optimizer=optimizer,
        labels=labels,
    )  # fmt: skip
    return learner._replace(needs=learner.needs._replace(noise=noise, targets=targets, flips=flips))
