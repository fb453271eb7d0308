"""Risks of judged predictors against plain loops over units."""

import numpy as np

from noisy_jax.observed.fits.judged import of_folds, of_rows, stacked


def test_risks_are_means_over_rows_with_standard_errors_over_units(rng):
    """Of two candidates in three folds, of 40 rows in 12 units; the second candidate diverged."""
    errors, units = rng.normal(1, 2, size=(2, 40)), rng.permutation(np.arange(40) % 12)
    errors[1, 7] = np.inf
    folds = [np.flatnonzero(units % 3 == fold) for fold in range(3)]
    parts = [[of_rows(one[rows]) for rows in folds] for one in errors]
    found = stacked([of_folds(one, folds, units) for one in parts])
    mean = errors[0].mean()
    apart = [np.sum(errors[0][units == unit] - mean) for unit in range(12)]
    np.testing.assert_allclose(found.risk, [mean, np.nan])
    np.testing.assert_allclose(
        found.std_error()[0], np.sqrt(np.sum(np.square(apart)) * 12 / 11) / 40
    )
    assert found.degrees_of_freedom == 11
    np.testing.assert_array_equal(found.bias, [0, 0])
    np.testing.assert_array_equal(found.minus(found).std_error()[0], 0)


def test_slopes_and_biases_of_folds_are_weighted_by_their_rows(rng):
    slopes, hidden = rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 2, 5))
    folds = [np.arange(3), np.arange(3, 10)]
    known = zip(folds, slopes, hidden, strict=True)
    parts = [of_rows(np.ones(len(rows)), *one) for rows, *one in known]
    found = of_folds(parts, folds, np.arange(10))
    np.testing.assert_allclose(found.slope, 0.3 * slopes[0] + 0.7 * slopes[1])
    square, value = np.abs(0.3 * hidden[0] + 0.7 * hidden[1]).max(axis=1)
    np.testing.assert_allclose(found.bias, square + 2 * value)
