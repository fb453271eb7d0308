"""Adversaries that corrupt a share ε of the rows of a table, to test robust fits with.

Each is a function `(key, x, y, contamination, …) -> Contaminated` with the arguments

    key: a JAX key; `adaptive` is not random and does not use it.
    x: `[n, d]` instances, finite.
    y: `[n]` targets, finite.
    contamination: ε in [0, ½), which may be traced. n − ⌈n(1 − ε)⌉ rows are rewritten: as many as
        `subquantile` trims with the same ε.

and constants of its own, for features and targets of about unit standard deviation.

- `one_sided`: labels far away.
- `shift`: labels moved; with a small size they are hidden in the noise.
- `adaptive`: labels chosen by an adversary who sees the fit.
- `covariate`: instances and labels.

`random_rows` chooses the rows of an adversary of your own: `jnp.where(rows, labels, y)`. The script
colabs/papers/contamination.py has five more.

Source: the adversary of Subquantile Minimization for Kernel Learning, who sees everything and
rewrites labels and instances alike. The paper has no experiment and names none of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import normal, uniform
from noisy_jax.robust.subquantile.problem import rows_kept, smallest
from noisy_jax.validation.arrays import check_axes, check_shape, real_array, real_numbers
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import check_finite, non_negative, number
from noisy_jax.validation.rows import check_stream, check_targets
from noisy_jax.validation.values import Array, ArrayLike

__all__ = ["adaptive", "covariate", "one_sided", "random_rows", "shift"]


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


def one_sided(
    key: jax.Array, x: Any, y: Any, contamination: Any, *, label: ArrayLike = 10.0
) -> Contaminated:
    """Gives random rows of a table the same label, far on one side, to test robust fits.

    The errors of such rows do not cancel out.

    Args:
        key: a key of `jax.random.key`, the randomness of the choice of rows.
        x: `[n, d]` instances, finite.
        y: `[n]` targets, finite.
        contamination: ε in [0, ½): n − ⌈n(1 − ε)⌉ rows are rewritten, as many as
            `subquantile.ridge` trims with the same ε.
        label: the label of the corrupted rows, in the units of y; 10 by default, which is far if
            honest y have a standard deviation of about 1.

    Returns:
        `Contaminated`, a named tuple: `x` `[n, d]`, `y` `[n]`, and `corrupted` `[n]`, bool, True
        for rows that were rewritten.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from noisy_jax.robust import contaminations
        >>> x, y = jnp.zeros((10, 1)), jnp.zeros(10)
        >>> print(contaminations.one_sided(jax.random.key(0), x, y, 0.3).y.sum())
        30.0
    """
    key, x, y = _parsed(key, x, y, contamination)
    label = number("label", label)
    return _relabelled(x, y, label, random_rows(key, y, contamination))


def shift(
    key: jax.Array,
    x: Any,
    y: Any,
    contamination: Any,
    *,
    target: Any = None,
    size: ArrayLike = 3.0,
) -> Contaminated:
    """Moves the labels of random rows of a table to one side: to target + size.

    With a small size the corrupted rows are hidden in the noise of the others.

    Args:
        key: a key of `jax.random.key`, the randomness of the choice of rows.
        x: `[n, d]` instances, finite.
        y: `[n]` targets, finite.
        contamination: ε in [0, ½): n − ⌈n(1 − ε)⌉ rows are rewritten, as many as
            `subquantile.ridge` trims with the same ε.
        target: `[n]`, from which labels are moved: y by default. Give the labels without noise, if
            they are known, or the predictions of a fit, to move them without their noise.
        size: how far labels are moved, in the units of y; 3 by default. For a trimmed fit a few
            standard deviations of the noise are worse than many.

    Returns:
        `Contaminated`, a named tuple: `x` `[n, d]`, `y` `[n]`, and `corrupted` `[n]`, bool, True
        for rows that were rewritten.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from noisy_jax.robust import contaminations
        >>> x, y = jnp.zeros((10, 1)), jnp.zeros(10)
        >>> table = contaminations.shift(jax.random.key(0), x, y, 0.3, size=0.5)
        >>> print(table.y.sum())
        1.5
    """
    key, x, y = _parsed(key, x, y, contamination)
    size = number("size", size)
    target = y if target is None else _target("target", target, y)
    return _relabelled(x, y, target + size, random_rows(key, y, contamination))


def adaptive(
    key: jax.Array, x: Any, y: Any, contamination: Any, *, predictions: Array
) -> Contaminated:
    """Gives the worst labels that a trimmed fit still keeps, by an adversary who sees the fit.

    A trimmed fit (`subquantile.ridge`) keeps the rows with the smallest |r|, r = y − predictions.
    Let τ be the (1 − ε)-quantile of |r|, the largest that is kept. The rows of lowest r pull the
    fit down most; they get the labels predictions + τ, which pull it up most. The adversary can act
    again after the fit has followed: call it with the honest y and the new predictions. Each call
    moves the fit further, without limit for large ε.

    Args:
        key: a key of `jax.random.key`, which is not used: nothing is random.
        x: `[n, d]` instances, finite.
        y: `[n]` targets, finite.
        contamination: ε in [0, ½): n − ⌈n(1 − ε)⌉ rows are rewritten, as many as
            `subquantile.ridge` trims with the same ε.
        predictions: `[n]`, the predictions f(x_i) of the fit, in the units of y.

    Returns:
        `Contaminated`, a named tuple: `x` `[n, d]`, `y` `[n]`, and `corrupted` `[n]`, bool, True
        for rows that were rewritten.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from noisy_jax.robust import contaminations
        >>> x, y = jnp.zeros((5, 1)), jnp.array([-2.0, -1.0, 0.0, 1.0, 4.0])
        >>> fit = jnp.zeros(5)
        >>> print(contaminations.adaptive(jax.random.key(0), x, y, 0.2, predictions=fit).y)
        [ 2. -1.  0.  1.  4.]
    """
    key, x, y = _parsed(key, x, y, contamination)
    predictions = _target("predictions", predictions, y)
    residuals = y - predictions
    kept = rows_kept(y.size, contamination)
    lowest, _ = smallest(residuals - jnp.min(residuals), y.size - kept)
    _, edge = smallest(jnp.abs(residuals), kept)
    return _relabelled(x, y, predictions + edge, lowest)


def covariate(
    key: jax.Array,
    x: Any,
    y: Any,
    contamination: Any,
    *,
    center: ArrayLike = 0.8,
    spread: ArrayLike = 0.15,
    label: ArrayLike = -2.0,
) -> Contaminated:
    """Moves random rows of a table to one place with one label: x ~ N(center, spread²), y = label.

    There they outnumber the honest rows. They agree with one another, so that a fit through them
    may have the lowest trimmed objective (`subquantile.ridge`): with the default constants and
    honest x uniform on [−3, 3], from ε = 0.3 on.

    Args:
        key: a key of `jax.random.key`, the randomness of the choice of rows and of their x.
        x: `[n, d]` instances, finite.
        y: `[n]` targets, finite.
        contamination: ε in [0, ½): n − ⌈n(1 − ε)⌉ rows are rewritten, as many as
            `subquantile.ridge` trims with the same ε.
        center: mean of the new x: a point `[d]`, or one number for all coordinates; 0.8 by default.
        spread: standard deviation of the new x on every coordinate, at least 0; 0.15 by default.
        label: the label of the corrupted rows, in the units of y; −2 by default.

    Returns:
        `Contaminated`, a named tuple: `x` `[n, d]`, `y` `[n]`, and `corrupted` `[n]`, bool, True
        for rows that were rewritten.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from noisy_jax.robust import contaminations
        >>> x, y = jnp.zeros((10, 2)), jnp.zeros(10)
        >>> table = contaminations.covariate(jax.random.key(0), x, y, 0.3, spread=0.0)
        >>> print(table.x.sum(axis=0), table.y.sum())
        [2.4 2.4] -6.0
    """
    key, x, y = _parsed(key, x, y, contamination)
    spread, label = non_negative("spread", spread), number("label", label)
    row_key, x_key = jax.random.split(key)
    rows = random_rows(row_key, y, contamination)
    center = number("center", center, shape=None)
    if np.shape(center) not in ((), x.shape[1:]):
        shape = list(np.shape(center))
        raise ValueError(f"center must be one number or [{x.shape[1]}], as a row of x, got {shape}")
    moved = jnp.asarray(center, x.dtype) + spread * normal(x_key, x.shape, x.dtype)
    return _relabelled(jnp.where(rows[:, None], moved, x), y, label, rows)


def random_rows(key: jax.Array, y: Array, contamination: ArrayLike) -> jax.Array:
    """Chooses random rows for an adversary of your own: a mask of n − ⌈n(1 − ε)⌉ of n rows.

    So many rows `subquantile.ridge` trims with the same ε.

    Args:
        key: a key of `jax.random.key`.
        y: `[n]` targets; only their number n matters.
        contamination: ε in [0, ½), the share of rows.

    Returns:
        `[n]`, bool, True for the chosen rows.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from noisy_jax.robust import contaminations
        >>> y = jnp.arange(10.0)
        >>> rows = contaminations.random_rows(jax.random.key(0), y, 0.3)
        >>> print(rows.sum(), jnp.where(rows, 100.0, y).max())
        3 100.0
    """
    key = parsed_key(key)
    y = jnp.asarray(real_array("y", y), float)
    check_targets(y)
    draws = uniform(key, y.shape, y.dtype)
    return smallest(draws, y.size - rows_kept(y.size, contamination))[0]


def _parsed(key, x, y, contamination) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The key, and the table as arrays, checked; y is NaN if ε is, where it is traced."""
    key = parsed_key(key)
    check_axes("contamination", contamination, "[]")
    x, y = real_array("x", x), real_array("y", y)
    check_stream(x, y)
    x, y = jnp.asarray(x, float), jnp.asarray(y, float)
    if real_numbers("contamination", contamination) is None:
        y = jnp.where(jnp.isnan(contamination), jnp.nan, y)
    return key, x, y


def _target(name, target, y) -> jax.Array:
    target = jnp.asarray(real_array(name, target), y.dtype)
    check_shape(name, target, y.shape, "as y")
    check_finite(name, target)
    return target


def _relabelled(x, y, labels, rows) -> Contaminated:
    return Contaminated(x, jnp.where(rows, labels, y), rows)
