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
    """Guarantee of `learners.parallel_worlds` and `learners.fourier_worlds`, in any world.

    G = 4R²(WR + B_y)², η = W/√(GT) = W/(2R(WR + B_y)√T), regret ≤ W√(GT) = 2WR(WR + B_y)√T against
    every u = Σ_i a_i Ψ(z_i) with ‖û‖² = Σ_ij a_i a_j k̂(z_i, z_j) ≤ W² (Ψ, Ψ̂, û and k̂ as in
    `worlds.World`). G is attained without noise, at weights WΨ̂(x)/R and ỹ = −B_y. `self_bounding`
    gives a smaller bound.

    W is the `lifted_norm` of a comparator, or `surrogate_radius` of its norm and angle. With
    Fourier features the bound holds against every ⟨v, features.clean(·)⟩ with ‖v‖ ≤ W.

    Source: Learning from Noisy Data under Distributional Assumptions, Theorems 3 and 5, with G
    corrected; other worlds here. (Theorem 5 prints R = exp(σc) for the bound exp(σ²c) on R;
    `World.diagonal` is R² itself.)

    Args:
        diagonal: R² ≥ ‖Ψ̂(x̃)‖² > 0: `World.diagonal`, or the squared norm of Fourier features.
        horizon: T > 0 rounds.
        radius: W > 0, in the norm of the surrogate's space.
        y_second_moment: B_y² ≥ E ỹ_t², as in `DataMoments`.

    Example:
        >>> print(parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0).regret)
        40.0
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
    """The radius W with ‖û‖ ≤ W for every u with ‖u‖ ≤ B_w and β_u ≥ β.

    W = √(κ/(1 − cos β)) B_w where 0 < k̂ ≤ κk (κ = R² in Gaussian worlds), with 1 for the
    denominator if β > π/2. 1 − cos β is computed as 2 sin²(β/2), which is accurate for small angles
    as well.

    This W holds for all such u at once. A single u only needs its own ‖û‖, the `lifted_norm` of a
    comparator, which exists in every world.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemmas 5 and 6, with a
    sharper constant: ‖u‖² ≥ 2‖u₊‖‖u₋‖(1 − cos β) gives ‖u₊‖² + ‖u₋‖² ≤ ‖u‖²/(1 − cos β), which is
    attained where ‖u₊‖ = ‖u₋‖.

    Args:
        world: the world; its `ratio` κ is used.
        norm: B_w > 0, in the norm of the clean kernel.
        angle: `[]`, β ∈ [0, π] in radians between the parts of u with positive and with negative
            coefficients (`comparators.KernelBall.angle`), positive.

    Example:
        >>> import noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> print(surrogate_radius(world, norm=1.0, angle=1.0471976))
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
    return jnp.where(angle >= 0, jnp.minimum(angle, jnp.pi / 2), jnp.nan)
