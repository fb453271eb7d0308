"""Choosing afterwards: the risks are those on clean data, though all rows are noisy."""

import dataclasses

import jax
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import key
from tests.observed.test_cross_fitting import table


def fixed(intercept, slope):
    """A candidate that does not look at the rows."""
    line = nj.fits.Estimates(
        labels=("intercept", "x1"),
        values=np.array([intercept, slope]),
        covariance=np.eye(2),
        degrees_of_freedom=100,
        names=("x1",),
    )
    return lambda some: line


def test_a_lower_risk_that_is_uncertain_is_not_the_best():
    """y is 1, and the second predictor adds the column, which is all noise, of variance 1.

    In this table it varies less than expected, .9 up or down in clusters of 16 rows: its risk is
    1 ± 1.8 + .81 − 1 in each cluster, .76 on average with a standard error of .31.
    """
    x = np.where(np.arange(560) // 16 % 2, 0.9, -0.9)[:, None]
    rows = from_arrays(x, np.ones(560), noise=1.0)
    candidates = {"zero": fixed(0.0, 0.0), "noise": fixed(0.0, -1.0)}
    found = nj.select(candidates, rows, jax.random.key(0), clusters=np.arange(560) // 16)
    np.testing.assert_allclose(found.risk, [1, 0.81 - 1.8 / 35], rtol=1e-9)
    np.testing.assert_allclose(found.std_error, [0, 1.8 / 34**0.5], rtol=1e-2, atol=1e-12)
    assert found.best == "zero"


def test_what_cannot_be_told_apart_is_said(rng):
    """Two candidates differ by less than their paired error, and the others by more."""
    x = rng.normal(size=(640, 1))
    rows = from_arrays(x + 0.7 * rng.normal(size=x.shape), x[:, 0], noise=0.49)
    candidates = {"far": fixed(3.0, 1.0), "heavy": fixed(0.0, 0.1)}
    candidates |= {"light": fixed(0.01, 1.0), "lighter": fixed(-0.01, 1.0)}
    found = nj.select(candidates, rows, key(0))
    assert found.best in ("light", "lighter")
    assert found.tied == ("light", "lighter")
    assert (found.difference_std_error[2:] < 0.1 * found.std_error[2:]).all()  # paired
    text = str(found)
    assert "cannot tell light, lighter apart (95%): take the simplest, or collect more" in text
    order = [line.split()[0] for line in text.splitlines() if line.startswith((*candidates,))]
    assert [{*order[:2]}, *order[2:]] == [{"light", "lighter"}, "heavy", "far"]
    del candidates["lighter"]
    alone = nj.select(candidates, rows, key(0))
    assert alone.verdict() == "light has the lowest risk (95%)."


@pytest.mark.parametrize("gradient", [np.nan, 1e30])
def test_a_candidate_that_diverged_is_last_and_not_tied(gradient):
    """Also where its squared errors are infinite."""
    _, _, rows = table(noise=0.5)
    options = {"copies": 1, "radius": 1e30, "learning_rate": 1.0}
    broken = nj.learners.gradient_descent(lambda w, sample: gradient + 0 * w, **options)
    found = nj.select({"broken": broken, "fit": nj.fit}, rows, jax.random.key(0))
    assert np.isnan(found.risk[0])
    assert found.tied == ("fit",)
    assert str(found).splitlines()[4].startswith("broken")
    raises("every candidate diverged", nj.select, {"broken": broken}, rows, jax.random.key(0))


def test_estimators_of_scikit_learn_are_judged_as_fits():
    """Least squares is the uncorrected fit, alone and in a pipeline; `fit` beats a ridge."""
    rng = np.random.default_rng(8)
    x = rng.normal([5.0, 0.0], size=(3000, 2))
    y = 3 * x[:, 0] - x[:, 1] + 0.5 * rng.normal(size=3000)
    rows = from_arrays(x[:, None] + rng.normal(size=(3000, 2, 2)), y)
    candidates = {
        "fit": nj.fit,
        "uncorrected": lambda some: nj.fit(some).uncorrected,
        "least squares": LinearRegression(),
        "pipeline": make_pipeline(StandardScaler(), LinearRegression()),
        "ridge": Ridge(alpha=100.0),
    }
    found = nj.select(candidates, rows, jax.random.key(0))
    np.testing.assert_allclose(found.risk[2:4], found.risk[1], rtol=1e-9)
    np.testing.assert_allclose(found.std_error[2:4], found.std_error[1], rtol=1e-9)
    assert found.tied == ("fit",)
    alone = nj.select({"ridge": candidates["ridge"]}, rows, jax.random.key(0))
    ridge = alone.refit()
    low, high = alone.interval()
    assert low[0] < np.mean((ridge.predict(x) - y) ** 2) < high[0]
    assert not hasattr(candidates["ridge"], "coef_")  # a copy was fitted


KERNEL = nj.kernels.gaussian(length_scale=1.0)
KERNEL = nj.learners.uncorrected_kernel(KERNEL, horizon=560, radius=1)
WORLD = nj.worlds.gaussian(dim=3, length_scale=2.0, noise=nj.noise.Gaussian(0.5))
WORLDS = nj.learners.parallel_worlds(WORLD, horizon=560, radius=1.0)
ONE = nj.learners.uncorrected(radius=1.0)
NOT_LINEAR = r"candidate 'a': its predictions are not linear in x.* nj.methods.Fourier\(…\).fitted"


def labelled(rows):
    """A fit to labels, whose predictions are probabilities."""
    return nj.fit(dataclasses.replace(rows, y=1.0 * (rows.y > 5)), nj.methods.Logistic())


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        ({}, {}, "candidates must map at least one name to a learner"),
        (ONE, {}, "candidates must map at least one name to a learner, .*, got Learner"),
        ({"a": 3}, {}, "candidate 'a': must be a learner, a function .*, got 3"),
        ({"a": nj.learners.two_copies}, {}, "the function two_copies, which makes one: call"),
        ({"a": lambda rows: 3}, {}, "candidate 'a': must return a fit .* returned 3"),
        ({"a": KERNEL}, {}, "candidate 'a': of this learner noisy rows do not show its error"),
        ({"a": WORLDS}, {"standardize": False}, "candidate 'a': the learner needs 2 noisy copies"),
        ({"a": WORLDS}, {}, "built for one Gaussian .* has its own units: use standardize=Fal"),
        ({"a": nj.wrappers.paired(ONE)}, {}, "predicts several columns"),
        ({"a": RandomForestRegressor(3, random_state=0)}, {}, NOT_LINEAR),
        ({"line": nj.fit, "a": labelled}, {}, NOT_LINEAR),
        (
            {"a": lambda rows: nj.fit(from_arrays(rows.x, rows.y, noise=0.5, names=[*"ba"]))},
            {},
            "candidate 'a': its fit has the columns 'b', 'a', but the table",
        ),
        ({"a": nj.fit}, {"folds": 641}, "folds must be at most 560, the number of rows, got 641"),
        ({"a": nj.fit}, {"clusters": np.arange(560) // 280}, "at most 2, the number of clusters"),
        ({"a": nj.fit}, {"folds": 560, "clusters": np.zeros(3)}, "clusters must be 560 labels"),
    ],
)
def test_bad_input_is_one_clear_message(candidates, options, message):
    _, _, rows = table(noise=0.5)
    raises(message, nj.select, candidates, rows, jax.random.key(0), **options)


def test_learners_for_other_rows_are_named():
    _, _, pairs = table(copies=2, noise=nj.noise.Gaussian(0.5))
    _, _, unknown = table(copies=2)
    short = nj.worlds.gaussian(dim=2, length_scale=2.0, noise=nj.noise.Gaussian(0.5))
    short = nj.learners.parallel_worlds(short, horizon=100, radius=1.0)
    for learner, rows, message in (
        (short, pairs, "'a': the table has 560 rows, but .* room for 100: build"),
        (WORLDS, pairs, "'a': made for data of dimension 3, got dimension 2"),
        (ONE, unknown, "'a': of this learner one copy of unknown noise is too few"),
    ):
        raises(message, nj.select, {"a": learner}, rows, jax.random.key(0), standardize=False)


def test_an_option_of_learners_is_for_learners():
    *_, rows = table(noise=0.5)
    options = {"standardize": False}
    raises("no candidate is one", nj.select, {"a": nj.fit}, rows, jax.random.key(0), **options)
    raises(r"key such as jax.random.key\(0\), got 0", nj.select, {"a": nj.fit}, rows, 0)
