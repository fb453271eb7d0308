"""Kernel learning under unknown noise, from a random number of noisy copies of each instance.

    f_{t+1} = P(f_t − η g̃_t Ψ̃_t),   P the projection on {‖f‖ ≤ B}

Ψ̃_t is an unbiased estimate of the feature map at x_t, and g̃_t one of the derivative of the loss at
f_t. Each comes from fresh copies of x_t and a power series that is cut off at a random order
(`unbiased.kernel_gradient`). So every step is the clean gradient step on average, for any noise of
bounded variance, even if it changes from copy to copy. The price is variance, which grows
exponentially with the size of the data and the sharpness of the loss. So it loses to
`unknown_noise`, which estimates g̃_t Ψ̃_t as one function from one set of copies, and at usual
lengths of streams to the mean of as many copies without any correction.

In a parallel world, where the distribution of the noise is known, one copy is enough for Ψ̃_t, and
only g̃_t is random: (γ_N/p_N) Π_{j ≤ N} (y_t f̂(x̃_j) − c) in the surrogate, y_t times, or with
f̂(x̃_j) − y_t for the margin. So classification is unbiased there, with analytic losses.

Predictions on clean data are ⟨f_t, Ψ(x)⟩, from the stored copies.

Source: Online Learning of Noisy Data with Kernels, Algorithm 1 and Theorem 4, where B is √B_w. It
prints √B_w/‖f‖² for √(B_w/‖f‖²) in the projection, and the derivative without the label inside its
product.
"""

from __future__ import annotations

import jax
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.engine import Round, Rule, Update, everything, expansion
from noisy_jax.engine.function_space import of_two_outputs
from noisy_jax.engine.memory import Space
from noisy_jax.engine.rules import rate_of
from noisy_jax.losses.loss import flips_of
from noisy_jax.unbiased.truncation.gradients import GradientEstimator
from noisy_jax.unbiased.truncation.worlds import WorldMaps
from noisy_jax.validation.objects import instance

_QUERIES = 192
"""Values of f that a block of rounds reads at once, by default."""


def random_truncation(
    estimator: GradientEstimator,
    *,
    horizon: int,
    learning_rate: optax.ScalarOrSchedule | None = None,
    block: int | None = None,
) -> Learner:
    """Online kernel learning from a random number of copies with noise of unknown distribution.

        f_{t+1} = P(f_t − η_t g̃_t Ψ̃_t),   P the projection on {‖f‖ ≤ B}

    Ψ̃_t estimates the kernel's feature map at the clean x_t, and g̃_t the derivative of the loss at
    f_t(x_t). Both are unbiased, apart from series that are cut off: each is one random term of a
    power series, times noisy copies of its own. Only the variance of the noise must be bounded. The
    loss may be any with a power series. Targets must be free of noise, except for the squared loss.

    **In a world**, where the distribution of the noise is known, a round takes up to G + 1 copies,
    if the series of ℓ' is cut off after order G. For `smoothed_hinge` and `smoothed_absolute` G
    grows quickly with the sharpness times the radius, which should be around 1. If there is one
    copy with Gaussian noise, `wrappers.cloned` makes these copies from it; the world must then
    exist for G + 1 times the covariance.

    Args:
        estimator: the estimator of g̃_t and Ψ̃_t, from `unbiased.kernel_gradient` for a kernel or a
            world, a loss and the radius B.
        horizon: T ≥ 1, the largest number of rounds. `nj.rollout` raises ValueError for more.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate η_t = √2 B/√(Σ_{s≤t} ‖g̃_sΨ̃_s‖²). `bounds.random_truncation` gives
            the theorem's rate (the paper's η is ours times √T).
        block: number of rounds that `unroll` plays at once; by default the largest number that
            reads at most 192 values of f, at least 1.

    Returns:
        A `Learner` of `estimator.copies` copies, the most that one round may use;
        `state.atoms.copies` `[T or more]` is the number used in each round. Round t takes O(tnd)
        time for features cut off at order n. Its `clean_estimates` are unbiased for the kernel with
        its series cut off. Apart from the bias of cut-off series, its expected regret (total loss
        on clean data over T rounds, minus the total of the best function in the ball) is at most
        B √(B_g B_Ψ T) at the theorem's rate, with B_Ψ ≥ E‖Ψ̃‖² and B_g ≥ E g̃², and 2√2 times that at
        the adaptive rate.

    Source: Online Learning of Noisy Data with Kernels, Algorithm 1 and Theorem 4.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> kernel, loss = nj.kernels.polynomial(degree=2), nj.losses.squared()
        >>> estimator = nj.unbiased.kernel_gradient(kernel, loss, radius=2.0, x_second_moment=1.3)
        >>> learner = nj.learners.random_truncation(estimator, horizon=1000)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1))
        >>> print(f"copies used in a round: {run.state.atoms.copies[:1000].mean():.2f} on average")
        copies used in a round: 1.15 on average

        In a world, from one copy:

        >>> noise, loss = nj.noise.Gaussian(0.05), nj.losses.smoothed_hinge()
        >>> world = nj.worlds.gaussian(dim=3, length_scale=1.0, noise=noise.cloned(5))
        >>> estimator = nj.unbiased.kernel_gradient(world, loss, radius=1.0, loss_order=4)
        >>> learner = nj.learners.random_truncation(estimator, horizon=1000)
        >>> stream = stream._replace(y=jnp.sign(stream.y))
        >>> run = nj.rollout(nj.wrappers.cloned(learner, noise), stream, noise, jax.random.key(1))
        >>> print(f"share of mistakes {(run.predictions * stream.y <= 0)[500:].mean():.2f}")
        share of mistakes 0.18
    """
    hint = "unbiased.kernel_gradient(kernel, loss, …) makes one"
    estimator = instance("estimator", estimator, GradientEstimator, hint)
    maps, derivative, loss = estimator.maps, estimator.derivative, estimator.loss
    radius, margin = estimator.radius, estimator.loss.kind == "margin"
    world = maps.world if isinstance(maps, WorldMaps) else None
    rate = rate_of(learning_rate, radius)

    def round_of(sample: Sample, key: jax.Array) -> Round:
        orders = estimator.draw_orders(key)
        stored, others = estimator.estimates(orders, sample.x)
        return Round(stored, others, (sample.y, orders.derivative))

    def update(state, values, target, t, square) -> Update:
        y, order = target
        estimate = derivative.estimate(order, loss.argument(values[1:], y))
        if margin:
            estimate = y * estimate
        eta, state = rate.at(state, t, estimate**2 * square)
        return Update(-eta * estimate, 1.0, state)

    return expansion(
        round_of=round_of,
        rule=Rule(rate.init, update),
        memory=everything(horizon)(Space(maps.inner, maps.evaluate, maps.points)),
        copies=estimator.copies,
        radius=radius,
        block=max(1, _QUERIES // (2 + derivative.copies)) if block is None else block,
        dim=world and world.dim,
        labels=margin,
        flips=flips_of(loss),
        noise=world and world.noise,
        targets="independent" if margin or derivative.copies <= 1 else "exact",
        estimates=of_two_outputs if derivative.copies else None,
    )
