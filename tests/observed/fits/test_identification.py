"""How well noisy columns identify a fit, and Fuller's modification where they hardly do."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.groups import labels_of
from noisy_jax.observed.fits.identification import WEAK
from noisy_jax.observed.fits.linear_moments import moments_by_group
from noisy_jax.observed.observations import from_arrays
from noisy_jax.observed.observations.rows import Rows
from tests.keys import SHIFT
from tests.observed.rows import agree


def correlated(n, rng, truth=(1.0, -0.5)):
    """Two columns of correlation 0.7, reliability 0.5."""
    x = rng.normal(size=(n, 2)) @ np.linalg.cholesky([[1, 0.7], [0.7, 1]]).T
    y = 1 + x @ truth + 0.5 * rng.normal(size=n)
    return x + rng.normal(size=x.shape), y


@pytest.mark.parametrize("method", ["sandwich", "jackknife"])
def test_strength_and_fit_do_not_depend_on_the_choice_of_columns(rng, method):
    """Sums and differences of the columns, in other units, identify the same fit."""
    x, y = correlated(60, rng)
    turn = np.array([[3.0, 0.1], [-3.0, 0.2]])
    one = nj.fit(from_arrays(x, y, noise=1.0), errors=method)
    other = nj.fit(from_arrays(x @ turn, 10 * y, noise=turn.T @ turn), errors=method)
    assert 0 < one.strength < WEAK
    assert one.share < 1
    agree(other, one, "strength", "share", rtol=1e-6)
    np.testing.assert_allclose(turn @ other.coefficients / 10, one.coefficients, rtol=1e-6)


def test_strength_and_fullers_modification_of_one_column():
    """Squares of λ − 1 over its standard error by groups; with the root of (y, x), the share."""
    rng = np.random.default_rng(2)
    for variance in (0.9, 1.12):
        x = rng.normal(size=320)
        y = x + 0.3 * rng.normal(size=320)
        fit = nj.fit(from_arrays(x[:, None], y, noise=variance))
        xc, yc = x - x.mean(), y - y.mean()
        sums = np.array([(xc[labels_of(x[:, None], y) == g] ** 2).sum() for g in range(32)])
        relative = 32 * sums.var(ddof=1) / sums.sum() ** 2
        above = max(0.0, xc @ xc / (319 * variance) - 1)
        assert (above == 0) == (variance > 1)
        np.testing.assert_allclose(fit.strength, above**2 / relative, rtol=1e-8)
        uncertain = nj.noise.CovarianceEstimate([[variance]], [[0.1 * variance]])
        other = nj.fit(from_arrays(x[:, None], y, noise=uncertain))
        np.testing.assert_allclose(other.strength, above**2 / (relative + 0.01), rtol=0.01)
        root = (xc @ xc - (xc @ yc) ** 2 / (yc @ yc)) / (319 * variance)
        share = max(0.0, min(1.0, root - relative / 2) - relative / 2)
        np.testing.assert_allclose(fit.share, share, rtol=1e-6)
        slope = xc @ yc / (xc @ xc - share * 319 * variance)
        np.testing.assert_allclose(fit.coefficients, [slope], rtol=1e-6)


def test_what_is_left_of_the_moments_is_positive_definite():
    rng = np.random.default_rng(3)
    below = 0
    for _ in range(30):
        x, y = correlated(40, rng)
        fit = nj.fit(from_arrays(x, y, noise=1.0))
        below += np.linalg.eigvalsh(fit.gram)[0] < 0
        left = fit.gram + (1 - fit.share) * fit.noise
        assert np.linalg.eigvalsh(left)[0] > 0
        np.testing.assert_allclose(left @ fit.coefficients, fit.cross, rtol=1e-6)
        assert np.isfinite(fit.std_error).all()
    assert below > 3  # tables that raised an error without the modification


def test_the_table_says_how_strong_the_identification_is(rng):
    weak = str(nj.fit(from_arrays(*correlated(40, rng), noise=1.0)))
    assert "Weak identification (strength " in weak
    assert "do not trust intervals" in weak
    assert "of the stated error is taken away, to keep" in weak
    x, y = correlated(2000, rng)
    strong = nj.fit(from_arrays(x, y, noise=1.0))
    assert f"Identification strength {strong.strength:.4g} (below 6 is weak)." in str(strong)
    assert strong.share == 1
    assert "dentification" not in str(nj.fit(from_arrays(x, y, noise=0.0)))


def test_exact_columns_and_an_exact_relation_do_not_break_the_modification(rng):
    """Exact columns, y that is linear in the noisy ones, and errors in y that covary with x's."""
    x, y = correlated(40, rng)
    assert np.isfinite(nj.fit(from_arrays(x, y, noise=[1.0, 0.0])).std_error).all()
    relation = nj.fit(from_arrays(x, x[:, 0] - x[:, 1], noise=1.0))
    assert relation.share == 0
    np.testing.assert_allclose(relation.coefficients, [1, -1], rtol=1e-6)
    cross = nj.fit(from_arrays(x, y, noise=1.0, cross_cov=[0.3, 0.0]))
    assert cross.share < 1
    assert np.isfinite(cross.std_error).all()


def test_parts_about_the_mean_of_the_whole_add_up():
    rng = np.random.default_rng(4)
    x, y, weights = rng.normal(size=(30, 2)), rng.normal(size=30), rng.uniform(1, 2, size=30)
    cov = rng.uniform(size=(30, 1, 1)) * np.eye(2)
    parts = moments_by_group(Rows(x, y, cov, weights), [slice(9), slice(9, 30)])
    for share in (0.0, 0.6, 1.0):
        totals = parts.total().centred(share=share)
        for each, total in zip(parts.about(parts.total(), share=share), totals, strict=True):
            np.testing.assert_allclose(each.sum(axis=0), total, atol=1e-10)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize(("n", "truth"), [(40, [1.0, -0.5]), (40, [1.0, 1.0]), (100, [1.0, -0.5])])
def test_intervals_cover_where_the_identification_is_weak(n, truth):
    rng = np.random.default_rng(8 + 1000 * SHIFT)
    inside = []
    for _ in range(400):  # none of them raises
        low, high = nj.fit(from_arrays(*correlated(n, rng, truth), noise=1.0)).interval()
        inside.append((low[1:] <= truth) & (truth <= high[1:]))
    assert (np.mean(inside, axis=0) >= 0.92).all()
