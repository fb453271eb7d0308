"""Linear regression from one noisy copy whose noise covariance Σ_t is known.

    ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃_t − 2Σ_t w_t

is unbiased for the clean gradient: E[2⟨w, n⟩n] = 2Σw is what one copy used twice adds, and is taken
away. As printed, only Σ_t w_t is taken away (Appendix C loses the factor 2 in its last term); that
estimator has bias +Σ_t w_t, which is the gradient of ½wᵀΣ_t w, so that the learner finds a
ridge-like shrunken predictor and its regret grows linearly.

Source: Learning from Noisy Data under Distributional Assumptions, Sec. 5, Lemma 2, Algorithm 1
(right); corrected, the printed form on request.
"""

import chex
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.noise import covariance_times
from noisy_jax.validation import check_dimension


def gradient_estimate(
    weights: chex.Array, sample: Sample, *, as_printed: bool = False
) -> chex.Array:
    """∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃ − 2Σw, `[d]`; as printed, with Σw for 2Σw, it has bias +Σw."""
    if sample.cov is None:
        raise ValueError(
            "known_covariance needs sample.cov, but the covariance of this noise is not known: use "
            "two_copies, or noise.estimate_covariance on replicates"
        )
    copy = sample.x[0]
    check_dimension("sample.cov", sample.cov, copy.shape)
    excess = covariance_times(sample.cov, weights)
    return 2 * (jnp.vdot(weights, copy) - sample.y) * copy - (1 if as_printed else 2) * excess


def known_covariance(
    *,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
    as_printed: bool = False,
) -> Learner:
    """Online linear regression from one noisy copy and its noise covariance (Algorithm 1, right).

    The covariance is read from `sample.cov` in every round, as `[]`, `[d]` or `[d, d]`, and may
    change from round to round.

    Args:
        radius: B_w > 0, the norm of the largest predictor that competes.
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, …;
            `bounds.known_covariance` gives the theorem's.
        optimizer: any `optax.GradientTransformation` that needs no loss value, instead of
            `learning_rate`.
        as_printed: take away Σw instead of 2Σw, to show the error of the printed formula.

    Returns:
        A `Learner` of 1 copy with O(d) time a round for a scalar or diagonal covariance, O(d²) for
        a full one. Its regret for the squared loss on clean data is at most
        2 B_w B_x (B_w B_x + B_y) √T with B_x⁴ ≥ E‖x̃‖⁴ (`bounds.known_covariance`).

    Raises:
        ValueError: see `gradient_descent`; and at the first step, where the covariance is unknown.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> learner = known_covariance(radius=1.0, learning_rate=0.05)
        >>> nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1)).predictions.shape
        (100,)
    """

    def gradient(weights, sample):
        return gradient_estimate(weights, sample, as_printed=as_printed)

    return gradient_descent(
        gradient, copies=1, radius=radius, learning_rate=learning_rate, optimizer=optimizer
    )
