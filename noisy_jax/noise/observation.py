"""Noisy copies: rounds as a learner sees them, and the noise's covariance from replicates."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Sample, plain_signature
from noisy_jax.linalg.ball import root
from noisy_jax.noise.base import Noise, covariance_times
from noisy_jax.noise.gaussian import Gaussian
from noisy_jax.noise.rounds import PerRound, by_round, check_noise
from noisy_jax.noise.targets import Correlated
from noisy_jax.validation.arrays import check_axes, check_dimension, real, real_array
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import check_finite, number, whole
from noisy_jax.validation.values import Array, concrete
from noisy_jax.varying import of_this_device

BLOCK = 128
"""Rounds whose noise is drawn by one key."""


def observe(
    key: jax.Array,
    x: Array,
    y: Array,
    noise: Noise,
    *,
    copies: int,
    y_noise: Noise | None = None,
) -> Sample:
    """Returns one round as a learner sees it: independent noisy copies of x, and a noisy target.

    The copies are x + n, without the known mean of the noise. Copy v depends on the key and on v
    only: a learner that reads two copies and one that reads three see the same first two.

    Args:
        key: a random key for this round's noise.
        x: `[d]`, the clean instance; batch rounds with `jax.vmap`.
        y: `[]`, the clean target.
        noise: distribution of the noise in each copy of `x`, such as `noise.Gaussian(0.1)`.
        copies: V ≥ 1, how many noisy copies to draw.
        y_noise: scalar distribution of the noise in `y`, whose mean is left out too, or
            `noise.Correlated`, or for labels `noise.Flip`; `None`, the default, for none.

    Returns:
        A `Sample` with the copies `x` `[V, d]`, the noisy `y` `[]`, the covariance `cov` of the
        noise (or its unbiased estimate, if it depends on x), and with `cross_cov` `[d]` under
        `noise.Correlated`.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> key, x = jax.random.key(0), jnp.zeros(2)
        >>> sample = nj.noise.observe(key, x, 1.0, nj.noise.Rademacher(0.5), copies=3)
        >>> print(abs(sample.x), sample.cov)
        [[0.5 0.5]
         [0.5 0.5]
         [0.5 0.5]] 0.25
    """
    key = parsed_key(key)
    x, y = real_array("x", x), real("y", y)
    check_axes("x", x, "[d]", "; batch rounds with jax.vmap")
    check_axes("y", y, "[]", "; batch rounds with jax.vmap")
    check_finite("x", x)
    check_finite("y", y)
    x, y = jnp.asarray(x), jnp.asarray(y)
    check_noise(noise, y_noise)
    copies = whole("copies", copies)
    if not x.size:
        raise ValueError("x must be [d] with d >= 1, got [0]")
    x_key, y_key = jax.random.split(key)
    return _sample(y_key, _copies(x_key, x, noise, copies), x, y, noise, y_noise)


def observe_block(
    key: jax.Array,
    rounds: jax.Array,
    offset: Any,
    x: jax.Array,
    y: jax.Array,
    noise: Noise | PerRound,
    y_noise: Noise | PerRound | None,
    *,
    copies: int,
) -> tuple[Sample, jax.Array]:
    """Successive rounds as a learner sees them, and a key for its own randomness in each.

    Round t depends on the key and on t only, not on where the block starts. One key draws the noise
    of x for B = `BLOCK` rounds, several times faster than a key for each: round t has row t mod B
    of block t // B. Each round has its own key for noise of y, for a custom distribution, whose
    `centred` may not draw independent rows, and for noise that changes by round, unless Gaussian.

    The m ≤ B rounds have numbers `[m]`, instances `[m, d]` and targets `[m]`. `offset` is the first
    number mod B; only if it is the int 0, one block has them all.
    """
    x, y = jnp.asarray(x), jnp.asarray(y)
    block_key, round_key = jax.random.split(key)
    keys = jax.vmap(lambda t: jax.random.split(jax.random.fold_in(round_key, t), 3))(rounds)
    (x_noise, x_axis), (y_noise, y_axis) = by_round(noise), by_round(y_noise)

    def drawn(distribution, rows):
        """Rows of the one or two blocks, aligned to multiples of B, in which the rounds lie."""
        blocks, dim = 1 if isinstance(offset, int) and offset == 0 else 2, rows.shape[1]
        placed = jnp.zeros((blocks * BLOCK, dim), rows.dtype)
        placed = jax.lax.dynamic_update_slice_in_dim(placed, rows, offset, 0)
        keys = [jax.random.fold_in(block_key, rounds[0] // BLOCK + i) for i in range(blocks)]
        parts = placed.reshape(blocks, BLOCK, dim)
        noisy = [
            _copies(key, rows, distribution, copies) for key, rows in zip(keys, parts, strict=True)
        ]
        noisy = jnp.concatenate(noisy, axis=1)
        return jax.lax.dynamic_slice_in_dim(noisy, offset, len(x), 1).swapaxes(0, 1)

    if x_axis is None and type(x_noise).centred is Noise.centred:
        noisy = drawn(x_noise, x)
    elif type(x_noise) is Gaussian:
        draws = drawn(Gaussian(1.0), jnp.zeros_like(x))
        noisy = x[:, None] + jax.vmap(Gaussian._scaled)(x_noise, draws)
    else:
        noisy = jax.vmap(_copies, (0, 0, x_axis, None))(keys[:, 0], x, x_noise, copies)
    sampled = jax.vmap(_sample, (0, 0, 0, 0, x_axis, y_axis))
    return sampled(keys[:, 1], noisy, x, y, x_noise, y_noise), keys[:, 2]


def _copies(key, x, noise, copies) -> jax.Array:
    """`[V, ...]` noisy copies of x, each with a key of its own."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(copies))
    return jax.vmap(lambda key, x: noise.checked(noise.centred(key, x), x), (0, None))(keys, x)


def _sample(y_key, noisy, x, y, noise, y_noise) -> Sample:
    """Returns the sample of a round, with the noisy copies `[V, d]`."""
    cov, cross = noise.estimated_cov(noisy[0]), None
    if isinstance(y_noise, Correlated):
        check_dimension("y_noise.slopes", y_noise.slopes, x.shape)
        y = y + jnp.vdot(y_noise.slopes, noisy[0] - x)
        cross = covariance_times(cov, y_noise.slopes)
        y_noise = y_noise.rest
    if y_noise is not None:
        y = y_noise.centred(y_key, y)
    return Sample(noisy, y, cov, cross)


def scan_in_blocks(block, state, inputs, size: int = BLOCK):
    """`jax.lax.scan` over blocks of `size` rounds, the leading axis of the inputs' leaves.

    Returns the last state and outputs with an axis of blocks: of the full blocks, and of the rest.
    """
    state, rounds = of_this_device(state), len(jax.tree.leaves(inputs)[0])
    whole, outputs = rounds - rounds % size, []
    if whole:
        blocks = jax.tree.map(lambda a: a[:whole].reshape(-1, size, *a.shape[1:]), inputs)
        state, output = jax.lax.scan(block, state, blocks)
        outputs.append(output)
    if whole < rounds:
        state, output = block(state, jax.tree.map(lambda a: a[whole:], inputs))
        outputs.append(jax.tree.map(lambda leaf: leaf[None], output))
    return state, outputs


@plain_signature
class CovarianceEstimate(NamedTuple):
    """A covariance of the noise with its random errors; `noise.estimate_covariance` returns one.

    `cov` may be given wherever a covariance is taken, such as to `wrappers.assuming`. `nj.table`
    takes the whole estimate as `noise`, which makes the intervals of a fit wider. For one column
    two numbers do: `CovarianceEstimate(0.2, 0.03)` is a variance 0.2 ± 0.03, as a validation study
    gives it.

    Attributes:
        cov: Σ̂ `[d, d]`, unbiased and positive semidefinite, in the squared unit of x.
        std_error: `[d, d]`, standard error of each entry of Σ̂.
        deviations: `[n, d, d]`, symmetric matrices D_i that say how errors of different entries
            depend on each other: for a fixed symmetric matrix M, Σ_jk M_jk Σ̂_jk has the variance
            Σ_i (Σ_jk M_jk D_ijk)². `None`, the default, if these errors are independent.

    Example:
        >>> import jax, noisy_jax as nj
        >>> copies = jax.random.normal(jax.random.key(0), (1000, 2, 1))  # noise of variance 1
        >>> estimate = nj.noise.estimate_covariance(copies)
        >>> print(f"{estimate.cov[0, 0]:.2f} ± {estimate.std_error[0, 0]:.2f}")
        1.00 ± 0.05
    """

    cov: Array
    std_error: Array
    deviations: Array | None = None


def estimate_covariance(copies: Array) -> CovarianceEstimate:
    """Estimates the covariance of the noise from replicates; the clean instances need not be known.

        Σ̂ = (1/n) Σ_i S_i,   S_i = Σ_v (x̃_iv − x̄_i)(x̃_iv − x̄_i)ᵀ/(V − 1)

    x̃_iv is copy v of instance i, and x̄_i the mean of its V copies. S_i is their sample covariance
    (for V = 2, half the outer product of their difference). All copies must have independent noise
    of one covariance.

    Args:
        copies: `[n, V, d]`, V ≥ 2 noisy copies of each of n ≥ 2 instances.

    Returns:
        A `CovarianceEstimate`: `cov` is Σ̂ `[d, d]`; `std_error` `[d, d]` is the standard deviation
        of the S_i, divided by √n; `deviations` `[n, d, d]` are (S_i − Σ̂)/√(n(n − 1)).

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> copies = jnp.array([[[0.0], [2.0]], [[5.0], [5.0]]])  # two instances, twice each
        >>> print(nj.noise.estimate_covariance(copies).cov)
        [[1.]]
    """
    copies = real_array("copies", copies)
    shape = np.shape(copies)
    if len(shape) != 3 or shape[0] < 2 or shape[1] < 2:
        raise ValueError(f"copies must be [n, V, d] with n >= 2 and V >= 2, got {list(shape)}")
    _check_axes_not_swapped(number("copies", copies, shape=None))
    copies = jnp.asarray(copies)
    residuals = copies - copies.mean(axis=1, keepdims=True)
    covs = jnp.einsum("nvi,nvj->nij", residuals, residuals, precision="highest") / (shape[1] - 1)
    cov = covs.mean(axis=0, keepdims=True)
    deviations = (covs - cov) / jnp.sqrt(jnp.asarray(shape[0] * (shape[0] - 1), covs.dtype))
    return CovarianceEstimate(cov[0], root(jnp.sum(deviations**2, axis=0)), deviations)


def _check_axes_not_swapped(copies) -> None:
    """Copies of an instance differ by noise, instances by noise and by their clean values."""
    array, (n, v, _) = concrete(copies), np.shape(copies)
    if array is None or v <= n or v < 10:  # few copies do not show the difference reliably
        return
    array = array.astype(float)
    instances, noise = (array.var(axis=axis, ddof=1).mean(axis=0) for axis in (0, 1))
    # If all clean instances are equal, the log ratio is 0 up to about this standard error.
    standard_error = np.sqrt(2 / (v * (n - 1)) + 2 / (n * (v - 1)))
    if np.mean(noise > np.exp(5 * standard_error) * instances) > 0.5:
        raise ValueError(
            f"copies must be [n, V, d], but of n = {n} instances the V = {v} copies differ more "
            "than the instances do: np.swapaxes(copies, 0, 1) swaps the axes"
        )
