"""What a fit becomes if the noise is smaller or larger than stated."""

import dataclasses
import textwrap
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from noisy_jax.intervals import LEVEL
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.coefficients import Coefficients, Corrected
from noisy_jax.observed.fits.fit import fit
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.model_fit import ModelFit
from noisy_jax.observed.observations import Observations
from noisy_jax.tables import Summarized, Table
from noisy_jax.validation import instance, non_negative


@dataclasses.dataclass(frozen=True, eq=False)
class Sensitivity(Summarized):
    """Fits under multiples of the noise; print it for the table.

    Attributes:
        multiples: K of them, in ascending order.
        fits: the fit for each multiple, `None` where there is none.
        reasons: why there is no fit, or what the fit warned of; "" if neither.
        names: d names of the columns, or of the parameters of a model.
        title: what was fitted.
    """

    multiples: tuple[float, ...]
    fits: tuple[Coefficients | ModelFit | None, ...]
    reasons: tuple[str, ...]
    names: tuple[str, ...]
    title: str

    @property
    def shares(self) -> np.ndarray:
        """`[K]`, how much of the noise each fit takes away (`fit.share`); NaN without a fit."""
        return np.array([getattr(one, "share", 1.0) if one else np.nan for one in self.fits])

    def paths(self, level: float = LEVEL) -> np.ndarray:
        """Coefficients, and lower and upper ends of their intervals, `[3, K, d]`."""
        nothing = 3 * [np.full(len(self.names), np.nan)]
        found = [[one.coefficients, *one.interval(level)] if one else nothing for one in self.fits]
        return np.array(found).swapaxes(0, 1)

    def summary(self, *, level: float = LEVEL) -> Table:
        """A row for each column of the fit and each multiple; the intervals have this level.

        Of more than 10 columns the first 9 are printed.
        """
        rows: list[dict[str, Any]] = [
            dict(zip(_ROW, (name, multiple, share, *numbers), strict=True))
            for name, path in zip(self.names, np.moveaxis(self.paths(level), 2, 0), strict=True)
            for multiple, share, numbers in zip(
                self.multiples, self.shares.tolist(), path.T.tolist(), strict=True
            )
        ]
        columns = [
            ("", lambda row: row["name"] if row["multiple"] == self.multiples[0] else ""),
            ("noise ×", "{multiple:g}"),
            ("estimate", _or_none("{estimate:.4g}")),
            (f"{100 * level:g}% interval", _or_none("[{low:.4g}, {high:.4g}]")),
        ]
        if np.any(self.shares < 1):
            columns.append(("share taken", _or_none("{share:.2f}")))
        many = len(self.names) > 10
        shown = rows[: 9 * len(self.multiples)] if many else rows
        hidden = [f"… and {len(self.names) - 9} more columns"] if many else []
        return Table(rows, columns, self.title, shown, "\n".join([*hidden, *self._notes()]))

    def _notes(self) -> list[str]:
        """The reasons, each with its multiples; of fits that there are not only the first."""
        found: dict[str, list[str]] = {}
        said = {}
        for multiple, one, reason in zip(self.multiples, self.fits, self.reasons, strict=True):
            if reason:
                kind = reason if one else ""
                said.setdefault(kind, reason)
                found.setdefault(kind, []).append(f"{multiple:g}")
        lines = [f"At {', '.join(at)}: {said[kind]}." for kind, at in found.items()]
        if np.any(self.shares < 1):
            lines.append(
                "Where the share is below 1, less than that multiple of the noise is taken away: "
                "do not rely on these intervals."
            )
        return [textwrap.fill(line, 88) for line in lines]


_ROW = "name", "multiple", "share", "estimate", "low", "high"


def sensitivity(
    observations: Observations,
    method: Any = None,
    *,
    multiples: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0),
) -> Sensitivity:
    """`nj.fit` again under multiples of the noise, with intervals.

    The variance of a measurement error is rarely known well. If a conclusion holds at all multiples
    of it that are possible, it does not depend on what was stated. At 0 is the uncorrected fit, at
    1 the fit itself. At m the covariance of the noise, its standard errors and `cross_cov` are
    multiplied by m. Replicates are moved away from their row's mean, or towards it, by √m.

    There is no fit at multiples for which the corrected moments of the columns are not positive
    definite, or the equations of a model have no root. At somewhat smaller multiples a fit takes
    away only a share of the noise (see `nj.methods`); they are marked.

    Args:
        observations: one noisy table, whose noise does not depend on the values.
        method: `nj.methods.Linear(…)`, the default, or any other but `Fourier`.
        multiples: m ≥ 0, in any order.

    Returns:
        A `Sensitivity`: print it, or draw it by `nj.plots.sensitivity`.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(40_000, 1))
        >>> noisy = x + rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=1.0)
        >>> print(nj.fits.sensitivity(table, multiples=[0, 0.5, 1]).paths()[0].round(1))
        [[1. ]
         [1.3]
         [2. ]]
    """
    instance("observations", observations, Observations, "sensitivity takes one table, no chunks")
    if observations.noise is not None and by_round(observations.noise)[0].depends_on_x:
        raise ValueError(
            f"sensitivity cannot multiply {type(observations.noise).__name__}, noise that depends "
            "on the values: make the table again with another parameter, and fit it"
        )
    if observations.seen is not None:
        raise ValueError(
            "sensitivity cannot multiply the errors of a table with gaps: state other errors, and "
            "fit it"
        )
    if observations.categories:
        raise ValueError(
            "sensitivity cannot multiply misclassification, such as of "
            f"{observations.categories[0].name!r}: make the table again with another matrix, and "
            "fit it"
        )
    wanted = np.unique(np.asarray(non_negative("multiples", multiples, shape=None), float))
    if not wanted.size:
        raise ValueError("multiples must be at least one number, such as [0, 0.5, 1, 1.5, 2]")
    stated = fit(observations, method)
    if not isinstance(stated, Corrected | ModelFit):
        raise ValueError(
            f"sensitivity compares coefficients, which a {type(stated).__name__} does not have for "
            "each column: use nj.methods.Linear(), Logistic(), Poisson(), Model(), SIMEX() or "
            "RegressionCalibration()"
        )
    known = {1.0: (stated, "")}
    found = [known.get(m) or _fitted(_with_noise(observations, m), method) for m in wanted.tolist()]
    fits, reasons = zip(*found, strict=True)
    return Sensitivity(tuple(wanted.tolist()), fits, reasons, stated.names, stated.title)


def _fitted(table: Observations, method: Any) -> tuple[Any, str]:
    """The fit, or `None`, and what it warned of, or why it is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = fit(table, method)
            if isinstance(made, LinearFit) and made.strength == 0:
                raise ValueError("the corrected moments are not positive definite")
        except ValueError as error:
            return None, f"no fit, since {error}"
    # The assumptions of the correction are the same for all multiples.
    others = [w for w in caught if not issubclass(w.category, AssumptionWarning)]
    return made, "; ".join(str(warning.message) for warning in others)


def _or_none(cell: str) -> Callable[[Any], str]:
    """The cell, or "none" where there is no fit."""
    return lambda row: "none" if np.isnan(row["share"]) else cell.format_map(row)


def _with_noise(table: Observations, multiple: float) -> Observations:
    """The table with a multiple of the covariance of its noise."""

    def apart(copies):
        mean = np.nanmean(copies, axis=1, keepdims=True)
        return mean + multiple**0.5 * (copies - mean)

    x = apart(table.x) if table.cov is None else table.x
    copies = None if table.copies is None else apart(table.copies)
    names = "cov", "cov_std_error", "cov_deviations", "cross_cov", "unreliability"
    known = {name: getattr(table, name) for name in names}
    scaled = {k: None if value is None else multiple * value for k, value in known.items()}
    return dataclasses.replace(table, x=x, copies=copies, noise=None, **scaled)
