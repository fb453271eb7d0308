"""Tables that contradict the classical error model are told from those that do not."""

import warnings

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.assumptions import AssumptionWarning, doubts
from noisy_jax.observed.observations import from_arrays
from tests.keys import SHIFT


def misclassified(rng, n):
    """Exposures of 0 and 1, wrong in 15% of rows, with the variance of this error."""
    x = 1.0 * (rng.random(n) < 0.4)
    seen = np.where(rng.random(n) < 0.15, 1 - x, x)
    other = rng.normal(size=n)
    y = x + other + 0.5 * rng.normal(size=n)
    return from_arrays(np.column_stack([seen, other]), y, noise=[0.1275, 0.0])


def misclassified_twice(rng, n):
    x = 1.0 * (rng.random((n, 1)) < 0.4)
    seen = np.where(rng.random((n, 2)) < 0.15, 1 - x, x)
    return from_arrays(seen[:, :, None], x[:, 0] + 0.5 * rng.normal(size=n))


def transformed(function, sd, copies=2):
    """Replicates of one measurement, each transformed."""

    def make(rng, n):
        x = rng.normal(size=(n, 1))
        seen = function(x + sd * rng.normal(size=(n, copies)))
        clean = function(x)[:, 0]
        y = clean @ np.array([1.0, -1.0])[: clean.shape[1]] + 0.3 * rng.normal(size=n)
        return from_arrays(seen, y)

    return make


def drifting(rng, n):
    """A second measurement that is larger than the first, by .4 on the average."""
    x = rng.normal(size=(n, 1))
    copies = x + 0.7 * rng.normal(size=(n, 3)) + [0.0, 0.4, 0.0]
    return from_arrays(copies[:, :, None], x[:, 0])


def filled_in(rng, n):
    """Half of the second measurements are the first ones."""
    x = rng.normal(size=(n, 1))
    copies = x + 0.7 * rng.normal(size=(n, 2))
    copies[: n // 2, 1] = copies[: n // 2, 0]
    return from_arrays(copies[:, :, None], x[:, 0] + 0.5 * rng.normal(size=n))


def too_large(rng, n):
    """A standard deviation of .7 in place of the variance."""
    x = rng.normal(size=(n, 1))
    return from_arrays(x + 0.7 * rng.normal(size=x.shape), x[:, 0], noise=0.7)


def waves(x):
    return np.stack([np.cos(x), np.sin(x)], axis=-1)


def exponential(x):
    return np.exp(x)[..., None]


def computed(function, digits=12):
    """The first of two measurements is noisy, and a column computed from both is "exact"."""

    def make(rng, n):
        a, b = rng.normal(size=(2, n)) + 2
        noisy = a + 0.3 * rng.normal(size=n)
        x = np.column_stack([noisy, b, np.round(function(noisy, b), digits)])
        return from_arrays(x, a + b - a * b + 0.5 * rng.normal(size=n), noise=[0.09, 0, 0])

    return make


def half_exact(rng, n):
    """The replicates of a product differ, but its noise is said to be 0."""
    a, b = rng.normal(size=(2, n, 1))
    copies = a + 0.5 * rng.normal(size=(n, 2))
    x = np.stack([copies, copies * b], axis=-1)
    return from_arrays(x, (a + a * b)[:, 0], noise=[0.25, 0.0])


def incomplete(make):
    """A table `[n, V, 1]` of which the last copy is missing in half of the rows."""

    def made(rng, n):
        whole = make(rng, n)
        copies = whole.x[:, :, 0].copy()
        copies[rng.random(n) < 0.5, -1] = np.nan
        frame = {f"x1{v}": copies[:, v] for v in range(copies.shape[1])} | {"y": whole.y}
        return nj.table(frame, target="y", replicates={"x1": [*frame][:-1]})

    return made


def measured_often(rng, n):
    """Each row is one of three measurements of a subject, and nobody says so."""
    x = np.repeat(rng.normal(size=(n // 3, 2)), 3, axis=0)
    y = x.sum(axis=1) + np.repeat(0.5 * rng.normal(size=n // 3), 3)
    return from_arrays(x + [0.7, 0] * rng.normal(size=x.shape), y, noise=[0.49, 0])


WRONG = {
    "0 and 1": (misclassified, r"'x1' \(2 values\).*declare the column exact"),
    "0 and 1, incomplete": (incomplete(misclassified_twice), r"'x1' \(2 values\)"),
    "exponential, incomplete": (incomplete(transformed(exponential, 0.5, 3)), "'x1' .by"),
    "rows of one subject": (measured_often, r"target .* in 'y' \(500 values in 1,500 rows\): such"),
    "means": (drifting, r"different means in 'x1' .by up to 0\.4?.*subtract its mean from each"),
    "copied": (filled_in, r"equal in many rows in 'x1' \(1 and 2\)"),
    "sd as variance": (too_large, "estimated below 0.*standard deviation in place of a variance"),
    "embedding": (transformed(waves, 0.785), "untransformed measurements"),
    "exponential": (transformed(exponential, 0.5), "'x1' .by"),
    "rounded product": (computed(lambda a, b: (a - 2) * (b - 2), digits=3), "'x1' and 'x2'"),
    "wave of one": (computed(lambda a, b: np.sin(2 * a)), "'x3' .computed from 'x1'[)]"),
    "exact replicates differ": (half_exact, "'x2' .its replicates differ"),
}


@pytest.mark.parametrize("rounded", [lambda x: np.round(x, 1), lambda x: np.maximum(x, 0)])
def test_equal_values_of_rounding_or_a_limit_of_detection_are_no_copies(rng, rounded):
    x = 3 * rng.normal(size=(5000, 1, 1))
    rows = from_arrays(rounded(x + 0.04 * rng.normal(size=(5000, 2, 1))), x[:, 0, 0])
    assert (rows.x[:, 0] == rows.x[:, 1]).sum() > 1000
    assert not [doubt for doubt in doubts(rows) if "equal" in doubt.text]


@pytest.mark.statistical
@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_classical_error_is_said(name):
    """And nothing else is, but by chance in at most 1% of tables."""
    make, message = WRONG[name]
    with pytest.warns(AssumptionWarning, match=message) as caught:
        fit = nj.fit(make(np.random.default_rng(1000 * SHIFT), 1500))
    assert [one.filename for one in caught] == [__file__]  # one, at the user's line
    (remark,) = fit.remarks
    assert "\n" not in remark
    assert remark in " ".join(str(fit).split())
    assert fit.risk.doubted
    assert fit.risk.verdict() != "the correction helps"


def test_names_may_hold_anything(rng):
    frame = {"…{first}": misclassified(rng, 600).x[:, 0, 0], "y": rng.normal(size=600)}
    (doubt,) = doubts(nj.table(frame, target="y", noise={"…{first}": 0.1}))
    assert doubt.text.startswith("noise is declared in '…{first}' (2 values), but")
    assert "noise={'…{first}': nj.noise.Misclassified(matrix)}" in doubt.text


DRAWS = {
    "gaussian": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) - 1,
}
"""Noise of variance 1."""


def features(kind, rng, n):
    x = rng.normal(size=(n, 4)) + rng.normal(size=(n, 1))
    if kind == "lognormal":
        return np.exp(x)
    if kind == "classes":
        return np.where([True, False, True, False], x > 1, x)
    return x if kind == "normal" else x + 20 * rng.integers(0, 3, size=(n, 1))


def replicates(noise, columns, copies):
    """Errors of the first two columns depend on each other; the last column is exact."""

    def make(rng, n):
        x = features(columns, rng, n)
        y = x.sum(axis=1) + (1 + np.abs(x[:, 0])) * DRAWS[noise](rng, n)
        error = DRAWS[noise](rng, (n, copies, 4)) * [1, 1, 1, 0]
        error[:, :, 1] += error[:, :, 0]
        return from_arrays(x[:, None] + 0.6 * x.std(axis=0) * error, y)

    return make


def with_exact(noise, columns, size):
    """Exact columns are functions of the clean values of noisy ones, and one of them is a copy."""

    def make(rng, n):
        x = features(columns, rng, n)
        exact = [x[:, 0] * x[:, 1], np.exp(x[:, 2] / np.abs(x[:, 2]).max()), x[:, 0], x[:, 3] > 0]
        error = size * x.std(axis=0) * DRAWS[noise](rng, x.shape)
        known = np.append((size * x.std(axis=0)) ** 2, np.zeros(4))
        return from_arrays(np.column_stack([x + error, *exact]), x.sum(axis=1), noise=known)

    return make


RIGHT = {
    "gaussian": replicates("gaussian", "normal", 2),
    "uniform": replicates("uniform", "classes", 2),
    "incomplete": incomplete(transformed(lambda x: x[..., None], 0.5, 3)),
    "three copies": replicates("skewed", "lognormal", 3),
    "exact, little noise": with_exact("uniform", "clusters", 0.05),
}


@pytest.mark.statistical
@pytest.mark.parametrize("n", [40, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", RIGHT)
def test_classical_errors_are_not_doubted(name, n):
    """At most 1% of tables: 6 of 40 would be a chance of 4e-6."""
    rng = np.random.default_rng(2 + 1000 * SHIFT)
    assert sum(bool(doubts(RIGHT[name](rng, n))) for _ in range(40)) < 6


def test_noise_of_discrete_values_and_rounded_numbers_are_not_doubted(rng):
    x = 1.0 * rng.integers(0, 2, size=400)
    seen = x + rng.choice([-0.5, 0.5], size=400)  # three values
    assert doubts(from_arrays(seen[:, None], x, noise=nj.noise.Rademacher(0.5))) == []
    z = rng.normal(size=400)
    assert doubts(from_arrays(np.round(z + rng.normal(size=400))[:, None], z, noise=1.0)) == []
    exact = from_arrays(np.column_stack([x, z + rng.normal(size=400)]), z, noise=[0.0, 1.0])
    assert doubts(exact) == []
    assert doubts(from_arrays(rng.poisson(1.0 + x[:, None]), x, noise=nj.noise.Poisson())) == []


def test_one_row_of_each_cluster_is_checked(rng):
    """Copies of rows do not make chance look sure, and labels do not hide what is there."""
    x = rng.normal(size=(60, 2, 1)) + rng.normal(size=(60, 1, 1))
    y, labels = x.mean(axis=(1, 2)) + rng.normal(size=60), np.repeat(np.arange(60), 100)
    many = from_arrays(np.repeat(x, 100, axis=0), np.repeat(y, 100))
    alone = {doubt.text for doubt in doubts(from_arrays(x, y))}
    assert {doubt.text for doubt in doubts(many, labels)} == alone
    assert doubts(misclassified(rng, 600), np.arange(600) // 2)
    with pytest.warns(AssumptionWarning):
        assert nj.fit(misclassified(rng, 600), clusters=np.arange(600) // 2).remarks


@pytest.mark.slow
def test_every_way_to_fit_says_it(rng):
    observed = misclassified(rng, 1024)
    sick = from_arrays(observed.x, 1.0 * (observed.y > 0), noise=nj.noise.Gaussian([0.12, 0.0]))
    ways = {
        "jackknife": lambda: nj.fit(observed, errors="jackknife"),
        "weights": lambda: nj.fit(observed, weights=np.arange(1024)),
        "chunks": lambda: nj.fit([observed.rows(np.arange(700)), observed.rows(np.arange(324))]),
        "kernel": lambda: nj.fit(sick, nj.methods.Fourier(length_scale=2.0, num_features=8)),
    }
    for way, fit in ways.items():
        with pytest.warns(AssumptionWarning, match="2 values") as caught:
            made = fit()
        assert [one.filename for one in caught] == [__file__], way
        assert "(2 values)" in str(made)
        assert made.risk is None or made.risk.verdict() != "the correction helps"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nj.fits.AssumptionWarning)
        assert nj.fit(observed).remarks


@pytest.mark.slow
def test_learn_and_select_say_it_once(rng):
    observed = misclassified(rng, 640)
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    with pytest.warns(AssumptionWarning, match="2 values") as caught:
        nj.learn(learner, observed, jax.random.key(0))
    assert [one.filename for one in caught] == [__file__]
    with pytest.warns(AssumptionWarning, match="2 values") as caught:
        nj.select({"fit": nj.fit, "leader": learner}, observed, jax.random.key(0))
    assert [one.filename for one in caught] == [__file__]
