"""Weights, clusters and exposures that are columns: they are no features, of whatever frame."""

import warnings

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit

import noisy_jax as nj
from tests.errors import told
from tests.observed.rows import agree

N = 4000
ROWS = np.random.default_rng(1)
X = ROWS.normal(size=N)
SCHOOL = np.repeat([f"school {k}" for k in range(40)], N // 40)
EFFECTS = np.repeat(ROWS.normal(size=40), N // 40)
Y = 2 * X + EFFECTS + 0.5 * ROWS.normal(size=N)
FRAME = {
    "x": X + 0.5 * ROWS.normal(size=N),
    "z": ROWS.normal(size=N),
    "w": expit(Y) + 0.1 * ROWS.random(N),  # as a feature it takes most of what x explains
    "school": SCHOOL,
    "t": ROWS.uniform(0.5, 20.0, N),
    "y": Y,
}
FRAME["count"] = ROWS.poisson(FRAME["t"] * np.exp(0.5 * X - 1)) * 1.0
FRAME["label"] = (ROWS.random(N) < expit(2 * X)) * 1.0
FRAME["own"] = 1 / (0.5 + ROWS.random(N))  # weights that do not depend on y
NOISE = {"x": 0.25}


def table(*columns, target="y", kind=dict, **options):
    own = {name: FRAME[name] for name in (*columns, target)}
    return nj.table(kind(own), target=target, noise=NOISE, **options)


def same(fit, other):
    assert fit.names == other.names
    agree(fit, other, "coefficients", "intercept", "covariance", rtol=1e-9)


def test_a_feature_that_fit_is_told_to_take_is_no_feature_any_more():
    """Numbers, or the indicators of texts; noise of a known law keeps its other columns."""
    for options in ({"weights": "own"}, {"clusters": "school"}):
        (name,) = options.values()
        fit = nj.fit(table("x", name, "z"), **options)
        same(fit, nj.fit(table("x", name, "z", **options)))
    law, kernel = {"x": nj.noise.Laplace(0.3)}, {"length_scale": 2.0, "num_features": 8}
    rows = nj.table({k: FRAME[k] for k in ("own", "x", "y")}, target="y", noise=law)
    alone = nj.table({k: FRAME[k] for k in ("x", "y")}, target="y", noise=law)
    found = nj.fit(rows, nj.methods.Fourier(**kernel, weights="own")).risk.corrected
    wanted = nj.fit(alone, nj.methods.Fourier(**kernel, weights=FRAME["own"])).risk.corrected
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    copies = {k: FRAME[k] for k in ("x", "own", "y")} | {"x2": X + 0.5 * ROWS.normal(size=N)}
    rows = nj.table(copies, target="y", replicates={"x": ["x", "x2"]})
    assert nj.fit(rows, weights="own").names == ("x",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        nj.methods.Linear(),
        nj.methods.Logistic(),
        nj.methods.Poisson(),
        nj.methods.Model(lambda p, x: p[0] + p[1] * x[0], np.zeros(2)),
        nj.methods.Fourier(length_scale=2.0, num_features=8),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_method_takes_columns_of_the_table(method):
    """As arrays beside a frame without them."""
    kind = type(method).__name__
    target = {"Logistic": "label", "Poisson": "count"}.get(kind, "y")
    named = {"weights": "own", "clusters": "school"}
    named |= {"exposure": "t"} if kind == "Poisson" else {}
    options = {"noise": {"x": nj.sd(0.5, gaussian=True)}, "target": target}
    rows = {name: FRAME[name][:800] for name in ("x", *named.values(), target)}
    made = nj.table(pl.DataFrame(rows), **named, **options)
    assert made.names == ("x",)
    plain = nj.table({"x": rows["x"], target: rows[target]}, **options)
    given = {role: rows[name] for role, name in named.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = nj.fit(plain, type(method)(**{**vars(method), **given}))
        fit = nj.fit(made, method)
    for name in ("coefficients", "covariance", "weights"):
        if hasattr(fit, name):
            np.testing.assert_allclose(getattr(fit, name), getattr(other, name), rtol=1e-5)
    assert fit.num_rows == other.num_rows == 800


def test_rows_of_weight_zero_are_left_out_of_clusters_and_exposures_too():
    zero = {**FRAME, "own": np.where(np.arange(N) < 100, 0.0, FRAME["own"])}
    kept = {name: values[100:] for name, values in FRAME.items()}
    named = {"weights": "own", "clusters": "school", "exposure": "t"}
    options = {"target": "count", "noise": NOISE, "features": ["x"], **named}
    method = nj.methods.Poisson()
    same(nj.fit(nj.table(zero, **options), method), nj.fit(nj.table(kept, **options), method))


def test_subjects_have_one_weight_and_cluster_each():
    schools = np.arange(600) // 30
    long = {name: np.repeat(FRAME[name][:600], 2) for name in ("y", "own")}
    long |= {"id": np.repeat(np.arange(600), 2), "x": np.repeat(X[:600], 2)}
    long["school"] = np.repeat(schools, 2)
    long["x"] = long["x"] + 0.5 * ROWS.normal(size=1200)
    options = {"target": "y", "subject": "id", "replicates": ["x"]}
    fit = nj.fit(nj.table(long, **options, weights="own", clusters="school"))
    plain = nj.table({name: long[name] for name in ("id", "x", "y")}, **options)
    same(fit, nj.fit(plain, weights=FRAME["own"][:600], clusters=schools))
    own = long["own"].copy()
    own[1] = 7.0
    with told("column 'own' differs between rows 0 and 1 of subject 0"):
        nj.table({**long, "own": own}, **options, weights="own", clusters="school")


def test_an_array_that_is_a_feature_too_is_an_error():
    """Unless the option features names the column, and so says that it is meant."""
    for role, method in (("weights", nj.methods.Linear), ("exposure", nj.methods.Poisson)):
        target = "count" if role == "exposure" else "y"
        with told(f"{role} are the values of the feature 't'", f"nj.table(…, {role}='t')"):
            nj.fit(table("x", "t", target=target), method(**{role: FRAME["t"]}))
    number = np.repeat(np.arange(40.0), N // 40)
    frame = {"x": FRAME["x"], "year": number, "y": Y}
    options = {"target": "y", "noise": NOISE}
    with told("clusters are the values of the feature 'year'"):
        nj.fit(nj.table(frame, **options), clusters=number)
    both = nj.table(frame, features=["x", "year"], clusters="year", **options)
    assert both.names == ("x", "year")
    same(nj.fit(both), nj.fit(nj.table(frame, **options), clusters=number.astype(str)))


def test_what_is_wrong_is_told():
    rows = table("x", "own", weights="own")
    with told("the table has weights already, the column 'own'"):
        nj.fit(rows, weights=FRAME["own"])
    same(nj.fit(rows, weights="own"), nj.fit(rows))
    with told("nj.learn takes no weights"):
        nj.learn(nj.learners.known_covariance(radius=1.0), rows, jax.random.key(0))
    with told("take no 'weights': these are for one table"):
        nj.fit([rows, rows])
    with told("select takes no weights"):
        nj.select({"fit": nj.fit}, rows, jax.random.key(0))
    with told("Linear takes no exposure"):
        nj.fit(table("x", "t", exposure="t"))
    with told("the table has no column 'v', only 'x', 'z'", "nj.table(…, weights='v')"):
        nj.fit(table("x", "z"), weights="v")
    with told("'x' is a feature of this table"):
        nj.fit(table("x", "z"), weights="x")
    with told("weights must be the name of a column", "nj.methods.Linear(weights=…)"):
        table("x", weights=FRAME["own"])
    with told("named twice, as the column of weights and as the column of clusters"):
        table("x", "own", weights="own", clusters="own")
    bad = {**FRAME, "own": -FRAME["own"], "school": [None, *SCHOOL[1:]], "t": 0 * FRAME["t"]}
    options = {"target": "count", "noise": NOISE, "features": ["x"]}
    with told("weights, column 'own', must be finite and >= 0"):
        nj.table(bad, weights="own", **options)
    with told("clusters, column 'school', must be labels, got None in row 0"):
        nj.table(bad, clusters="school", **options)
    with told("exposure, column 't', must be positive"):
        nj.table(bad, exposure="t", **options)


@pytest.mark.parametrize("role", ["weights", "clusters", "exposure", "subject"])
def test_a_column_beside_the_features_has_one_cell_a_row(role):
    options = {"target": "y", "noise": {"x": 0.1}, role: "s"}
    if role == "subject":
        options |= {"noise": None, "replicates": ["x"]}
    for cells in np.ones(7), np.ones(5), np.ones((6, 2)), [[1.0], [1.0, 2.0]] * 3, None:
        with told("column 's'", "must"):
            nj.table({"x": np.arange(6.0) ** 2, "y": np.ones(6), "s": cells}, **options)


def test_a_table_of_counts_is_told_to_repeat_its_rows():
    frame = pd.DataFrame({"case": [0, 0, 1, 1], "seen": [0, 1, 0, 1], "n": [420, 80, 310, 190]})
    noise = {"seen": nj.noise.Misclassified([[0.95, 0.05], [0.2, 0.8]])}
    options = {"target": "case", "noise": noise}
    for method in (nj.methods.Linear(), nj.methods.Logistic()):
        counts = nj.table(frame, weights="n", **options)
        with told("repeat the rows, as frame.loc[frame.index.repeat(frame['count'])]"):
            nj.fit(counts, method)
