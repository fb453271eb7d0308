"""Coefficients of a category whose probabilities of errors only its replicates show."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.errors import raises
from tests.keys import SHIFT
from tests.observed.rows import agree, numbers

COLUMNS = {"smoker": ["s1", "s2", "s3"]}
UNKNOWN = {"smoker": nj.noise.Misclassified()}


def frame(rng, n=1500):
    """y = 1 + 2 smoker + z/2 + noise; smokers have larger z; sensitivity .8, specificity .9."""
    z = rng.normal(size=n)
    smoker = rng.random(n) < 1 / (1 + np.exp(1 - z))
    records = rng.random((n, 3)) < np.where(smoker, 0.8, 0.1)[:, None]
    columns = dict(zip(COLUMNS["smoker"], records.T.astype(int), strict=True))
    return columns | {"z": z, "y": 1 + 2 * smoker + 0.5 * z + rng.normal(size=n)}


def table(columns, noise=UNKNOWN):
    return nj.table(columns, target="y", replicates=COLUMNS, noise=noise)


def test_it_is_the_fit_with_the_matrix_of_the_rows_and_the_jackknife_of_such_fits(rng):
    columns = frame(rng, 640)
    fit = nj.fit(table(columns))

    def known(kept):
        some = {name: column[kept] for name, column in columns.items()}
        records = np.column_stack([some[name] for name in COLUMNS["smoker"]])
        matrix = nj.noise.estimate_misclassification(records)
        return numbers(nj.fit(table(some, {"smoker": nj.noise.Misclassified(matrix)})))

    np.testing.assert_allclose(numbers(fit), known(slice(None)), rtol=1e-8)
    without = np.array([known(np.arange(640) // 20 != g) for g in range(32)])
    np.testing.assert_allclose(fit.covariance, 31 * np.cov(without.T, bias=True), rtol=1e-6)
    assert fit.degrees_of_freedom == 31


def test_rows_of_a_table_have_the_matrix_of_these_rows(rng):
    columns = frame(rng, 300)
    kept = np.arange(300) % 3 > 0
    some = table({name: column[kept] for name, column in columns.items()})
    agree(table(columns).rows(kept), some, "x", "cov")
    weights = nj.fit(table(columns), weights=kept.astype(float))
    np.testing.assert_allclose(weights.coefficients, nj.fit(some).coefficients)


@pytest.mark.long
@pytest.mark.statistical
def test_intervals_cover_the_coefficients_and_those_without_the_correction_do_not():
    """Of 100 tables; as other noise, replicates give 2/(.8 − .1) for the coefficient 2."""
    rng, truth, inside, classical = np.random.default_rng(1000 * SHIFT), [2.0, 0.5], [], []
    for _ in range(100):
        columns = frame(rng)
        low, high = nj.fit(table(columns)).interval()
        inside.append((low < truth) & (truth < high))
        with pytest.warns(nj.fits.AssumptionWarning, match="without a matrix if three replicates"):
            classical.append(nj.fit(table(columns, None)).coefficients[0])
    assert np.abs(np.mean(inside, axis=0) - 0.95).max() < 5 * (0.05 * 0.95 / 100) ** 0.5
    assert abs(np.mean(classical) - 2 / 0.7) < np.std(classical) / 2 < 0.4


def test_what_cannot_be_estimated_is_one_clear_line(rng):
    columns = frame(rng, 200)
    few, message = {k: columns[k] for k in ("s1", "s2", "y")}, "^column 'smoker': .*at most two.*$"
    raises(message, nj.table, few, target="y", replicates={"smoker": ["s1", "s2"]}, noise=UNKNOWN)
    binary = columns | {"y": (columns["y"] > 1).astype(float)}
    method = nj.methods.Logistic()
    raises("nj.noise.estimate_misclassification, which", nj.fit, table(binary), method)
    raises("for chunks give the matrix", nj.fit, [table(columns), table(columns)])
    raises("anew in each fold", nj.select, {"fit": nj.fit}, table(columns), jax.random.key(0))
    raises("for chunks give the matrix", nj.fits.moments, table(columns))
    long = {"id": np.repeat(np.arange(20), 3), "s": np.tile([0.0, 1, 1], 20)}
    options = {"replicates": ["s"], "subject": "id", "noise": {"s": UNKNOWN["smoker"]}}
    long |= {"y": np.repeat(np.arange(20.0), 3)}
    raises("not from rows of a subject", nj.table, long, target="y", **options)
    raises("at least 8 clusters, got 5", nj.fit, table(columns), clusters=np.arange(200) % 5)
