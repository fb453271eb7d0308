"""Errors of regressions on corrupted tables: kinds of tables, adversaries, and fits to them.

Letters: E shares, n rows, q test points, M methods. If an adversary changes labels only, all fits
of a table share its Gram matrix, and one matrix product serves them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg

from contamination_adversaries import far_covariate, flip, gross, hugging, region
from noisy_jax.base import Stream
from noisy_jax.kernels import Kernel, gaussian, polynomial
from noisy_jax.robust import contaminations, subquantile
from noisy_jax.robust.contaminations import Contaminated
from noisy_jax.robust.regressors import huber_ridge, kernel_ridge
from noisy_jax.robust.subquantile.problem import rows_kept
from noisy_jax.validation.values import ArrayLike

ADVERSARIES = (
    *("gross", "one-sided", "shift", "small shift", "hugging", "adaptive", "flip", "region"),
    *("covariate", "far covariate"),
)
TOLD = 0.2
"""True share where the trimmed fit is told others."""

METHODS = ("ridge", "huber", "subquantile", "zero start", "oracle")
"""Kernel regressors: the trimmed fit from the best of its starts, and from zero alone; the oracle
is ridge on the rows that are not corrupted."""

SYNTHETIC_LENGTH_SCALE = 0.5
"""ℓ of the kernel for the synthetic tables."""

_LOOKS = 3  # of the adaptive adversary
_ITERATIONS, _TOLERANCE = 100, 1e-3  # of the trimmed fits: far below the errors that are compared


class Split(NamedTuple):
    """Rows to fit and rows to test on, all clean."""

    x: jax.Array  # [n, d]
    y: jax.Array  # [n]
    target: jax.Array  # [n], y without noise, or the best guess of it
    test_x: jax.Array  # [q, d]
    test_y: jax.Array  # [q]


class Setting(NamedTuple):
    """Tables of one kind, and how they are fitted.

    Attributes:
        draw: `key -> Split`.
        kernel: of all methods.
        alpha: weight of ‖f‖² beside Σ_i (f(x_i) − y_i)², of all methods, as in scikit-learn's
            `KernelRidge`: a fit of m rows has the regularization λ = 2 alpha/m.
    """

    draw: Callable[[jax.Array], Split]
    kernel: Kernel
    alpha: float


class Scores(NamedTuple):
    """Errors of fits to contaminated tables, and how well they find the corrupted rows.

    Attributes:
        error: `[..., M]`, root mean squared error on the clean test rows.
        precision: share of the kept rows that are honest, for the trimmed fit or for each method.
        recall: share of the honest rows that are kept, for the same.
    """

    error: jax.Array
    precision: jax.Array
    recall: jax.Array


def synthetic(rows: int = 500) -> Setting:
    """y = sin 2x + 0.3x + N(0, 0.1²), x ~ U[−3, 3], by k(x, z) = exp(−2(x − z)²), weight 0.3."""

    def function(x):
        return jnp.sin(2 * x[:, 0]) + 0.3 * x[:, 0]

    def draw(key):
        x_key, y_key = jax.random.split(key)
        x = 3 * jax.random.uniform(x_key, (rows, 1), minval=-1)
        grid = jnp.linspace(-3, 3, 301)[:, None]
        y = function(x) + 0.1 * jax.random.normal(y_key, (rows,))
        return Split(x, y, function(x), grid, function(grid))

    return Setting(draw, gaussian(length_scale=SYNTHETIC_LENGTH_SCALE), 0.3)


def linear(rows: int = 100, dim: int = 3) -> Setting:
    """y = ⟨w, x⟩ + N(0, 0.1²), x ~ N(0, I), w = (1, −1, 1, …)/√d, by k(x, z) = ⟨x, z⟩ + 1."""
    weights = jnp.where(jnp.arange(dim) % 2 == 0, 1, -1) / dim**0.5

    def draw(key):
        x_key, y_key, test_key = jax.random.split(key, 3)
        x, test_x = jax.random.normal(x_key, (rows, dim)), jax.random.normal(test_key, (200, dim))
        y = x @ weights + 0.1 * jax.random.normal(y_key, (rows,))
        return Split(x, y, x @ weights, test_x, test_x @ weights)

    return Setting(draw, polynomial(degree=1), 0.1)


def real(stream: Stream, length_scale: float, alpha: float) -> Setting:
    """Two thirds of a table, at random, to fit; the others, with their noise, to test on.

    Features and target are scaled to unit standard deviation. The target without noise is taken to
    be what ridge predicts from clean rows.
    """
    x, y = stream.x / jnp.maximum(stream.x.std(axis=0), 1e-6)[None], stream.y / stream.y.std()
    rows = 2 * len(y) // 3
    kernel = gaussian(length_scale=length_scale)

    def draw(key):
        order = jax.random.permutation(key, len(y))
        fitted, tested = order[:rows], order[rows:]
        gram = kernel(x[fitted], x[fitted])
        target = gram @ kernel_ridge(gram, y[fitted], regularization=2 * alpha / rows)
        return Split(x[fitted], y[fitted], target, x[tested], y[tested])

    return Setting(draw, kernel, alpha)


class Contaminations(NamedTuple):
    """One table under every adversary, by name, with leaves `[E, …]`."""

    table: Split  # the clean one
    relabelled: Mapping[str, Contaminated]  # by the adversaries who leave instances as they are
    moved: Mapping[str, Contaminated]  # by those who do not


def contaminated(setting: Setting, shares: jax.Array, key: jax.Array) -> Contaminations:
    """A table, corrupted by each adversary in each of the shares `[E]`."""
    table_key, key = jax.random.split(key)
    table = setting.draw(table_key)

    def each(by_name):
        return {
            name: jax.lax.map(partial(corrupt, key, table.x, table.y), shares)
            for name, corrupt in by_name.items()
        }

    return Contaminations(table, each(relabelling(setting, table)), each(_MOVING))


@jax.default_matmul_precision("highest")
def by_adversary(setting: Setting, shares: jax.Array, key: jax.Array) -> Mapping[str, Scores]:
    """Scores of one table under each adversary; under "told", of gross corruption.

    The trimmed fit knows the share, but for "told", where it is told the shares and TOLD is true.

    Returns:
        By adversary, `error [E, M]` by `METHODS`, `precision [E]` and `recall [E]`.
    """
    table, relabelled, moved = contaminated(setting, shares, key)
    gram, test_gram = setting.kernel(table.x, table.x), setting.kernel(table.test_x, table.x)
    score = partial(_scores, setting, table, gram, test_gram)

    # Not `vmap`: each fit stops at its own number of iterations.
    def one_by_one(score, stacked):
        of_shares = partial(jax.lax.map, lambda pair: score(*pair))
        return jax.lax.map(lambda made: of_shares((made, shares)), stacked)

    by_label = one_by_one(score, _stacked(relabelled))

    def score_moved(made, share):
        gram, test_gram = setting.kernel(made.x, made.x), setting.kernel(table.test_x, made.x)
        return _scores(setting, table, gram, test_gram, made, share)

    by_mover = one_by_one(score_moved, _stacked(moved))
    return _unstacked(by_label, relabelled) | _unstacked(by_mover, moved)


def relabelling(setting: Setting, table: Split) -> Mapping[str, Callable[..., Contaminated]]:
    """`(key, x, y, share) -> Contaminated` by name, of those who leave instances as they are."""
    target = table.target

    def adaptive(key, x, y, share):
        gram = setting.kernel(x, x)

        def look(predictions):
            return contaminations.adaptive(key, x, y, share, predictions=predictions)

        def fitted(_, predictions):
            return trimmed(setting, gram, look(predictions).y, share).predict(gram)

        return look(jax.lax.fori_loop(1, _LOOKS, fitted, target))

    return {
        "gross": gross,
        "one-sided": contaminations.one_sided,
        "shift": partial(contaminations.shift, target=target),
        "small shift": partial(contaminations.shift, target=target, size=0.5),
        "hugging": partial(hugging, target=target),
        "adaptive": adaptive,
        "flip": partial(flip, target=target),
        "region": partial(region, target=target),
        "told": lambda key, x, y, share: gross(key, x, y, TOLD),
    }


_MOVING = {"covariate": contaminations.covariate, "far covariate": far_covariate}


def _stacked(by_name):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *by_name.values())


def _unstacked(stacked, names):
    return {name: jax.tree.map(lambda leaf: leaf[i], stacked) for i, name in enumerate(names)}  # noqa: B023


def _scores(setting, table, gram, test_gram, made: Contaminated, share) -> Scores:
    honest, everything = ~made.corrupted, jnp.ones_like(made.corrupted)
    alpha = setting.alpha
    fit = trimmed(setting, gram, made.y, share)
    coefficients = jnp.stack(
        [
            ridge_on(everything, gram, made.y, alpha),
            huber_ridge(gram, made.y, regularization=2 * alpha / made.y.size),
            fit.coefficients,
            trimmed(setting, gram, made.y, share, start="zero").coefficients,
            ridge_on(honest, gram, made.y, alpha),
        ]
    )
    return judged(coefficients, test_gram, table, fit.kept, honest)


def judged(
    coefficients: jax.Array, test_gram: jax.Array, table: Split, kept: jax.Array, honest: jax.Array
) -> Scores:
    """Scores of coefficients `[M, n]`, with the Gram matrix `[q, n]` of test rows.

    `kept` is `[n]` or `[M, n]`, `honest` broadcasts against it.
    """
    misses = coefficients @ test_gram.T - table.test_y[None]
    both = jnp.sum(kept & honest, axis=-1)
    return Scores(
        jnp.sqrt(jnp.mean(misses**2, axis=1)), both / kept.sum(axis=-1), both / honest.sum(axis=-1)
    )


def trimmed(
    setting: Setting,
    gram: jax.Array,
    y: jax.Array,
    share: ArrayLike,
    start: Literal["best", "zero"] = "best",
) -> subquantile.Fit:
    """The trimmed fit that is told a share of corrupted rows."""
    return subquantile.ridge(
        gram,
        y,
        contamination=share,
        regularization=2 * setting.alpha / rows_kept(y.size, share),
        start=start,
        iterations=_ITERATIONS,
        tolerance=_TOLERANCE,
    )


@jax.default_matmul_precision("highest")
def ridge_on(rows: jax.Array, gram: jax.Array, y: jax.Array, alpha: ArrayLike) -> jax.Array:
    """Coefficients of `kernel_ridge` of some rows, by products, which fits can share, to 1e-5."""

    def regularized(a):
        return jnp.where(rows, gram @ a + alpha * a, 0)

    return cg(regularized, jnp.where(rows, y, 0), tol=1e-5, maxiter=_ITERATIONS)[0]
