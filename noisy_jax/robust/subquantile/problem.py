"""The trimmed objective, and the rows that it keeps.

    F(f) = min_{|S| = m} (1/m) Σ_{i∈S} ℓ(f(x_i), y_i) + ½λ‖f‖²,   ‖f‖ ≤ R,   m = ⌈n(1 − ε)⌉

The minimising S holds the m smallest losses; ties are broken by index. With t the largest loss
kept, which is the (1 − ε)-quantile, F(f) − ½λ‖f‖² = max_t g(t) of

    g(t) = t − (1/m) Σ_i (t − ℓ_i)⁺.

Source: Subquantile Minimization for Kernel Learning, Sec. 3 and Lemmas 3 and 4. Printed without the
factor 1/m, g has the smallest loss alone as its maximum, and one point would be fitted. The paper's
Algorithm 1 and Section C weigh ‖f‖² by C = mλ/2 beside the sum of the losses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.losses import Loss
from noisy_jax.robust.subquantile.gram import Gram, dense_gram
from noisy_jax.validation.arrays import real_array, real_numbers
from noisy_jax.validation.numbers import check_labels, non_negative, positive
from noisy_jax.validation.rows import check_targets
from noisy_jax.validation.values import Array, ArrayLike, concrete


class Problem(NamedTuple):
    """A trimmed problem. It holds functions, so it cannot be an argument of a jitted function.

    Attributes:
        gram: the Gram matrix K of the n rows.
        y: `[n]` targets.
        loss: ℓ, squared or logistic.
        count: `[]`, m, the number of rows to keep, in the data type of y.
        regularization: `[]`, λ ≥ 0.
        radius: `[]`, R > 0, the largest norm of f; infinity for no limit.
    """

    gram: Gram
    y: jax.Array
    loss: Loss
    count: jax.Array
    regularization: Any
    radius: Any

    @property
    def smoothness(self) -> Array:
        """L = sup ℓ'' ‖K‖/m + λ, the smoothness of F with fixed rows, in the kernel's space."""
        curvature = {"residual": 2.0, "margin": 0.25}[self.loss.kind]
        return curvature * self.gram.norm / self.count + self.regularization

    @property
    def diagonal(self) -> Array:
        """C = mλ/2, `[]`: with the rows S fixed and no ball, ridge is a = (K_SS + CI)⁻¹y_S."""
        return self.count * self.regularization / 2

    def objective_on(self, rows: Any, coefficients: Any, values: Any) -> Array:
        """(1/m) Σ_{i∈S} ℓ_i + ½λ‖f‖² for rows S, from coefficients a and values Ka, `[n]`."""
        losses = jnp.where(rows, self.loss(values, self.y), 0)
        squared_norm = jnp.maximum(coefficients @ values, 0)
        return jnp.sum(losses) / self.count + self.regularization * squared_norm / 2

    def gradient_on(self, rows: Any, coefficients: Any, values: Any) -> Array:
        """Coefficients `[n]` of the gradient of `objective_on` in the kernel's space.

        G = mask∘ℓ'/m + λa: the derivative along Σ_i h_i k(x_i, ·) is hᵀKG. (KG is the gradient in
        the coefficients; descent along it is worse conditioned.)
        """
        slopes = jnp.where(rows, self.loss.gradient(values, self.y), 0)
        return slopes / self.count + self.regularization * coefficients

    def selected(self, values: Any) -> tuple[jax.Array, jax.Array]:
        """The rows `[n]` with the m smallest losses, and the threshold `[]`, the largest of them.

        If a loss is NaN, the threshold is NaN: a NaN must not pass as a row that was trimmed.
        """
        losses = jnp.asarray(self.loss(values, self.y))
        rows, threshold = smallest(losses, self.count.astype(int))
        return rows, jnp.where(jnp.any(jnp.isnan(losses)), jnp.nan, threshold)


def smallest(values: jax.Array, count: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Mask `[n]` of the `count` smallest of `[n]` values ≥ 0, ties by index; the largest of them.

    Floats ≥ 0 have the same order as their bit patterns. Bisection on these takes a tenth of the
    time of sorting on a CPU, and `count` may be traced.
    """
    width = 8 * values.dtype.itemsize
    bits = jax.lax.bitcast_convert_type(values, jnp.dtype(f"uint{width}"))

    # The masks come from the loop: after it XLA may compute the values again with other rounding,
    # so that none of them equals `edge`.
    def narrow(step, carry):
        edge, below, reached = carry
        trial = edge | (jnp.ones_like(edge) << (width - 1 - step).astype(bits.dtype))
        lower = bits < trial
        few = jnp.sum(lower) < count
        return (
            jnp.where(few, trial, edge),
            jnp.where(few, lower, below),
            jnp.where(few, reached, lower),
        )

    none = jnp.zeros_like(bits, bool)
    start = jnp.zeros((), bits.dtype), none, ~none
    _, below, reached = jax.lax.fori_loop(0, width, narrow, start)
    tied = reached & ~below
    rows = below | (tied & (jnp.cumsum(tied) <= count - jnp.sum(below)))
    return rows, jnp.max(jnp.where(rows, values, 0))  # which has derivatives, as bits have not


def rows_kept(size: int, contamination: Any) -> jax.Array:
    """m = ⌈n(1 − ε)⌉, robust to the rounding of ε; clipped to 1, …, n if ε is traced."""
    share = real_numbers("contamination", contamination)
    if np.ndim(contamination) or not (share is None or 0 <= share < 0.5):
        raise ValueError(
            "contamination must be one number in [0, 0.5), got "
            f"{contamination if share is None else share}: it is the share of corrupted rows"
        )
    # Concrete shares stay in NumPy's float64: 0.1 in float32 lacks digits that ⌈·⌉ needs.
    xp, share = (jnp, contamination) if share is None else (np, share)
    guard = max(1e-9, 4 * size * float(jnp.finfo(np.result_type(share.dtype, np.float16)).eps))
    return jnp.clip(jnp.asarray(xp.ceil(size * (1 - share) - guard), int), 1, size)


def trimmed(
    loss: Loss,
    gram: Array | Gram,
    y: Array,
    *,
    contamination: ArrayLike,
    regularization: ArrayLike,
    radius: ArrayLike = jnp.inf,
) -> Problem:
    """The trimmed problem of a squared or logistic loss; arguments as in `ridge`.

    Example:
        >>> import jax.numpy as jnp
        >>> from noisy_jax.losses import squared
        >>> options = {"contamination": 0.2, "regularization": 1.0}
        >>> problem = trimmed(squared(), jnp.eye(5), jnp.ones(5), **options)
        >>> print(f"{problem.count:.0f} rows kept, safe step {1 / problem.smoothness:.2f}")
        4 rows kept, safe step 0.67
    """
    y = jnp.asarray(real_array("y", y), float)
    check_targets(y, "drop such rows first, they are not trimmed")
    if loss.kind == "margin":
        check_labels("y", y)
    gram = gram if isinstance(gram, Gram) else dense_gram(gram)
    if gram.size != y.size:
        raise ValueError(f"gram must be [{y.size}, {y.size}], as y, got a side of {gram.size}")
    count = rows_kept(y.size, contamination).astype(y.dtype)
    regularization = non_negative("regularization", regularization)
    if concrete(contamination) is None:  # NaN would count as no rows
        regularization = jnp.where(jnp.isnan(contamination), jnp.nan, regularization)
    return Problem(gram, y, loss, count, regularization, _radius(radius))


def _radius(radius):
    """R > 0; unlike elsewhere, infinity is allowed."""
    array = concrete(radius)
    if array is None and np.shape(radius) == ():
        return jnp.where(radius > 0, radius, jnp.nan)
    unlimited = array is not None and array.ndim == 0 and array == np.inf
    return radius if unlimited else positive("radius", radius)
