"""Worlds under noise that changes from round to round: each noisy copy is stored with its Σ_i.

With φ_i the characteristic function of copy i's noise, its feature map is ω ↦ exp(iω·x̃_i) c/φ_i in
the space with spectral density p/c, for any function c(ω) > 0 that is the same for all copies:

    k̂_it = ∫ p c/(φ_i φ_t) exp(iω·(x̃_i − x̃_t)),   E k̂_it = ∫ p c/φ_i exp(iω·(x̃_i − x_t)).

Under Gaussian noise c is φ at Σ_max: the average effect of adding noise to a copy until its
covariance is Σ_max. Under Laplace noise, where that has no simple closed form, c = 1.
"""

import dataclasses
import math
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.kernels.kernel import expanded_distances, length_scale_of, near_origin
from noisy_jax.matrices import PSD_SLACK, check_covariance, cholesky, eigvalsh, solve_triangular
from noisy_jax.noise import Gaussian, Laplace, Noise
from noisy_jax.noise.base import sound_covariance
from noisy_jax.validation import check_dimension, check_made_for, concrete
from noisy_jax.varying import of_this_device
from noisy_jax.worlds.gaussian import gaussian
from noisy_jax.worlds.measures import Measure
from noisy_jax.worlds.radial import radial
from noisy_jax.worlds.world import World, check_log_diagonal


def heteroscedastic(*, dim: int, length_scale: chex.Numeric, max_cov: chex.Numeric) -> World:
    """The world of k(x, a) = exp(−‖x − a‖²/2ℓ²) under Gaussian noise that changes every round.

    The noise of round t is N(0, Σ_t). Σ_t is known and Σ_t ⪯ Σ_max, which means that Σ_max − Σ_t is
    positive semidefinite (PSD). An atom, the stored form of a noisy copy, is a pair (x̃_i, Σ_i) of
    the copy and the covariance of its noise. With z the difference of two points,

    k̂_it  = det(A_it/ℓ²)^(−½) exp(−½zᵀA_it⁻¹z),  A_it = ℓ²I + Σ_max − Σ_i − Σ_t   (`surrogate`)
    k_i   = det(A_i/ℓ²)^(−½) exp(−½zᵀA_i⁻¹z),    A_i  = ℓ²I + Σ_max − Σ_i         (`evaluate`)

    and E k̂((x̃_i, Σ_i), (x_t + n_t, Σ_t)) = k_i(x̃_i, x_t) for every atom i and every Σ_t.

    Comparators, R² (`diagonal`) and `ratio` are those of `gaussian` with noise N(0, Σ_max) in all
    rounds: the counterpart û of u = Σ_i a_i k(z_i, ·) has the atoms (z_i, Σ_max). An instance
    without noise has Σ_i = 0.

    Wrong traced values give NaN: in the surrogate if Σ_max is wrong, and in an atom if its Σ_i is
    not PSD or not ⪯ Σ_max. Full covariances cost O(d³) for each pair of atoms.

    Args:
        dim: d, at least 1.
        length_scale: ℓ with ℓ² > ‖Σ_max‖, `[]`.
        max_cov: Σ_max as `[]`, `[d]` (diagonal) or `[d, d]`, PSD; `[d, d]` if any Σ_t is a full
            matrix, and at least `[d]` if any is `[d]`.

    Returns:
        A `World` whose `atom(x[n, d], cov)` takes covariances ⪯ Σ_max stacked as `[n]`, `[n, d]` or
        `[n, d, d]`, and stores them in the form of Σ_max.

    Source: not in the papers, where the covariance is the same in all rounds of the kernel setting.

    Example:
        >>> import jax.numpy as jnp
        >>> world = heteroscedastic(dim=2, length_scale=1.0, max_cov=0.5)
        >>> world.atom(jnp.zeros((3, 2)), jnp.array([0.0, 0.1, 0.5]))[1].shape
        (3,)
    """
    check_covariance("max_cov", max_cov)
    check_dimension("max_cov", max_cov, (dim,))
    length_scale = length_scale_of(length_scale)
    fixed = gaussian(dim=dim, length_scale=length_scale, noise=Gaussian(max_cov))
    rank = np.ndim(max_cov)
    return _changing(fixed, max_cov, lambda *pair: _SURROGATES[rank](*pair, length_scale))


def heteroscedastic_radial(
    measure: Measure, *, dim: int, max_cov: chex.Numeric, cutoff: chex.Numeric
) -> World:
    """The world of ∫ exp(−u r²) μ(du), cut off, under Gaussian noise that changes every round.

    It is the sum of the worlds of `heteroscedastic` with ℓ² = 1/(2u_q), over the nodes u_q of the
    measure, with weights w_q; so a Gram matrix costs as many Gram matrices as there are nodes.
    Clean kernel, R², `ratio`, truncation error and comparators are those of `radial` with noise
    N(0, Σ_max). Not in the papers. The measure is one for `radial`, Σ_max is as in
    `heteroscedastic`, and the cutoff u_max is positive and below 1/(2‖Σ_max‖).

    Example:
        >>> import noisy_jax as nj
        >>> measure = nj.worlds.laplacian_measure(length_scale=1.0)
        >>> world = heteroscedastic_radial(measure, dim=2, max_cov=0.01, cutoff=20.0)
        >>> atoms = world.atom(jnp.zeros((2, 2)), jnp.array([0.0, 0.01]))
        >>> print(f"{world.surrogate(atoms, atoms)[1, 1]:.3f} {world.diagonal:.3f}")
        0.924 0.924
    """
    check_covariance("max_cov", max_cov)
    fixed = radial(measure, dim=dim, noise=Gaussian(max_cov), cutoff=cutoff)
    rates, log_weights = (jnp.asarray(part, float) for part in measure.quadrature(cutoff))
    rank = np.ndim(max_cov)

    def surrogate(x, z, *covs):
        def one_node(total, node):
            rate, log_weight = node
            gram = _SURROGATES[rank](x, z, *covs, jax.lax.rsqrt(2 * rate))
            return total + jnp.exp(log_weight) * gram, None

        zeros = of_this_device(jnp.zeros((len(x), len(z)), jnp.result_type(x, z, float)))
        return jax.lax.scan(one_node, zeros, (rates, log_weights))[0]

    return _changing(fixed, max_cov, surrogate)


def heteroscedastic_laplace(
    *, dim: int, length_scale: chex.Numeric, max_cov: chex.Numeric
) -> World:
    """The world of k(x, a) = exp(−‖x − a‖²/2ℓ²) under Laplace noise that changes every round.

    Coordinate j of round t has the scale b_tj, hence the variance Σ_tj = 2b_tj². With r = b²/ℓ² of
    either copy and s = z²/ℓ² of each coordinate,

    k̂_it  = k Π_j (1 + (r_i + r_t)(1 − s) + r_i r_t (3 − 6s + s²))   (`surrogate`)
    k_i   = k Π_j (1 + r_i (1 − s))                                    (`evaluate`)

    and E k̂((x̃_i, Σ_i), (x_t + n_t, Σ_t)) = k_i(x̃_i, x_t) for all atoms i and all scales. The
    counterpart û of u = Σ_i a_i k(z_i, ·) has the atoms (z_i, 0), so that ‖û‖ = ‖u‖ (`norm_ratio`)
    for all scales. R² = Π_j (1 + 2r + 3r²) at the largest scales is larger than that of `gaussian`
    under Laplace noise, Π_j (1 + r), for which ‖û‖ has no bound in terms of ‖u‖.

    Args:
        dim: d, at least 1.
        length_scale: ℓ > 0.
        max_cov: the largest variances 2b², `[]` or `[d]`; R² is computed from them.

    Returns:
        A `World` whose `atom(x[n, d], cov)` takes variances ≤ `max_cov`, `[n]` or `[n, d]`.

    Source: not in the papers; for densities, Delaigle and Meister, Density estimation with
    heteroscedastic error (2008).

    Example:
        >>> world = heteroscedastic_laplace(dim=1, length_scale=1.0, max_cov=0.5)
        >>> atoms = world.atom(jnp.zeros((2, 1)), jnp.array([0.0, 0.5]))
        >>> print(world.surrogate(atoms, atoms), world.diagonal)
        [[1.     1.25  ]
         [1.25   1.6875]] 1.6875
    """
    check_covariance("max_cov", max_cov)
    if np.ndim(max_cov) > 1:
        found = f"got {list(np.shape(max_cov))}: coordinates of Laplace noise are independent"
        raise ValueError(f"max_cov must be variances [] or [d], {found}")
    clean = gaussian(dim=dim, length_scale=length_scale, noise=Gaussian(0.0))
    length_scale = length_scale_of(length_scale)

    def log_diagonal(share):
        ratio = share * jnp.asarray(max_cov, float) / 2 / length_scale**2
        return jnp.sum(jnp.broadcast_to(jnp.log1p(2 * ratio + 3 * ratio**2), (dim,)))

    check_log_diagonal(log_diagonal, "a larger length_scale or fewer dimensions")
    diagonal = jnp.where(
        jnp.min(sound_covariance(max_cov)) >= 0, jnp.exp(log_diagonal(1.0)), jnp.nan
    )
    lifted = dataclasses.replace(clean, diagonal=diagonal, ratio=math.inf, norm_ratio=1.0)

    def surrogate(x, z, _, cov, other_cov):
        return _laplace(x, z, cov, other_cov, length_scale)

    return _changing(lifted, max_cov, surrogate, Laplace)


def _changing(fixed: World, max_cov, surrogate, noise: type[Noise] = Gaussian) -> World:
    """A world with atoms (x̃_i, Σ_i), from the one at Σ_max, whose R² and ratios it has.

    `surrogate` is `(x[n, d], z[m, d], max_cov[1, …], covs[n, …], covs[m, …]) -> [n, m]`.
    """
    dim, max_cov = fixed.dim, jnp.asarray(max_cov, float)
    check_dimension("max_cov", max_cov, (dim,))
    max_cov = jnp.where(jnp.isnan(fixed.diagonal), jnp.nan, max_cov)

    def atom(x, cov):
        check_made_for(dim, jnp.shape(x))
        if cov is None:
            raise ValueError("cov must hold the covariance of each noisy copy, got None")
        return x, _at_most(max_cov, cov, x.shape)

    def between_atoms(atoms, others):
        (x, cov), (z, other_cov) = atoms, others
        return surrogate(x, z, max_cov[None], cov, other_cov)

    def evaluate(atoms, x):
        check_made_for(dim, jnp.shape(x))
        return between_atoms(atoms, (x, _filled(jnp.zeros(1), max_cov.ndim, dim)))

    return dataclasses.replace(
        fixed,
        surrogate=between_atoms,
        noise=noise,
        atom=atom,
        evaluate=evaluate,
        values=None,
        spectrum=None,
    )


def _at_most(max_cov, cov, shape):
    """Stacked covariances in the form of Σ_max; ValueError, or NaN if traced, unless ⪯ Σ_max."""
    n, dim = shape
    shapes = [[n, *[dim] * rank] for rank in range(max_cov.ndim + 1)]
    if list(np.shape(cov)) not in shapes:
        wanted = f"{' or '.join(map(str, shapes))} for max_cov {list(max_cov.shape)}"
        raise ValueError(f"cov must have shape {wanted}, got {list(np.shape(cov))}")
    check_covariance("cov", cov, stacked=True)
    cov = _filled(jax.vmap(sound_covariance)(jnp.asarray(cov, float)), max_cov.ndim, dim)
    gap = max_cov[None] - cov
    smallest = jax.vmap(eigvalsh)(gap) if max_cov.ndim == 2 else gap.reshape(n, -1)
    smallest = jnp.min(smallest, axis=1)
    below = smallest >= -PSD_SLACK * jnp.max(jnp.abs(max_cov))
    known = concrete(below)
    if known is not None and not known.all():
        i = int(np.argmin(known))
        found = f"but max_cov − cov[{i}] has an eigenvalue {float(smallest[i]):.3g}"
        raise ValueError(f"cov[{i}] must be at most max_cov in every direction, {found}")
    return jnp.where(jnp.expand_dims(below, tuple(range(1, cov.ndim))), cov, jnp.nan)


def _filled(cov, rank, dim):
    """Covariances stacked along a first axis, in the form `[]`, `[d]` or `[d, d]` of that rank."""
    if rank > 0 and cov.ndim == 1:
        cov = jnp.broadcast_to(cov[:, None], (len(cov), dim))
    if rank > 1 and cov.ndim == 2:
        cov = jax.vmap(jnp.diag)(cov)
    return cov


def _isotropic(x, z, max_cov, cov, other_cov, length_scale):
    spread = (max_cov[None] - cov[:, None] - other_cov[None]) / length_scale**2
    scale = math.sqrt(0.5) / jnp.asarray(length_scale, float)
    x, z = near_origin(x, z)
    exponent = expanded_distances(x * scale, z * scale) / (1 + spread)
    return jnp.exp(-x.shape[1] / 2 * jnp.log1p(spread) - exponent)


def _diagonal(x, z, max_cov, cov, other_cov, length_scale):
    # One coordinate at a time keeps [n, m, d] numbers out of memory.
    def one_coordinate(exponent, coordinate):
        x, z, max_cov, cov, other_cov = coordinate
        spread = (max_cov[None] - cov[:, None] - other_cov[None]) / length_scale**2
        square = ((x[:, None] - z[None]) / length_scale) ** 2
        return exponent - (jnp.log1p(spread) + square / (1 + spread)) / 2, None

    zeros = of_this_device(jnp.zeros((len(x), len(z)), jnp.result_type(x, z, max_cov)))
    coordinates = (x.T, z.T, max_cov.T, cov.T, other_cov.T)
    return jnp.exp(jax.lax.scan(one_coordinate, zeros, coordinates)[0])


@jax.default_matmul_precision("highest")
def _full(x, z, max_cov, cov, other_cov, length_scale):
    identity = jnp.eye(x.shape[1])

    def one_row(atom):
        x, cov = atom
        spread = max_cov - cov[None] - other_cov
        factor = jax.vmap(cholesky)(identity[None] + spread / length_scale**2)
        logs = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
        inverse = jax.vmap(solve_triangular, (0, None))(factor, identity)
        whitened = jnp.matmul(inverse, (x[None] - z)[:, :, None])[:, :, 0]
        return jnp.exp(-logs - jnp.sum(whitened**2, axis=1) / (2 * length_scale**2))

    return jax.lax.map(one_row, (x, cov), batch_size=_ROWS_AT_ONCE)


def _laplace(x, z, cov, other_cov, length_scale):
    def one_coordinate(product, coordinate):
        x, z, *variances = coordinate
        first, second = (variance / 2 / length_scale**2 for variance in variances)
        s = ((x[:, None] - z[None]) / length_scale) ** 2
        linear = (first[:, None] + second[None]) * (1 - s)
        factor = 1 + linear + first[:, None] * second[None] * (3 - 6 * s + s**2)
        return product * factor * jnp.exp(-s / 2), None

    cov, other_cov = (_filled(one, 1, x.shape[1]) for one in (cov, other_cov))
    ones = of_this_device(jnp.ones((len(x), len(z)), jnp.result_type(x, z, cov)))
    return jax.lax.scan(one_coordinate, ones, (x.T, z.T, cov.T, other_cov.T))[0]


_ROWS_AT_ONCE = 32
_SURROGATES: tuple[Callable[..., jax.Array], ...] = (_isotropic, _diagonal, _full)
