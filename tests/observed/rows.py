"""Noisy rows, what `fit` and `learn` make of them, and how two results are compared."""

import warnings

import jax
import numpy as np
from scipy.special import expit

import noisy_jax as nj
from noisy_jax.observed.fits.functions import FourierPredictor
from noisy_jax.observed.observations import from_arrays

ROWS = np.random.default_rng(3)
CLEAN = ROWS.normal(size=(800, 2))
X = 10 + 5 * (CLEAN + 0.5 * ROWS.normal(size=(800, 2)))
Y = 3 + CLEAN @ [2.0, -1.0] + 0.1 * ROWS.normal(size=800)
NOISE = 25 * 0.25
LEARNER = nj.learners.known_covariance(radius=3.0)


def run(kind, table):
    """The fit of a table or of chunks, or what was learned from them."""
    return nj.fit(table) if kind == "fit" else nj.learn(LEARNER, table, jax.random.key(0))


def parts(x, y, rows=200, **known):
    """The rows in tables of 200."""
    known = {"noise": NOISE} | known
    return [from_arrays(x[k : k + rows], y[k : k + rows], **known) for k in range(0, len(y), rows)]


def outcome(rng, model, eta):
    """y of a linear, logistic or Poisson model with these linear predictors."""
    if model == "linear":
        return eta + rng.normal(size=eta.shape)
    if model == "logistic":
        return (rng.random(eta.shape) < expit(eta)) * 1.0
    return rng.poisson(np.exp(eta)) * 1.0


def regression(rng, n, model, beta, variances):
    """Two noisy columns and y, of linear predictors ½ + ⟨β, x⟩, half as large for counts."""
    x = rng.normal(size=(n, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    eta = (0.5 + x @ beta) / (2 if model == "poisson" else 1)
    return x + np.sqrt(variances) * rng.normal(size=x.shape), outcome(rng, model, eta)


def answered(table, method=None):
    """The fit, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return nj.fit(table, method), [str(one.message) for one in caught]


def agree(one, other, *names, **tolerance):
    """Checks that attributes of two fits or tables are the same."""
    for name in names:
        found, wanted = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(found, wanted, err_msg=name, **tolerance)


def gaussians(covs):
    """Gaussian noise with a covariance, or variances, of its own in each row."""
    return nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(np.asarray(covs)))


def waves(omega, weights):
    """A function of one column: waves of these frequencies around 0.5, and the constant 1.5."""
    return FourierPredictor(
        omega=omega, center=np.array([0.5]), weights=weights, constant=1.5, names=("x1",)
    )
