"""`fit`: regression on noisy features, judged on clean ones."""

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax.core import Tracer

from noisy_jax.observed.fits.assumptions import remarked, warned
from noisy_jax.observed.fits.coefficients import LinearFit
from noisy_jax.observed.fits.fourier import fourier_fit
from noisy_jax.observed.fits.functions import FourierFeatures, FourierFit
from noisy_jax.observed.fits.gaps import rows_without_gaps
from noisy_jax.observed.fits.generalized import MODELS, GeneralizedFit, generalized_fit
from noisy_jax.observed.fits.groups import with_weight
from noisy_jax.observed.fits.jackknife import jackknife_fit
from noisy_jax.observed.fits.linear import linear_fit
from noisy_jax.observed.observations import Observations
from noisy_jax.validation import choice, given, instance


def fit(
    observations: Observations | Iterable[Observations],
    features: FourierFeatures | Sequence[FourierFeatures] | None = None,
    *,
    model: str = "linear",
    weights: Any = None,
    clusters: Any = None,
    errors: str | None = None,
    checkpoint: str | os.PathLike | None = None,
) -> LinearFit | FourierFit | GeneralizedFit:
    """Regression on clean features, computed from noisy ones: least squares, logistic or Poisson.

    Ordinary least squares on features with measurement error shrinks coefficients towards zero and
    spreads them over correlated columns. `fit` subtracts the error's contribution from the second
    moments, which gives a consistent estimate of the coefficients on clean features. With the mean
    x̄ of n rows and the covariance C_i of the error in row i,

        β̂ = (Σ_i [(x̃_i − x̄)(x̃_i − x̄)ᵀ − (1 − 1/n) C_i])⁻¹ Σ_i (x̃_i − x̄) ỹ_i.

    `model="logistic"` (y of 0 and 1) and `model="poisson"` (counts y) are for Gaussian noise. With
    μ = σ(a + ⟨w, x⟩) or μ = exp(a + ⟨w, x⟩) the mean of y at the clean x, they solve

        logistic   Σ_i (y_i − σ(a + ⟨w, c_i⟩)) (1, c_i) = 0,   c_i = x̃_i + (y_i − ½)C_i w,
        poisson    Σ_i y_i (1, x̃_i) − m_i (1, x̃_i − C_i w) = 0,   m_i = exp(a + ⟨w, x̃_i⟩ − ½wᵀC_iw).

    Their coefficients are consistent under the logistic model and under the log-linear one; there
    is no regret bound. The equations may have several roots: the one that continues the uncorrected
    fit, as C grows from 0, is taken. In small tables it may end before the whole C: then a smaller
    share of C is taken away, as in Fuller's modification of the linear fit, with a warning and wide
    intervals (`GeneralizedFit.share`). Replicates of unknown noise are pooled: the covariance of
    their noise must then be the same in all rows, and it is estimated anew wherever the jackknife
    leaves rows out. Intervals of Poisson coefficients are somewhat narrow where few rows have most
    of the counts: where ⟨w, x⟩ varies by more than about 1, and all the more if x is skewed.

    **What it is for**: interpretation of coefficients, and prediction at CLEAN features. To predict
    from features that are as noisy as those of the table, use `fit.uncorrected`, which estimates
    the best prediction from them.

    **What it assumes**: the classical error model, x̃ = x + n with n of mean zero, independent of x
    and of the noise in y. With Berkson errors, x = x̃ + n (a dose that was set to x̃, a group's mean
    that stands for its members), n is independent of x̃ instead, ordinary least squares is right for
    a linear model, and `fit` would overcorrect.

    **What it checks**: noisy rows show if some of this cannot be so: noise in a column of two or
    few values (misclassified categories), exact columns that are computed from noisy ones,
    replicates that differ more at some values than at others (as after a logarithm or in an
    embedding; two replicates also if their noise is skewed), and missing values whose gaps depend
    on values. Then `fit` warns by `nj.fits.AssumptionWarning`, the fit says so in its `remarks` and
    its table, and a favourable verdict is withheld. At most 1% of tables of independent rows that
    obey the assumptions are doubted. Of chunks the first is checked, of clusters a row of each.

    Intervals are from the sandwich estimator with leverages (HC3) or from the jackknife, which both
    assume no distribution. If the covariance of the noise is itself an estimate, its uncertainty
    widens the intervals and the standard errors of the estimated risks. A kernel fit has no
    intervals; its table compares estimated errors.

    **Weak identification**: a linear fit prints its strength, the estimated clean variance in the
    noisiest combination of columns against its standard error (`LinearFit.strength`). Where it is
    below 6, Fuller's modification takes away less than the whole noise, such that the equations
    always have a solution; `fit.interval(method="anderson-rubin")` gives sets that hold at any
    strength. They may be unbounded.

    Args:
        observations: the noisy table, by `nj.observations.from_arrays` or `nj.observations.csv`; or
            chunks of a table that is larger than the memory, by `nj.observations.chunks` or as any
            iterable of tables, which a linear fit reads once. All chunks have the same columns, the
            same number of copies and the same knowledge of the noise (given, with the same
            uncertainty, or from replicates).
        features: `None` for a linear fit; `nj.fits.fourier(length_scale=…)` or a list of such for a
            kernel fit, of which the one with the least cross-fitted clean risk is taken.
        model: "linear", "logistic" or "poisson". The last two take one table, and are judged by the
            jackknife over 32 groups of blocks of up to 64 consecutive rows; where the equations
            without some group have no root, by the sandwich, with a warning.
        weights: `[n]` weights of the rows, for a linear fit; 1 by default. Rows of weight 0
            are left out of everything, also of the number of rows.
        clusters: `[n]` labels of groups of rows that may depend on each other, for a linear fit.
        errors: of a linear fit, "sandwich" (the default for one table) or "jackknife" (for chunks),
            which leaves out one of 32 groups of rows at a time. Its groups are blocks of 64
            consecutive rows, so that it also holds if neighbouring rows depend on each other. Its
            standard errors scatter by 13%. With less than 2,048 rows there are fewer groups, at
            least 8; with less than 512 rows the blocks are shorter, an eighth to a sixteenth of the
            rows, and only rows that are nearer to each other may depend on each other.
        checkpoint: folder in which the sums over rows are stored after each chunk. A call with the
            same first chunk resumes behind the last row that was stored, bit for bit on the same
            machine. `nj.observations.chunks` skips the rows before it; other iterables must give
            them again. Rows may have been added at the end.

    Returns:
        A `LinearFit`, `FourierFit` or `GeneralizedFit`. Print it; `fit.predict(x)` predicts at
        clean features, probabilities and mean counts with a `GeneralizedFit`.

    Raises:
        ValueError: if the data contradict the noise (a column or a combination of columns varies
            less than the noise in it, by more than chance explains), a column is constant, chunks
            do not agree, there are too few rows, or the equations of a model have no solution with
            even half of the noise, as when a column predicts labels perfectly; the folder of a
            checkpoint cannot be written, is in use, or holds a file that is damaged or of another
            table.

    Source: Fuller, Measurement Error Models (1987), Sec. 2.2, 2.5 and 3.1, and Econometrica 45
    (1977) for the share of the noise; the estimated risk is the corrected score of Nakamura (1990),
    cross-fitted. Logistic: the conditional score of Stefanski and Carroll (1987). Poisson: the
    corrected score of Nakamura (1990).

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(40_000, 2))
        >>> y = 1 + x @ [2, -1] + 0.1 * rng.normal(size=40_000)
        >>> noisy = x + [0.8, 0.4] * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, y, noise=[0.64, 0.16])
        >>> result = nj.fit(table)
        >>> print(result.coefficients.round(1), result.uncorrected.coefficients.round(1))
        [ 2. -1.] [ 1.2 -0.9]
        >>> sick = rng.random(40_000) < 1 / (1 + np.exp(1 - 2 * x[:, 0]))
        >>> table = nj.observations.from_arrays(noisy[:, :1], 1.0 * sick, noise=0.64)
        >>> result = nj.fit(table, model="logistic")
        >>> print(result.coefficients.round(1), result.uncorrected.coefficients.round(1))
        [2.] [1.]
        >>> print(result.predict([[0.0], [1.0]]).round(1))
        [0.3 0.7]
    """
    _check_table(observations)
    if checkpoint is not None and not isinstance(observations, Iterable):
        raise ValueError("checkpoint is for chunks, as nj.observations.chunks reads them")
    if choice("model", model, ("linear", *MODELS)) != "linear":
        if not (features is None and weights is None and clusters is None) or errors == "sandwich":
            raise ValueError(
                "features, weights, clusters and the sandwich are for model='linear'; "
                f"leave them out with model={model!r}"
            )
        choice("errors", errors or "jackknife", ("jackknife",))
        if isinstance(observations, Iterable):
            raise ValueError(f"chunks are for model='linear'; model={model!r} takes one table")
        return _checked(partial(generalized_fit, name=model), observations)
    if isinstance(observations, Iterable):
        if features is not None or weights is not None or clusters is not None:
            raise ValueError(
                "chunks are for linear fits without weights and clusters; pass one table"
            )
        if errors == "sandwich":
            raise ValueError("the sandwich reads rows twice; for chunks use errors='jackknife'")
        return jackknife_fit(observations, checkpoint=checkpoint)
    if features is not None:
        if weights is not None or clusters is not None or errors is not None:
            raise ValueError(
                "weights, clusters and errors are for linear fits; leave them out with features"
            )
        if not isinstance(features, FourierFeatures | Iterable):
            what = "nj.fourier(length_scale=…), or a list of such"
            raise ValueError(f"features must be {what}, got {given(features)}")
        if isinstance(jnp.zeros(()), Tracer):
            raise ValueError("a kernel fit runs on the host: call nj.fit outside jit and scan")
        return _checked(partial(fourier_fit, candidates=features), observations)
    if choice("errors", errors or "sandwich", ("sandwich", "jackknife")) == "jackknife":
        return jackknife_fit([observations], weights=weights, clusters=clusters)
    make = partial(linear_fit, weights=weights, clusters=clusters)
    return _checked(make, observations, weights, clusters)


def _checked(make, observations, weights=None, clusters=None):
    """The fit that `make` returns, with remarks on what the rows show against its assumptions."""
    instance("observations", observations, Observations, "nj.observations.from_arrays makes one")
    rows, _, labels = with_weight(observations, weights, clusters)
    found, made = warned(rows, labels, stacklevel=3), make(observations)
    if weights is None and clusters is None and isinstance(made, LinearFit):
        found += rows_without_gaps(rows, made.std_error[1:])
    return remarked(made, found)


def _check_table(observations: Any) -> None:
    """Raises ValueError with the right call if x, or the name of a file, stands for a table."""
    if isinstance(observations, (str, os.PathLike)):
        name = os.fspath(observations)
        call = f"nj.fit(nj.observations.csv({name!r}, target=…, noise=…))"
        raise ValueError(f"fit takes a table, got the path {name!r}; read the file: {call}")
    # A list may hold chunks; a list of rows, an array and a data frame are features alone.
    listed = observations[:1] if isinstance(observations, (list, tuple)) else []
    if any(not isinstance(one, Observations) for one in listed) or hasattr(observations, "shape"):
        call = "nj.fit(nj.observations.from_arrays(x, y, noise=…))"
        raise ValueError(
            "fit takes one table of x, y and what is known of the noise, got "
            f"{given(observations)}: {call}"
        )
