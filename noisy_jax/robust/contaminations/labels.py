"""Adversaries that rewrite labels alone."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.robust.contaminations.contaminated import (
    Contaminated,
    check_constants,
    checked_center,
    checked_table,
    checked_target,
    random_rows,
    relabelled,
)
from noisy_jax.robust.subquantile.problem import rows_kept, smallest
from noisy_jax.validation import check_non_negative, check_not_below, concrete


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
        ValueError: no key, ε or a constant out of range, shapes that do not match, NaN or infinity.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> made = gross(jax.random.key(0), jnp.zeros((10, 1)), jnp.zeros(10), 0.3)
        >>> print(jnp.sum(made.corrupted), jnp.all((jnp.abs(made.y) >= 5) == made.corrupted))
        3 True
    """
    x, y = checked_table(key, x, y)
    check_constants(low=low, high=high)
    check_non_negative("low", low, "the least size of a label")
    check_not_below("high", high, "low", low)
    row_key, size_key, sign_key = jax.random.split(key, 3)
    sizes = jax.random.uniform(size_key, y.shape, y.dtype, low, high)
    labels = sizes * jax.random.rademacher(sign_key, y.shape, y.dtype)
    return relabelled(x, y, labels, random_rows(row_key, y, contamination))


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
    x, y = checked_table(key, x, y)
    check_constants(label=label)
    return relabelled(x, y, label, random_rows(key, y, contamination))


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
    x, y = checked_table(key, x, y)
    check_constants(size=size)
    target = checked_target(target, y)
    return relabelled(x, y, target + size, random_rows(key, y, contamination))


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
    x, y = checked_table(key, x, y)
    target = checked_target(target, y)
    _, edge = smallest(jnp.abs(y - target), rows_kept(y.size, contamination))
    return relabelled(x, y, target + edge, random_rows(key, y, contamination))


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
    x, y = checked_table(key, x, y)
    predictions = checked_target(predictions, y, "predictions")
    residuals = y - predictions
    kept = rows_kept(y.size, contamination)
    lowest, _ = smallest(residuals - jnp.min(residuals), y.size - kept)
    _, edge = smallest(jnp.abs(residuals), kept)
    return relabelled(x, y, predictions + edge, lowest)


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
    x, y = checked_table(key, x, y)
    target = checked_target(target, y)
    known = concrete(target)
    if known is not None and np.array_equal(np.unique(known), [0, 1]):
        raise ValueError(
            "y, or target, must be labels whose signs can be flipped, got 0 and 1; 2y − 1 turns "
            "labels 0 and 1 into −1 and +1"
        )
    return relabelled(x, y, -target, random_rows(key, y, contamination))


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
    x, y = checked_table(key, x, y)
    check_constants(size=size)
    distances = jnp.sum((x - checked_center(center, x)) ** 2, axis=1)
    nearest, _ = smallest(distances, y.size - rows_kept(y.size, contamination))
    return relabelled(x, y, checked_target(target, y) + size, nearest)
