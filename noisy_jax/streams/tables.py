"""Streams of clean examples from arrays, from scikit-learn's data sets, from CSV.

Real data are used in two steps: `dataset` or `csv` give the scaled table, one round a row, and
`resampled` draws rounds from it with replacement.
"""

import csv as csv_reader
import math
from collections.abc import Callable
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream, check_is_stream
from noisy_jax.validation import check_at_least, check_choice, check_key, check_stream

DATASETS = ("diabetes", "breast_cancer", "digits")
"""Names that `dataset` knows."""


def from_arrays(x: chex.Array, y: chex.Array) -> Stream:
    """A stream of the given rounds, unchanged, after a look at their shapes and values.

    Args:
        x: `[T, d]` instances.
        y: `[T]` targets.

    Raises:
        ValueError: shapes that do not match, no rounds, NaN or infinity (with its place).

    Example:
        >>> from_arrays([[0.0, 1.0]], [1.0]).y
        Array([1.], dtype=float32)
    """
    check_stream(x, y)
    with np.errstate(over="ignore"):
        stream = Stream(jnp.asarray(x, float), jnp.asarray(y, float))
    check_stream(*stream)  # again, as float32 overflows where float64 does not
    return stream


def scaled(x: np.ndarray, y: np.ndarray) -> Stream:
    """The stream of a raw table, scaled so that ‖x_t‖ ≤ 1 and |y_t| ≤ 1.

    Each feature is centred and divided by its standard deviation (a constant feature becomes 0),
    then all rows are divided by the largest row norm. A target of two values becomes −1/+1 (the
    larger is +1); any other is centred and divided by its largest absolute value. There is no
    intercept: centring stands in for it.

    Args:
        x: `[n, d]` features.
        y: `[n]` target.

    Raises:
        ValueError: as `from_arrays`, and where all features or the target are constant.

    Example:
        >>> import numpy as np
        >>> print(scaled(np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 1])).y)
        [-1.  1.  1.]
    """
    from_arrays(x, y)
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    spread = x.std(axis=0)
    varies = spread > 1e-12 * np.abs(x).max(axis=0)
    if not varies.any():
        raise ValueError("x must have a feature that varies, but every feature is constant")
    x = np.where(varies, (x - x.mean(axis=0)) / np.where(varies, spread, 1), 0)
    values = np.unique(y)
    if len(values) == 1:
        raise ValueError(f"y must take more than one value, the target is constant ({values[0]})")
    y = np.where(y == values[1], 1.0, -1.0) if len(values) == 2 else y - y.mean()
    return from_arrays(x / np.linalg.norm(x, axis=1).max(), y / np.abs(y).max())


def dataset(name: str) -> Stream:
    """One of scikit-learn's bundled data sets, scaled by `scaled`; needs scikit-learn.

    Args:
        name: "diabetes" (442 rows, d = 10, disease progression), "breast_cancer" (569 rows, d = 30,
            benign +1 or malignant −1) or "digits" (1,797 rows, d = 64, the digit's value).

    Raises:
        ValueError: another name; the message lists the known ones.
        ImportError: scikit-learn is not installed.

    Example:
        >>> dataset("diabetes").x.shape
        (442, 10)
    """
    check_choice("name", name, DATASETS)
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError(
            f"the data set {name!r} comes with scikit-learn (the extra noisy_jax[demo])"
        ) from error
    load: Callable = getattr(datasets, f"load_{name}")
    return scaled(*load(return_X_y=True))


def csv(path: str | Path, target: str) -> Stream:
    """A numeric CSV file with a header line, scaled by `scaled`.

    Args:
        path: the file; UTF-8, separated by commas.
        target: name of the target's column; all other columns are features.

    Raises:
        ValueError: no header or no such column, or a cell that is not a finite number (named by
            line and column), or a line with too few or too many cells.
        FileNotFoundError: no such file.

    Example:
        >>> import tempfile, numpy as np
        >>> path = f"{tempfile.mkdtemp()}/houses.csv"
        >>> np.savetxt(path, np.eye(3, 2), delimiter=",", header="rooms,price", comments="")
        >>> csv(path, target="price").x.shape
        (3, 1)
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = csv_reader.reader(file)
            header = [name.strip() for name in next(lines, [])]
            rows = [(lines.line_num, cells) for cells in lines if cells]
    except (UnicodeDecodeError, csv_reader.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8: {error}") from error
    if not any(header):
        raise ValueError(f"{path} is empty")
    if target not in header and all(_is_number(name) for name in header):
        raise ValueError(f"{path} has numbers in its first line, which must name the columns")
    if header.count(target) != 1:
        count = "more than one" if target in header else "no"
        raise ValueError(
            f"{path} has {count} column named {target!r}; its columns are {', '.join(header)}"
        )
    if not rows:
        raise ValueError(f"{path} has a header but no rows")
    if len(header) == 1:
        raise ValueError(f"{path} has no column beside the target {target!r}")
    table = np.array([_numbers(cells, header, f"{path}, line {line}") for line, cells in rows])
    column = header.index(target)
    return scaled(np.delete(table, column, axis=1), table[:, column])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(cells: list[str], header: list[str], place: str) -> list[float]:
    if len(cells) != len(header):
        raise ValueError(f"{place}: {len(cells)} cells under {len(header)} column names")
    numbers = []
    for name, cell in zip(header, cells, strict=True):
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(
                f"{place}, column {name!r}: {cell!r} is not a finite number; encode text and fill "
                "or drop missing cells first"
            )
        numbers.append(number)
    return numbers


def resampled(key: chex.PRNGKey, stream: Stream, horizon: int) -> Stream:
    """`horizon` rounds drawn with replacement from the rounds of `stream`.

    Args:
        key: randomness of the draw.
        stream: n rounds to draw from.
        horizon: T ≥ 1 rounds to draw; may exceed n.

    Raises:
        ValueError: as `from_arrays`, and no key, no `Stream`, or no rounds to draw.

    Example:
        >>> import jax
        >>> table = from_arrays([[0.0], [1.0]], [0.0, 1.0])
        >>> resampled(jax.random.key(0), table, horizon=1000).x.shape
        (1000, 1)
    """
    check_key(key)
    check_is_stream(stream)
    check_at_least("horizon", horizon, 1, "the number of rounds T")
    rows = jax.random.randint(key, (horizon,), 0, stream.y.shape[0])
    return Stream(stream.x[rows], stream.y[rows])
