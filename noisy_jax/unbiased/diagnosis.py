"""Diagnosis of an estimated loss, from noisy data alone: does it fail, and does it pay?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from noisy_jax.noise import Noise
from noisy_jax.reports.tables import Table
from noisy_jax.unbiased.transformed import Transformed, trained
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import check_finite, number, whole
from noisy_jax.validation.objects import function, instance
from noisy_jax.validation.values import ArrayLike, collected
from noisy_jax.varying import zeros_like

_SPREAD = 4.0  # a row with more than this weighs less than 1/16 of an uncorrected one
_BLOCK = 128  # rows whose gradients are held at once
_CALLS = 16  # of `gaussian` for each row
_MOVE = 4.0  # by how many units of rounding x is moved to see the rounding of f


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Result of `diagnose` for a loss f and its estimate g; `print` shows it as a table.

    Corrected values and gradients are of g at the copies of a row, uncorrected ones of f at the
    mean of these copies. All attributes are numbers, in the units of the loss where not said.

    Attributes:
        num_rows: n, the number of rows that were judged.
        risk: the estimated risk on clean inputs: the mean of g over the rows.
        risk_std_error: standard error of `risk`.
        uncorrected: the mean of f at the means of the copies.
        bias: `uncorrected` minus `risk`: the estimated bias of training on the means of copies.
        bias_std_error: standard error of `bias`.
        next_order: the risk if `replicates` had one order more, minus `risk`. NaN for any other g.
        next_order_std_error: standard error of `next_order`.
        spread: the standard deviation of corrected gradients of single rows, divided by that of
            uncorrected gradients.
        effective_rows: (Σ‖G_i‖)²/Σ‖G_i‖² for corrected gradients G_i of single rows: n if all have
            the same norm, 1 if one of them outweighs the rest.
        pays_from: the number of rows from which the mean of corrected gradients has a smaller mean
            squared error than the mean of uncorrected gradients: 0 if corrected gradients spread no
            more; else infinite if no bias is seen.
        verdict: one of "exploited": the model was trained to where the estimated risk is far below
            the true one; "heavy tails": corrected gradients of rows spread far more than
            uncorrected gradients, or few rows decide their mean; "average": the rows are too few
            for a correction to pay; "correct": the correction works. `recommendation` says what to
            do.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> loss = lambda w, x, y: (x @ w - y) ** 2
        >>> x = jax.random.normal(jax.random.key(0), (1000, 2))
        >>> copies = x[:, None] + 0.5 * jax.random.normal(jax.random.key(1), (1000, 2, 2))
        >>> g, w = nj.unbiased.replicates(loss, argnum=1), jnp.array([1.0, 2.0])
        >>> result = nj.unbiased.diagnose(g, loss, w, (copies, x @ w), jax.random.key(2))
        >>> print(result.verdict, result.recommendation)
        correct the correction works: keep it
    """

    num_rows: int
    risk: float
    risk_std_error: float
    uncorrected: float
    bias: float
    bias_std_error: float
    next_order: float
    next_order_std_error: float
    spread: float
    effective_rows: float
    pays_from: float
    verdict: str

    @property
    def recommendation(self) -> str:
        """One sentence that says what to do, by `verdict`."""
        return {
            "exploited": (
                "the correction is exploited: more copies, a higher order, or multilevel"
            ),
            "heavy tails": (
                "the estimates have heavy tails: average more copies, or use multilevel"
            ),
            "average": (
                "too few rows for a correction: train on the mean of the copies, "
                f"or on more than {self.pays_from:,.0f} rows"
            ),
            "correct": "the correction works: keep it",
        }[self.verdict]

    def __str__(self) -> str:
        """A table of the numbers, and the recommendation."""
        raised_error = self.next_order_std_error
        lines = [
            ("estimated risk", f"{self.risk:.4g}", f"± {self.risk_std_error:.2g}"),
            ("without correction", f"{self.uncorrected:.4g}", ""),
            ("bias of averaging", f"{self.bias:.4g}", f"± {self.bias_std_error:.2g}"),
            ("change by one order more", f"{self.next_order:.4g}", f"± {raised_error:.2g}"),
            ("spread of gradients", f"{self.spread:.3g}", "times the uncorrected"),
            ("effective rows", f"{self.effective_rows:,.0f}", f"of {self.num_rows:,}"),
            ("correcting pays from", f"{self.pays_from:,.0f}", "rows"),
        ]
        rows = [dict(zip("abc", line, strict=True)) for line in lines if line[1] != "nan"]
        table = Table(rows, [("", "{a}"), ("", "{b}"), ("", "{c}")])
        return f"{table}\n\n{self.recommendation[0].upper()}{self.recommendation[1:]}."


@np.errstate(divide="ignore", invalid="ignore")  # of estimates that overflow
def diagnose(
    g: Transformed,
    f: Callable[..., Any],
    params: Any,
    rows: Sequence[Any],
    key: jax.Array,
    *,
    num_rows: int | None = None,
    least: ArrayLike = 0.0,
) -> Diagnosis:
    """Tells from noisy rows alone whether the correction of a loss works, and whether it pays.

    It compares g, the estimate of the loss f of a clean input from noisy copies of it, with f at
    the means of the copies: their values and their gradients in the parameters, row by row. The
    verdict is the first of these that holds:

    - "exploited": the mean of `replicates` is only close to a risk, and the model was trained to
      where it is not. The estimated risk is more than 3 standard errors below `least`. Or one order
      of correction more raises it, by more than 3 standard errors and by more than half of its
      height above `least` (or of its standard error, if this is larger).
    - "heavy tails": corrected gradients of single rows spread more than four times as much as
      uncorrected gradients. For `pair` and `gaussian`, whose tails may be larger than the rows at
      hand show, more than twice is enough where fewer than a third of the rows are effective
      (`Diagnosis.effective_rows`).
    - "average": fewer than `pays_from` rows are trained on. The mean of n corrected gradients has
      the variance v_g/n; the mean of n uncorrected gradients has the variance v_f/n and the bias b.
      So correcting pays if n > (v_g − v_f)/‖b‖², where ‖b‖² is estimated by the squared norm of
      their mean difference, minus the part that its variance adds.
    - "correct": the correction works and pays.

    Call it early in training, outside `jit`, and on rows that were not trained on. Differences
    below the rounding of f count as zero. As training averages the points that `gaussian` draws
    anew in each step, its estimates here are means of 16 calls.

    Args:
        g: the estimate of f, from `multilevel`, `pair`, `gaussian` or `replicates`.
        f: the loss of one row, `f(params, …) -> []`, the function that g estimates.
        params: the first argument of f, any pytree; gradients are in its arrays of floating point.
        rows: the other arguments of g, such as `(copies [n, V, *x.shape], y [n])`, with a leading
            axis of n ≥ 2 rows in each array.
        key: a key of `jax.random.key`, for the random choices of g.
        num_rows: number of rows that are trained on, with which `pays_from` is compared; n by
            default.
        least: the least value that f can take; 0 by default.

    Returns:
        A `Diagnosis`: print it; `recommendation` says in words what to do.

    Raises:
        ValueError: the shapes of `rows` do not match, a number is not finite, f returns more than
            one number, or it is called under `jit` or `vmap`.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> loss = lambda w, x, y: (x @ w - y) ** 2
        >>> keys = jax.random.split(jax.random.key(0), 3)
        >>> x = jax.random.normal(keys[0], (1000, 2))
        >>> copies = x[:, None] + 0.5 * jax.random.normal(keys[1], (1000, 2, 2))
        >>> g, w = nj.unbiased.replicates(loss, argnum=1), jnp.array([1.0, 2.0])
        >>> result = nj.unbiased.diagnose(g, loss, w, (copies, x @ w), keys[2])
        >>> result.verdict, result.bias > 3 * result.bias_std_error, result.pays_from < 100
        ('correct', True, True)
        >>> print(result.recommendation)
        the correction works: keep it
    """
    g = instance("g", g, Transformed, "nj.unbiased.replicates(f, argnum=1) makes one")
    key, rows = parsed_key(key), collected(rows)
    function("f", f, "of one clean input, such as a loss")
    if not isinstance(rows, tuple | list):
        raise ValueError(f"rows must be a tuple of arrays such as (copies, y), got {given(rows)}")
    if not rows:
        raise ValueError("rows must be a tuple of arrays such as (copies, y), got an empty one")
    place = g.place(1 + len(rows))
    if place == 0:
        raise ValueError("params must be the first argument of f, and x another: set argnum in g")
    shapes = [list(jnp.shape(leaf)) for leaf in jax.tree.leaves(rows)]
    count = shapes[0][0] if all(shapes) and shapes else 0
    if count < 2 or any(shape[0] != count for shape in shapes):
        raise ValueError(
            "rows must be arrays with the same number n >= 2 of rows along their first axis, "
            f"got {shapes}"
        )
    keys = jax.random.split(key, count)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((params, rows, keys, least))):
        raise ValueError("diagnose reads numbers, and returns words: call it outside jit and vmap")
    params, whole_of = trained(params)
    if not jax.tree.leaves(params):
        raise ValueError("params must have at least one array of floating point")
    for leaf in jax.tree.leaves(params):
        check_finite("params", leaf)
    least = float(number("least", least))
    trained_on = count if num_rows is None else whole("num_rows", num_rows)

    def of_row(row, key):
        """Values and gradients of a row: corrected, not corrected, and of one order more."""
        args = [whole_of(params), *row]
        used = jax.tree.map(lambda leaf: g.mean_of_used(jnp.asarray(leaf), key), args[place])
        plain = [*args[:place], used, *args[place + 1 :]]
        values = jax.eval_shape(lambda: f(*plain))
        if not isinstance(values, jax.ShapeDtypeStruct) or values.shape:
            raise ValueError(f"f must return one number for a row, got {given(values)}")
        call_keys = jax.random.split(key, _CALLS) if isinstance(g.noise, Noise) else key[None]

        def estimate(params):
            args = [whole_of(params), *row]
            return jax.vmap(lambda key: g(*args, key=key if g.draws else None))(call_keys).mean()

        corrected, slope = jax.value_and_grad(estimate)(params)
        average, plain_slope = jax.value_and_grad(lambda p: f(whole_of(p), *plain[1:]))(params)
        further = g.next_order(*args) if g.next_order else jnp.nan
        eps = max(float(jnp.finfo(leaf.dtype).eps) for leaf in jax.tree.leaves(used))
        plain[place] = jax.tree.map(lambda leaf: leaf * (1 + _MOVE * eps), used)
        rounding = abs(f(*plain) - average) + eps * abs(average)
        return (corrected, average, further, rounding), (slope, plain_slope)

    values, squares, (mean_corrected, mean_plain) = _sums(of_row, rows, keys, count)
    corrected, average, further, rounding = values
    if not np.isfinite(corrected + average).all():
        of_rows = jax.vmap(g.mean_of_used)
        used = jax.tree.map(lambda leaf: of_rows(jnp.asarray(leaf), keys), rows[place - 1])
        _check_finite(rows, place - 1, used)
    further = further - corrected
    difference = jax.tree.map(jnp.subtract, mean_plain, mean_corrected)
    # Σ‖G − mean‖²/(n − 1) of corrected and uncorrected gradients, and of their difference.
    spread_corrected, spread_plain, spread_difference = (
        max(square.sum() - count * _square(mean), 0.0) / (count - 1)
        for square, mean in zip(squares, (mean_corrected, mean_plain, difference), strict=True)
    )
    bias_squared = _square(difference) - spread_difference / count
    added = spread_corrected - spread_plain
    norms = np.sqrt(squares[0])
    risk, risk_error = _mean(corrected)
    raised, raised_error = _mean(further)
    spread = np.sqrt(spread_corrected / spread_plain) if spread_corrected else 0.0
    effective = norms.sum() ** 2 / squares[0].sum() if norms.any() else count
    heavy = not spread <= _SPREAD  # also NaN
    if g.noise is not None:  # at complex points
        heavy |= spread > _SPREAD / 2 and effective < count / 3
    pays_from = 0.0 if added <= 0 else added / bias_squared if bias_squared > 0 else np.inf
    floor, above = np.nan_to_num(rounding.mean(), posinf=0.0), risk - least
    exploited = above < -max(3 * risk_error, floor)
    exploited |= raised > max(3 * raised_error, max(above, risk_error) / 2, floor)
    if exploited:
        verdict = "exploited"
    elif heavy:
        verdict = "heavy tails"
    else:
        verdict = "average" if pays_from > trained_on else "correct"
    bias, bias_error = _mean(average - corrected)
    return Diagnosis(
        num_rows=count,
        risk=risk,
        risk_std_error=risk_error,
        uncorrected=_mean(average)[0],
        bias=bias,
        bias_std_error=bias_error,
        next_order=raised,
        next_order_std_error=raised_error,
        spread=float(spread),
        effective_rows=float(effective),
        pays_from=float(pays_from),
        verdict=verdict,
    )


def _check_finite(rows: Sequence[Any], i: int, used: jax.Array) -> None:
    """Raises ValueError for NaN or infinity, but in copies that are not used."""
    for leaf in jax.tree.leaves(used):
        check_finite(f"the mean of the copies in rows[{i}]", leaf)
    for path, leaf in jax.tree_util.tree_leaves_with_path([*rows[:i], None, *rows[i + 1 :]]):
        if jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            check_finite(f"rows{jax.tree_util.keystr(path)}", leaf)


def _sums(of_row: Callable[..., Any], rows: Any, keys: Any, count: int) -> tuple[Any, ...]:
    """Values of all rows, squared norms of their gradients, and mean gradients.

    The gradients of a block of rows are held at once; the last block is filled up with the first
    row, whose weight there is 0.
    """
    blocks = -(-count // _BLOCK)
    index = np.arange(blocks * _BLOCK).reshape(blocks, _BLOCK)
    weights = (index < count).astype(np.float32)
    index = np.where(index < count, index, 0)

    def block(total, part):
        index, weights = part
        row = jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], rows)
        values, (slope, plain) = jax.vmap(of_row)(row, keys[index])
        difference = jax.tree.map(jnp.subtract, plain, slope)
        squares = [_row_squares(gradient) for gradient in (slope, plain, difference)]
        sums = jax.tree.map(
            lambda leaf: jnp.tensordot(weights.astype(leaf.dtype), leaf, axes=1), (slope, plain)
        )
        return jax.tree.map(jnp.add, total, sums), (values, squares)

    @jax.jit
    def run(zero):
        return jax.lax.scan(block, zero, (index, weights))

    first = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], rows)
    _, gradients = jax.eval_shape(of_row, first, keys[0])
    total, per_row = run(zeros_like(gradients))
    values, squares = jax.tree.map(
        lambda leaf: np.asarray(leaf, np.float64).reshape(-1)[:count], per_row
    )
    means = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64) / count, total)
    return values, squares, means


def _row_squares(tree: Any) -> jax.Array:
    """‖·‖² of each row, `[B]`."""
    leaves = [leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(tree)]
    return sum((jnp.sum(leaf**2, axis=1) for leaf in leaves), jnp.zeros(()))


def _square(tree: Any) -> float:
    return float(sum(np.sum(np.asarray(leaf, np.float64) ** 2) for leaf in jax.tree.leaves(tree)))


def _mean(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error."""
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)
