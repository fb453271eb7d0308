"""Online gradient descent that treats the noisy copy as clean: the usual baseline.

    ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃_t

has mean ∇_t + 2Σ_t w_t, with ∇_t the gradient on the clean instance. So it descends on
ℓ_t(w) + wᵀΣ_t w, which biases the coefficients towards zero. The measurement-error literature calls
this bias attenuation, and the estimator naive. Its regret on clean data grows linearly, unless the
bias leaves the best clean predictor unchanged.
"""

from __future__ import annotations

import jax
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.validation.values import ArrayLike
from noisy_jax.xla import total


def gradient_estimate(weights: jax.Array, sample: Sample) -> jax.Array:
    """Returns ∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃, `[d]`, of mean 2Σw plus the gradient on the clean instance."""
    copy = sample.x[0]
    return 2 * (total(weights * copy) - sample.y) * copy


def uncorrected(
    *,
    radius: ArrayLike,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> Learner:
    """Online linear regression that treats one noisy copy as the clean instance.

        ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃_t,   w_{t+1} = P(w_t − η_t ∇̃_t)

    x̃_t is the copy, and P the projection on the ball ‖w‖ ≤ B_w. Under noise ∇̃_t is biased for the
    gradient at the clean x_t; it is a baseline.

    Args:
        radius: B_w > 0. Regret is the learner's total loss on clean data over T rounds minus the
            total of the best predictor in this ball.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate η_t = √2 B_w/√(Σ_{s≤t} ‖∇̃_s‖²).
        optimizer: an optax transformation of ∇̃_t, in place of the learning rate; none by default.

    Returns:
        A `Learner` of 1 copy with O(d) time and memory a round. Its regret on clean data may grow
        linearly in T; `bounds.uncorrected` bounds it. Its `clean_estimates` of f(x) and f(x)² at
        the clean x are unbiased if the sample has a covariance, and NaN otherwise.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> learner = nj.learners.uncorrected(radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(f"mean squared loss {((run.predictions - stream.y) ** 2).mean():.2f}")
        mean squared loss 0.10
    """
    learner = gradient_descent(
        gradient_estimate, copies=1, radius=radius, learning_rate=learning_rate, optimizer=optimizer
    )
    # It corrects for no noise at all.
    return learner._replace(needs=learner.needs._replace(targets="any", flips=False))
