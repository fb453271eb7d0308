"""What the fit of a model found: its parameters, with standard errors and intervals."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.intervals import LEVEL, half_width
from noisy_jax.observed.fits.coefficients import counted_features, features_of
from noisy_jax.observed.fits.estimates import COLUMNS, Estimates
from noisy_jax.observed.fits.saved import Saved
from noisy_jax.tables import Table
from noisy_jax.validation import between


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ModelEstimates(Estimates):
    """Parameters of a model with their uncertainty.

    Attributes:
        coefficients: `[p]`, all parameters in a row.
        covariance: `[p, p]`.
        degrees_of_freedom: `[p]`, of Student's t in intervals.
        names: p names, such as "rate" and "w[0]".
        features: d names of the columns.
        references: as in `nj.fits.Coefficients`.
        params: the same parameters as the argument `start` of `nj.methods.Model`; `None` in a fit
            that was read from a file without it.
        curve: as given, or `None`.
    """

    functions: ClassVar[tuple[str, ...]] = ("params", "curve")

    coefficients: np.ndarray
    covariance: np.ndarray
    degrees_of_freedom: float | np.ndarray
    names: tuple[str, ...]
    features: tuple[str, ...]
    references: tuple[str, ...] = ()
    params: Any = None
    curve: Callable[..., Any] | None = None

    @property
    def _labels(self) -> tuple[str, ...]:
        return self.names

    @property
    def _values(self) -> np.ndarray:
        return self.coefficients

    @property
    def std_error(self) -> np.ndarray:
        """`[p]` standard errors."""
        return self._errors()

    def interval(self, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the intervals of the parameters, `[p]` each."""
        return self._ends(level)

    def predict(self, x: Any) -> Any:
        """f(x; θ) `[...]` at clean features `[..., d]`, in JAX's default precision.

        Columns are taken as in linear fits. It works under `jit`, `vmap` and `grad`.
        """
        return self._at(x, lambda curve: curve)

    def band(self, x: Any, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of intervals of f(x; θ) at each of the clean features x, `[...]`.

        By the delta method, f ± t √(∇fᵀ Cov(θ) ∇f) with the gradient in θ. They assume that the
        model is right.
        """
        leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(self._at(x, jax.grad))]
        middle = np.asarray(self.predict(x), np.float64)
        slopes = np.concatenate([leaf.reshape(*middle.shape, -1) for leaf in leaves], axis=-1)
        errors = np.sqrt(np.sum((slopes @ self.covariance) * slopes, axis=-1))
        level = float(between("level", level, 0, 1))
        half = half_width(errors, np.min(self.degrees_of_freedom), level=level)
        return middle - half, middle + half

    def _at(self, x: Any, made_of: Callable[[Any], Any]) -> Any:
        """The function `made_of(curve)` of the parameters and each row of x `[..., d]`."""
        if self.curve is None:
            raise ValueError(
                "the curve is not in the file: read it by nj.load_fit(path, nj.methods.Model(curve,"
                " start))"
            )
        x = jnp.asarray(features_of(x, self.features, self.references), float)
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), self.params)
        found = jax.vmap(made_of(self.curve), (None, 0))(params, x.reshape(-1, x.shape[-1]))
        return jax.tree.map(lambda leaf: leaf.reshape(*x.shape[:-1], *leaf.shape[1:]), found)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ModelFit(ModelEstimates, Saved):
    """A corrected fit of a model; print it for the table.

    It has the attributes of `ModelEstimates` as well.

    Attributes:
        uncorrected: the fit to the noisy rows, with replicates to their means.
        target: name of y.
        num_rows: n.
        num_copies: V.
        share: of the noise that is taken away; 1, unless the equations have no root with all of it.
        remarks: what the rows show against the assumptions of the correction, and whether they are
            too few.
    """

    kind: ClassVar[str] = "model"

    uncorrected: ModelEstimates
    target: str
    num_rows: int
    num_copies: int
    share: float
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What was fitted: the line above the table."""
        features = counted_features(len(self.features))
        return f"{self.target} by a model of {features}, {self.num_rows:,} noisy rows"

    def _rows(self, level: float) -> list[dict[str, Any]]:
        plain = self.uncorrected.coefficients.tolist()
        return [
            row | {"uncorrected": each}
            for row, each in zip(super()._rows(level), plain, strict=True)
        ]

    def _shown(self) -> Table:
        """Estimates, intervals, uncorrected estimates."""
        lines = [
            "The parameters are for clean features; to predict from features that are as noisy as",
            "these, use fit.uncorrected.",
            *self._doubts(),
        ]
        return Table(self._rows(LEVEL), COLUMNS, self.title, below="\n".join(lines))
