"""Streams of clean examples from arrays, data frames and from scikit-learn's data sets.

Real data are used in two steps: `dataset` or `scaled` give the scaled table, one round a row, and
`resampled` draws rounds from it with replacement. Values are checked where they enter, once.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream, sound_stream
from noisy_jax.draws import integers
from noisy_jax.tabular.columns import (
    ROUNDING,
    check_same_rows,
    index_of,
    numeric,
    warn_of_lost_digits,
)
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.objects import choice
from noisy_jax.validation.rows import check_table
from noisy_jax.validation.values import array_module, check_concrete

_FORMATS = {
    "diabetes": {},
    "breast_cancer": {"delimiter": ",", "skiprows": 1},
    "digits": {"delimiter": ","},
}
"""Options of `numpy.loadtxt` for scikit-learn's files, whose last column is the target."""

DATASETS = tuple(_FORMATS)
"""Names that `streams.dataset` takes: "diabetes", "breast_cancer", "digits"."""


def from_arrays(x: Any, y: Any) -> Stream:
    """Makes a `Stream`, one round a row, of the given clean instances and targets.

    Numbers are converted to JAX's default precision. A UserWarning names columns whose values
    float32 cannot tell apart. Nothing is scaled; `streams.scaled` does that.

    Args:
        x: `[T, d]` clean instances, T ≥ 1 and d ≥ 1: an array, nested lists or a data frame, of
            finite numbers.
        y: `[T]` clean targets, in the same forms; if both are pandas objects, with the same index.

    Returns:
        A `Stream` with x `[T, d]` and y `[T]`.

    Raises:
        ValueError: shapes or pandas indices do not match, or a value is no finite number.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.streams.from_arrays([[0.0, 1.0]], [1.0]).y)
        [1.]
    """
    columns = getattr(x, "columns", None)
    x, y = _checked(x, y)
    warn_of_lost_digits("x", x, columns)
    warn_of_lost_digits("y", y)
    return Stream(jnp.asarray(x, float), jnp.asarray(y, float))


def scaled(x: Any, y: Any) -> Stream:
    """Makes a `Stream`, one round a row, of a raw table, scaled so that ‖x_t‖ ≤ 1 and |y_t| ≤ 1.

    Each feature is centred and divided by its standard deviation (a constant feature becomes 0),
    then all rows are divided by the largest row norm. If the target has two values, the larger
    becomes +1 and the other −1; any other target is centred and divided by its largest absolute
    value. Centring replaces an intercept. All of this is computed in float64 on the host, and
    rounded to JAX's default precision.

    Args:
        x: `[n, d]` clean features, an array, nested lists or a data frame, of finite numbers; not
            traced. At least one feature must vary.
        y: `[n]` clean target, in the same forms, of at least two values; if both are pandas
            objects, with the same index.

    Returns:
        A `Stream` with x `[n, d]` and y `[n]`; `streams.resampled` draws longer ones from it.

    Raises:
        ValueError: shapes or pandas indices do not match, a value is no finite number, or all
            features or all targets are constant.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.streams.scaled([[1.0], [2.0], [3.0]], [0, 1, 1]).y)
        [-1.  1.  1.]
    """
    for name, value in (("x", x), ("y", y)):
        check_concrete(name, value, "it is scaled on the host, outside jit, vmap and grad")
    x, y = (array.astype(np.float64) for array in _checked(x, y))
    largest = np.abs(x).max(axis=0)
    x = x / np.where(largest > 0, largest, 1)  # so that squares of tiny numbers do not underflow
    spread = x.std(axis=0)
    varies = spread > ROUNDING
    if not varies.any():
        raise ValueError("x must have a feature that varies, but every feature is constant")
    x = np.where(varies, (x - x.mean(axis=0)) / np.where(varies, spread, 1), 0)
    values = np.unique(y)
    if len(values) == 1:
        raise ValueError(f"y must take more than one value, the target is constant ({values[0]})")
    y = np.where(y == values[1], 1.0, -1.0) if len(values) == 2 else y - y.mean()
    x, y = x / np.linalg.norm(x, axis=1).max(), y / np.abs(y).max()
    kind = jax.dtypes.canonicalize_dtype(float)
    return Stream(*jax.device_put((x.astype(kind), y.astype(kind))))


def _checked(x, y) -> tuple[Any, Any]:
    check_same_rows("y", y, "x", index_of(x))
    x, y = numeric("x", x), numeric("y", y)
    check_table(x, y)
    return x, y


def dataset(name: str) -> Stream:
    """Loads one of scikit-learn's bundled data sets as a `Stream` of clean rounds, one round a row.

    Each feature is centred, divided by its standard deviation, and all rows by the largest norm, so
    that ‖x_t‖ ≤ 1. Two classes become ±1; other targets are centred and divided by the largest
    absolute value, so that |y_t| ≤ 1 (`streams.scaled`).

    Args:
        name: "diabetes" (442 rows, d = 10, disease progression), "breast_cancer" (569 rows, d = 30,
            benign +1 or malignant −1) or "digits" (1,797 rows, d = 64, the digit's value). The
            tuple `streams.DATASETS` holds these names; another one is a ValueError.

    Returns:
        A `Stream` with x `[n, d]` and y `[n]`, in the order of scikit-learn's rows.

    Raises:
        ImportError: scikit-learn is not installed.

    Example:
        >>> import jax, noisy_jax as nj
        >>> table = nj.streams.dataset("diabetes")
        >>> table.x.shape
        (442, 10)
        >>> stream = nj.streams.resampled(jax.random.key(0), table, horizon=4096)
    """
    return scaled(*bundled(choice("name", name, DATASETS)))


def bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns features `[n, d]` and target `[n]` of a data set of scikit-learn, not scaled."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise ImportError(
            f"the data set {name!r} comes with scikit-learn (the extra noisy_jax[demo])"
        )
    # Its files are read in milliseconds; to import `sklearn.datasets` takes 1.3 s and 100 MB.
    files = sorted(Path(package.origin).with_name("datasets").glob(f"data/{name}*.csv*"))
    if not files:  # another version may have them elsewhere
        return getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")(return_X_y=True)
    table = np.column_stack([np.loadtxt(file, **_FORMATS[name]) for file in files])
    return table[:, :-1], table[:, -1]


def resampled(key: jax.Array, stream: Stream, horizon: int) -> Stream:
    """Draws rounds at random, with replacement, from the rounds of a stream.

    Args:
        key: a key of `jax.random.key`, for the draw.
        stream: n clean rounds to draw from, such as `streams.dataset` or `streams.scaled` returns.
        horizon: T ≥ 1, number of rounds to draw; may exceed n.

    Returns:
        A `Stream` of T rounds, independent draws from the n rounds, uniformly.

    Example:
        >>> import jax, noisy_jax as nj
        >>> table = nj.streams.from_arrays([[0.0], [1.0]], [0.0, 1.0])
        >>> stream = nj.streams.resampled(jax.random.key(0), table, horizon=1000)
        >>> print(abs(stream.y.mean() - 0.5) < 0.1)
        True
    """
    key = parsed_key(key)
    x, y = sound_stream(stream)
    rows = integers(key, (whole("horizon", horizon),), 0, np.shape(y)[0])
    xp = array_module(rows, x, y)  # NumPy compiles nothing
    rows = xp.asarray(rows)
    return Stream(*(jax.device_put(xp.asarray(column)[rows]) for column in (x, y)))
