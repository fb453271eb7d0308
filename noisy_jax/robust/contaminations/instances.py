"""Adversaries that rewrite instances and labels."""

import chex
import jax
import jax.numpy as jnp

from noisy_jax.robust.contaminations.contaminated import (
    Contaminated,
    check_constants,
    checked_center,
    checked_table,
    random_rows,
    relabelled,
)
from noisy_jax.validation import check_non_negative


def covariate(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    center: chex.Numeric | chex.Array = 0.8,
    spread: chex.Numeric = 0.15,
    label: chex.Numeric = -2.0,
) -> Contaminated:
    """Rows moved together to one place, under one label: x ~ N(center, spread²), y = label.

    There they outnumber the honest rows, and as they agree with one another, a fit that follows
    them may have the lower trimmed objective (here from ε = 0.3 where x ~ U[−3, 3]).

    Args:
        key: randomness of rows and instances.
        x: `[n, d]` instances.
        y: `[n]` targets.
        contamination: ε in [0, ½).
        center: `[]` (on every coordinate) or `[d]`.
        spread: standard deviation on every coordinate, at least 0.
        label: what they are all given.

    Raises:
        ValueError: as `gross`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = covariate(jax.random.key(0), jnp.zeros((10, 2)), jnp.zeros(10), 0.3, spread=0.0)
        >>> print(made.x.sum(axis=0), made.y.sum())
        [2.4 2.4] -6.0
    """
    x, y = checked_table(key, x, y)
    check_constants(spread=spread, label=label)
    check_non_negative("spread", spread, "it is a standard deviation")
    row_key, x_key = jax.random.split(key)
    rows = random_rows(row_key, y, contamination)
    there = checked_center(center, x) + spread * jax.random.normal(x_key, x.shape, x.dtype)
    return relabelled(jnp.where(rows[:, None], there, x), y, label, rows)


def far_covariate(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    half_width: chex.Numeric = 6.0,
    label_spread: chex.Numeric = 3.0,
) -> Contaminated:
    """Rows scattered far and wide, labels random: x ~ U[−w, w]^d, y ~ N(0, s²).

    Args:
        key: randomness of rows, instances and labels.
        x: `[n, d]` instances.
        y: `[n]` targets.
        contamination: ε in [0, ½).
        half_width: w ≥ 0.
        label_spread: s ≥ 0, the labels' standard deviation.

    Raises:
        ValueError: as `gross`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = far_covariate(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3)
        >>> print(jnp.sum(made.x[:, 0] != 0), jnp.sum(made.y != 0))
        3 3
    """
    x, y = checked_table(key, x, y)
    check_constants(half_width=half_width, label_spread=label_spread)
    check_non_negative("half_width", half_width, "instances come from U[−half_width, half_width]")
    check_non_negative("label_spread", label_spread, "it is a standard deviation")
    row_key, x_key, y_key = jax.random.split(key, 3)
    rows = random_rows(row_key, y, contamination)
    there = half_width * jax.random.uniform(x_key, x.shape, x.dtype, -1, 1)
    labels = label_spread * jax.random.normal(y_key, y.shape, y.dtype)
    return relabelled(jnp.where(rows[:, None], there, x), y, labels, rows)
