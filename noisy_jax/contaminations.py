"""Corruption of a share ε of the rows of a table, by adversaries of several kinds.

A contamination is a function `(key, x, y, contamination, …) -> Contaminated` of a share ε, which
may be traced. It rewrites as many rows as `subquantile` trims at the same ε, n − ⌈n(1 − ε)⌉.

- Labels far away: `gross`, `one_sided`, `shift`. Labels that hide in the noise: `shift` by little,
  `hugging`, and `adaptive`, which sees the fit. Labels from elsewhere: `flip`, `region`.
- Instances as well: `covariate`, `far_covariate`.

Some aim relative to a `target`: the labels without noise, where they are known, or a fit's
predictions. Default constants are for features and targets of about unit standard deviation.

Source: the adversary of Subquantile Minimization for Kernel Learning, who sees everything and
rewrites labels and instances alike. The paper has no experiment, and names none of these.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.subquantile.problem import rows_kept, smallest
from noisy_jax.validation import (
    check_finite,
    check_non_negative,
    check_one_number,
    check_stream,
    concrete,
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


def gross(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    low: chex.Numeric = 5.0,
    high: chex.Numeric = 20.0,
) -> Contaminated:
    """Labels far away on both sides: ±U[low, high].

    Args:
        key: randomness of rows and labels.
        x: `[n, d]` instances.
        y: `[n]` targets.
        contamination: ε in [0, ½).
        low: least |label|, at least 0.
        high: largest |label|.

    Raises:
        ValueError: ε or a constant out of range, shapes that do not match, NaN or infinity.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = gross(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3)
        >>> print(jnp.sum(made.corrupted), jnp.all((jnp.abs(made.y) >= 5) == made.corrupted))
        3 True
    """
    x, y = _table(x, y)
    _check_constants(low=low, high=high)
    check_non_negative("low", low, "the least size of a label")
    if concrete(low) is not None and concrete(high) is not None and high < low:
        raise ValueError(f"high must be at least low, {low}, got {high}")
    row_key, size_key, sign_key = jax.random.split(key, 3)
    sizes = jax.random.uniform(size_key, y.shape, y.dtype, low, high)
    labels = sizes * jax.random.rademacher(sign_key, y.shape, y.dtype)
    return _relabelled(x, y, labels, _random_rows(row_key, y, contamination))


def one_sided(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    label: chex.Numeric = 10.0,
) -> Contaminated:
    """One label for all corrupted rows, far on one side, where symmetric losses do not cancel it.

    Args:
        key: randomness of the rows.
        x: `[n, d]` instances.
        y: `[n]` targets.
        contamination: ε in [0, ½).
        label: what they are all given.

    Raises:
        ValueError: as `gross`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> print(one_sided(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3).y.sum())
        30.0
    """
    x, y = _table(x, y)
    _check_constants(label=label)
    return _relabelled(x, y, label, _random_rows(key, y, contamination))


def shift(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    target: chex.Array | None = None,
    size: chex.Numeric = 3.0,
) -> Contaminated:
    """Labels moved to one side: target + size.

    Args:
        key: randomness of the rows.
        x: `[n, d]` instances.
        y: `[n]` targets.
        contamination: ε in [0, ½).
        target: `[n]`, what labels are moved from; y by default.
        size: how far. A few noise standard deviations are worse for a trimmed fit than many.

    Raises:
        ValueError: as `gross`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = shift(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3, size=0.5)
        >>> print(made.y.sum())
        1.5
    """
    x, y = _table(x, y)
    _check_constants(size=size)
    target = _target(target, y)
    return _relabelled(x, y, target + size, _random_rows(key, y, contamination))


def hugging(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    target: chex.Array,
) -> Contaminated:
    """Labels at the edge of the noise: target + τ, τ the (1 − ε)-quantile of |y − target|.

    A fit near the target cannot tell them from honest rows, of which it trims others: the noise
    that it keeps is one-sided.

    Args:
        key: randomness of the rows.
        x: `[n, d]` instances.
        y: `[n]` targets.
        contamination: ε in [0, ½).
        target: `[n]`, the labels without noise.

    Raises:
        ValueError: as `gross`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> y = jnp.array([1.0, -2.0, 3.0, -4.0])
        >>> made = hugging(jax.random.key(0), y[:, None], y, 0.25, target=jnp.zeros(4))
        >>> print(made.y[made.corrupted])
        [3.]
    """
    x, y = _table(x, y)
    target = _target(target, y)
    _, edge = smallest(jnp.abs(y - target), rows_kept(y.size, contamination))
    return _relabelled(x, y, target + edge, _random_rows(key, y, contamination))


def adaptive(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    predictions: chex.Array,
) -> Contaminated:
    """Labels just inside the trimming threshold of a fit that the adversary sees.

    With the residuals r = y − predictions and the threshold τ, the (1 − ε)-quantile of |r|, the
    rows of lowest r, which pull the fit down most, are given predictions + τ, which pulls it up
    most. Where the fit has followed, the adversary can look again: give the honest y and the new
    predictions. Each look moves the fit further, without end for large ε.

    Args:
        key: not used, as nothing is random; it is here for the common signature.
        x: `[n, d]` instances.
        y: `[n]` targets.
        contamination: ε in [0, ½).
        predictions: `[n]`, f(x_i) of the fit.

    Raises:
        ValueError: as `gross`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> y = jnp.array([-2.0, -1.0, 0.0, 1.0, 4.0])
        >>> print(adaptive(jax.random.key(0), y[:, None], y, 0.2, predictions=jnp.zeros(5)).y)
        [ 2. -1.  0.  1.  4.]
    """
    del key
    x, y = _table(x, y)
    predictions = _target(predictions, y, "predictions")
    residuals = y - predictions
    kept = rows_kept(y.size, contamination)
    lowest, _ = smallest(residuals - jnp.min(residuals), y.size - kept)
    _, edge = smallest(jnp.abs(residuals), kept)
    return _relabelled(x, y, predictions + edge, lowest)


def flip(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    target: chex.Array | None = None,
) -> Contaminated:
    """Labels of the other sign: −target.

    Args:
        key: randomness of the rows.
        x: `[n, d]` instances.
        y: `[n]` targets; of labels −1/+1, those of the rows are flipped.
        contamination: ε in [0, ½).
        target: `[n]`, what is flipped; y by default.

    Raises:
        ValueError: as `gross`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> print(flip(jax.random.key(0), jnp.zeros((10, 1)), jnp.ones(10), 0.3).y.sum())
        4.0
    """
    x, y = _table(x, y)
    return _relabelled(x, y, -_target(target, y), _random_rows(key, y, contamination))


def region(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    contamination: chex.Numeric,
    *,
    target: chex.Array | None = None,
    center: chex.Numeric | chex.Array = 1.0,
    size: chex.Numeric = 3.0,
) -> Contaminated:
    """All labels of a neighbourhood moved: the rows nearest to `center` get target + size.

    No honest row is left there; even who knows the corrupted rows must extrapolate.

    Args:
        key: not used, as nothing is random; it is here for the common signature.
        x: `[n, d]` instances.
        y: `[n]` targets.
        contamination: ε in [0, ½).
        target: `[n]`, what labels are moved from; y by default.
        center: `[]` (on every coordinate) or `[d]`.
        size: how far labels are moved.

    Raises:
        ValueError: as `gross`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> print(region(jax.random.key(0), jnp.arange(5.0)[:, None], jnp.zeros(5), 0.2).y)
        [0. 3. 0. 0. 0.]
    """
    del key
    x, y = _table(x, y)
    _check_constants(size=size)
    distances = jnp.sum((x - _center(center, x)) ** 2, axis=1)
    nearest, _ = smallest(distances, y.size - rows_kept(y.size, contamination))
    return _relabelled(x, y, _target(target, y) + size, nearest)


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
    x, y = _table(x, y)
    _check_constants(spread=spread, label=label)
    check_non_negative("spread", spread, "it is a standard deviation")
    row_key, x_key = jax.random.split(key)
    rows = _random_rows(row_key, y, contamination)
    there = _center(center, x) + spread * jax.random.normal(x_key, x.shape, x.dtype)
    return _relabelled(jnp.where(rows[:, None], there, x), y, label, rows)


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
    x, y = _table(x, y)
    _check_constants(half_width=half_width, label_spread=label_spread)
    check_non_negative("half_width", half_width, "instances come from U[−half_width, half_width]")
    check_non_negative("label_spread", label_spread, "it is a standard deviation")
    row_key, x_key, y_key = jax.random.split(key, 3)
    rows = _random_rows(row_key, y, contamination)
    there = half_width * jax.random.uniform(x_key, x.shape, x.dtype, -1, 1)
    labels = label_spread * jax.random.normal(y_key, y.shape, y.dtype)
    return _relabelled(jnp.where(rows[:, None], there, x), y, labels, rows)


def _table(x, y) -> tuple[chex.Array, chex.Array]:
    check_stream(x, y)
    return jnp.asarray(x, float), jnp.asarray(y, float)


def _check_constants(**constants) -> None:
    for name, value in constants.items():
        check_one_number(name, value)


def _center(center, x) -> chex.Array:
    """The center of each row, `[n, d]`."""
    check_finite("center", center)
    if np.shape(center) not in ((), x.shape[1:]):
        raise ValueError(
            f"center must be one number or [{x.shape[1]}], as a row of x, got "
            f"{list(np.shape(center))}"
        )
    return jnp.broadcast_to(jnp.asarray(center, x.dtype), x.shape)


def _target(target, y, name="target") -> chex.Array:
    if target is None:
        return y
    target = jnp.asarray(target, y.dtype)
    if target.shape != y.shape:
        raise ValueError(f"{name} must be {list(y.shape)}, as y, got {list(target.shape)}")
    check_finite(name, target)
    return target


def _random_rows(key, y, contamination) -> chex.Array:
    """`[n]`, bool, n − m rows at random."""
    draws = jax.random.uniform(key, y.shape, y.dtype)
    return smallest(draws, y.size - rows_kept(y.size, contamination))[0]


def _relabelled(x, y, labels, rows) -> Contaminated:
    return Contaminated(x, jnp.where(rows, labels, y), rows)
