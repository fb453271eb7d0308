"""Adversaries that rewrite instances and labels. Shared arguments: see `contaminations`."""

import chex
import jax
import jax.numpy as jnp

from noisy_jax.robust.contaminations.contaminated import (
    Contaminated,
    parsed_center,
    parsed_table,
    random_rows,
    relabelled,
)
from noisy_jax.validation import non_negative, number


def covariate(
    key,
    x,
    y,
    contamination,
    *,
    center: chex.Numeric = 0.8,
    spread: chex.Numeric = 0.15,
    label: chex.Numeric = -2.0,
) -> Contaminated:
    """Rows moved to one place with one label: x ~ N(center, spread²), y = label.

    There they outnumber the honest rows. They agree with one another, so that a fit through them
    may have the lowest trimmed objective (with the default constants and x ~ U[−3, 3], from ε = 0.3
    on).

    Args:
        center: a point `[d]`, or one number for all coordinates.
        spread: standard deviation on every coordinate, at least 0.
        label: the label of the corrupted rows.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = covariate(jax.random.key(0), jnp.zeros((10, 2)), jnp.zeros(10), 0.3, spread=0.0)
        >>> print(made.x.sum(axis=0), made.y.sum())
        [2.4 2.4] -6.0
    """
    x, y = parsed_table(key, x, y)
    spread, label = non_negative("spread", spread), number("label", label)
    row_key, x_key = jax.random.split(key)
    rows = random_rows(row_key, y, contamination)
    there = parsed_center(center, x) + spread * jax.random.normal(x_key, x.shape, x.dtype)
    return relabelled(jnp.where(rows[:, None], there, x), y, label, rows)


def far_covariate(
    key, x, y, contamination, *, half_width: chex.Numeric = 6.0, label_spread: chex.Numeric = 3.0
) -> Contaminated:
    """Rows scattered widely with random labels: x ~ U[−w, w]^d, y ~ N(0, s²).

    Args:
        half_width: w ≥ 0.
        label_spread: s ≥ 0, the standard deviation of the labels.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = far_covariate(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3)
        >>> print(jnp.sum(made.x[:, 0] != 0), jnp.sum(made.y != 0))
        3 3
    """
    x, y = parsed_table(key, x, y)
    half_width = non_negative("half_width", half_width)
    label_spread = non_negative("label_spread", label_spread)
    row_key, x_key, y_key = jax.random.split(key, 3)
    rows = random_rows(row_key, y, contamination)
    there = half_width * jax.random.uniform(x_key, x.shape, x.dtype, -1, 1)
    labels = label_spread * jax.random.normal(y_key, y.shape, y.dtype)
    return relabelled(jnp.where(rows[:, None], there, x), y, labels, rows)
