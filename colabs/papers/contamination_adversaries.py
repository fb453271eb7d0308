"""Adversaries of `contamination`, beside those of `nj.robust.contaminations`.

Each is `(key, x, y, share, …) -> Contaminated`, for labels of about unit standard deviation. The
`target` `[n]` are labels without noise.
"""

import jax
import jax.numpy as jnp

from noisy_jax.robust.contaminations import Contaminated, random_rows
from noisy_jax.robust.subquantile.problem import rows_kept, smallest


def gross(key, x, y, share) -> Contaminated:
    """Labels far away on both sides: ±U[5, 20]."""
    row_key, size_key, sign_key = jax.random.split(key, 3)
    sizes = jax.random.uniform(size_key, y.shape, y.dtype, 5, 20)
    labels = sizes * jax.random.rademacher(sign_key, y.shape, y.dtype)
    return _relabelled(x, y, labels, random_rows(row_key, y, share))


def hugging(key, x, y, share, *, target) -> Contaminated:
    """Labels at the edge of the noise: target + τ, with τ the (1 − ε)-quantile of |y − target|.

    A fit near the target cannot tell the corrupted rows from honest ones, and trims honest rows
    instead, so that the noise of the rows kept is one-sided.
    """
    _, edge = smallest(jnp.abs(y - target), rows_kept(y.size, share))
    return _relabelled(x, y, target + edge, random_rows(key, y, share))


def flip(key, x, y, share, *, target) -> Contaminated:
    """Labels of the opposite sign: −target."""
    return _relabelled(x, y, -target, random_rows(key, y, share))


def region(key, x, y, share, *, target) -> Contaminated:
    """All labels of a neighbourhood moved: the rows nearest to (1, …, 1) get target + 3.

    No honest row is left there. Even a fit that knows the corrupted rows must extrapolate.
    """
    distances = jnp.sum((x - 1) ** 2, axis=1)
    nearest, _ = smallest(distances, y.size - rows_kept(y.size, share))
    return _relabelled(x, y, target + 3, nearest)


def far_covariate(key, x, y, share) -> Contaminated:
    """Rows scattered widely with random labels: x ~ U[−6, 6]^d, y ~ N(0, 3²)."""
    row_key, x_key, y_key = jax.random.split(key, 3)
    rows = random_rows(row_key, y, share)
    there = 6 * jax.random.uniform(x_key, x.shape, x.dtype, -1, 1)
    labels = 3 * jax.random.normal(y_key, y.shape, y.dtype)
    return _relabelled(jnp.where(rows[:, None], there, x), y, labels, rows)


def _relabelled(x, y, labels, rows) -> Contaminated:
    return Contaminated(x, jnp.where(rows, labels, y), rows)
