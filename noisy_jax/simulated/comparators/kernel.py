"""The best function in a ball of the Hilbert space of a kernel.

    min_{‖f‖ ≤ B} Σ_j m_j (f(x_j) − y_j)²,   f = Σ_j a_j k(x_j, ·)

With the Gram matrix K, M = diag(m) and M^½KM^½ = U diag(s²) Uᵀ, c = UᵀM^½y and a = M^½U(v/s) give
least squares in a ball, `ball.secular`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.linalg.ball import RANK_ROUNDINGS, largest_size, norm, precision, root, secular
from noisy_jax.linalg.matrices import check_gram, check_matrix, check_semidefinite, eigh
from noisy_jax.simulated.comparators.comparator import comparator
from noisy_jax.validation.arrays import check_shape, real_array
from noisy_jax.validation.numbers import positive
from noisy_jax.validation.rows import check_targets
from noisy_jax.validation.values import Array, ArrayLike, check_concrete
from noisy_jax.worlds.world import World, check_world


class KernelBall(NamedTuple):
    """The best function in the ball of a kernel's space, for the squared loss on clean data.

    f = Σ_j a_j k(x_j, ·) over n points; û = Σ_j a_j Ψ̂(x_j) is its counterpart in the surrogate's
    space, with feature maps Ψ of k and Ψ̂ of the surrogate.

    Attributes:
        coefficients: `[n]`, a (with the least Σ_j a_j²/m_j, if several give f).
        predictions: `[n]`, f(x_j); from `world_ball`, `[T]`, f(x_t).
        loss: `[]`, Σ_j m_j (f(x_j) − y_j)²; from `world_ball`, Σ_t (f(x_t) − y_t)².
        norm: `[]`, ‖f‖ = √(aᵀKa).
        multiplier: `[]`, μ ≥ 0 of the constraint: (K + μM⁻¹)a = y up to the null space of K. Zero
            inside the ball.
        angle: `[]`, β ∈ [0, π] in radians between u₊ = Σ_{a_j > 0} a_j Ψ(x_j) and
            u₋ = −Σ_{a_j < 0} a_j Ψ(x_j), as `bounds.surrogate_radius` takes it; π/2 if one of
            them is empty.
        lifted_norm: `[]`, ‖û‖ = √(aᵀK̂a), the least radius of a learner in the surrogate's space
            that competes with f; NaN if no surrogate is given.
        points: `[n, d]`, the x_j, from `world_ball` only.
    """

    coefficients: jax.Array
    predictions: jax.Array
    loss: jax.Array
    norm: jax.Array
    multiplier: jax.Array
    angle: jax.Array
    lifted_norm: jax.Array
    points: jax.Array | None = None


@jax.default_matmul_precision("highest")
def kernel_ball(
    gram: Array,
    y: Array,
    radius: ArrayLike,
    *,
    surrogate: Array | None = None,
    weights: Array | None = None,
) -> KernelBall:
    """Computes the function in a ball of a kernel's space that has the least squared loss.

        min_{‖f‖ ≤ B} Σ_j m_j (f(x_j) − y_j)²,   f = Σ_j a_j k(x_j, ·)

    It is exact up to rounding, and takes matrices, which may be traced. Most users want
    `world_ball`, which makes them in float64: Gram matrices of smooth kernels have many tiny
    eigenvalues, and those below 8√n ε times the largest, ε the precision of the dtype, count as
    zero. In float32 f is then the best function of a slightly smaller space, and the coefficients
    of a minimizer inside the ball are inaccurate. Gram matrices may be singular.

    Args:
        gram: `[n, n]`, K_ij = k(x_i, x_j) of the clean kernel k at n clean points x_j; symmetric
            and positive semi-definite, or ValueError.
        y: `[n]` clean targets.
        radius: B > 0, in the norm of the kernel's space, ‖f‖ = √(aᵀKa).
        surrogate: `[n, n]`, K̂_ij = k̂(x_i, x_j) of the surrogate kernel of a world (`worlds`),
            only for `lifted_norm`; none by default.
        weights: `[n]`, m_j > 0, how often each point counts; once by default.

    Returns:
        A named tuple: `coefficients` a `[n]`; `predictions` `[n]`, f(x_j); `loss` `[]`, the
        minimum; `norm` `[]`, ‖f‖; `multiplier` `[]`, μ ≥ 0, zero inside the ball, with
        (K + μM⁻¹)a = y for M = diag(m); `angle` `[]`, in radians between the parts of f with
        positive and with (minus) negative a_j, as `bounds.surrogate_radius` takes it, or π/2 if one
        is empty; `lifted_norm` `[]`, √(aᵀK̂a), the least radius of a learner in the world that
        competes with f, or NaN without a surrogate; `points`, `None`. The angle depends on the
        expansion: give equal points once, with a weight.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Learning from Noisy Data under Distributional Assumptions, Sec. 6 (u and β_u, which is
    `angle`). There the coefficients are printed as non-negative, which would make β_u always π/2.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> found = nj.comparators.kernel_ball(jnp.eye(2), jnp.array([3.0, 4.0]), radius=2.5)
        >>> print(found.predictions)
        [1.5 2. ]
    """
    radius = positive("radius", radius)
    check_matrix("gram", gram)
    gram = jnp.asarray(real_array("gram", gram), float)
    y = jnp.asarray(real_array("y", y), float)
    check_targets(y)
    check_gram("gram", gram, y.size)
    multiplicity = jnp.ones_like(y) if weights is None else jnp.asarray(weights, float)
    check_shape("weights", multiplicity, y.shape, "as y")
    multiplicity = positive("weights", multiplicity, shape=None)

    scale = jnp.sqrt(multiplicity)
    eigenvalues, u = eigh(scale[:, None] * gram * scale[None])
    check_semidefinite("gram", eigenvalues)
    resolved = eigenvalues > RANK_ROUNDINGS * y.size**0.5 * precision(y) * eigenvalues[-1]
    s = jnp.where(resolved, jnp.sqrt(jnp.where(resolved, eigenvalues, 1)), 0)
    v, multiplier = secular(s, (scale * y) @ u, radius)
    coefficients = scale * (u @ jnp.where(resolved, v / jnp.where(resolved, s, 1), 0))
    predictions = u @ (s * v) / scale
    if surrogate is None:
        lifted_norm = jnp.full_like(multiplier, jnp.nan)
    else:
        check_matrix("surrogate", surrogate)
        surrogate = jnp.asarray(surrogate, float)
        check_gram("surrogate", surrogate, y.size)
        lifted_norm = _gram_norm(surrogate, coefficients)
    return KernelBall(
        coefficients,
        predictions,
        jnp.sum(multiplicity * (predictions - y) ** 2),
        norm(v),
        multiplier,
        _angle(gram, coefficients),
        lifted_norm,
    )


@comparator
def world_ball(stream: Stream, world: World, radius: ArrayLike) -> KernelBall:
    """Computes the function in a ball of a world's clean kernel that has the least squared loss.

        min_{‖f‖ ≤ B} Σ_t (f(x_t) − y_t)²,   f = Σ_j a_j k(x_j, ·)

    This is the best fixed predictor in hindsight on a whole clean stream, for learners in a world
    (`worlds.World`: a clean kernel k with its surrogate k̂). `lifted_norm` is the radius to give to
    such a learner. The sum is over the n distinct instances x_j. The computation takes O(n³) time,
    always in float64, because Gram matrices of smooth kernels need it; the result is rounded to
    JAX's default precision.

    Args:
        stream: T clean rounds, `[T, d]` and `[T]`, not traced. Without it,
            `world_ball(world=world, radius=B)` returns a function of a stream, which `study` takes
            as its comparator.
        world: the world whose kernel and surrogate are used.
        radius: B > 0, in the norm of the clean kernel's space.

    Returns:
        A named tuple: `coefficients` a `[n]`; `predictions` `[T]`, f(x_t); `loss` `[]`, Σ_t
        (f(x_t) − y_t)²; `norm` `[]`, ‖f‖; `multiplier` `[]`, μ ≥ 0 of the constraint, zero inside
        the ball; `angle` `[]`, in radians between the parts of f with positive and with (minus)
        negative a_j, as `bounds.surrogate_radius` takes it, or π/2 if one is empty; `lifted_norm`
        `[]`, ‖Σ_j a_j k̂(x_j, ·)‖ in the surrogate's space; and `points` `[n, d]`, the x_j.

    Raises:
        ValueError: the stream is traced, or an argument is out of its range.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[0.0], [0.0]], [1.0, 1.0])
        >>> world = nj.worlds.gaussian(dim=1, length_scale=0.5**0.5, noise=nj.noise.Gaussian(0.1))
        >>> found = nj.comparators.world_ball(stream, world, radius=0.5)
        >>> print(found.predictions)
        [0.5 0.5]
        >>> learner = nj.learners.parallel_worlds(world, horizon=2, radius=found.lifted_norm)
    """
    for name, value in stream._asdict().items():
        check_concrete(
            f"stream.{name}", value, "world_ball merges rounds; under jit or vmap use kernel_ball"
        )
    x, y = map(np.asarray, stream)
    check_world(world)
    world.check(x.shape)
    points, rounds, counts = np.unique(
        x.astype(float), axis=0, return_inverse=True, return_counts=True
    )
    rounds = rounds.reshape(-1)
    means = np.bincount(rounds, y) / counts
    default = jnp.result_type(float)
    # A world made before holds numbers in the default precision.
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        points = jnp.asarray(points)
        gram, surrogate = world.kernel(points, points), world.surrogate(points, points)
        ball = kernel_ball(gram, means, radius, surrogate=surrogate, weights=counts)
        predictions = ball.predictions[rounds]
        loss = jnp.sum((predictions - y) ** 2)
        ball = ball._replace(predictions=predictions, loss=loss, points=points)
        return jax.tree.map(lambda a: a.astype(default), ball)


def _gram_norm(gram, coefficients) -> jax.Array:
    """Returns √(aᵀKa), also where squares of coefficients overflow or underflow."""
    size = largest_size(coefficients)
    scaled = coefficients / size
    return size * root(scaled @ gram @ scaled)


def _angle(gram, coefficients):
    """Angle β of the parts p, q of positive and of negative coefficients: tan ½β = ‖p̂ − q̂‖/‖p̂ + q̂‖.

    A cosine would lose the angles of smooth kernels, whose parts nearly cancel.
    """
    parts = jnp.maximum(coefficients, 0), jnp.maximum(-coefficients, 0)
    norms = [_gram_norm(gram, part) for part in parts]
    p, q = (part / jnp.where(size > 0, size, 1) for part, size in zip(parts, norms, strict=True))
    angle = 2 * jnp.arctan2(_gram_norm(gram, p - q), _gram_norm(gram, p + q))
    return jnp.where((norms[0] > 0) & (norms[1] > 0), angle, jnp.pi / 2)
