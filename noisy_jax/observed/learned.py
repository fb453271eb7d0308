"""The result of `learn`: a learner's state with its units, which can be saved and read."""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, State, check_learner
from noisy_jax.observed.fits.black_boxes import affine_of
from noisy_jax.observed.fits.features import features_of
from noisy_jax.observed.fits.saved import Saved, loaded, places_of
from noisy_jax.reports.intervals import half_width
from noisy_jax.reports.tables import Summarized, Table
from noisy_jax.validation.values import concrete


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Learned(Saved, Summarized):
    """The result of a learner on observations, by `learn`; print it for its error on clean data.

    If its predictions are affine in x, it has `coefficients` and `intercept`, without intervals.

    Attributes:
        state: the learner's finished state after the last row, in standardized units: of
            (x − center)/scale and (y − y_center)/y_scale.
        risk: estimated mean squared error on clean data, in the units of y squared, of the
            predictions that were made before each judged row. It contains the variance of the
            noise in y. NaN if the learner has no clean estimates (`Learner.clean_estimates`).
        risk_std_error: standard error of `risk`, if rows are independent.
        num_rows: number of judged rows: all but the first quarter of the rows, or of the first
            chunk. At most 4,096 rows are not judged, or more if a column is constant in them.
        variance: variance of the noisy y, which is the error of predicting their mean.
        learner: the learner.
        center: `[d]`, means of the noisy columns over all rows.
        scale: `[d]`, standard deviations of the noisy columns in the rows that are not judged; 1
            with `standardize=False`.
        y_center: mean of y over all rows; 0 for a learner of labels.
        y_scale: standard deviation of y in the rows that are not judged; 1 for a learner of labels
            and with `standardize=False`.
        names: d names of the columns.
        references: categories that have no indicator column, such as `sex[f]` beside `sex[m]`.

    Example:
        >>> import jax, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(4000, 1))
        >>> noisy = x + 0.5 * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=0.25)
        >>> learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
        >>> learned = nj.learn(learner, table, jax.random.key(0))
        >>> print(learned.num_rows, learned.coefficients.round(1))
        3000 [2.]
    """

    kind: ClassVar[str] = "learned"
    functions: ClassVar[tuple[str, ...]] = ("learner",)

    state: State
    risk: float
    risk_std_error: float
    num_rows: int
    variance: float
    learner: Learner
    center: np.ndarray
    scale: np.ndarray
    y_center: float
    y_scale: float
    names: tuple[str, ...]
    references: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """The estimated error, beside the error of predicting the mean."""
        low, high = self.risk_interval
        error = _UNKNOWN
        if np.isfinite(self.risk):
            error = f"{self.risk:.4g} (95% interval {low:.4g} to {high:.4g})"
        return (
            f"Learned: mean squared error on clean data {error}, "
            f"of predicting the mean {self.variance:.4g}"
        )

    @property
    def coefficients(self) -> np.ndarray | None:
        """`[d]`, coefficients of the columns in original units; `None` if not affine in x."""
        return None if self._line is None else self._line[1:]

    @property
    def intercept(self) -> float | None:
        """The prediction where all columns are 0, if predictions are affine; else `None`."""
        return None if self._line is None else float(self._line[0])

    @functools.cached_property
    def _line(self) -> np.ndarray | None:
        """`[1 + d]`, the intercept and the coefficients, if there are any."""
        center = np.asarray(self.predict(self.center))
        if center.ndim:  # several predictions at once
            return None
        line = affine_of(self._of_standardized, places_of(len(self.names)))
        if line is None or not np.isfinite(line).all():
            return None
        slopes = line[1:] * self.y_scale / self.scale
        return np.append(center - slopes @ self.center, slopes)

    def summary(self) -> Table:
        """Returns a table of the error on clean data, and of coefficients if there are any."""
        nothing = (np.nan, np.nan)
        estimates = [
            ("mean squared error on clean data", self.risk, *self.risk_interval),
            ("of predicting the mean", self.variance, *nothing),
        ]
        if self._line is not None:
            labels = "intercept", *self.names
            estimates += [
                (*pair, *nothing) for pair in zip(labels, self._line.tolist(), strict=True)
            ]
        names = "name", "estimate", "low", "high"
        rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in estimates]

        def interval(row):
            return "" if np.isnan(row["low"]) else f"[{row['low']:.4g}, {row['high']:.4g}]"

        columns = [("", "{name}"), ("estimate", "{estimate:.4g}"), ("95% interval", interval)]
        title = f"Learned online, and judged before each of {self.num_rows:,} noisy rows"
        below = [f"… and {len(rows) - 12} more columns"] if len(rows) > 13 else []
        below += [] if np.isfinite(self.risk) else [f"The error is {_UNKNOWN}."]
        return Table(rows, columns, title, rows[: 12 if len(rows) > 13 else 13], "\n".join(below))

    @property
    def risk_interval(self) -> tuple[float, float]:
        """Both ends of the 95% interval of `risk`, by Student's t with `num_rows` − 1 degrees."""
        half = float(half_width(self.risk_std_error, self.num_rows - 1))
        return self.risk - half, self.risk + half

    def predict(self, x: Any) -> Any:
        """Returns predictions `[...]` at clean features x `[..., d]`, in original units.

        x is an array, or a DataFrame, a row of it or a mapping, whose columns are taken by name.
        It works under `jit`. Predictions are NumPy's float64, or traced arrays of JAX.
        """
        x = features_of(x, self.names, self.references)
        traced = concrete(x) is None
        x = (x - np.broadcast_to(self.center, x.shape)) / np.broadcast_to(self.scale, x.shape)
        predictions = self.learner.predict(self.state, jnp.asarray(x, float))
        predictions = predictions if traced else np.asarray(predictions, np.float64)
        return predictions * self.y_scale + self.y_center

    def _written(self) -> dict[str, Any]:
        leaves = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(self.state)]
        state = {"leaves": leaves, "predictions": self._at_places().tolist()}
        rest = super()._written()
        return rest | {"state": state}

    def _at_places(self) -> np.ndarray:
        return self._of_standardized(places_of(len(self.names)))

    def _of_standardized(self, x: np.ndarray) -> np.ndarray:
        """The learner's predictions at standardized rows."""
        return np.asarray(self.learner.predict(self.state, jnp.asarray(x, float)), np.float64)


_UNKNOWN = "not known (noisy rows do not show it of this learner)"


def load_learned(path: str | os.PathLike[str], learner: Learner) -> Learned:
    """Reads a file that `Learned.save` wrote, which has the state but no functions.

    Args:
        path: path of the file.
        learner: the `Learner` that learned, made anew by the same call. It is recognized by the
            shapes of its state, and by its predictions from the state in the file.

    Returns:
        A `Learned` with all numbers of the one that was saved.

    Raises:
        ValueError: the file is of another learner, is damaged or edited, or holds something else.

    Example:
        >>> import os, tempfile, jax, numpy as np, noisy_jax as nj
        >>> x = np.random.default_rng(0).normal(size=(500, 2))
        >>> table = nj.observations.from_arrays(x, x[:, 0] - x[:, 1], noise=0.1)
        >>> learner = nj.learners.known_covariance(radius=2.0)
        >>> learned = nj.learn(learner, table, jax.random.key(0))
        >>> path = os.path.join(tempfile.mkdtemp(), "learned.json")
        >>> learned.save(path)
        >>> again = nj.load_learned(path, learner)
        >>> print(again.predict([1.0, 0.0]) == learned.predict([1.0, 0.0]))
        True
    """
    check_learner(learner)
    found = loaded(path, (Learned,), "what nj.learn returned", learner=learner)
    leaves, expected = found.state["leaves"], np.asarray(found.state["predictions"])
    like, structure = jax.tree.flatten(jax.eval_shape(lambda: learner.init(len(found.names))))
    same = [np.shape(leaf) for leaf in leaves] == [one.shape for one in like]
    if same:
        typed = [np.asarray(leaf, one.dtype) for leaf, one in zip(leaves, like, strict=True)]
        state = jax.tree.unflatten(structure, map(jnp.asarray, typed))
        found = dataclasses.replace(found, state=state)
        places = found._at_places()
        size = np.abs(expected).max(initial=0.0)
        same = np.allclose(places, expected, rtol=0, atol=1e-3 * size, equal_nan=True)
    if not same:
        raise ValueError(
            f"{path} has the state of another learner: build it with the same arguments, such as "
            "kernel, moments, horizon and radius"
        )
    return found
