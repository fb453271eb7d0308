"""Misclassified columns of tables: exact moments, names, files, replicates, what is wrong."""

import dataclasses
import itertools

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression

import noisy_jax as nj
from noisy_jax.noise import Misclassified
from noisy_jax.observed.fits.assumptions import doubts
from noisy_jax.observed.fits.linear_moments import linear_moments
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import key
from tests.observed.rows import agree

TWO = np.array([[0.9, 0.1], [0.2, 0.8]])
THREE = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
"""Its powers below 1 have negative entries."""
STAGES = ("early", "late", "middle")


def every_recording(truth, z, y, noise, flips=None):
    """A table with all that may be recorded of each row, and the probabilities.

    `truth` `[n, 2]` are true categories of a binary column and of one with three categories.
    """
    rows, chances = [], []
    for (a, b), exact, target in zip(truth, z, y, strict=True):
        labels = {target: 1.0} if flips is None else dict(enumerate(flips[target]))
        for j, k, label in itertools.product(range(2), range(3), labels):
            rows.append((j, STAGES[k], exact, label))
            chances.append(TWO[a, j] * THREE[b, k] * labels[label])
    columns = dict(zip(("a", "b", "z", "y"), zip(*rows, strict=True), strict=True))
    known = {"a": Misclassified(TWO), "b": Misclassified(THREE), "z": noise}
    return nj.table(columns, target="y", noise=known), np.array(chances)


@pytest.mark.claim("EXT-Misclassified")
def test_moments_are_those_of_the_true_categories(rng):
    """Exact means over all that may be recorded, in float64; without the covariance they differ."""
    n = 12
    truth = np.column_stack([rng.integers(0, 2, n), rng.integers(0, 3, n)])
    z, y = rng.normal(size=(2, n))
    table, chances = every_recording(truth, z, y, 0.04)
    assert table.names == ("a", "b[late]", "b[middle]", "z")
    found = linear_moments(*table.means(chances))
    clean = np.column_stack([truth[:, 0], truth[:, 1] == 1, truth[:, 1] == 2, z])
    noise = np.diag([0, 0, 0, 0.04 * n])
    np.testing.assert_allclose(found.x, clean.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.xx - found.cov, clean.T @ clean - noise, atol=1e-12)
    np.testing.assert_allclose(found.xy, y @ clean, atol=1e-12)
    assert np.abs(found.xx - clean.T @ clean).max() > 0.5


HABITS = ["never", "former", "current"]
BY_HABIT = np.array([[0.9, 0.1, 0.0], [0.15, 0.7, 0.15], [0.0, 0.2, 0.8]])
FRAMES = {
    "mapping": (dict, lambda texts: pd.Categorical(texts, HABITS)),
    "polars": (pl.DataFrame, lambda texts: pl.Series(texts, dtype=pl.Enum(HABITS))),
    "pyarrow": (
        pa.table,
        lambda texts: pa.DictionaryArray.from_arrays([HABITS.index(t) for t in texts], HABITS),
    ),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_the_matrix_is_of_categories_in_the_order_of_the_frame(kind, rng):
    """Never, former and current with the effects 0, ½ and 1; the texts sort otherwise."""
    n, (frame, categories) = 4000, FRAMES[kind]
    truth = rng.integers(0, 3, n)
    recorded = [HABITS[rng.choice(3, p=BY_HABIT[k])] for k in truth]
    columns = {"habit": categories(recorded), "y": 0.5 * truth + 0.1 * rng.normal(size=n)}
    rows = frame(columns)
    noise = {"habit": Misclassified(BY_HABIT)}
    fit = nj.fit(nj.table(rows, target="y", noise=noise))
    assert fit.names == tuple(f"habit[{one}]" for one in HABITS[1:])
    np.testing.assert_array_less(np.abs(fit.coefficients - [0.5, 1.0]), 5 * fit.std_error[1:])
    assert fit.std_error[1:].max() < 0.03
    line = f"rows and columns of the matrix of 'habit' are {', '.join(HABITS)}, in this order"
    assert line in " ".join(str(fit).split())
    texts = nj.fit(nj.table({**columns, "habit": recorded}, target="y", noise=noise))
    assert "of 'habit' are current, former, never, in" in " ".join(str(texts).split())


def test_replicates_have_one_order_of_categories():
    """Categories that do not occur keep their row of the matrix."""
    one = pd.Categorical(["never", "former"] * 20, HABITS)
    frame = {"a": one, "b": one[::-1], "y": np.arange(40.0)}
    noise = {"a": Misclassified(BY_HABIT)}
    table = nj.table(frame, target="y", noise=noise, replicates={"a": ["a", "b"]})
    assert table.categories[0].labels == tuple(HABITS)
    frame["b"] = pd.Categorical(frame["b"], HABITS[::-1])
    options = {"target": "y", "noise": noise, "replicates": {"a": ["a", "b"]}}
    raises("replicates of 'a' have categories in different orders", nj.table, frame, **options)


def test_several_recordings_of_a_row_are_averaged_without_bias():
    """Three copies with a known matrix: mean and second moment over all they may be."""
    for true in range(3):
        copies = np.array(list(itertools.product(range(3), repeat=3)))
        frame = {f"b{v}": copies[:, v] for v in range(3)} | {"y": np.arange(27.0)}
        known = {"replicates": {"b": ["b0", "b1", "b2"]}, "noise": {"b": Misclassified(THREE)}}
        table = nj.table(frame, target="y", **known)
        found = linear_moments(*table.means(THREE[true, copies].prod(axis=1)))
        clean = np.eye(3)[true, 1:]
        np.testing.assert_allclose(found.x, clean, atol=1e-12)
        np.testing.assert_allclose(found.xx - found.cov, np.diag(clean), atol=1e-12)
        assert table.x.shape == (27, 1, 2)
        shares = (copies[:, :, None] == np.arange(3)).mean(axis=1)
        np.testing.assert_allclose(table.categories[0].recorded(table.x[:, 0]), shares, atol=1e-12)


def test_rows_of_subjects_are_copies(rng):
    """The long format gives the table of the wide one, with incomplete copies and texts."""
    cells = np.array(["no", "yes"], object)[rng.integers(0, 2, (30, 3))]
    cells[:10, 2] = None
    group, y = np.array(["a", "b"])[rng.integers(0, 2, 30)], rng.normal(size=30)
    known = {"e": Misclassified(TWO), "g": Misclassified(TWO)}
    wide = {f"e{v}": cells[:, v] for v in range(3)} | {"g": group, "y": y}
    one = nj.table(wide, target="y", noise=known, replicates={"e": ["e0", "e1", "e2"]})
    rows, places = np.nonzero(cells != None)  # noqa: E711
    long = {"e": cells[rows, places], "g": group[rows], "id": rows, "y": y[rows]}
    other = nj.table(long, target="y", noise=known, replicates=["e"], subject="id")
    assert one.names == other.names == ("e[yes]", "g[b]")
    agree(other, one, "x", "cov", atol=1e-12)
    recodings = np.where(cells == "yes", *np.linalg.inv(TWO)[::-1, 1])  # means of two, or of three
    wanted = np.append(recodings[:10, :2].mean(axis=1), recodings[10:].mean(axis=1))
    np.testing.assert_allclose(one.x[:, 0, 0], wanted, atol=1e-12)


def drawn(rng, n, label=None):
    """A frame with a misclassified exposure, and a column that depends on the true one."""
    exposed = rng.random(n) < 0.4
    z = exposed + rng.normal(size=n)
    y = exposed - 0.5 * z + rng.normal(size=n)
    recorded = exposed != (rng.random(n) < np.where(exposed, 0.2, 0.1))
    return {"exposed": recorded * 1.0 if label is None else label[recorded * 1], "z": z, "y": y}


def test_the_uncorrected_fit_is_that_of_recorded_categories(rng):
    frame = drawn(rng, 400)
    known = nj.table(frame, target="y", noise={"exposed": Misclassified(TWO)})
    without = nj.table(frame, target="y", noise={})
    for errors in ("sandwich", "jackknife"):
        fit, exact = nj.fit(known, errors=errors), nj.fit(without, errors=errors)
        agree(fit.uncorrected, exact, "coefficients", "intercept", "covariance", atol=1e-10)
        np.testing.assert_allclose(fit.uncorrected.interval(), exact.interval(), atol=1e-10)
    assert fit.coefficients[0] > exact.coefficients[0] + 0.1


def test_labels_of_any_kind_give_the_same_table(rng):
    frame = drawn(rng, 100)
    known = {"exposed": Misclassified(TWO), "z": 0.1}
    table = nj.table(frame, target="y", noise=known)
    assert table.names == ("exposed", "z")
    assert table.categories[0].labels == (0, 1)
    numbers = frame["exposed"]
    texts = np.array(["no", "yes"])[numbers.astype(int)]
    kinds = {
        "exposed": [numbers == 1, numbers.astype(int)],
        "exposed[yes]": [texts, pd.Series(texts, dtype="category")],
        "exposed[2]": [numbers + 1],
    }
    for name, columns in kinds.items():
        for column in columns:
            other = nj.table(pd.DataFrame(frame | {"exposed": column}), target="y", noise=known)
            assert other.names == (name, "z")
            agree(other, table, "x", "cov", rtol=0)
    x, names = np.column_stack([numbers, frame["z"]]), ["exposed", "z"]
    arrays = from_arrays(x, frame["y"], noise=known, names=names)
    np.testing.assert_array_equal(arrays.cov, table.cov)
    named = known | {"exposed": Misclassified(TWO[::-1, ::-1], categories=["yes", "no"])}
    other = nj.table(frame | {"exposed": texts}, target="y", noise=named)
    assert other.names == ("exposed[no]", "z")
    np.testing.assert_allclose(1 - other.x[:, 0, 0], table.x[:, 0, 0], atol=1e-12)


def test_all_columns_of_a_matrix_and_chunks(rng):
    x = (rng.random((600, 2)) < 0.5) * 1.0
    y = x @ [1.0, -1.0] + rng.normal(size=600)
    table = from_arrays(x, y, noise=Misclassified(TWO))
    assert table.names == ("x1", "x2")
    assert not table.cov[:, 0, 1].any()
    halves = slice(250), slice(250, None)
    parts = [from_arrays(x[part], y[part], noise=Misclassified(TWO)) for part in halves]
    np.testing.assert_allclose(nj.fit(parts).coefficients, nj.fit(table).coefficients, rtol=1e-9)
    other = from_arrays(x + np.array([1, 0]), y, noise=Misclassified(TWO), names=["x1", "x2"])
    raises("same categories", nj.fit, [parts[0], dataclasses.replace(other, names=parts[0].names)])


def test_beside_replicates_of_another_column(rng):
    frame = drawn(rng, 300)
    for v in (1, 2, 3):
        frame[f"z{v}"] = frame["z"] + 0.5 * rng.normal(size=300)
    del frame["z"]
    options = {"target": "y", "replicates": {"z": ["z1", "z2", "z3"]}}
    known = nj.table(frame, noise={"exposed": Misclassified(TWO), "z": 0.25}, **options)
    assert known.each_row
    np.testing.assert_allclose(known.cov[:, 1, 1], 0.25 / 3)
    law = nj.noise.Product((Misclassified(TWO), nj.noise.Gaussian(0.25)))  # in their order
    by_position = nj.table(frame, noise=law, **options)
    assert by_position.names == known.names
    np.testing.assert_allclose(by_position.cov, known.cov, rtol=1e-6)


def test_what_is_wrong_raises(rng):
    frame = drawn(rng, 60)
    two = Misclassified(TWO)

    def wrong(match, noise=two, name="exposed", **columns):
        raises(match, nj.table, frame | columns, target="y", noise={name: noise})

    gaps = np.where(np.arange(60) == 3, np.nan, frame["exposed"])
    wrong("row 3 of 'exposed' has no category", exposed=gaps)
    masked = np.ma.array(frame["exposed"], mask=np.arange(60) == 3)
    wrong("row 3 of 'exposed' has no category", exposed=masked)
    wrong("but the column has 3", exposed=np.arange(60) % 3)
    wrong("several types", exposed=[1.0, "a"] * 30)
    wrong("has the category [01].0, but", Misclassified(TWO, categories=["no", "yes"]))
    wrong("flips", name="y", y=frame["exposed"])
    wrong("differ from those", **{"exposed": frame["exposed"] + 1, "exposed[2]": frame["z"]})
    raises("is named", nj.table, frame, target="y", noise=two)
    known = {"target": "y", "noise": {"exposed": two}}
    raises("must not depend on y", nj.table, frame, **known, cross_cov={"exposed": 0.1})
    rows, message = nj.table(frame, **known), "takes no misclassified column"
    raises(f"{message}, such as 'exposed'", nj.fit, rows, nj.methods.Fourier(length_scale=1.0))
    raises(message, nj.learn, nj.learners.known_covariance(radius=1.0), rows, key())


def smokers(rng, n=4000):
    """A misclassified column of texts, beside a measured one with two replicates."""
    smoker = rng.random(n) < 0.4
    recorded = np.where(smoker != (rng.random(n) < np.where(smoker, 0.2, 0.1)), "yes", "no")
    x = rng.normal(size=n)
    copies = x[:, None] + 0.5 * rng.normal(size=(n, 2))
    y = x + smoker + 0.3 * rng.normal(size=n)
    return {"smoker": recorded, "x1": copies[:, 0], "x2": copies[:, 1], "y": y}


KNOWN = {"smoker": Misclassified(TWO, categories=["no", "yes"])}


def test_estimators_are_fitted_to_recorded_categories():
    """Least squares is the uncorrected fit, and has its risk."""
    frame = smokers(np.random.default_rng(0))
    frame = {name: frame[name] for name in ("smoker", "x1", "y")}
    rows = nj.table(frame, target="y", noise=KNOWN | {"x1": 0.25})
    candidates = {"estimator": LinearRegression(), "fit": lambda some: nj.fit(some).uncorrected}
    found = nj.select(candidates, rows, jax.random.key(0))
    np.testing.assert_allclose(found.risk[0], found.risk[1], rtol=1e-8)
    alone = nj.select({"estimator": LinearRegression()}, rows, jax.random.key(0)).refit()
    np.testing.assert_allclose(alone.coef_, nj.fit(rows).uncorrected.coefficients)


def test_complete_replicates_beside_them():
    """Their means are compared, weights count, and other fits say what to give."""
    frame = smokers(np.random.default_rng(2))
    options = {"target": "y", "noise": KNOWN, "replicates": {"x": ["x1", "x2"]}}
    rows = nj.table(frame, **options)
    others = {name: values for name, values in frame.items() if name != "smoker"}
    alone = nj.table(others, target="y", replicates={"x": ["x1", "x2"]})
    np.testing.assert_allclose(rows.cov[:, 1, 1], alone.means().cov[:, 0, 0], rtol=1e-9)
    frame["x2"] = frame["x2"] + 1.5
    with pytest.warns(UserWarning, match="different means in 'x'"):
        nj.fit(nj.table(frame, **options))
    frame |= {"x2": frame["x2"] - 1.5, "y": 1.0 * (frame["y"] > 0)}
    message = "beside a misclassified column state the variance of one"
    raises(message, nj.fit, nj.table(frame, **options), model="logistic")


def test_a_matrix_that_cannot_be_right_is_told(rng):
    """5% are recorded, where 10% would be by wrong recordings alone; not where this is chance."""
    n = 400
    wrong, right = [[0.9, 0.1], [0.1, 0.9]], [[0.97, 0.03], [0.1, 0.9]]
    for share, matrix in ((0.05, wrong), (0.05, right), (0.1, wrong)):
        recorded = rng.permutation(np.arange(n) < share * n) * 1.0
        frame = {"case": recorded, "y": recorded + rng.normal(size=n)}
        table = nj.table(frame, target="y", noise={"case": Misclassified(matrix)})
        found = [doubt.text for doubt in doubts(table)]
        assert len(found) == (matrix is wrong and share < 0.1)
        for text in found:
            assert text.startswith("the matrix of wrong categories can")
            assert "0.05 of the rows are recorded as 1.0, but by the matrix at least 0.1" in text
