import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.robust.regressors import huber_ridge, kernel_ridge
from noisy_jax.robust.subquantile.gram import Gram
from tests.errors import raises, told


@pytest.fixture
def outlying(rng):
    """Gram matrix, labels of which a fifth are outliers, and λ."""
    x = rng.uniform(-3, 3, size=(40, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=40)
    y[::5] += 4.0
    return np.exp(-2 * (x - x.T) ** 2), y, 0.015


def reweighted(gram, y, regularization, iterations):
    """Huber regression by iteratively reweighted least squares."""
    diagonal = len(y) * regularization / 2 * np.eye(len(y))
    coefficients = np.linalg.solve(gram + diagonal, y)
    for _ in range(iterations):
        residuals = y - gram @ coefficients
        scale = np.median(np.abs(residuals)) / 0.6744897501960817
        root = np.sqrt(np.minimum(1, 1.345 * scale / np.abs(residuals)))
        coefficients = root * np.linalg.solve(root[:, None] * gram * root + diagonal, root * y)
    return coefficients


@pytest.mark.slow
def test_ridge_is_that_of_scikit_learn_and_of_the_comparators(outlying, x64):
    """With alpha = nλ/2."""
    from sklearn.kernel_ridge import KernelRidge

    gram, y, regularization = outlying
    ridge = KernelRidge(alpha=len(y) * regularization / 2, kernel="precomputed").fit(gram, y)
    ours = kernel_ridge(gram, y, regularization=regularization)
    np.testing.assert_allclose(ours, ridge.dual_coef_, rtol=1e-9)
    best = nj.comparators.regularized(gram, y, nj.losses.squared(), regularization)
    np.testing.assert_allclose(gram @ ours, best.predictions, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_huber_ends_where_reweighting_ends_or_is_ridge_where_nothing_is_clipped(outlying, x64):
    gram, y, regularization = outlying
    ridge = kernel_ridge(gram, y, regularization=regularization)
    ours = huber_ridge(gram, y, regularization=regularization, iterations=300)
    np.testing.assert_allclose(ours, reweighted(gram, y, regularization, 300), atol=1e-9)
    assert np.abs(ours - ridge).max() > 0.1
    ours = huber_ridge(gram, y, regularization=regularization, iterations=2, threshold=1e3)
    np.testing.assert_allclose(ours, ridge, rtol=1e-9)


@pytest.mark.slow
def test_huber_is_finite_if_most_rows_are_fitted_exactly(x64):
    ours = huber_ridge(np.eye(5), [0.0, 0.0, 0.0, 0.0, 7.0], regularization=0.2, iterations=60)
    np.testing.assert_allclose(ours, 0, atol=1e-9)


def test_default_iterations_agree_in_float32_and_under_vmap(outlying):
    gram, y, regularization = outlying
    expected = reweighted(gram, y, regularization, 100)
    fit = jax.vmap(lambda y, lam: huber_ridge(gram, y, regularization=lam))
    both = jax.jit(fit)(jnp.stack([y, -y]), jnp.full(2, regularization))
    np.testing.assert_allclose(gram @ both[0], gram @ expected, atol=1e-3)
    np.testing.assert_allclose(both[1], -both[0], atol=1e-5)


GOOD = {"gram": np.eye(2), "y": np.ones(2), "regularization": 1.0}


@pytest.mark.parametrize(
    ("fit", "wrong", "message"),
    [
        (kernel_ridge, {"regularization": 0.0}, "regularization must be positive and finite, got"),
        (huber_ridge, {"regularization": 0.0}, "regularization must be positive and finite, got 0"),
        (kernel_ridge, {"regularization": np.ones(2)}, "must be one number, got shape"),
        (kernel_ridge, {"gram": np.ones((2, 2)), "regularization": 1e-12}, "must be larger: gram"),
        (huber_ridge, {"gram": -np.eye(2), "regularization": 0.5}, "eigenvalues from -1 to -1, an"),
        (huber_ridge, {"gram": np.eye(3)}, r"gram must be \[2, 2\], as y is \[2\], got \[3, 3\]"),
        (kernel_ridge, {"gram": Gram(2, abs, jnp.inf)}, r"gram must be .* got Gram; pass k\(x, "),
        (kernel_ridge, {"y": np.ones((2, 1))}, r"y must be \[n\] with n >= 1, got \[2, 1\]"),
        (kernel_ridge, {"y": np.array([1, np.nan])}, r"y must be finite, but y\[1\] is nan"),
        (huber_ridge, {"threshold": 0.0}, "threshold must be positive and finite, got 0"),
        (huber_ridge, {"iterations": 0}, "iterations must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_raises(fit, wrong, message):
    raises(message, fit, **GOOD | wrong)


def test_targets_that_are_no_real_numbers():
    fits, y = nj.robust.subquantile, np.ones(2, complex)
    options = {"contamination": 0.2, "regularization": 0.1}
    for call in (
        lambda: kernel_ridge(np.eye(2), y, regularization=0.1),
        lambda: fits.ridge(np.eye(2), y, **options),
        lambda: nj.robust.contaminations.random_rows(jax.random.key(0), y, 0.2),
        lambda: nj.comparators.kernel_ball(np.eye(2), y, 1.0),
        lambda: nj.comparators.regularized(np.eye(2), y, nj.losses.squared(), 0.1),
    ):
        with told("y", "an array of"):
            call()
