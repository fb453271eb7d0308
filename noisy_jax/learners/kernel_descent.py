"""Projected gradient descent on the squared loss in the Hilbert space of a kernel.

    g̃_t = 2(f̂_t(x̃'_t) − ỹ_t),   f̂_t(x̃') = Σ_{i<t} α_i k̂(x̃_i, x̃')
    f̂_{t+1} = P(f̂_t − η_t g̃_t k̂(x̃_t, ·)),   P the projection on {‖f̂‖ ≤ W}

In a world, E k̂(x̃, a) = k(x, a), so that gradients from two noisy copies are unbiased: the residual
comes from the second copy, the direction from the first. Predictions on clean data use the clean
kernel, Σ_{i<t} α_i k(x̃_i, x). On random features N of noisy copies and C of clean instances, with
E N(x̃) = C(x), this is linear regression from two copies, with predictions ⟨w_t, C(x)⟩.

Source: Learning from Noisy Data under Distributional Assumptions, Algorithm 2 and Theorem 3 (right
as printed except for the constants, see `bounds.parallel_worlds`). Its double sum for ‖f̂‖² is
replaced by a recursion (`engine.expansion`). Random features are not in the paper.
"""

from __future__ import annotations

import optax

from noisy_jax.base import Learner
from noisy_jax.engine import everything, function_space
from noisy_jax.engine.rules import parsed_radius, squared_loss
from noisy_jax.kernels.kernel import Kernel, check_kernel
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import ArrayLike
from noisy_jax.worlds import World
from noisy_jax.worlds.fourier import FourierWorld
from noisy_jax.worlds.world import check_world


def parallel_worlds(
    world: World,
    *,
    horizon: int,
    radius: ArrayLike,
    learning_rate: optax.ScalarOrSchedule | None = None,
    block: int | None = None,
) -> Learner:
    """Online kernel regression from two noisy copies, if the distribution of the noise is known.

    It learns with the squared loss; `random_truncation` takes other analytic losses in a world.

    Args:
        world: the clean kernel and its surrogate under the noise, such as `worlds.gaussian` gives.
        horizon: T, the largest number of rounds. `nj.rollout` raises ValueError for more.
        radius: W > 0, radius of the ball that holds the learner's function and its competitors, in
            the norm of the surrogate's space: `bounds.surrogate_radius` or a comparator's
            `lifted_norm`.
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, …, such as the theorem's
            (`bounds.parallel_worlds`); by default adaptive, √2 W/√(Σ ‖g̃Ψ̂‖²).
        block: number of rounds that `unroll` plays at once, by default as in `engine.expansion`.

    Returns:
        A `Learner` of 2 copies, with O(t) kernel evaluations in round t and O(T) memory, and with
        clean estimates. At the theorem's learning rate its expected regret for the squared loss
        on clean data is at most 2WR(WR + B_y)√T, with R² = `world.diagonal` and B_y² ≥ E ỹ² for
        the targets ỹ (`bounds.parallel_worlds`), at the adaptive rate 2√2 times that.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise)
        >>> learner = parallel_worlds(world, horizon=1000, radius=2.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(learner, stream, noise, jax.random.key(1))
        >>> loss = (run.predictions - stream.y) ** 2
        >>> print(f"squared loss {loss.mean():.2f}, of predicting 0 {jnp.mean(stream.y**2):.2f}")
        squared loss 0.03, of predicting 0 0.20
    """
    check_world(world)
    return _descent(world, everything(horizon), radius, learning_rate, block)


def fourier_worlds(
    features: FourierWorld,
    *,
    radius: ArrayLike,
    learning_rate: optax.ScalarOrSchedule | None = None,
    block: int | None = None,
) -> Learner:
    """`parallel_worlds` on random features, in O(D) time and memory a round.

    As the number D of features grows, its predictions tend to the predictions of `parallel_worlds`.
    For every D the guarantee is the same against all ⟨v, features.clean(x)⟩ with ‖v‖ ≤ W, with
    R² = `features.squared_norm`.

    Args:
        features: random features from `worlds.fourier` or `worlds.fourier_gaussian`.
        radius: W > 0, radius of the ball that holds the learner's weights and its competitors.
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, …; by default adaptive, as in
            `parallel_worlds`.
        block: number of rounds that `unroll` plays at once, by default as in `engine.expansion`.

    Returns:
        A `Learner` of 2 copies, with clean estimates.
    """
    instance("features", features, FourierWorld, "worlds.fourier(key, world, num_features) is one")
    return _descent(features, None, radius, learning_rate, block)


def uncorrected_kernel(
    kernel: Kernel,
    *,
    horizon: int,
    radius: ArrayLike,
    learning_rate: optax.ScalarOrSchedule | None = None,
    block: int | None = None,
) -> Learner:
    """Online kernel regression that treats one noisy copy as the clean instance, as a baseline.

    It minimizes the squared loss on noisy instances, whose best predictor differs from the best
    predictor on clean instances, so that its regret on clean data grows linearly. Without noise it
    is the textbook learner.

    Args:
        kernel: any of `kernels`.
        horizon: T, the largest number of rounds. `nj.rollout` raises ValueError for more.
        radius: W > 0, radius of the ball that holds the learner's function and its competitors, in
            the norm of the kernel's space.
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, …; by default adaptive, as in
            `parallel_worlds`.
        block: number of rounds that `unroll` plays at once, by default as in `engine.expansion`.

    Returns:
        A `Learner` of 1 copy, without `clean_estimates`. A round costs as much as in
        `parallel_worlds`.
    """
    check_kernel(kernel)
    return _descent(kernel, everything(horizon), radius, learning_rate, block)


def _descent(kernel, buffer, radius, learning_rate, block) -> Learner:
    radius = parsed_radius(radius)
    rule = squared_loss(learning_rate, radius=radius)
    return function_space(kernel, buffer).learner(rule, radius=radius, block=block)
