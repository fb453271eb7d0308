"""Results of a kernel fit: a function of random Fourier features, and its estimated error."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from noisy_jax.fits.coefficients import Comparison, counted_features, features_of, write
from noisy_jax.validation import array_module, positive, whole


class FourierFeatures(NamedTuple):
    """Which Fourier features a fit uses.

    Attributes:
        length_scale: ℓ of the kernel exp(−r²/2ℓ²), in standard deviations of the columns.
        num_features: D, even.
        seed: seed of the random frequencies.
    """

    length_scale: float
    num_features: int = 256
    seed: int = 0


def fourier_features(
    *, length_scale: float, num_features: int = 256, seed: int = 0
) -> FourierFeatures:
    """Features for `nj.fit`: those of the Gaussian kernel exp(−r²/2ℓ²).

    The fit divides by the characteristic function φ of the noise. So it needs the distribution of
    the noise, such as `noise.Laplace(0.3)`, or replicates. From replicates it estimates φ. This
    assumes that the noise is symmetric with φ > 0: Gaussian or Laplace noise, but not uniform
    noise. Gaussian noise whose standard deviation is near ℓ hides most of the function. Then the
    estimated errors are wide, and a larger ℓ or more rows help.

    Args:
        length_scale: ℓ > 0, in standard deviations of the noisy columns.
        num_features: D, even.
        seed: seed of the random frequencies.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, size=(4000, 1))
        >>> noisy = x + rng.laplace(scale=0.4, size=x.shape)
        >>> error = nj.noise.Laplace(0.4)
        >>> table = nj.observations.from_arrays(noisy, np.sin(2 * x[:, 0]), noise=error)
        >>> result = nj.fit(table, nj.fourier(length_scale=0.7, num_features=64))
        >>> print(result.predict([[0.8]]).round(1), result.uncorrected.predict([[0.8]]).round(1))
        [1.] [0.6]
    """
    if whole("num_features", num_features, 2) % 2:
        raise ValueError(f"num_features must be even, got {num_features}")
    return FourierFeatures(float(positive("length_scale", length_scale)), num_features, seed)


@dataclasses.dataclass(frozen=True, eq=False)
class FourierPredictor:
    """A function of clean features, Σ_j w_j z_j(x) plus a constant, in original units.

    Attributes:
        omega: `[P, d]` frequencies, per original unit.
        center: `[d]`, subtracted from x before the features are computed.
        weights: `[D]`, of the cosines and then of the sines.
        constant: value that is added.
        names: d names of the columns.
    """

    omega: np.ndarray
    center: np.ndarray
    weights: np.ndarray
    constant: float
    names: tuple[str, ...]

    @jax.default_matmul_precision("highest")
    def predict(self, x: Any) -> Any:
        """Predictions `[...]` at features `[..., d]` in original units.

        A DataFrame's columns are taken by their names. It works under `jit`, `vmap` and `grad`, in
        JAX's default precision.
        """
        x = features_of(x, self.names)
        xp = array_module(x)
        angles = (x - np.broadcast_to(self.center, x.shape)) @ self.omega.T
        return xp.concatenate([xp.cos(angles), xp.sin(angles)], -1) @ self.weights + self.constant


class Candidate(NamedTuple):
    """Estimated error on clean data of one choice of features.

    Attributes:
        features: the choice.
        factor: regularization in units of the moments' standard deviation.
        risk: estimated mean squared error on clean data, of the best of several factors, hence
            slightly too low; `FourierFit.risk` is judged by rows that did not choose.
        std_error: its standard error over groups of rows.
    """

    features: FourierFeatures
    factor: float
    risk: float
    std_error: float


@dataclasses.dataclass(frozen=True, eq=False)
class FourierFit(FourierPredictor):
    """A corrected kernel regression; print it for the table of candidates.

    Attributes:
        uncorrected: the same features fitted to the noisy rows; with V replicates, to their means.
        risk: estimated errors on clean data of both, including the choice among the candidates.
        candidates: best factor of every candidate, best first: by the risk plus one standard error.
            Those whose numbers overflow are left out.
        target: name of y.
        num_rows: n.
    """

    uncorrected: FourierPredictor
    risk: Comparison
    candidates: tuple[Candidate, ...]
    target: str
    num_rows: int

    def save(self, path: str | Path) -> None:
        """Writes the fit as JSON; `nj.load_fit` reads it."""
        write(self, path)

    def __str__(self) -> str:
        """The candidates, and the comparison with the uncorrected fit."""
        lines = [
            f"{self.target} as a function of {counted_features(len(self.center))}, "
            f"{self.num_rows:,} noisy rows",
            "",
            f"{'length scale':>12} {'features':>9} {'λ factor':>9} {'clean error':>12} "
            f"{'± 95%':>9}",
        ]
        lines += [
            f"{c.features.length_scale:>12.3g} {c.features.num_features:>9} {c.factor:>9.2g} "
            f"{c.risk:>12.4g} {1.96 * c.std_error:>9.2g}"
            for c in self.candidates[:8]
        ]
        best = self.candidates[0]
        ties = [c for c in self.candidates[1:] if c.risk - best.risk < 2 * c.std_error]
        if ties:
            lines.append(f"{len(ties)} more cannot be told apart from the first.")
        lines.append("Each error is that of its best λ factor, hence slightly too low.")
        return "\n".join(
            [
                *lines,
                "",
                str(self.risk),
                "This fit is for clean features. To predict from features that are as noisy as",
                "these, use the uncorrected fit (fit.uncorrected).",
            ]
        )
