"""Products of noisy columns: exact moments, coverage, names and predictions, what is wrong."""

import itertools

import jax
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.noise import Gaussian, Laplace, Misclassified
from noisy_jax.observed.fits.linear_moments import linear_moments
from noisy_jax.observed.observations import from_arrays
from noisy_jax.observed.observations.products import expanded, measured
from tests.errors import raises
from tests.keys import SHIFT, key
from tests.observed.rows import agree, gaussians

CLEAN = {"x1": 0.7, "x2": -1.3, "z": 1.0}
PAIRS = [("x1", "x2"), ("x1", "x1"), ("z", "x1"), ("x2", "x2")]
MATRIX = [[0.9, 0.1], [0.3, 0.7]]


def check_exact(table, chances, pairs, naive=0.05):
    """Moments `[k, k]` with all columns, in the mean over rows with these probabilities."""
    base = np.array([CLEAN[name] for name in table.names])
    clean = np.append(base, [CLEAN[a] * CLEAN[b] for a, b in pairs])
    whole = expanded(table)
    assert whole.names[len(base) :] == tuple(f"{a}²" if a == b else f"{a} * {b}" for a, b in pairs)
    found = linear_moments(*whole.means(chances))
    np.testing.assert_allclose(found.x, clean, atol=1e-10)
    np.testing.assert_allclose(found.xx - found.cov, np.outer(clean, clean), atol=1e-10)
    plain = linear_moments(*measured(table).means(chances))
    assert np.abs(plain.xx - np.outer(clean, clean)).max() > naive


def quadrature(laws):
    """All combinations of nodes `[n, d]` of these laws, and their probabilities `[n]`."""
    nodes, weights = (np.array(list(itertools.product(*one))) for one in zip(*laws, strict=True))
    return nodes, weights.prod(axis=1)


def gauss(variance):
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    return variance**0.5 * nodes, weights / weights.sum()


def laplace(scale):
    nodes, weights = np.polynomial.laguerre.laggauss(5)
    return scale * np.append(-nodes, nodes), np.append(weights, weights) / 2


def columns(errors):
    noisy = {f"x{j + 1}": CLEAN[f"x{j + 1}"] + errors[:, j] for j in range(2)}
    return noisy | {"z": np.full(len(errors), CLEAN["z"]), "y": np.zeros(len(errors))}


@pytest.mark.claim("EXT-Products")
@pytest.mark.parametrize(
    "known",
    [
        {"x1": 0.3, "x2": Laplace(0.4)},
        {"x1": nj.sd(0.3**0.5), "x2": Laplace(0.4)},
        {"x1": Gaussian(0.3), "x2": Laplace(0.4)},
        Laplace([0.5, 0.4, 1e-9]),
    ],
    ids=["variance", "sd", "product", "laplace"],
)
def test_moments_are_those_of_clean_products(known):
    """By quadrature, in float64: squares and products of columns with noise of known laws."""
    first = laplace(0.5) if isinstance(known, Laplace) else gauss(0.3)
    errors, chances = quadrature([first, laplace(0.4)])
    check_exact(nj.table(columns(errors), target="y", noise=known, products=PAIRS), chances, PAIRS)


@pytest.mark.claim("EXT-Products")
def test_errors_of_columns_may_be_correlated_and_change_by_row():
    """Gaussian errors with a covariance; the sum over two kinds of rows has both exactly."""
    standard, chances = quadrature([gauss(1.0)] * 2)
    cov = np.zeros((2, 3, 3))
    cov[:, :2, :2] = [[[0.3, 0.2], [0.2, 0.5]], [[0.2, -0.1], [-0.1, 0.1]]]
    x, y = np.tile([*CLEAN.values()], (2, len(standard), 1)), np.zeros(2 * len(standard))
    for part, one in zip(x, cov, strict=True):
        part[:, :2] += standard @ np.linalg.cholesky(one[:2, :2]).T
    options = {"noise": gaussians(np.repeat(cov, len(standard), axis=0)), "products": PAIRS}
    with jax.enable_x64(True):
        table = from_arrays(x.reshape(-1, 3), y, names=[*CLEAN], **options)
    check_exact(table, np.tile(chances, 2) / 2, PAIRS)


# Joint errors of a copy of both columns, which are skewed and depend on each other.
JOINT = np.array([[-0.5, 0.3], [0.25, -0.9], [0.25, 0.6]])


def copies(places, missing=()):
    """All copies of both columns with joint errors, NaN where (column, place) are missing."""
    cells = np.array(list(itertools.product(range(3), repeat=places)))
    frame = {"z": np.full(len(cells), CLEAN["z"]), "y": np.zeros(len(cells))}
    for j, v in itertools.product(range(2), range(places)):
        values = CLEAN[f"x{j + 1}"] + JOINT[cells[:, v], j]
        frame[f"x{j + 1}{v}"] = np.full(len(cells), np.nan) if (j, v) in missing else values
    names = {f"x{j}": [f"x{j}{v}" for v in range(places)] for j in (1, 2)}
    return frame, names, np.full(len(cells), 3.0**-places)


@pytest.mark.claim("EXT-Products")
@pytest.mark.parametrize(
    ("places", "missing", "pairs"),
    [(4, [], PAIRS), (5, [(1, 0)], PAIRS), (3, [], [("x1", "z")]), (2, [], [("x1", "z")])],
    ids=["four", "incomplete", "three", "two"],
)
def test_moments_from_replicates_need_no_law(places, missing, pairs):
    """By enumeration: skewed errors, which both columns share in each copy."""
    frame, names, chances = copies(places, missing)
    if places == 2:  # x2 beside them is exact
        frame |= {"x2": np.full(len(chances), CLEAN["x2"])}
        del frame["x20"], frame["x21"], names["x2"]
    check_exact(nj.table(frame, target="y", replicates=names, products=pairs), chances, pairs, 0.02)


@pytest.mark.claim("EXT-Products")
def test_replicates_beside_known_errors_and_misclassified_columns():
    """Laplace errors of several copies and of one, and an indicator that is recorded wrongly."""
    pairs = [("x1", "x1"), ("x1", "x2"), ("x2", "z"), ("x2", "x2")]
    parts = [laplace(0.4)] * 2 + [laplace(0.5)]
    errors, chances = quadrature([*parts, (np.array([0, 1]), np.array([0.3, 0.7]))])
    frame = columns(errors[:, [0, 2]])
    frame |= {"x1b": CLEAN["x1"] + errors[:, 1], "z": errors[:, 3]}  # z is 1
    known = {"x2": Laplace(0.5), "z": Misclassified(MATRIX)}
    for noise in ({"x1": Laplace(0.4), **known}, known):
        some = pairs if "x1" in noise else pairs[2:]
        options = {"noise": noise, "replicates": {"x1": ["x1", "x1b"]}, "products": some}
        check_exact(nj.table(frame, target="y", **options), chances, some)


TRUTH = {"x1": 1.0, "x2": -1.0, "z": 0.5, "x1 * x2": 1.0, "x1²": 0.7, "x2 * z": -0.5}


def drawn(rng, n, copies=0, truth=TRUTH):
    """A frame with Gaussian noise of variances .25 and .16, or Laplace noise in copies."""
    x1, x2 = rng.normal(size=(2, n)) + np.array([[0.5], [0.0]])
    clean = {"x1": x1, "x2": x2, "z": (rng.random(n) < 0.5) * 1.0}
    values = clean | {"x1 * x2": x1 * x2, "x1²": x1**2, "x2 * z": x2 * clean["z"]}
    y = sum(truth[name] * values[name] for name in truth) + 0.3 * rng.normal(size=n)
    frame = {"z": clean["z"], "y": y}
    for name, scale in (("x1", 0.5), ("x2", 0.4)):
        if not copies:
            frame[name] = clean[name] + scale * rng.normal(size=n)
        for v in range(copies):
            frame[f"{name}{v}"] = clean[name] + scale * rng.laplace(size=n)
    return frame


KNOWN = {"x1": 0.25, "x2": 0.16}
WANTED = [("x1", "x2"), ("x1", "x1"), ("x2", "z")]
SQUARE = [("x1", "x1")]


def table(rng, n, copies=0, pairs=WANTED, truth=TRUTH):
    names = {name: [f"{name}{v}" for v in range(copies)] for name in KNOWN}
    options = {"replicates": names} if copies else {"noise": KNOWN}
    options |= {"features": ["x1", "x2", "z"], "products": pairs}
    return nj.table(drawn(rng, n, copies, truth), target="y", **options)


def test_names_predictions_and_the_uncorrected_fit():
    """`predict` multiplies; the uncorrected fit is least squares on products of measured values."""
    rng = np.random.default_rng(1)
    frame = drawn(rng, 800)
    rows = nj.table(frame, target="y", noise=KNOWN, features=["x1", "x2", "z"], products=WANTED)
    assert rows.names == ("x1", "x2", "z")
    fit = nj.fit(rows)
    assert fit.labels == ("intercept", *TRUTH)
    assert "x1²" in str(fit.summary())
    x = rng.normal(size=(5, 3))
    design = np.column_stack([x, x[:, 0] * x[:, 1], x[:, 0] ** 2, x[:, 1] * x[:, 2]])
    expected = fit.intercept + design @ fit.coefficients
    np.testing.assert_allclose(fit.predict(x), expected, rtol=1e-12)
    shuffled = pd.DataFrame(x, columns=["x1", "x2", "z"])[["z", "x2", "x1"]]
    np.testing.assert_allclose(fit.predict(shuffled), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(fit.predict)(x), expected, rtol=1e-4)
    raises(r"x must be \[\.\.\., 3\]", fit.predict, design)

    x = rows.x[:, 0]
    design = np.column_stack([x, x[:, 0] * x[:, 1], x[:, 0] ** 2, x[:, 1] * x[:, 2]])
    plain = nj.fit(from_arrays(design, rows.y, noise=0.0))
    agree(fit.uncorrected, plain, "intercept", "coefficients", "covariance", rtol=1e-8)
    np.testing.assert_allclose(fit.uncorrected.predict(x), plain.predict(design), rtol=1e-8)
    errors = (rows.y - plain.predict(design)) ** 2
    assert abs(fit.risk.uncorrected - errors.mean()) > 0.01  # at clean, not at measured rows


@pytest.mark.statistical
def test_selection_estimates_clean_errors_with_products():
    """A fit with products is judged at clean products, and is better than a line."""
    rows = table(np.random.default_rng(2 + SHIFT), 2_000)
    columns = drawn(np.random.default_rng(2 + SHIFT), 2_000)
    line = nj.table(columns, target="y", noise=KNOWN, features=["x1", "x2", "z"])
    makes = {"products": nj.fit, "line": lambda some: nj.fit(line.rows(np.arange(len(some.y))))}
    found = nj.select(makes, rows, key())
    assert abs(found.risk[0] - 0.09) < 5 * found.std_error[0]
    assert found.risk[1] > 0.5


@pytest.mark.filterwarnings("ignore:the error on clean data is estimated below 0")
def test_factors_far_from_zero_raise(rng):
    """Their fourth powers would lose the digits that products need."""
    x = rng.normal(size=(50, 1))
    options = {"noise": 0.1, "products": [("x1", "x1")]}
    near, exact = (nj.fit(from_arrays(one, x[:, 0], **options)) for one in (100 + x, x))
    np.testing.assert_allclose(near.coefficients[1], exact.coefficients[1], rtol=1e-4)
    raises("subtract a number near the mean", from_arrays, 1e4 + x, x[:, 0], **options)


def test_what_is_wrong_raises(rng):
    frame = drawn(rng, 60)

    def wrong(match, pairs, noise=KNOWN, frame=frame, **options):
        raises(match, nj.table, frame, target="y", noise=noise, products=pairs, **options)

    wrong("pairs of names", ("x1", "x2"))
    wrong("pairs of names.*got 3", 3)
    wrong("products name 'w', but the columns", [("x1", "w")])
    wrong("must be different", [("x1", "x2"), ("x2", "x1")])
    wrong("independent of those in x", WANTED, cross_cov={"x1": 0.1})
    wrong("'x1' has a reliability", WANTED, {"x1": nj.reliability(0.8)})
    for law in (nj.noise.StudentT(3, 1.0), nj.noise.Multiplicative(1)):
        wrong("errors of a known law", SQUARE, {"x1": law})
    estimate = nj.noise.CovarianceEstimate(0.1 * np.eye(3), 0.01 * np.eye(3))
    wrong("give the variance, not a noise.CovarianceEstimate", WANTED, estimate)
    wrong("have the name 'x1²' of a column", SQUARE, frame={**frame, "x1²": frame["z"]})
    sex, flips = {**frame, "sex": np.arange(60) % 2}, Misclassified([[0.9, 0.1], [0.1, 0.9]])
    wrong("is an indicator, which is its own square", [("sex", "sex")], {"sex": flips}, frame=sex)
    raises("x1 · x2 · x1 · x2 needs 4 replicates", table, rng, 60, 3)
    names = {"x1": [f"x1{v}" for v in range(4)]}
    unequal = {name: one for name, one in drawn(rng, 60, 4).items() if not name.startswith("x2")}
    unequal["x13"][7] = np.nan
    wrong("needs 4 replicates, .* but row 7", SQUARE, None, frame=unequal, replicates=names)
    nj.table(unequal, target="y", replicates=names, products=[("x1", "z")])

    rows = nj.table(frame, target="y", noise=KNOWN, products=WANTED)
    calibration = nj.methods.RegressionCalibration("linear")
    for method in (nj.methods.Fourier(length_scale=1.0), calibration, nj.methods.Poisson()):
        raises("takes no products", nj.fit, rows, method)
    raises("takes no products", nj.learn, nj.learners.known_covariance(radius=1.0), rows, key())
    for parts in ([rows], [rows, rows]):
        raises("products are for one whole table", nj.fit, parts)
