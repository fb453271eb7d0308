"""Adversaries that rewrite labels alone. Arguments that all share: see `contaminations`."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.robust.contaminations.contaminated import (
    Contaminated,
    parsed_center,
    parsed_table,
    parsed_target,
    random_rows,
    relabelled,
)
from noisy_jax.robust.subquantile.problem import rows_kept, smallest
from noisy_jax.validation import check_not_below, concrete, non_negative, number


def gross(
    key, x, y, contamination, *, low: chex.Numeric = 5.0, high: chex.Numeric = 20.0
) -> Contaminated:
    """Labels far away on both sides: ±U[low, high].

    Args:
        low: smallest |label|, at least 0.
        high: largest |label|, at least `low`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = gross(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3)
        >>> print(jnp.sum(made.corrupted), jnp.all((jnp.abs(made.y) >= 5) == made.corrupted))
        3 True
    """
    x, y = parsed_table(key, x, y)
    low, high = non_negative("low", low), number("high", high)
    check_not_below("high", high, "low", low)
    row_key, size_key, sign_key = jax.random.split(key, 3)
    sizes = jax.random.uniform(size_key, y.shape, y.dtype, low, high)
    labels = sizes * jax.random.rademacher(sign_key, y.shape, y.dtype)
    return relabelled(x, y, labels, random_rows(row_key, y, contamination))


def one_sided(key, x, y, contamination, *, label: chex.Numeric = 10.0) -> Contaminated:
    """The same label for all corrupted rows, far on one side, where errors do not cancel out.

    Args:
        label: the label of the corrupted rows.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> print(one_sided(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3).y.sum())
        30.0
    """
    x, y = parsed_table(key, x, y)
    label = number("label", label)
    return relabelled(x, y, label, random_rows(key, y, contamination))


def shift(
    key, x, y, contamination, *, target: chex.Array | None = None, size: chex.Numeric = 3.0
) -> Contaminated:
    """Labels moved to one side: target + size.

    Args:
        target: `[n]`; y by default.
        size: how far labels are moved. For a trimmed fit a few standard deviations of the noise are
            worse than many.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = shift(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3, size=0.5)
        >>> print(made.y.sum())
        1.5
    """
    x, y = parsed_table(key, x, y)
    size = number("size", size)
    target = parsed_target(target, y)
    return relabelled(x, y, target + size, random_rows(key, y, contamination))


def hugging(key, x, y, contamination, *, target: chex.Array) -> Contaminated:
    """Labels at the edge of the noise: target + τ, with τ the (1 − ε)-quantile of |y − target|.

    A fit near the target cannot tell the corrupted rows from honest ones, and trims honest rows
    instead, so that the noise of the rows kept is one-sided.

    Args:
        target: `[n]`, the labels without noise; required.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> y = jnp.array([1.0, -2.0, 3.0, -4.0])
        >>> made = hugging(jax.random.key(0), y[:, None], y, 0.25, target=jnp.zeros(4))
        >>> print(made.y[made.corrupted])
        [3.]
    """
    x, y = parsed_table(key, x, y)
    target = parsed_target(target, y)
    _, edge = smallest(jnp.abs(y - target), rows_kept(y.size, contamination))
    return relabelled(x, y, target + edge, random_rows(key, y, contamination))


def adaptive(key, x, y, contamination, *, predictions: chex.Array) -> Contaminated:
    """Labels just inside the trimming threshold of a fit that the adversary sees.

    Let r = y − predictions, and let the threshold τ be the (1 − ε)-quantile of |r|. The rows of
    lowest r pull the fit down most; they get the labels predictions + τ, which pull it up most. The
    adversary can act again after the fit has followed: call it with the honest y and the new
    predictions. Each call moves the fit further, without limit for large ε.

    Args:
        predictions: `[n]`, the predictions f(x_i) of the fit.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> y = jnp.array([-2.0, -1.0, 0.0, 1.0, 4.0])
        >>> print(adaptive(jax.random.key(0), y[:, None], y, 0.2, predictions=jnp.zeros(5)).y)
        [ 2. -1.  0.  1.  4.]
    """
    x, y = parsed_table(key, x, y)
    predictions = parsed_target(predictions, y, "predictions")
    residuals = y - predictions
    kept = rows_kept(y.size, contamination)
    lowest, _ = smallest(residuals - jnp.min(residuals), y.size - kept)
    _, edge = smallest(jnp.abs(residuals), kept)
    return relabelled(x, y, predictions + edge, lowest)


def flip(key, x, y, contamination, *, target: chex.Array | None = None) -> Contaminated:
    """Labels of the opposite sign: −target. Classes must be −1 and +1, not 0 and 1.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> print(flip(jax.random.key(0), jnp.zeros((10, 1)), jnp.ones(10), 0.3).y.sum())
        4.0
    """
    x, y = parsed_table(key, x, y)
    target = parsed_target(target, y)
    known = concrete(target)
    if known is not None and np.array_equal(np.unique(known), [0, 1]):
        raise ValueError(
            "y or target must be labels −1 and +1 whose sign can be flipped, got 0 and 1; use "
            "2y − 1"
        )
    return relabelled(x, y, -target, random_rows(key, y, contamination))


def region(
    key,
    x,
    y,
    contamination,
    *,
    target: chex.Array | None = None,
    center: chex.Numeric = 1.0,
    size: chex.Numeric = 3.0,
) -> Contaminated:
    """All labels of a neighbourhood moved: the rows nearest to `center` get target + size.

    No honest row is left there. Even a fit that knows the corrupted rows must extrapolate.

    Args:
        target: `[n]`; y by default.
        center: a point `[d]`, or one number for all coordinates.
        size: how far labels are moved.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> print(region(jax.random.key(0), jnp.arange(5.0)[:, None], jnp.zeros(5), 0.2).y)
        [0. 3. 0. 0. 0.]
    """
    x, y = parsed_table(key, x, y)
    size = number("size", size)
    distances = jnp.sum((x - parsed_center(center, x)) ** 2, axis=1)
    nearest, _ = smallest(distances, y.size - rows_kept(y.size, contamination))
    return relabelled(x, y, parsed_target(target, y) + size, nearest)
