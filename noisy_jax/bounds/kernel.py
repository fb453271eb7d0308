"""Guarantees of the kernel learners in parallel worlds.

The ball is one of the surrogate's space, and `surrogate_radius` gives the radius that the
competitors in a ball of the kernel's own space ask for. The paper prints a second moment that drops
a cross term; here it is corrected, and the printed one given on request.
"""

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.bounds.guarantee import Guarantee, gradient_descent
from noisy_jax.bounds.linear import second_moment
from noisy_jax.validation import check_non_negative, check_positive, concrete
from noisy_jax.worlds.fourier import FourierWorld
from noisy_jax.worlds.world import World, check_world


def parallel_worlds(
    diagonal: chex.Numeric,
    *,
    horizon: chex.Numeric,
    radius: chex.Numeric,
    y_second_moment: chex.Numeric,
    as_printed: bool = False,
) -> Guarantee:
    """Guarantee of `learners.parallel_worlds` and `learners.fourier_worlds`, in any world.

    G = 4R²(WR + B_y)², η = W/√(GT) = W/(2R(WR + B_y)√T), regret ≤ W√(GT) = 2WR(WR + B_y)√T against
    every u = Σ_i a_i Ψ(z_i) with ‖û‖² = aᵀK̂a ≤ W². G is attained without noise, at ŵ = WΨ̂(x)/R
    and ỹ = −B_y.

    W is the `lifted_norm` of a comparator, or `surrogate_radius` of its norm and angle. Over
    Fourier features the bound holds against every ⟨v, C(·)⟩ with ‖v‖ ≤ W.

    Source: Learning from Noisy Data under Distributional Assumptions, Theorems 3 and 5; other
    worlds here. As printed G = 4R²(W²R² + B_y²), which is up to 2 times too small: the proof drops
    the cross term −2⟨w, Ψ(x)⟩y. (The printed regret bound holds but for a factor 1 + O(T^(−½)).)
    Theorem 5 prints R = exp(σc) for the bound exp(σ²c) on R; `World.diagonal` is R² itself.

    Args:
        diagonal: R² ≥ ‖Ψ̂(x̃)‖² > 0: `World.diagonal`, or the squared norm of Fourier features.
        horizon: T > 0 rounds.
        radius: W > 0, in the norm of the surrogate's space.
        y_second_moment: B_y² ≥ E ỹ_t², as in `Moments`.
        as_printed: the paper's constants, to compare.

    Raises:
        ValueError: horizon, radius or R² not positive, B_y² negative, or a second moment that
            overflows.

    Example:
        >>> print(parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0).regret)
        40.0
    """
    if isinstance(diagonal, World | FourierWorld):
        raise ValueError(
            "diagonal must be the number R², such as world.diagonal or features.squared_norm, got "
            f"the {type(diagonal).__name__} itself"
        )
    check_positive("diagonal", diagonal, "R² of the world, the squared norm of its noisy copies")
    check_non_negative(
        "y_second_moment", y_second_moment, "it bounds the second moment of the noisy targets"
    )
    moment = second_moment(diagonal, y_second_moment, radius, as_printed=as_printed)
    return gradient_descent(moment, horizon, radius)


def surrogate_radius(
    world: World,
    *,
    norm: chex.Numeric,
    angle: chex.Numeric,
    as_printed: bool = False,
) -> chex.Array:
    """The radius W with ‖û‖ ≤ W for every u with ‖u‖ ≤ B_w and β_u ≥ β.

    W = √(κ/(1 − cos β)) B_w, where 0 < k̂ ≤ κk (κ = R² in Gaussian worlds), 1 for the denominator
    where β > π/2; or W = √κ' B_w at any angle, where ‖û‖² ≤ κ'‖u‖²; the smaller one, where the
    world has both. 1 − cos β is computed as 2 sin²(β/2), right for small angles as well.

    It covers all such u at once. A single u needs no more than its own ‖û‖, the `lifted_norm` of a
    comparator, which exists in every world.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemmas 5 and 6. As printed
    W = √5 √κ B_w/sin β, at least 1.58 times larger: ‖u‖² ≥ 2‖u₊‖‖u₋‖(1 − cos β) gives
    ‖u₊‖² + ‖u₋‖² ≤ ‖u‖²/(1 − cos β), attained where ‖u₊‖ = ‖u₋‖.

    Args:
        world: the world; its `ratio` κ and `norm_ratio` κ' are used.
        norm: B_w > 0, in the norm of the clean kernel.
        angle: β ∈ [0, π] in radians between the parts of u of positive and of negative
            coefficients (`comparators.KernelBall.angle`). Positive, unless the world has κ'.
        as_printed: the paper's constant, to compare; it takes β ≤ π/2, and π/2 for more.

    Returns:
        W, `[]`.

    Raises:
        ValueError: no `World` or one without the ratio that is needed, a norm that is not positive,
            β = 0 or out of range.

    Example:
        >>> import noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> print(surrogate_radius(world, norm=1.0, angle=1.0471976))
        2.0
    """
    check_world(world)
    check_positive("norm", norm, "B_w, the largest norm of a competitor")
    norm_ratio = jnp.inf if as_printed else world.norm_ratio  # κ' is not in the paper
    _check_covered(world.ratio, norm_ratio, angle)
    angle = jnp.where(angle >= 0, jnp.minimum(angle, jnp.pi / 2), jnp.nan)
    if as_printed:
        return norm * jnp.sqrt(5.0) * jnp.sqrt(world.ratio) / jnp.sin(angle)
    by_angle = jnp.sqrt(world.ratio) / (jnp.sqrt(2.0) * jnp.sin(angle / 2))
    return norm * jnp.minimum(by_angle, jnp.sqrt(norm_ratio))


def _check_covered(ratio, norm_ratio, angle) -> None:
    """Refuses worlds and angles at which no norm ‖û‖ follows from ‖u‖."""
    beta = concrete(angle)
    if beta is not None and not np.all((beta >= 0) & (beta <= np.float32(np.pi))):
        raise ValueError(f"angle must be in radians, in [0, π], got {angle}")
    ratio, norm_ratio = concrete(ratio), concrete(norm_ratio)
    if ratio is None or norm_ratio is None or np.all(np.isfinite(norm_ratio)):
        return
    instead = "take the lifted_norm of a comparator (comparators.world_ball) for the radius instead"
    if not np.all(np.isfinite(ratio)):
        raise ValueError(
            "world must have a finite ratio, 0 < k̂ <= ratio k, for the norm in the surrogate's "
            f"space to follow from norm and angle, and this one has none; {instead}"
        )
    if beta is not None and np.any(beta == 0):
        raise ValueError(
            f"angle must be positive, got {angle}: at β = 0 the parts of positive and of "
            f"negative coefficients are proportional, and the bound infinite; {instead}"
        )
