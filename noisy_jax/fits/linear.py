"""Linear regression on noisy features: corrected coefficients, with intervals and a verdict."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit  # SciPy comes with JAX

from noisy_jax.moments.batch import LinearMoments, linear_moments
from noisy_jax.observations import Observations
from noisy_jax.validation import instance

_FOLDS = 10
_SINGULAR = 1e-10  # smallest eigenvalue of a correlation matrix that float64 sums can tell from 0


@dataclasses.dataclass(frozen=True, eq=False)
class Coefficients:
    """A linear predictor with its uncertainty, in original units.

    Attributes:
        intercept: the constant term.
        coefficients: `[d]`.
        covariance: `[1 + d, 1 + d]`, of the intercept and the coefficients.
        degrees_of_freedom: of Student's t in intervals.
    """

    intercept: float
    coefficients: np.ndarray
    covariance: np.ndarray
    degrees_of_freedom: int

    @property
    def std_error(self) -> np.ndarray:
        """`[1 + d]` standard errors of the intercept and the coefficients."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the intervals of intercept and coefficients, `[1 + d]` each."""
        width = stdtrit(self.degrees_of_freedom, (1 + level) / 2) * self.std_error
        middle = np.append(self.intercept, self.coefficients)
        return middle - width, middle + width

    def predict(self, x: Any) -> np.ndarray:
        """Predictions `[...]` at features `[..., d]` in original units."""
        x = np.asarray(x, np.float64)
        if x.shape[-1:] != self.coefficients.shape:
            raise ValueError(
                f"x must be [..., {len(self.coefficients)}], got {list(x.shape)}: one column a "
                "feature, in the order of the fit"
            )
        return x @ self.coefficients + self.intercept


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Mean squared errors on clean data, estimated from noisy rows that the fit did not see.

    Each contains the variance of the noise in y.

    Attributes:
        corrected: of the corrected coefficients.
        corrected_std_error: its standard error.
        uncorrected: of the uncorrected coefficients.
        uncorrected_std_error: its standard error.
        difference: corrected − uncorrected, paired by row.
        difference_std_error: its standard error.
        variance: of y, for R² = 1 − error/variance.
    """

    corrected: float
    corrected_std_error: float
    uncorrected: float
    uncorrected_std_error: float
    difference: float
    difference_std_error: float
    variance: float

    def verdict(self) -> str:
        """Whether the correction helped, from the 95% interval of the difference."""
        if self.difference + 1.96 * self.difference_std_error < 0:
            return "the correction helps"
        if self.difference - 1.96 * self.difference_std_error > 0:
            return "the correction hurts"
        return "no clear difference"


@dataclasses.dataclass(frozen=True, eq=False)
class LinearFit(Coefficients):
    """A corrected linear regression; print it for the table.

    The attributes of `Coefficients` are the corrected ones.

    Attributes:
        uncorrected: ordinary least squares on the noisy rows.
        reliability: `[d]`, the share of each column's variance that is not noise.
        risk: estimated errors of both on clean data.
        names: d names of the columns.
        target: name of y.
        num_rows: n.
        gram: `[d, d]`, corrected centred moments of the columns, per row.
        cross: `[d]`, centred moments with y, per row.
        noise: `[d, d]`, mean covariance of the error that was taken away.
        means: `[1 + d]`, means of y and of the columns.
    """

    uncorrected: Coefficients
    reliability: np.ndarray
    risk: Comparison
    names: tuple[str, ...]
    target: str
    num_rows: int
    gram: np.ndarray
    cross: np.ndarray
    noise: np.ndarray
    means: np.ndarray

    def __str__(self) -> str:
        """The table: coefficients, intervals, uncorrected coefficients, reliability, verdict."""
        low, high = self.interval()
        width = max(9, *map(len, self.names))
        lines = [
            f"{self.target} on {len(self.names)} noisy features, {self.num_rows:,} rows",
            "",
            f"{'':<{width}} {'estimate':>10} {'std. error':>10} {'95% interval':>23} "
            f"{'uncorrected':>11} {'reliability':>11}",
        ]
        rows = zip(
            ("intercept", *self.names),
            np.append(self.intercept, self.coefficients),
            self.std_error,
            low,
            high,
            np.append(self.uncorrected.intercept, self.uncorrected.coefficients),
            ("", *(f"{value:.3f}" for value in self.reliability)),
            strict=True,
        )
        table = [
            f"{name:<{width}} {value:>10.4g} {error:>10.2g} "
            f"{f'[{start:.4g}, {end:.4g}]':>23} {plain:>11.4g} {share:>11}"
            for name, value, error, start, end, plain, share in rows
        ]
        if len(table) > 11:
            table = [*table[:10], f"… and {len(table) - 10} more columns"]
        risk = self.risk
        half = 1.96 * risk.difference_std_error
        return "\n".join(
            [
                *lines,
                *table,
                "",
                "Mean squared error on clean data, estimated from noisy data by cross-fitting:",
                f"corrected {risk.corrected:.4g} (R² {1 - risk.corrected / risk.variance:.3f}), "
                f"uncorrected {risk.uncorrected:.4g} (R² "
                f"{1 - risk.uncorrected / risk.variance:.3f}); difference {risk.difference:.2g} "
                f"[{risk.difference - half:.2g}, {risk.difference + half:.2g}]: {risk.verdict()}.",
                "These coefficients are for interpretation and for clean features. To predict from",
                "features that are as noisy as these, use the uncorrected fit (fit.uncorrected).",
            ]
        )

    def sensitivity(self, factors=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)) -> np.ndarray:
        """Coefficients under other assumed noise, `[len(factors), d]`.

        Row k assumes `factors[k]` times the covariance of the fit; 0 gives the uncorrected
        coefficients. Rows where the data would not identify the fit are NaN.

        Example:
            >>> import numpy as np, noisy_jax as nj
            >>> rng = np.random.default_rng(0)
            >>> x = rng.normal(size=(40_000, 1))
            >>> noisy = x + rng.normal(size=x.shape)
            >>> fit = nj.fit(nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=1.0))
            >>> print(fit.sensitivity([0.0, 1.0]).round(1))
            [[1.]
             [2.]]
        """
        plain = self.gram + self.noise
        rows = []
        for factor in factors:
            gram = plain - factor * self.noise
            sound = _smallest(gram, plain)[0] > _SINGULAR
            rows.append(np.linalg.solve(gram, self.cross) if sound else np.nan * self.cross)
        return np.array(rows)

    def save(self, path: str | Path) -> None:
        """Writes the fit as JSON; `nj.load_fit` reads it."""
        text = json.dumps(dataclasses.asdict(self), default=lambda array: array.tolist(), indent=1)
        Path(path).write_text(text + "\n", encoding="utf-8")


def load_fit(path: str | Path) -> LinearFit:
    """Reads the `LinearFit` that `LinearFit.save` wrote to a file."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        arrays = {"coefficients", "covariance", "reliability", "gram", "cross", "noise", "means"}
        parse = {name: np.asarray(values[name]) for name in arrays}
        plain = values["uncorrected"]
        plain |= {name: np.asarray(plain[name]) for name in ("coefficients", "covariance")}
        return LinearFit(
            **{
                **values,
                **parse,
                "names": tuple(values["names"]),
                "uncorrected": Coefficients(**plain),
                "risk": Comparison(**values["risk"]),
            }
        )
    except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} does not hold a fit: {error}") from None


def linear_fit(
    observations: Observations,
    *,
    weights: Any = None,
    clusters: Any = None,
) -> LinearFit:
    """See `nj.fit`."""
    instance("observations", observations, Observations, "nj.observations.from_arrays makes one")
    x, cov = observations.averaged()
    y, n, dim = observations.y, *x.shape
    weights = _weights(weights, n)
    clusters = _clusters(clusters, n)
    groups = n if clusters is None else int(clusters.max()) + 1
    if groups <= dim + 1:
        kind = "rows" if clusters is None else "clusters"
        raise ValueError(f"fit needs more than d + 1 = {dim + 1} {kind}, got {groups}")
    center, scale = x.mean(axis=0), x.std(axis=0)
    for j in np.flatnonzero(scale <= 1e-12 * np.abs(x).max(axis=0)):
        raise ValueError(f"column {observations.names[j]!r} is constant: drop it")
    y_center, y_scale = y.mean(), y.std()
    if not y_scale > 1e-12 * np.abs(y).max():
        raise ValueError(f"{observations.target!r} takes one value only, {y[0]:g}")
    x, y = (x - center) / scale, (y - y_center) / y_scale
    cov = cov / np.outer(scale, scale)

    folds = np.arange(n) % _FOLDS if clusters is None else clusters % _FOLDS
    parts = [
        linear_moments(
            x[folds == k],
            y[folds == k],
            cov if cov.ndim == 2 else cov[folds == k],
            None if weights is None else weights[folds == k],
        )
        for k in range(min(_FOLDS, groups))
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.plus(part)
    _check_identified(whole, observations.names, scale)

    uncertain = observations.cov_std_error / observations.x.shape[1] / np.outer(scale, scale)
    units = _Units(center, scale, y_center, y_scale)
    corrected = _coefficients(whole, x, y, cov, weights, clusters, uncertain, units)
    plain = _coefficients(whole, x, y, 0 * cov[:1], weights, clusters, 0 * uncertain, units, False)
    gram, cross = whole.centred()
    noisy = whole.centred(corrected=False)[0]
    rows = whole.weight
    return LinearFit(
        **vars(corrected),
        uncorrected=plain,
        reliability=np.diag(gram) / np.diag(noisy),
        risk=_risk(parts, whole, x, y, cov, weights, clusters, folds, y_scale),
        names=observations.names,
        target=observations.target,
        num_rows=n,
        gram=gram / rows * np.outer(scale, scale),
        cross=cross / rows * scale * y_scale,
        noise=(noisy - gram) / rows * np.outer(scale, scale),
        means=np.append(y_center, center),
    )


@dataclasses.dataclass(frozen=True)
class _Units:
    """Centres and scales by which the columns and y were made free of units."""

    center: np.ndarray
    scale: np.ndarray
    y_center: float
    y_scale: float


def _coefficients(
    moments: LinearMoments, x, y, cov, weights, clusters, uncertain, units, corrected=True
) -> Coefficients:
    """Solves the normal equations, with the sandwich covariance of the solution."""
    gram, cross = moments.centred(corrected=corrected)
    beta = np.linalg.solve(gram, cross)
    n, dim = x.shape
    mean, y_mean = moments.x / moments.weight, moments.y / moments.weight
    residual = y - y_mean - (x - mean) @ beta
    # The contribution ψ_i of row i to the normal equations; the mean of y comes first.
    psi = np.empty((n, 1 + dim))
    psi[:, 0] = residual
    psi[:, 1:] = (x - mean) * residual[:, None]
    if corrected:
        psi[:, 1:] += cov @ beta
    if weights is not None:
        psi *= weights[:, None]
    groups = n
    if clusters is not None:
        groups = int(clusters.max()) + 1
        sums = np.zeros((groups, 1 + dim))
        np.add.at(sums, clusters, psi)
        psi = sums
    bread = np.zeros((1 + dim, 1 + dim))
    bread[0, 0], bread[1:, 1:] = 1 / moments.weight, np.linalg.inv(gram)
    spread = psi.T @ psi * (groups / (groups - 1 - dim if clusters is None else groups - 1))
    covariance = bread @ spread @ bread
    if uncertain.any():
        # dβ = −S⁻¹ dS β with dS = −Σ w dΣ, entry by entry of the symmetric dΣ.
        for i, j in zip(*np.triu_indices(dim), strict=True):
            direction = np.zeros((dim, dim))
            direction[i, j] = direction[j, i] = 1
            move = moments.weight * bread[1:, 1:] @ direction @ beta
            covariance[1:, 1:] += uncertain[i, j] ** 2 * np.outer(move, move)
    # Back to original units: the intercept is ȳ − ⟨x̄, β⟩ at x = 0.
    to_units = np.zeros((1 + dim, 1 + dim))
    to_units[0, 0] = units.y_scale
    to_units[1:, 1:] = np.diag(units.y_scale / units.scale)
    to_units[0, 1:] = -(units.center + units.scale * mean) * units.y_scale / units.scale
    coefficients = beta * units.y_scale / units.scale
    center = units.center + units.scale * mean
    return Coefficients(
        intercept=float(units.y_center + units.y_scale * y_mean - center @ coefficients),
        coefficients=coefficients,
        covariance=to_units @ covariance @ to_units.T,
        degrees_of_freedom=groups - 1 - (dim if clusters is None else 0),
    )


def _risk(parts, whole, x, y, cov, weights, clusters, folds, y_scale) -> Comparison:
    """Estimated clean risks of both predictors, each on rows that it was not fitted to."""
    errors = np.empty((len(y), 2))
    for k, part in enumerate(parts):
        rest, here = whole.plus(part, -1.0), folds == k
        own = cov if cov.ndim == 2 else cov[here]
        for column, corrected in enumerate((True, False)):
            gram, cross = rest.centred(corrected=corrected)
            beta = np.linalg.solve(gram, cross)
            constant = (rest.y - rest.x @ beta) / rest.weight
            noise = np.einsum("...ij,i,j->...", own, beta, beta)
            errors[here, column] = (y[here] - constant - x[here] @ beta) ** 2 - noise
    errors = np.column_stack([errors, errors[:, 0] - errors[:, 1]]) * y_scale**2
    w = np.ones(len(y)) if weights is None else weights
    mean = w @ errors / w.sum()
    scores = w[:, None] * (errors - mean)
    if clusters is not None:
        sums = np.zeros((int(clusters.max()) + 1, 3))
        np.add.at(sums, clusters, scores)
        scores = sums
    groups = len(scores)
    error = np.sqrt((scores**2).sum(axis=0) * groups / (groups - 1)) / w.sum()
    variance = (whole.yy / whole.weight - (whole.y / whole.weight) ** 2) * y_scale**2
    pairs = [float(value) for pair in zip(mean, error, strict=True) for value in pair]
    return Comparison(*pairs, variance=float(variance))


def _weights(weights, n):
    if weights is None:
        return None
    weights = np.asarray(weights, np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"weights must be {n} finite numbers of at least zero, one a row")
    if not weights.any():
        raise ValueError("weights must not all be zero")
    return weights


def _clusters(clusters, n):
    if clusters is None:
        return None
    clusters = np.asarray(clusters)
    if clusters.shape != (n,):
        raise ValueError(f"clusters must be {n} labels, one a row, got {list(clusters.shape)}")
    return np.unique(clusters, return_inverse=True)[1]


def _smallest(gram, plain):
    """The smallest eigenvalue of the Gram matrix in units of the columns, and its direction."""
    size = np.sqrt(np.diag(plain))
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    return values[0], vectors[:, 0] / size


def _check_identified(moments: LinearMoments, names, scale) -> None:
    """Raises ValueError that names the column, or the direction, that noise covers."""
    gram, plain = moments.centred()[0], moments.centred(corrected=False)[0]
    for j in np.flatnonzero(np.diag(gram) <= 0):
        noise, all_ = (plain - gram)[j, j] / moments.weight, plain[j, j] / moments.weight
        raise ValueError(
            f"column {names[j]!r} is not identified: its noise variance, "
            f"{noise * scale[j] ** 2:.4g}, is not below its own variance, "
            f"{all_ * scale[j] ** 2:.4g}; drop it, measure it again, or check the noise"
        )
    value, direction = _smallest(gram, plain)
    if value <= _SINGULAR:
        direction = direction / scale
        direction /= np.abs(direction).max()
        shown = np.argsort(-np.abs(direction))[:3]
        shown = [j for j in shown if abs(direction[j]) > 0.01]
        words = " ".join(f"{direction[j]:+.2g}·{names[j]}" for j in shown)
        raise ValueError(
            f"the combination {words} is not identified: it varies no more than the noise in it; "
            "drop one of these columns, measure them again, or check the noise"
        )
