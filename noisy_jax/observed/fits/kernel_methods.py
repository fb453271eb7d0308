"""Methods of kernel regression for `nj.fit`."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp
from jax.core import Tracer

from noisy_jax.observed.fits.fourier import fourier_fit
from noisy_jax.observed.fits.functions import FourierFit
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.validation import given, positive, whole


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Fourier(Method[FourierFit]):
    """Kernel regression: random Fourier features of the Gaussian kernel exp(−r²/2ℓ²).

    The fit divides by the characteristic function φ of the noise. So it needs the distribution of
    the noise, such as `noise.Laplace(0.3)`, or replicates. From replicates it estimates φ. This
    assumes that the noise is symmetric with φ > 0: Gaussian or Laplace noise, but not uniform
    noise. Gaussian noise whose standard deviation is near ℓ hides most of the function. Then the
    intervals of the estimated errors are wide, because they contain the largest bias that the
    hidden part can cause. A larger ℓ, more rows or more copies of each row help.

    All rows have noise of one distribution. Where replicates differ more at some values of y or of
    x than elsewhere, or their covariance is given row by row, it has no known φ. Then moments come
    from the copies of each row (`nj.moments.replicates`, of order 1 from two or three copies, else
    2). These need no law, but keep a bias where the noise is near ℓ.

    Where replicates are incomplete, moments come from the copies of each row too, the ones in
    which all columns with replicates were measured. Rows with one copy are left out, with a
    warning.

    The fit has no intervals of its coefficients. Its table compares estimated errors, and
    `fit.band(x)` is a band for the curve.

    Args:
        length_scale: ℓ > 0, in standard deviations of the noisy columns; or "auto", which tries ¼,
            ½, 1, 2 and 4 times the median distance between two clean rows (estimated), but none
            below the standard deviation of the noise, and takes the one with the least estimated
            error on clean data. `fit.risk` is judged by rows that did not choose.
        num_features: D, even.
        seed: seed of the random frequencies.
        weights: `[n]` weights of the rows, by which their squared errors are multiplied, also in
            the estimated error, or the name of their column, as in `nj.methods.Linear`; 1 by
            default. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column. Rows of a cluster are judged, and left out for the band, together.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, size=(4000, 1))
        >>> noisy = x + rng.laplace(scale=0.4, size=x.shape)
        >>> error = nj.noise.Laplace(0.4)
        >>> table = nj.observations.from_arrays(noisy, np.sin(2 * x[:, 0]), noise=error)
        >>> result = nj.fit(table, nj.fourier(length_scale=0.7, num_features=64))
        >>> print(result.predict([[0.8]]).round(1), result.uncorrected.predict([[0.8]]).round(1))
        [0.9] [0.6]
    """

    length_scale: float | str
    num_features: int = 256
    seed: int = 0
    weights: Any = None
    clusters: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.length_scale, str) and self.length_scale != "auto":
            wrong = given(self.length_scale)
            raise ValueError(f"length_scale must be a positive number or 'auto', got {wrong}")
        if self.length_scale != "auto":
            positive("length_scale", self.length_scale)
        if whole("num_features", self.num_features, 2) % 2:
            raise ValueError(f"num_features must be even, got {self.num_features}")

    def _solved(self, sample: Sample) -> FourierFit:
        return _kernel_fit(sample, [self])


@dataclasses.dataclass(frozen=True, eq=False)
class OneOf(Method[FourierFit]):
    """The one of several `Fourier` methods with the least cross-fitted error on clean data.

    Args:
        candidates: at least one. `nj.fit(table, candidates)` takes the list itself as well.
        weights: as in `Fourier`, for all candidates, which then have none.
        clusters: as in `Fourier`, for all candidates.
    """

    candidates: Sequence[Fourier]
    weights: Any = None
    clusters: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        several = isinstance(self.candidates, Iterable)
        object.__setattr__(self, "candidates", tuple(self.candidates) if several else ())
        if not self.candidates or not all(isinstance(one, Fourier) for one in self.candidates):
            raise ValueError("a list of methods must hold nj.fourier(length_scale=…), one or more")
        if any(one.weights is not None or one.clusters is not None for one in self.candidates):
            raise ValueError(
                "candidates have the same weights and clusters: give these once, as "
                "nj.methods.OneOf(candidates, weights=…, clusters=…)"
            )

    def _solved(self, sample: Sample) -> FourierFit:
        return _kernel_fit(sample, self.candidates)


def _kernel_fit(sample: Sample, candidates: Sequence[Fourier]) -> FourierFit:
    if isinstance(jnp.zeros(()), Tracer):
        raise ValueError("a kernel fit runs on the host: call nj.fit outside jit and scan")
    rows = sample.of(sample.table.evened())
    return fourier_fit(rows.with_copies(min(2, rows.table.x.shape[1])), candidates)
