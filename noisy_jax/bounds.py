"""Guarantees: learning rate, second moment and regret bound of each learner.

With G ≥ E‖∇̃_t‖² and η = B_w/√(GT), projected online gradient descent from unbiased estimates has
expected regret at most B_w √(GT) on clean data. The papers print second moments that drop the
cross term −2⟨w, x⟩y; here they are corrected, and the printed ones given on request. In parallel
worlds the ball is one of the surrogate's space, and `surrogate_radius` gives the radius that the
competitors in a ball of the kernel's own space ask for.

All formulas are computed with arrays, so that a horizon may be traced (`learners.doubling`).
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.noise import Noise, PerRound
from noisy_jax.validation import check_non_negative, check_positive, check_radius, concrete
from noisy_jax.worlds.world import World


class Guarantee(NamedTuple):
    """What a theorem promises for T rounds.

    Attributes:
        learning_rate: `[]`, η, the factor that multiplies the gradient.
        regret: `[]`, bound on the expected regret on clean data after T rounds.
        second_moment: `[]`, G, bound on E‖∇̃_t‖².
    """

    learning_rate: chex.Array
    regret: chex.Array
    second_moment: chex.Array


class Moments(NamedTuple):
    """Bounds on moments of the noisy data, over all rounds, which the guarantees need.

    Attributes:
        x_second: B_x² ≥ E‖x̃_t‖².
        x_fourth: B_x⁴ ≥ E‖x̃_t‖⁴ (for the learners that use one copy twice).
        y_second: B_y² ≥ E ỹ_t².
        noise_norm: B_Σ ≥ ‖Σ_t‖, the spectral norm.
    """

    x_second: chex.Numeric
    x_fourth: chex.Numeric
    y_second: chex.Numeric
    noise_norm: chex.Numeric


@jax.default_matmul_precision("highest")
def moments(stream: Stream, noise: Noise | PerRound, *, y_noise: Noise | None = None) -> Moments:
    """The moments of a stream under a symmetric noise law, exactly: maxima over its rounds.

    E‖x̃‖² = ‖x‖² + tr Σ and E‖x̃‖⁴ = ‖x‖⁴ + 2‖x‖² tr Σ + 4xᵀΣx + E‖n‖⁴. (The third moment of a
    symmetric law, as are all in `noise`, is zero.)

    Args:
        stream: T clean rounds.
        noise: law of the noise in x̃.
        y_noise: scalar law of the noise in ỹ; none by default.

    Returns:
        `Moments` of `[]` arrays.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[3.0, 4.0]], [2.0])
        >>> print(moments(stream, nj.noise.Gaussian(0.5)).x_second)
        26.0
    """
    dim = stream.x.shape[1]

    def one_round(x, law):
        cov = law.covariance(dim)
        square, trace = jnp.sum(x**2), jnp.trace(cov)
        fourth = square**2 + 2 * square * trace + 4 * x @ cov @ x + law.fourth_moment(dim)
        return square + trace, fourth, jnp.linalg.eigvalsh(cov)[-1]

    if isinstance(noise, PerRound):
        second, fourth, norm = jax.vmap(one_round)(stream.x, noise.law)
    else:
        second, fourth, norm = jax.vmap(one_round, in_axes=(0, None))(stream.x, noise)
    y_variance = 0.0 if y_noise is None else y_noise.cov
    return Moments(second.max(), fourth.max(), jnp.max(stream.y**2) + y_variance, jnp.max(norm))


def two_copies(
    moments: Moments,
    *,
    horizon: chex.Numeric,
    radius: chex.Numeric,
    as_printed: bool = False,
) -> Guarantee:
    """Guarantee of `learners.two_copies`.

    G = 4B_x²(B_w B_x + B_y)², η = B_w/√(GT), regret ≤ B_w √(GT). G is attained, at
    x̃ = x = w = −y = 1.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 1 and Theorem 1.
    As printed G = 4B_x²(B_w²B_x² + B_y²), which is up to 2 times too small: the proof drops the
    cross term −2⟨w, x⟩y.

    Args:
        moments: of the noisy data; `x_second` and `y_second` are used.
        horizon: T > 0 rounds.
        radius: B_w > 0.
        as_printed: the paper's constants, to compare.

    Raises:
        ValueError: horizon or radius not positive, or a moment that is not finite.

    Example:
        >>> print(two_copies(Moments(1.0, 1.0, 1.0, 0.0), horizon=100, radius=1.0).regret)
        40.0
    """
    x, y = jnp.sqrt(moments.x_second), jnp.sqrt(moments.y_second)
    if as_printed:
        second_moment = 4 * x**2 * ((radius * x) ** 2 + y**2)
    else:
        second_moment = 4 * x**2 * (radius * x + y) ** 2
    return _gradient_descent(second_moment, horizon, radius)


def known_covariance(
    moments: Moments,
    *,
    horizon: chex.Numeric,
    radius: chex.Numeric,
    as_printed: bool = False,
) -> Guarantee:
    """Guarantee of `learners.known_covariance`.

    G = 4B_x²(B_w B_x + B_y)² with B_x⁴ ≥ E‖x̃‖⁴, η = B_w/√(GT), regret ≤ B_w √(GT).

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 2 and Theorem 2,
    with the estimator corrected. As printed G = 8B_w²B_x⁴ + 8B_y²B_x² + 4B_w²B_x²B_Σ + B_Σ²B_w².
    The printed bound is false for the printed estimator, whose regret grows linearly; it is
    returned with `as_printed=True` for the comparison.

    Args:
        moments: of the noisy data; `x_fourth`, `y_second` and, as printed, `noise_norm` are used.
        horizon: T > 0 rounds.
        radius: B_w > 0.
        as_printed: the paper's constants, to compare.

    Raises:
        ValueError: horizon or radius not positive, or a moment that is not finite.
    """
    if not as_printed:
        return _gradient_descent(_one_copy_second_moment(moments, radius), horizon, radius)
    x_second, norm = jnp.sqrt(moments.x_fourth), moments.noise_norm
    second_moment = (
        8 * radius**2 * x_second**2
        + 8 * moments.y_second * x_second
        + 4 * radius**2 * x_second * norm
        + norm**2 * radius**2
    )
    return _gradient_descent(second_moment, horizon, radius)


def noise_blind(
    moments: Moments,
    *,
    horizon: chex.Numeric,
    radius: chex.Numeric,
    as_printed: bool = False,
) -> Guarantee:
    """Guarantee of `learners.noise_blind`, linear in T.

    G = 4B_x²(B_w B_x + B_y)² with B_x⁴ ≥ E‖x̃‖⁴ and η = B_w/√(GT); the bias 2Σw of its gradients
    costs −2⟨Σw, w − u⟩ ≤ ½uᵀΣu in a round, so that regret ≤ B_w √(GT) + ½T B_w² B_Σ.

    Source: derived here. `as_printed=True` is the textbook's B_w √(GT), which takes the noisy view
    for the clean one and is false on clean data.

    Args:
        moments: of the noisy data; `x_fourth`, `y_second` and `noise_norm` are used.
        horizon: T > 0 rounds.
        radius: B_w > 0.
        as_printed: the textbook's bound, which ignores the bias.

    Raises:
        ValueError: horizon or radius not positive, or a moment that is not finite.
    """
    guarantee = _gradient_descent(_one_copy_second_moment(moments, radius), horizon, radius)
    if as_printed:
        return guarantee
    bias = horizon * radius**2 * moments.noise_norm / 2
    return guarantee._replace(regret=guarantee.regret + bias)


def parallel_worlds(
    diagonal: chex.Numeric,
    *,
    horizon: chex.Numeric,
    radius: chex.Numeric,
    y_second: chex.Numeric,
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
        y_second: B_y² ≥ E ỹ_t², as in `Moments`.
        as_printed: the paper's constants, to compare.

    Raises:
        ValueError: horizon, radius or R² not positive, B_y² negative, or a second moment that
            overflows.

    Example:
        >>> print(parallel_worlds(1.0, horizon=100, radius=1.0, y_second=1.0).regret)
        40.0
    """
    check_positive("diagonal", diagonal, "R² of the world, the squared norm of its noisy copies")
    check_non_negative("y_second", y_second, "it bounds the second moment of the noisy targets")
    r, y = jnp.sqrt(diagonal), jnp.sqrt(y_second)
    if as_printed:
        second_moment = 4 * r**2 * ((radius * r) ** 2 + y**2)
    else:
        second_moment = 4 * r**2 * (radius * r + y) ** 2
    return _gradient_descent(second_moment, horizon, radius)


def surrogate_radius(
    world: World,
    *,
    norm: chex.Numeric,
    cos_angle: chex.Numeric,
    as_printed: bool = False,
) -> chex.Array:
    """The radius W with ‖û‖ ≤ W for every u with ‖u‖ ≤ B_w and β_u ≥ β.

    W = √(κ/(1 − cos β)) B_w, where 0 < k̂ ≤ κk (κ = R² in Gaussian worlds), 1 for the denominator
    where β > π/2; or W = √κ' B_w at any angle, where ‖û‖² ≤ κ'‖u‖²; the smaller one, where the
    world has both.

    It covers all such u at once. A single u needs no more than its own ‖û‖, the `lifted_norm` of a
    comparator, which exists in every world.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemmas 5 and 6. As printed
    W = √5 √κ B_w/sin β, at least 1.58 times larger: ‖u‖² ≥ 2‖u₊‖‖u₋‖(1 − cos β) gives
    ‖u₊‖² + ‖u₋‖² ≤ ‖u‖²/(1 − cos β), attained where ‖u₊‖ = ‖u₋‖.

    Args:
        world: the world; its `ratio` κ and `norm_ratio` κ' are used.
        norm: B_w > 0, in the norm of the clean kernel.
        cos_angle: cos β ∈ [−1, 1] of the angle between the parts of u of positive and of negative
            coefficients (`comparators.KernelBall.cos_angle`). Below 1, unless the world has κ'.
        as_printed: the paper's constant, to compare; it takes β ≤ π/2, and π/2 for more.

    Returns:
        W, `[]`.

    Raises:
        ValueError: a world without the ratio that is needed, a norm that is not positive, β = 0 or
            a cosine out of range.

    Example:
        >>> import noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, squared_width=2.0, noise=nj.noise.Gaussian(0.5))
        >>> print(surrogate_radius(world, norm=1.0, cos_angle=0.5))
        2.0
    """
    check_positive("norm", norm, "B_w, the largest norm of a competitor")
    norm_ratio = jnp.inf if as_printed else world.norm_ratio  # κ' is not in the paper
    _check_covered(world.ratio, norm_ratio, cos_angle)
    gap = jnp.minimum(1 - cos_angle, 1)  # 1 − cos β in the precision given, as β may be small
    if as_printed:
        return norm * jnp.sqrt(5.0) * jnp.sqrt(world.ratio) / jnp.sqrt(gap * (2 - gap))
    by_angle = jnp.sqrt(world.ratio) / jnp.sqrt(gap)
    return norm * jnp.minimum(by_angle, jnp.sqrt(norm_ratio))


def _one_copy_second_moment(moments: Moments, radius: chex.Numeric) -> chex.Array:
    """4B_x²(B_w B_x + B_y)² with B_x⁴ ≥ E‖x̃‖⁴; it holds with and without the correction −2Σw."""
    x, y = jnp.sqrt(jnp.sqrt(moments.x_fourth)), jnp.sqrt(moments.y_second)
    return 4 * x**2 * (radius * x + y) ** 2


def _check_covered(ratio, norm_ratio, cos_angle) -> None:
    """Refuses worlds and angles at which no norm ‖û‖ follows from ‖u‖."""
    cosine = concrete(cos_angle)
    if cosine is not None and not np.all(np.abs(cosine) <= 1):
        raise ValueError(f"cos_angle must be a cosine, in [-1, 1], got {cos_angle}")
    ratio, norm_ratio = concrete(ratio), concrete(norm_ratio)
    if ratio is None or norm_ratio is None or np.all(np.isfinite(norm_ratio)):
        return
    instead = "take the lifted_norm of a comparator (comparators.world_ball) for the radius instead"
    if not np.all(np.isfinite(ratio)):
        raise ValueError(
            "world must have a finite ratio, 0 < k̂ <= ratio k, for the norm in the surrogate's "
            f"space to follow from norm and angle, and this one has none; {instead}"
        )
    if cosine is not None and np.any(cosine >= 1):
        raise ValueError(
            f"cos_angle must be below 1, got {cos_angle}: at β = 0 the parts of positive and of "
            f"negative coefficients are proportional, and the bound infinite; {instead}"
        )


def _gradient_descent(second_moment, horizon, radius) -> Guarantee:
    check_positive("horizon", horizon, "the number of rounds T")
    check_radius(radius)
    moment = concrete(second_moment)
    if moment is not None and not 0 < moment < jnp.inf:
        raise ValueError(
            f"the second moment of the gradient estimate must be positive and finite, got {moment}:"
            " the data are all zero, a moment is negative, the data or R² overflow float32, or the"
            " noise has no finite moment of the order that this learner needs (two_copies needs the"
            " second only, known_covariance and noise_blind the fourth)"
        )
    root = jnp.sqrt(second_moment) * jnp.sqrt(horizon)  # apart, as the product may overflow
    return Guarantee(radius / root, radius * root, jnp.asarray(second_moment))
