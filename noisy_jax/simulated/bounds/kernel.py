"""Guarantees of the kernel learners in parallel worlds.

They hold in a ball of the surrogate's space. `surrogate_radius` gives the radius of a ball that
contains all competitors from a ball of the kernel's own space. The formulas are corrected; the
printed ones are in `bounds.as_printed`.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noisy_jax.simulated.bounds.guarantee import Guarantee, gradient_descent
from noisy_jax.simulated.bounds.linear import second_moment
from noisy_jax.validation.arrays import check_axes, real_numbers
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.values import Array, ArrayLike, concrete
from noisy_jax.worlds.fourier import FourierWorld
from noisy_jax.worlds.world import World, check_world


def parallel_worlds(
    diagonal: ArrayLike,
    *,
    horizon: ArrayLike,
    radius: ArrayLike,
    y_second_moment: ArrayLike,
) -> Guarantee:
    """Returns the learning rate and the regret bound proved for `learners.parallel_worlds`.

        G = 4R²(WR + B_y)²,   η = W/√(GT),   E[regret] ≤ W√(GT) = 2WR(WR + B_y)√T

    A world (`worlds.World`) is a clean kernel k with a surrogate k̂, whose values at noisy copies
    are right on average. The regret is the sum over T rounds of the squared loss on clean data,
    minus the sum for the best u = Σ_i a_i k(z_i, ·), of any coefficients and points, with
    ‖û‖² = Σ_ij a_i a_j k̂(z_i, z_j) ≤ W². The bound holds at the constant rate η, for every clean
    stream that is fixed in advance, if each of both copies has noise of its own, of the
    distribution that the world is made for, independent of the noise in the target. G bounds the
    mean squared norm of a gradient estimate. For `learners.fourier_worlds` the same bound holds,
    against every ⟨v, features.clean(·)⟩ with ‖v‖ ≤ W. `self_bounding` mostly gives a smaller
    one.

    Args:
        diagonal: R² > 0: `world.diagonal`, or `features.squared_norm` of Fourier features.
        horizon: T > 0, number of rounds; may be traced.
        radius: W > 0, the learner's `radius`, such as the `lifted_norm` of `comparators.world_ball`
            or `bounds.surrogate_radius`.
        y_second_moment: B_y² ≥ E ỹ_t² of the targets ỹ_t that the learner sees, in all rounds.

    Returns:
        A `Guarantee` of numbers `[]`: `learning_rate` η, `regret`, the bound for all T rounds
        together, and `second_moment` G.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Learning from Noisy Data under Distributional Assumptions, Theorems 3 and 5, with G
    corrected; other worlds here. (Theorem 5 prints R = exp(σc) for the bound exp(σ²c) on R;
    `World.diagonal` is R² itself.)

    Example:
        >>> import noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=1, length_scale=1.0, noise=nj.noise.Gaussian(0.75))
        >>> theory = nj.bounds.parallel_worlds(
        ...     world.diagonal, horizon=100, radius=0.5, y_second_moment=1.0)
        >>> print(f"{theory.regret:.1f}")
        24.1
        >>> learner = nj.learners.parallel_worlds(
        ...     world, horizon=100, radius=0.5, learning_rate=theory.learning_rate)
    """
    if isinstance(diagonal, World | FourierWorld):
        raise ValueError(
            "diagonal must be the number R², such as world.diagonal or features.squared_norm, got "
            f"the {type(diagonal).__name__} itself"
        )
    diagonal = positive("diagonal", diagonal)
    y_second_moment = non_negative("y_second_moment", y_second_moment)
    return gradient_descent(second_moment(diagonal, y_second_moment, radius), horizon, radius)


def surrogate_radius(world: World, *, norm: ArrayLike, angle: ArrayLike) -> Array:
    """Returns a radius for a learner in a world, from the norm and the angle of its competitors.

        W = √(κ/(1 − cos β)) B_w   for β ≤ π/2,   W = √κ B_w   for β > π/2

    A competitor u = Σ_i a_i k(z_i, ·) of the world's clean kernel k has a counterpart û = Σ_i a_i
    k̂(z_i, ·) in the space of its surrogate k̂, where the learner works. Let u₊ be the part of u
    with positive a_i, and −u₋ the part with negative ones. Then ‖û‖ ≤ W for all u at once that have
    ‖u‖ ≤ B_w and an angle of at least β between u₊ and u₋. κ is the world's `ratio`: 0 < k̂ ≤ κk.

    Take W as the `radius` of `learners.parallel_worlds` and `bounds.parallel_worlds`. For a single
    u its own ‖û‖, the `lifted_norm` of `comparators.world_ball`, is at most W, and exists in every
    world.

    Args:
        world: a `World` with a finite `ratio`.
        norm: B_w > 0, in the norm of the clean kernel's space.
        angle: β in (0, π], radians, `[]`, such as the `angle` of `comparators.world_ball`.

    Returns:
        W, `[]`.

    Raises:
        ValueError: β is zero or outside [0, π], or κ is infinite, as in worlds of Laplace noise.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemmas 5 and 6, with a
    sharper constant: ‖u‖² ≥ 2‖u₊‖‖u₋‖(1 − cos β) gives ‖u₊‖² + ‖u₋‖² ≤ ‖u‖²/(1 − cos β), which is
    attained where ‖u₊‖ = ‖u₋‖.

    Example:
        >>> import noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> print(nj.bounds.surrogate_radius(world, norm=1.0, angle=1.0471976))
        2.0
    """
    check_world(world)
    norm, angle = positive("norm", norm), covered_angle(world.ratio, angle)
    return norm * jnp.sqrt(world.ratio) / (jnp.sqrt(2.0) * jnp.sin(angle / 2))


def covered_angle(ratio: ArrayLike, angle: ArrayLike) -> Array:
    """min(β, π/2), if a bound on ‖û‖ follows from ‖u‖ and β; else ValueError, or NaN if traced."""
    check_axes("angle", angle, "[]")
    beta = real_numbers("angle", angle)
    if beta is not None and not np.all((beta >= 0) & (beta <= np.float32(np.pi))):
        raise ValueError(f"angle must be in radians, in [0, π], got {angle}")
    kappa = concrete(ratio)
    instead = "take the lifted_norm of a comparator (comparators.world_ball) as the radius"
    if kappa is not None and not np.all(np.isfinite(kappa)):
        raise ValueError(
            f"world must have a finite ratio κ with 0 < k̂ <= κk, got {ratio}; {instead}"
        )
    if beta is not None and np.any(beta == 0):
        raise ValueError(
            f"angle must be positive, got {angle}: the bound is infinite at β = 0; {instead}"
        )
    inside = (angle >= 0) & (angle <= np.float32(np.pi))
    return jnp.where(inside, jnp.minimum(angle, jnp.pi / 2), jnp.nan)
