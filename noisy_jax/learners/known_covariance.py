"""Linear regression from one noisy copy whose noise covariance Σ_t is known.

    ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃_t − 2Σ_t w_t + 2c_t

is unbiased for the clean gradient: one copy used twice adds E[2⟨w, n⟩n] = 2Σw, which is
subtracted. If the noise in ỹ is correlated with n, with c = Cov(n, n^y), it takes 2c away, which is
added; otherwise c = 0.
The paper prints Σ_t w_t instead (Appendix C loses the factor 2 in its last term). That estimate has
bias +Σ_t w_t, the gradient of ½wᵀΣ_t w, so that it shrinks the predictor as ridge regression does,
and its regret grows linearly.

Source: Learning from Noisy Data under Distributional Assumptions, Sec. 5, Lemma 2, Algorithm 1
(right), corrected. The printed form is an option.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.noise import covariance_times
from noisy_jax.validation import check_dimension


def gradient_estimate(weights: jax.Array, sample: Sample, *, as_printed: bool = False) -> jax.Array:
    """∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃ − 2Σw + 2c, `[d]`; as printed, with Σw for 2Σw, it has bias +Σw."""
    if sample.cov is None:
        raise ValueError(
            "known_covariance needs sample.cov, but the covariance of this noise is not known: use "
            "two_copies, or noise.estimate_covariance on replicates"
        )
    copy = sample.x[0]
    check_dimension("sample.cov", sample.cov, copy.shape)
    excess = covariance_times(sample.cov, weights)
    gradient = 2 * (jnp.vdot(weights, copy) - sample.y) * copy - (1 if as_printed else 2) * excess
    return gradient if sample.cross_cov is None else gradient + 2 * sample.cross_cov


def known_covariance(
    *,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
    as_printed: bool = False,
) -> Learner:
    """Online linear regression from one noisy copy and its noise covariance (Algorithm 1, right).

    The covariance is read from `sample.cov` in every round, as `[]`, `[d]` or `[d, d]`, and may
    change from round to round, or be an unbiased estimate if it depends on x (`noise.Missing`).
    `wrappers.assuming` supplies one where the sample has none.

    The weights stay in the ball of radius B_w > 0. The rate is adaptive by default; a learning rate
    η > 0 (a number or an optax schedule; `bounds.known_covariance` gives the theorem's) or an optax
    optimizer takes its place (`gradient_descent`). `as_printed=True` subtracts Σw instead of 2Σw,
    to show the error of the printed formula.

    Returns:
        A `Learner` of 1 copy with O(d) time a round for a scalar or diagonal covariance, O(d²) for
        a full one, and with unbiased readings. At the theorem's rate its expected regret for the
        squared loss on clean data is at most 2 B_w B_x (B_w B_x + B_y) √T with B_x⁴ ≥ E‖x̃‖⁴
        (`bounds.known_covariance`), at the adaptive rate 2√2 times that.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> learner = known_covariance(radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(f"mean squared loss {((run.predictions - stream.y) ** 2).mean():.2f}")
        mean squared loss 0.01
    """
    learner = gradient_descent(
        functools.partial(gradient_estimate, as_printed=as_printed),
        copies=1,
        radius=radius,
        learning_rate=learning_rate,
        optimizer=optimizer,
    )
    return learner._replace(correlated_targets=True)
