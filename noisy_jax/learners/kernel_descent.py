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

        f_{t+1} = P(f_t − η_t g̃_t k̂(x̃_t, ·)),   g̃_t = 2(f_t(x̃'_t) − ỹ_t)

    x̃_t and x̃'_t are the two copies, and P is the projection on {‖f‖ ≤ W}. k̂ is the world's
    surrogate of the clean kernel k, with E k̂(x̃, a) = k(x, a) over the noise in x̃ and every a. As
    the residual comes from one copy and the direction from the other, each step is unbiased for a
    gradient step on the clean squared loss. At a clean x the prediction is the function with k in
    place of k̂. `random_truncation` takes other losses.

    Args:
        world: the clean kernel and its surrogate under the noise, such as `worlds.gaussian` gives.
        horizon: T ≥ 1, the largest number of rounds. `nj.rollout` raises ValueError for more.
        radius: W > 0, in the norm of the surrogate's space. Regret is the learner's total loss on
            clean data over T rounds minus the total of the best function in this ball;
            `bounds.surrogate_radius` or a comparator's `lifted_norm` gives the W of a clean
            function.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate η_t = √2 W/√(Σ_{s≤t} ‖G_s‖²) with the gradients G_s = g̃_s k̂(x̃_s, ·)
            so far. `bounds.parallel_worlds` gives the theorem's constant rate.
        block: number of rounds that `unroll` plays at once, for speed only; by default at most 64.

    Returns:
        A `Learner` of 2 copies, with O(t) kernel evaluations in round t, O(T) memory, and with
        `clean_estimates` (unbiased estimates of f(x) and f(x)² at the clean x). At the theorem's
        rate its expected regret for the squared loss on clean data is at most 2WR(WR + B_y)√T, with
        R² = `world.diagonal`, the surrogate at equal points, and B_y² ≥ E ỹ² for the targets ỹ; at
        the adaptive rate 2√2 times that.

    Source: Learning from Noisy Data under Distributional Assumptions, Algorithm 2.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise)
        >>> learner = nj.learners.parallel_worlds(world, horizon=1000, radius=2.0)
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

    The learner's function is f(x) = ⟨w, z(x)⟩ with D random features z, whose values at a noisy
    copy are unbiased for the clean ones (`features.noisy`, `features.clean`). It makes gradient
    steps on the squared loss from two copies, and stays in the ball {‖w‖ ≤ W}. As D grows, its
    predictions tend to the predictions of `parallel_worlds`, where that world exists. There is no
    horizon.

    For every D its expected regret at the adaptive rate is at most 2√2 · 2WR(WR + B_y)√T. Here R² =
    `features.squared_norm` is the squared norm of the features of a copy, and B_y² ≥ E ỹ² for the
    targets ỹ.

    Args:
        features: random features from `worlds.fourier` or `worlds.fourier_gaussian`, built for the
            distribution of the noise.
        radius: W > 0, radius of the ball of weights. Regret is the learner's total loss on clean
            data over T rounds minus the total of the best ⟨v, z(x)⟩ with ‖v‖ ≤ W.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate √2 W/√(Σ_{s≤t} ‖g_s‖²) with the gradients g_s so far.
        block: number of rounds that `unroll` plays at once, for speed only; by default at most 64.

    Returns:
        A `Learner` of 2 copies, with `clean_estimates` (unbiased estimates of f(x) and f(x)² at the
        clean x).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> features = nj.worlds.fourier_gaussian(
        ...     jax.random.key(2), 128, dim=3, length_scale=1.0, noise=noise)
        >>> learner = nj.learners.fourier_worlds(features, radius=2.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(learner, stream, noise, jax.random.key(1))
        >>> loss = (run.predictions - stream.y) ** 2
        >>> print(f"squared loss {loss.mean():.2f}, of predicting 0 {jnp.mean(stream.y**2):.2f}")
        squared loss 0.03, of predicting 0 0.20
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

        f_{t+1} = P(f_t − η_t 2(f_t(x̃_t) − ỹ_t) k(x̃_t, ·)),   P the projection on {‖f‖ ≤ W}

    It minimizes the squared loss at the noisy copies x̃_t, whose best predictor differs from the
    best predictor at clean instances, so that its regret on clean data may grow linearly. Without
    noise it is projected online gradient descent in the space of the kernel.

    Args:
        kernel: one of `kernels`.
        horizon: T ≥ 1, the largest number of rounds. `nj.rollout` raises ValueError for more.
        radius: W > 0, in the norm of the kernel's space. Regret is the learner's total loss on
            clean data over T rounds minus the total of the best function in this ball.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate η_t = √2 W/√(Σ_{s≤t} ‖G_s‖²) with the gradients G_s so far.
        block: number of rounds that `unroll` plays at once, for speed only; by default at most 64.

    Returns:
        A `Learner` of 1 copy, with O(t) kernel evaluations in round t and O(T) memory, and without
        `clean_estimates`.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> learner = nj.learners.uncorrected_kernel(
        ...     nj.kernels.gaussian(length_scale=1.0), horizon=1000, radius=2.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> loss = (run.predictions - stream.y) ** 2
        >>> print(f"squared loss {loss.mean():.2f}, of predicting 0 {jnp.mean(stream.y**2):.2f}")
        squared loss 0.13, of predicting 0 0.20
    """
    check_kernel(kernel)
    return _descent(kernel, everything(horizon), radius, learning_rate, block)


def _descent(kernel, buffer, radius, learning_rate, block) -> Learner:
    radius = parsed_radius(radius)
    rule = squared_loss(learning_rate, radius=radius)
    return function_space(kernel, buffer).learner(rule, radius=radius, block=block)
