"""Kernel learning under unknown noise, from a random number of noisy copies of each instance.

    f_{t+1} = P(f_t − η g̃_t Ψ̃_t),   P the projection on {‖f‖² ≤ B_w}

Ψ̃_t is an unbiased estimate of the feature map at x_t, and g̃_t one of the slope of the loss at f_t,
each from fresh copies of x_t and cut off at a random order: `estimators.gradient`. So every step is
the clean gradient's on average, for any noise of bounded variance, even one that changes from copy
to copy. What it costs is variance: exp-like in the size of the data and in the loss's sharpness.

Predictions on clean data are ⟨f_t, Ψ(x)⟩, by the stored copies.

Source: Online Learning of Noisy Data with Kernels, Algorithm 1 and Theorem 4. The projection is
printed with √B_w/‖f‖² for √(B_w/‖f‖²), and the slope without the label inside its product.
"""

import chex
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.engine import Space, everything
from noisy_jax.engine.expansion import Round, expansion
from noisy_jax.engine.rules import Rule, Update, schedule
from noisy_jax.estimators import GradientEstimator
from noisy_jax.estimators.gradients import check_estimator
from noisy_jax.learners.labels import checking_labels
from noisy_jax.losses.loss import sound_labels

_QUERIES = 192
"""Values of f that a block of rounds reads at once, by default."""


def random_truncation(
    estimator: GradientEstimator,
    *,
    horizon: int,
    learning_rate: optax.ScalarOrSchedule,
    block: int | None = None,
) -> Learner:
    """Online kernel learning with any analytic loss, under noise of unknown distribution (Algorithm 1).

    The squared loss over a linear kernel makes it `two_copies` in dual variables.

    Args:
        estimator: of the clean gradient, by `estimators.gradient`.
        horizon: T, the number of rounds that there is room for.
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, … (the paper's η is ours times
            √T); `bounds.random_truncation` gives the theorem's, which is far on the safe side.
        block: rounds that `unroll` takes at once; by default as many as read 192 values of f.

    Returns:
        A `Learner` of `estimator.copies` copies, the most that one round may use. How many it did
        use stands in `state.atoms.copies`, `[slots]`, zero for rounds not yet played. Regret for
        the loss on clean data, but for the bias where series are cut off, is at most
        √(B_w B_g B_Ψ T) (`bounds.random_truncation`).

    Raises:
        ValueError: horizon, rate or block not positive, no estimator; fewer copies than it needs,
            or more rounds than the horizon, or concrete labels other than ±1 for a loss of the
            margin (with traced ones the run ends in NaN).

    Example:
        >>> import jax, noisy_jax as nj
        >>> kernel, loss = nj.kernels.polynomial(degree=2), nj.losses.squared()
        >>> estimator = nj.estimators.gradient(kernel, loss, squared_radius=4.0, x_second_moment=1.3)
        >>> learner = random_truncation(estimator, horizon=100, learning_rate=0.01)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1)).predictions.shape
        (100,)
    """
    check_estimator(estimator)
    maps, query_points = estimator.maps, estimator.derivative.copies

    def read(sample: Sample, key: chex.PRNGKey) -> Round:
        orders = estimator.draw_orders(key)
        stored, others = estimator.estimates(orders, sample.x)
        return Round(stored, others, (sample.y, orders.derivative))

    learner = expansion(
        read=read,
        rule=_rule(estimator.loss, estimator.derivative, learning_rate),
        memory=everything(Space(maps.inner, maps.evaluate, maps.points), horizon),
        copies=estimator.copies,
        radius=estimator.squared_radius**0.5,
        block=max(1, _QUERIES // (2 + query_points)) if block is None else block,
    )
    return checking_labels(learner) if estimator.loss.kind == "margin" else learner


def _rule(loss, slope, learning_rate) -> Rule:
    """α_t = −η g̃_t, from f_t at the query_points."""
    rate = schedule(learning_rate)

    def update(state, values, target, t) -> Update:
        y, order = target
        estimate = slope.estimate(order, loss.argument(values[1:], y))
        length = sound_labels(y) * estimate if loss.kind == "margin" else estimate
        return Update(-rate(t) * length, 1.0, state)

    return Rule(lambda: (), update)
