"""What a contamination gives, and what all of them do: checks, and rows drawn at random."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.robust.subquantile.problem import rows_kept, smallest
from noisy_jax.validation import (
    check_finite,
    check_key,
    check_one_number,
    check_shape,
    check_stream,
)


class Contaminated(NamedTuple):
    """A table of which some rows are corrupted.

    Attributes:
        x: `[n, d]` instances.
        y: `[n]` targets.
        corrupted: `[n]`, bool, which rows were rewritten.
    """

    x: chex.Array
    y: chex.Array
    corrupted: chex.Array


def checked_table(key, x, y) -> tuple[chex.Array, chex.Array]:
    """The table as arrays, after a look at the key, shapes and values."""
    check_key(key)
    check_stream(x, y)
    return jnp.asarray(x, float), jnp.asarray(y, float)


def check_constants(**constants) -> None:
    """Refuses constants of an adversary that are not one finite number each."""
    for name, value in constants.items():
        check_one_number(name, value)


def checked_center(center, x) -> chex.Array:
    """The center of each row, `[n, d]`."""
    check_finite("center", center)
    if np.shape(center) not in ((), x.shape[1:]):
        raise ValueError(
            f"center must be one number or [{x.shape[1]}], as a row of x, got "
            f"{list(np.shape(center))}"
        )
    return jnp.broadcast_to(jnp.asarray(center, x.dtype), x.shape)


def checked_target(target, y, name="target") -> chex.Array:
    """What the adversary aims relative to, `[n]`: the labels themselves by default."""
    if target is None:
        return y
    target = jnp.asarray(target, y.dtype)
    check_shape(name, target, y.shape, "as y")
    check_finite(name, target)
    return target


def random_rows(key, y, contamination) -> chex.Array:
    """`[n]`, bool, n − m rows at random."""
    draws = jax.random.uniform(key, y.shape, y.dtype)
    return smallest(draws, y.size - rows_kept(y.size, contamination))[0]


def relabelled(x, y, labels, rows) -> Contaminated:
    """The table with other labels in the given rows."""
    return Contaminated(x, jnp.where(rows, labels, y), rows)
