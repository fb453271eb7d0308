"""The corrupted table, and what all adversaries share: parsing of arguments and random rows."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.robust.subquantile.problem import rows_kept, smallest
from noisy_jax.validation import check_finite, check_key, check_shape, check_stream


class Contaminated(NamedTuple):
    """A table with corrupted rows.

    Attributes:
        x: `[n, d]` instances.
        y: `[n]` targets.
        corrupted: `[n]`, bool, which rows were rewritten.
    """

    x: jax.Array
    y: jax.Array
    corrupted: jax.Array


def parsed_table(key, x, y) -> tuple[jax.Array, jax.Array]:
    """The table as arrays, with the key, shapes and values checked."""
    check_key(key)
    check_stream(x, y)
    return jnp.asarray(x, float), jnp.asarray(y, float)


def parsed_center(center, x) -> jax.Array:
    """The center, repeated for each row, `[n, d]`."""
    check_finite("center", center)
    if np.shape(center) not in ((), x.shape[1:]):
        raise ValueError(
            f"center must be one number or [{x.shape[1]}], as a row of x, got "
            f"{list(np.shape(center))}"
        )
    return jnp.broadcast_to(jnp.asarray(center, x.dtype), x.shape)


def parsed_target(target, y, name="target") -> jax.Array:
    """The target, `[n]`: y by default."""
    if target is None:
        return y
    target = jnp.asarray(target, y.dtype)
    check_shape(name, target, y.shape, "as y")
    check_finite(name, target)
    return target


def random_rows(key, y, contamination) -> jax.Array:
    """Mask `[n]` of n − m random rows."""
    draws = jax.random.uniform(key, y.shape, y.dtype)
    return smallest(draws, y.size - rows_kept(y.size, contamination))[0]


def relabelled(x, y, labels, rows) -> Contaminated:
    """The table with `labels` in the `rows` of a mask, which are then the corrupted ones."""
    return Contaminated(x, jnp.where(rows, labels, y), rows)
