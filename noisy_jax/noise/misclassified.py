"""Categories that are recorded wrongly, with known probabilities.

With M_jk the probability that category j is recorded as k, the recoding u(k) = row k of M⁻¹ has the
mean Σ_k M_jk u(k) = e_j, the indicators of the true category j. Of the squares of indicators one
knows that x_i x_j is x_i where i = j, and 0 elsewhere. So the unbiased estimate of the covariance
of u is Σ̂ = u uᵀ − diag(u). For any function f of the true category, Σ_j u_j(k) f(j) has the mean
f(true category).

Source: Kuha, Skinner and Palmgren, Misclassification error (2005); Buonaccorsi, Measurement Error
(2010), Sec. 2.3; for class labels Natarajan, Dhillon, Ravikumar and Tewari (2013).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from noisy_jax.draws import uniform
from noisy_jax.linalg.matrices import qr, solve_triangular
from noisy_jax.noise.base import register_distribution
from noisy_jax.noise.dependent import Dependent
from noisy_jax.validation.arrays import real
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import listed
from noisy_jax.validation.numbers import within
from noisy_jax.validation.values import Array, concrete

_SMALLEST = 1e-3
"""Determinant of M below which recorded categories say almost nothing about the true ones."""


@register_distribution
class Misclassified(Dependent):
    """A category that is recorded as another one with known probabilities.

    The recorded category may depend on the true one and on nothing else: not on y, nor on other
    columns or their errors. If it is recorded better in cases than in controls, the correction is
    wrong. The probabilities count as known exactly. Replicates of a column must be recorded
    independently, given the true category.

    **In a table**, `nj.table(…, noise={"exposed": nj.noise.Misclassified(matrix)})` corrects for a
    misclassified column in linear, logistic and Poisson fits. A column of K categories becomes K −
    1 indicators (0 or 1) of categories 2 to K, with names such as `smoker[yes]`, which
    `fit.predict` takes; a column of 0 and 1 keeps its name. `fit.uncorrected` is the fit to the
    recorded categories.

    **As noise of a stream**, x `[K − 1]` holds these indicators; for K = 2 x `[d]` may hold d
    columns of 0 and 1, each misclassified independently. Any other x gives NaN. A copy x̃ is a
    recoding of the recorded category, with E x̃ = x. For K > 2 the estimate of its covariance need
    not be positive semidefinite: then take `learners.corrected_ftrl(moments.known_covariance())`,
    as `learners.known_covariance` gives NaN for negative variances.

    Args:
        matrix: M `[K, K]`; row j holds the probabilities that category j is recorded as each of
            the K. For 0 and 1 with sensitivity s and specificity t it is
            `[[t, 1 - t], [1 - s, s]]`. Each row adds up to 1, and the determinant must be at least
            0.001; else ValueError.
        categories: the K categories in the order of the matrix. `None`, the default, for the
            categories in the column, in the order that the frame keeps of them (a Categorical of
            pandas or polars, an Enum of polars, a dictionary of pyarrow), or else sorted.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> smoker = rng.random(20_000) < 0.3
        >>> wrong = rng.random(20_000) < np.where(smoker, 0.2, 0.1)
        >>> recorded = np.where(smoker != wrong, "yes", "no")
        >>> frame = {"smoker": recorded, "y": smoker + 0.1 * rng.normal(size=20_000)}
        >>> noise = {"smoker": nj.noise.Misclassified([[0.9, 0.1], [0.2, 0.8]])}
        >>> fit = nj.fit(nj.table(frame, target="y", noise=noise))
        >>> print(fit.names, fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        ('smoker[yes]',) [1.] [0.7]
    """

    matrix: Any
    categories: Any = dataclasses.field(default=None, metadata={"static": True})

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", _matrix(self.matrix))
        if self.categories is None:
            return
        names, count = self.categories, np.shape(self.matrix)[-1]
        several = isinstance(names, Iterable) and not isinstance(names, str | bytes | Tracer)
        names = tuple(names) if several and getattr(names, "ndim", 1) else (names,)
        if len(names) != count or not _differ(names):
            raise ValueError(
                f"Misclassified.categories must be {count} different categories, one a row of the "
                f"matrix, got {listed(names)}"
            )
        object.__setattr__(self, "categories", names)

    def recoding(self) -> np.ndarray:
        """Returns M⁻¹ `[K, K]` in float64: row k replaces the indicators of recorded category k."""
        return np.linalg.inv(np.asarray(self.matrix, np.float64))

    def check_dimension(self, shape: tuple[int, ...]) -> None:
        """Raises ValueError unless x has a coordinate for each indicator."""
        count = np.shape(self.matrix)[-1] - 1
        if count > 1 and shape[-1:] != (count,):
            raise ValueError(
                f"Misclassified noise of {count + 1} categories is of their {count} indicators, "
                f"against the first one, but x has shape {list(shape)}"
            )

    def _inverse(self):
        if concrete(self.matrix) is not None:
            return jnp.asarray(self.recoding(), float)
        q, r = qr(jnp.asarray(self.matrix, float))
        return solve_triangular(r.T, q.T, transposed=True)

    def centred(self, key: jax.Array, x: Array) -> jax.Array:
        """Returns the recoding of a recorded category that is drawn for x, in the shape of `x`."""
        key, x = parsed_key(key), jnp.asarray(x, float)
        self.check_dimension(x.shape)
        true = self._indicators(x)
        ends = jnp.cumsum(_products(true, jnp.asarray(self.matrix, float)), axis=-1)[..., :-1]
        draws = uniform(key, (ends[..., 0].size,)).reshape(ends.shape[:-1])
        recorded = jnp.sum(draws[..., None] >= ends, axis=-1)
        sound = jnp.all((true == 0) | (true == 1), axis=-1)
        copies = jnp.where(sound[..., None], self._inverse()[recorded][..., 1:], jnp.nan)
        return copies.reshape(x.shape)

    def _indicators(self, x):
        """`[..., K]` of all categories."""
        x = x[..., None] if np.shape(self.matrix)[-1] == 2 else x
        return jnp.concatenate([1 - jnp.sum(x, axis=-1, keepdims=True), x], axis=-1)

    def estimated_cov(self, copy: Any) -> Any:
        """Returns x̃x̃ᵀ − diag(x̃), `[K − 1, K − 1]`, for a copy x̃; for K = 2 x̃² − x̃, `[d]`."""
        self.check_dimension(jnp.shape(copy))
        if np.shape(self.matrix)[-1] == 2:
            return copy**2 - copy
        return jnp.outer(copy, copy) - jnp.diag(copy)

    def _means(self, x, function):
        """The mean of a function of the recodings of a column, over what may be recorded of x."""
        values = jax.vmap(function)(self._inverse()[:, 1:])
        probabilities = _products(self._indicators(x), jnp.asarray(self.matrix, float))
        return jnp.tensordot(probabilities, values, 1)

    def covariance_at(self, x: Any) -> Any:
        """Returns the covariance matrix `[d, d]` of a copy of the clean x `[d]`."""
        self.check_dimension(jnp.shape(x))
        second = self._means(x, lambda u: jnp.outer(u, u))
        if np.shape(self.matrix)[-1] == 2:
            return jnp.diag(second[:, 0, 0] - x**2)
        return second - jnp.outer(x, x)

    def square_fourth_moment(self, x: Any) -> Any:
        """Returns E‖x̃‖⁴ + E‖x̃‖² for a clean x `[d]`, `[]`, which bounds E‖x̃x̃ᵀ − Σ̂‖²."""
        self.check_dimension(jnp.shape(x))
        second = self._means(x, lambda u: jnp.sum(u**2))
        fourth = self._means(x, lambda u: jnp.sum(u**2) ** 2)
        if np.shape(self.matrix)[-1] == 2:
            total = jnp.sum(second)
            return total**2 + jnp.sum(fourth - second**2) + total
        return fourth + second


def _products(rows, matrix):
    return jnp.matmul(rows, matrix, precision="highest")


def _differ(names: tuple[Any, ...]) -> bool:
    """True if no two names are equal. Names that can be hashed need no truth value, as of NA."""
    try:
        return len(set(names)) == len(names)
    except TypeError:
        return not any(a == b for a, b in itertools.combinations(names, 2))


def _matrix(given: Any) -> Any:
    """The matrix of probabilities; with a leading axis where it changes from round to round."""
    name = "Misclassified.matrix"
    matrix = real(name, within(name, given, 0, 1, shape=None))
    shape = np.shape(matrix)
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
        raise ValueError(
            "Misclassified.matrix must be [K, K], with a row of probabilities for each true "
            f"category, such as [[0.9, 0.1], [0.2, 0.8]], got shape {list(shape)}"
        )
    rows = concrete(matrix)
    if rows is None:
        right = jnp.all(jnp.abs(jnp.sum(matrix, axis=-1) - 1) < 1e-4, axis=-1)
        return jnp.where(right[..., None, None], matrix, jnp.nan)
    totals = rows.sum(axis=-1)
    if np.any(np.abs(totals - 1) > 1e-4):
        hint = ""
        if rows.ndim == 2 and np.allclose(rows.sum(axis=0), 1):
            hint = "; its columns do: row j must be of the true category j, so transpose it"
        raise ValueError(
            "Misclassified.matrix must have rows of probabilities that add up to 1, but their sums "
            f"are {listed(totals.ravel().round(4).tolist())}{hint}"
        )
    det = np.linalg.det(rows.astype(np.float64))
    if np.any(det < _SMALLEST):
        raise ValueError(
            f"Misclassified.matrix must have a determinant of at least {_SMALLEST:g}, got "
            f"{np.min(det):.2g}: the recorded category says nothing about the true one, or the "
            "rows are in another order than the columns"
        )
    return matrix
