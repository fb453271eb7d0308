"""Linear regression from V ≥ 2 noisy copies: each copy is used in the residual, and as a direction.

    ∇̃_t = 2/(V(V − 1)) Σ_{i ≠ j} (⟨w_t, x̃_i⟩ − ỹ_t) x̃_j

is the mean of the gradients of `two_copies` over all pairs of different copies, in both orders. So
it is unbiased for the clean gradient 2(⟨w_t, x_t⟩ − y_t) x_t, and its variance is smaller. All
pairs take O(Vd) operations: the sum over all i and j, less the V terms with i = j.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.values import ArrayLike


def gradient_estimate(weights: jax.Array, sample: Sample) -> jax.Array:
    """Returns ∇̃ `[d]` from all copies of the sample; unbiased for the clean squared loss.

    Noise in the target that is correlated with the noise of a copy makes it biased.
    """
    copies, count = sample.x, len(sample.x)
    residuals = copies @ weights - sample.y
    pairs = jnp.sum(residuals) * jnp.sum(copies, axis=0) - residuals @ copies
    return 2 * pairs / (count * (count - 1))


def several_copies(
    *,
    copies: int,
    radius: ArrayLike,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> Learner:
    """Online linear regression from several noisy copies of each instance, by all pairs of them.

        ∇̃_t = (1/(V(V − 1))) Σ_{u≠v} 2(⟨w_t, x̃_u⟩ − ỹ_t) x̃_v,   w_{t+1} = P(w_t − η_t ∇̃_t)

    x̃_1, …, x̃_V are the copies of x_t, whose independent noise needs mean zero and no other
    property. ∇̃_t is then unbiased for the gradient of the squared loss at the clean x_t. P is the
    projection on the ball ‖w‖ ≤ B_w. Noise in the targets must be independent of the noise in x.

    Args:
        copies: V ≥ 2, number of noisy copies of each instance.
        radius: B_w > 0. Regret is the learner's total loss on clean data over T rounds minus the
            total of the best predictor in this ball.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate η_t = √2 B_w/√(Σ_{s≤t} ‖∇̃_s‖²).
        optimizer: an optax transformation of ∇̃_t, in place of the learning rate; none by default.

    Returns:
        A `Learner` of V copies with O(Vd) time a round, and with `clean_estimates` (unbiased
        estimates of f(x) and f(x)² at the clean x). Its expected regret for the squared loss on
        clean data at the adaptive rate is at most 2√2 B_w √(E Σ_t ‖∇̃_t‖²)
        (`bounds.adaptive_rate`).

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=2000, dim=3)
        >>> learner = nj.learners.several_copies(copies=4, radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(f"mean squared loss {((run.predictions - stream.y) ** 2).mean():.2f}")
        mean squared loss 0.01
    """
    copies = whole("copies", copies, 2, "V, noisy copies of each instance")

    def of_first(weights, sample):
        return gradient_estimate(weights, sample._replace(x=sample.x[:copies]))

    learner = gradient_descent(
        of_first, copies=copies, radius=radius, learning_rate=learning_rate,
        optimizer=optimizer,
    )  # fmt: skip
    return learner._replace(needs=learner.needs._replace(flips=False))
