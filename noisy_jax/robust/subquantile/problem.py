"""The trimmed problem: its objective, and which rows it keeps.

    F(f) = min_{|S| = m} (Σ_{i∈S} ℓ(f(x_i), y_i) + C‖f‖²)/m,   ‖f‖ ≤ R,   m = ⌈n(1 − ε)⌉

The minimising S holds the m smallest losses, ties broken by index. With t the largest loss kept,
the (1 − ε)-quantile, F(f) − C‖f‖²/m = max_t g(t) of

    g(t) = t − (1/m) Σ_i (t − ℓ_i)⁺.

Source: Subquantile Minimization for Kernel Learning, Sec. 3 and Lemmas 3 and 4. As printed, g lacks
the weight 1/m: its maximum is then the smallest loss alone, and one point would be fitted. C is in
the scale of Algorithm 1 and Section C; the loss printed per row, ℓ_i + C‖f‖², has C/m for it.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.losses import Loss
from noisy_jax.losses import logistic as logistic_loss
from noisy_jax.losses import squared as squared_loss
from noisy_jax.robust.subquantile.gram import Gram, dense_gram
from noisy_jax.validation import (
    check_labels,
    check_non_negative,
    check_one_number,
    check_radius,
    check_targets,
    concrete,
)


class Problem(NamedTuple):
    """A trimmed problem, as `step` takes it; under `jax.jit` make or close over it, no argument.

    Attributes:
        gram: K of the n rows.
        y: `[n]` targets.
        loss: ℓ, convex and not negative.
        curvature: a bound on ∂²ℓ/∂p².
        kept: `[]`, m, how many rows are kept.
        regularization: `[]`, C ≥ 0.
        radius: `[]`, R > 0, infinite for no ball.
    """

    gram: Gram
    y: chex.Array
    loss: Loss
    curvature: float
    kept: chex.Array
    regularization: chex.Numeric
    radius: chex.Numeric

    @property
    def smoothness(self) -> chex.Array:
        """L = (curvature ‖K‖ + 2C)/m of F with fixed rows, in the kernel's space; 1/L is a step."""
        return (self.curvature * self.gram.norm + 2 * self.regularization) / self.kept

    @property
    def convexity(self) -> chex.Array:
        """μ = 2C/m, the strong convexity of F with fixed rows."""
        return 2 * self.regularization / self.kept

    def objective_on(self, rows, coefficients, values) -> chex.Array:
        """(Σ_{i∈S} ℓ_i + C‖f‖²)/m for given rows S, from coefficients a and values Ka, `[n]`."""
        losses = jnp.where(rows, self.loss(values, self.y), 0)
        squared_norm = jnp.maximum(coefficients @ values, 0)
        return (jnp.sum(losses) + self.regularization * squared_norm) / self.kept

    def gradient_on(self, rows, coefficients, values) -> chex.Array:
        """Coefficients `[n]` of the gradient of `objective_on` in the kernel's space.

        G = (mask∘ℓ' + 2Ca)/m: the derivative along Σ_i h_i k(x_i, ·) is hᵀKG. (KG is the gradient
        in the coefficients; descent along it is worse conditioned.)
        """
        slopes = jnp.where(rows, self.loss.gradient(values, self.y), 0)
        return (slopes + 2 * self.regularization * coefficients) / self.kept

    def selected(self, values) -> tuple[chex.Array, chex.Array]:
        """The rows `[n]` with the m smallest losses, and the threshold `[]`, the largest of them.

        A loss that is NaN makes the threshold NaN: no row is trimmed for being NaN.
        """
        losses = self.loss(values, self.y)
        rows, threshold = smallest(losses, self.kept)
        return rows, jnp.where(jnp.any(jnp.isnan(losses)), jnp.nan, threshold)


def smallest(values: chex.Array, count: chex.Numeric) -> tuple[chex.Array, chex.Array]:
    """Which of `[n]` values ≥ 0 are the `count` smallest, ties by index, and the largest of them.

    The bit patterns of such floats are in their order: bisection on them is ten times faster than
    sorting on a CPU, and `count` may be traced.
    """
    width = 8 * values.dtype.itemsize
    bits = jax.lax.bitcast_convert_type(values, jnp.dtype(f"uint{width}"))
    one = jnp.ones((), bits.dtype)

    # Masks come from the loop: XLA may compute the values after it once more, rounded differently,
    # and `found` would equal none of them.
    def narrow(step, carry):
        found, below, reached = carry
        trial = found | (one << (width - 1 - step).astype(bits.dtype))
        lower = bits < trial
        few = jnp.sum(lower) < count
        return (
            jnp.where(few, trial, found),
            jnp.where(few, lower, below),
            jnp.where(few, reached, lower),
        )

    none = jnp.zeros_like(bits, bool)
    start = jnp.zeros((), bits.dtype), none, ~none
    found, below, reached = jax.lax.fori_loop(0, width, narrow, start)
    tied = reached & ~below
    rows = below | (tied & (jnp.cumsum(tied) <= count - jnp.sum(below)))
    return rows, jax.lax.bitcast_convert_type(found, values.dtype)


def rows_kept(size: int, contamination: chex.Numeric) -> chex.Array:
    """m = ⌈n(1 − ε)⌉, guarded against the rounding of ε; within 1 to n where ε is traced.

    Raises:
        ValueError: ε outside [0, ½).
    """
    share = concrete(contamination)
    number = share is None or jnp.issubdtype(share.dtype, jnp.number)
    if np.ndim(contamination) or not number or not (share is None or 0 <= share < 0.5):
        raise ValueError(
            f"contamination must be one number in [0, 0.5), got {contamination}: it is the share "
            "of rows that may be corrupted, and with half of them nothing tells which half is right"
        )
    # Concrete shares are counted by NumPy: 0.1 in float32 has lost the digits that ⌈·⌉ asks for.
    xp, share = (jnp, contamination) if share is None else (np, share)
    guard = max(1e-9, 4 * size * float(jnp.finfo(np.result_type(share.dtype, np.float16)).eps))
    return jnp.clip(jnp.asarray(xp.ceil(size * (1 - share) - guard), int), 1, size)


def ridge_problem(
    gram: chex.Array | Gram,
    y: chex.Array,
    *,
    contamination: chex.Numeric,
    regularization: chex.Numeric,
    radius: chex.Numeric = jnp.inf,
) -> Problem:
    """The trimmed problem of squared losses (f(x_i) − y_i)²; arguments as in `ridge`.

    Example:
        >>> import jax.numpy as jnp
        >>> problem = ridge_problem(
        ...     jnp.eye(5), jnp.ones(5), contamination=0.2, regularization=1.0)
        >>> print(problem.kept)
        4
    """
    gram, y = _checked(gram, y)
    return _problem(gram, y, squared_loss(), 2.0, contamination, regularization, radius)


def logistic_problem(
    gram: chex.Array | Gram,
    y: chex.Array,
    *,
    contamination: chex.Numeric,
    regularization: chex.Numeric = 0.0,
    radius: chex.Numeric = jnp.inf,
) -> Problem:
    """The trimmed problem of logistic losses log(1 + e^(−y f(x))); arguments as in `logistic`.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic_problem(jnp.eye(5), jnp.ones(5), contamination=0.2, radius=1.0).loss
        logistic()
    """
    gram, y = _checked(gram, y)
    check_labels("y", y)
    weight, ball = concrete(regularization), concrete(radius)
    if weight is not None and ball is not None and np.any((weight == 0) & (ball == np.inf)):
        raise ValueError(
            "regularization or radius must bound the classifier, got regularization 0 and radius "
            "inf: where the rows kept are separable, ‖f‖ grows without end"
        )
    return _problem(gram, y, logistic_loss(), 0.25, contamination, regularization, radius)


def _checked(gram, y) -> tuple[Gram, chex.Array]:
    y = jnp.asarray(y, float)
    check_targets(y, ": drop such rows first, they are not trimmed")
    gram = gram if isinstance(gram, Gram) else dense_gram(gram)
    if gram.size != y.size:
        raise ValueError(f"gram must be [{y.size}, {y.size}], as y, got a side of {gram.size}")
    return gram, y


def _problem(gram, y, loss, curvature, contamination, regularization, radius) -> Problem:
    check_one_number("regularization", regularization)
    check_non_negative("regularization", regularization, "C, the weight of ‖f‖²")
    if np.ndim(radius) or concrete(radius) is None or concrete(radius) != np.inf:
        check_radius(radius)
    return Problem(
        gram,
        y,
        loss,
        curvature,
        rows_kept(y.size, contamination),
        regularization,
        radius,
    )
