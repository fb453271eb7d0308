"""Equations summed over true categories and labels: exact means, limits, coverage.

`test_generalized.py` tests scores without categories.
"""

import numpy as np
import pytest
from scipy.special import expit

import noisy_jax as nj
from noisy_jax.noise import Misclassified
from noisy_jax.observed.fits.scores import MODELS, score_equations
from noisy_jax.observed.fits.units import Units
from noisy_jax.observed.observations.rows import Rows
from tests.errors import raises
from tests.observed.observations.test_categories import TWO, every_recording
from tests.observed.rows import agree

LABELS = np.array([[0.85, 0.15], [0.1, 0.9]])


@pytest.mark.claim("EXT-Misclassified")
@pytest.mark.parametrize("model", MODELS)
def test_scores_have_the_mean_of_scores_at_the_true_categories(rng, model):
    """Over all that may be recorded, at any θ, with noise in another column, in float64."""
    n, theta = 10, np.array([0.2, 0.7, -0.4, 0.5, -0.3])
    a, b, y = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
    z = rng.normal(size=n)
    flips = LABELS if model == "logistic" else None
    table, chances = every_recording(np.column_stack([a, b]), z, y, 0.3, flips)
    number = np.repeat(np.arange(n), len(chances) // n)
    original = table.means()
    units = Units(original.x.mean(axis=0), original.x.std(axis=0), 0.0, 1.0)
    rest = units, table, flips, np.ones(len(table.y))
    made = score_equations(MODELS[model], units.standardized(original), *rest)
    found = made.scores(theta, 1.0)
    scores = np.zeros((n, 5))
    np.add.at(scores, number, chances[:, None] * found.scores)

    clean = np.column_stack([a == 1, b == 1, b == 2, z])
    true = Rows((clean - units.center) / units.scale, y, np.diag([0, 0, 0, 0.3]) / units.products)
    wanted = MODELS[model].scores(theta, true)
    np.testing.assert_allclose(scores, wanted.scores, atol=1e-12)
    weighted = units.standardized(original)._replace(weights=chances)
    moved = score_equations(MODELS[model], weighted, *rest).scores(theta, 1.0)
    np.testing.assert_allclose(moved.jacobian, wanted.jacobian, atol=1e-12)
    found, expected = (one.in_covariance(theta[1:]) for one in (moved, wanted))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    blind = made.scores(theta, 0.0)
    np.add.at(scores, number, -chances[:, None] * blind.scores)
    assert np.abs(scores).max() > 0.1


def test_exact_labels_and_categories_give_the_plain_fit(rng):
    """The matrix of no error gives the fit to exact columns, to the last digits."""
    n = 400
    x = np.column_stack([rng.random(n) < 0.5, rng.normal(size=n)]) * 1.0
    y = (rng.random(n) < expit(x @ [1.0, -0.5])) * 1
    frame = {"a": x[:, 0], "z": x[:, 1], "y": y}
    for kind in (nj.methods.Logistic(), nj.methods.Poisson()):
        exact = nj.fit(nj.table(frame, target="y", noise={"z": 0.1}), kind)
        known = {"z": 0.1, "a": Misclassified(np.eye(2))}
        found = nj.fit(nj.table(frame, target="y", noise=known), kind)
        agree(found, exact, "coefficients", "covariance", "intercept", atol=1e-9)


def test_flips_with_replicates_and_the_loss_of_flipped_labels(rng):
    """Without noise in x the root is where the mean gradient of `losses.flipped` is 0."""
    n, rates = 3_000, (0.2, 0.1)
    x = rng.normal(size=(n, 2))
    y = (rng.random(n) < expit(0.3 + x @ [1.0, -0.5])) * 1
    y = np.where(rng.random(n) < np.where(y == 1, *rates), 1 - y, y)
    fit = nj.fit(nj.observations.from_arrays(x, y, noise=0), nj.methods.Logistic(flips=rates))
    loss = nj.losses.flipped(nj.losses.logistic(), rates)
    p, label = fit.intercept + x @ fit.coefficients, 2.0 * y - 1
    with_labels = np.asarray(loss.gradient(p, label), np.float64)
    np.testing.assert_allclose(with_labels @ np.column_stack([np.ones(n), x]) / n, 0, atol=1e-6)

    copies = x[:, None] + 0.5 * rng.normal(size=(n, 2, 2))
    fit = nj.fit(nj.observations.from_arrays(copies, y), nj.methods.Logistic(flips=rates))
    assert np.all(np.abs(fit.coefficients - [1, -0.5]) < 5 * fit.std_error[1:])


def test_what_is_wrong_raises(rng):
    for bad in (0.5, -0.1, (0.1, 0.1, 0.1)):
        raises("Flip", nj.methods.Logistic, flips=bad)
    x, y = (rng.random((300, 7)) < 0.5) * 1.0, rng.poisson(1.0, size=300)
    counts = nj.observations.from_arrays(x, y, noise=0.0)
    raises("must be 0 or 1", nj.fit, counts, nj.methods.Logistic(flips=0.1))
    many = nj.observations.from_arrays(x, np.minimum(y, 1), noise=Misclassified(TWO))
    raises(r"at most 64 combinations .* but there are 128", nj.fit, many, nj.methods.Logistic())
