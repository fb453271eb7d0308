"""Linear regression from two independent noisy copies; only moments of the noise must exist.

    ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃'_t

is unbiased for the clean gradient 2(⟨w_t, x_t⟩ − y_t) x_t, because x̃'_t is independent of x̃_t and
both have mean x_t. The same copy in both places would add 2Σw_t.

Source: Learning from Noisy Data under Distributional Assumptions, Sec. 4, Lemma 1, Algorithm 1
(left). The algorithm is right as printed; its second-moment bound is not (`bounds.two_copies`).
"""

from __future__ import annotations

import jax
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.validation.values import ArrayLike
from noisy_jax.xla import total


def gradient_estimate(weights: jax.Array, sample: Sample) -> jax.Array:
    """Returns ∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃', `[d]`, unbiased for the gradient of the clean squared loss."""
    first, second = sample.x[0], sample.x[1]
    return 2 * (total(weights * first) - sample.y) * second


def two_copies(
    *,
    radius: ArrayLike,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> Learner:
    """Online linear regression from two noisy copies of each instance (Algorithm 1, left).

        ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃'_t,   w_{t+1} = P(w_t − η_t ∇̃_t)

    x̃_t and x̃'_t are the copies of x_t, whose independent noise needs mean zero and no other
    property. ∇̃_t is then unbiased for the gradient of the squared loss at the clean x_t. P is the
    projection on the ball ‖w‖ ≤ B_w. Noise in y must be independent of the noise in x̃'_t; it may
    be correlated with the noise in x̃_t (`noise.Correlated`).

    Args:
        radius: B_w > 0. Regret is the learner's total loss on clean data over T rounds minus the
            total of the best predictor in this ball.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate η_t = √2 B_w/√(Σ_{s≤t} ‖∇̃_s‖²). `bounds.two_copies` gives the
            theorem's constant rate.
        optimizer: an optax transformation of ∇̃_t, in place of the learning rate; none by default.

    Returns:
        A `Learner` of 2 copies with O(d) time and memory a round, and with `clean_estimates`
        (unbiased estimates of f(x) and f(x)² at the clean x). At the theorem's rate its expected
        regret for the squared loss on clean data is at most 2 B_w B_x (B_w B_x + B_y) √T with B_x²
        ≥ E‖x̃‖² and B_y² ≥ E ỹ² (`bounds.two_copies`), at the adaptive rate 2√2 times that.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> learner = nj.learners.two_copies(radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(f"mean squared loss {((run.predictions - stream.y) ** 2).mean():.2f}")
        mean squared loss 0.01

    Source: Learning from Noisy Data under Distributional Assumptions, Sec. 4.
    """
    learner = gradient_descent(
        gradient_estimate, copies=2, radius=radius, learning_rate=learning_rate, optimizer=optimizer
    )
    return learner._replace(needs=learner.needs._replace(targets="any", flips=False))
