"""Logistic and Poisson fits of tables whose equations have no root with the whole noise."""

import numpy as np
import pytest
from scipy.optimize import brentq, root
from scipy.special import expit

import noisy_jax as nj
from noisy_jax.observed.fits.scores import MODELS
from noisy_jax.observed.observations import from_arrays
from tests.observed.fits.test_generalized import scores
from tests.observed.rows import answered

SLOPE = {"logistic": 2.0, "poisson": 1.0}
METHODS = {"logistic": nj.methods.Logistic(), "poisson": nj.methods.Poisson()}


def table(rng, model, n, copies=1):
    """One column of reliability ½, and y by the model: `[n, V, 1]` and `[n]`."""
    x = rng.normal(size=n)
    y = rng.random(n) < expit(2 * x) if model == "logistic" else rng.poisson(np.exp(x))
    return x[:, None, None] + copies**0.5 * rng.normal(size=(n, copies, 1)), 1.0 * y


def slope_scores(model, x, y, variance, slopes):
    """The summed score of w where that of a is zero, at many w."""

    def at(w):
        def total(a):
            return scores(model, np.array([a, w]), x, y, np.array([[variance]])).sum(axis=0)

        return total(brentq(lambda a: total(a)[0], -150, 150))[1]

    return np.array([at(w) for w in slopes])


@pytest.mark.slow
@pytest.mark.parametrize("model", SLOPE)
def test_a_table_without_a_root_is_answered_with_a_smaller_noise(rng, model):
    """The share is 4/n below the largest one with a root, and the fit is its root."""
    n, seen, slopes = 200, 0, np.linspace(0.3, 4.5, 43)
    for _ in range(8):
        x, y = table(rng, model, n)
        fit, messages = answered(from_arrays(x, y, noise=1.0), METHODS[model])
        x, theta = x[:, 0], fit.values
        rows = x, y, np.array([[fit.share]])
        solved = root(lambda t, rows=rows: scores(model, t, *rows).mean(axis=0), theta)
        np.testing.assert_allclose(solved.x, theta, rtol=1e-6)
        if fit.share == 1:
            assert "is taken away" not in str(fit)
            continue
        seen += 1
        (told,) = [text for text in messages if "does not allow to take away all" in text]
        assert MODELS[model].no_root in told
        assert fit.remarks == (told,)
        assert "of it is taken away" in " ".join(str(fit).split())
        for beyond, exists in ((3.5, True), (4.5, False)):
            assert (slope_scores(model, x, y, fit.share + beyond / n, slopes).min() < 0) == exists
    assert seen >= 1
