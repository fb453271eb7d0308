"""Cells that are missing at random beside errors of measurement: exact moments, and messages."""

import itertools

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import chunks, csv, from_arrays, table
from tests.errors import raises
from tests.observed.rows import agree

CLEAN = np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.5], [2.0, 0.3]])
PATTERNS = [(True, True)] * 3 + [(True, False), (False, True), (False, True), (False, False)]
INDEPENDENT = [(1, 1), (-1, -1), (1, -1), (-1, 1)]
SIGNS = [*INDEPENDENT, (1, 1), (-1, -1)]
"""Each as often as its probability says; these signs have the covariance 1/3."""
SHARED = np.array([[0.6], [0.4]]) * np.array([0.6, 0.4]) * (np.eye(2) * 2 / 3 + 1 / 3)


def everything(scale, all_signs):
    """All errors ±scale `[4, 2]` and gaps of each clean row: NaN where a cell is missing."""
    rows = [
        np.where(seen, clean + own * np.array(signs), np.nan)
        for clean, own in zip(CLEAN, scale, strict=True)
        for signs, seen in itertools.product(all_signs, PATTERNS)
    ]
    return np.array(rows), len(rows) // len(CLEAN)


@pytest.mark.claim("EXT-Gaps")
@pytest.mark.parametrize("by_row", [False, True])
def test_moments_of_each_clean_row_are_exact(by_row):
    """The mean of uuᵀ − C over all errors and gaps of a row is (x − c)(x − c)ᵀ."""
    scale = np.array([0.6, 0.4]) * (1 + by_row * np.arange(4.0)[:, None])
    x, each = everything(scale, INDEPENDENT if by_row else SIGNS)
    known = nj.sd(np.repeat(scale, each, axis=0)) if by_row else SHARED
    made = from_arrays(x, np.zeros(len(x)), noise=known, gaps="random")
    apart = made.x[:, 0] - CLEAN.mean(axis=0)
    moments = apart[:, :, None] * apart[:, None] - made.cov
    clean = CLEAN - CLEAN.mean(axis=0)
    for values, wanted in ((apart, clean), (moments, clean[:, :, None] * clean[:, None])):
        mean = values.reshape(4, each, *values.shape[1:]).mean(axis=1)
        np.testing.assert_allclose(mean, wanted, atol=1e-12)
    # Estimated shares move single rows, and no sum.
    np.testing.assert_allclose(made.averaged()[1].sum(axis=0), made.cov.sum(axis=0), atol=1e-9)


def drawn(rng, n=400):
    x = rng.normal(size=(n, 3)) @ np.array([[1, 0.5, 0.2], [0, 1, 0.3], [0, 0, 1]])
    y = x @ [1.0, -0.5, 0.3] + 0.3 * rng.normal(size=n)
    noisy = x + rng.normal(size=x.shape) * [0.5, 0.4, 0]
    noisy[rng.random(n) < 0.3, 0] = noisy[rng.random(n) < 0.2, 2] = np.nan
    return dict(zip("abcy", [*noisy.T, y], strict=True))


def test_all_ways_to_say_it_agree(rng, tmp_path):
    frame = drawn(rng)
    noise = {"a": nj.sd(0.5), "b": 0.16}
    x = np.column_stack([frame[name] for name in "abc"])
    wanted = from_arrays(x, frame["y"], noise=[0.25, 0.16, 0], gaps="random")
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([x, frame["y"]]), delimiter=",", header="a,b,c,y", comments="")
    by_column = {"a": nj.sd(column="e"), "b": nj.noise.Laplace(0.08**0.5, mean=2.0)}
    shifted = frame | {"b": frame["b"] + 2, "e": np.where(np.isnan(frame["a"]), np.nan, 0.5)}
    others = [
        table(frame, target="y", noise=noise, gaps="random"),
        table(shifted, target="y", noise=by_column, gaps="random"),
        csv(path, target="y", noise=noise, gaps="random"),
        next(iter(chunks(path, target="y", noise=noise, gaps="random"))),
    ]
    for made in others:
        agree(made, wanted, "x", "cov", atol=1e-6)
        assert made.noise is None
        assert made.only_sums


def test_exact_columns_are_as_with_missing_and_no_gaps_change_nothing(rng):
    frame = drawn(rng)
    made = table(frame, target="y", gaps="random")
    x = np.column_stack([frame[name] for name in "abc"])
    wanted = from_arrays(x, frame["y"], noise=nj.noise.Missing((~np.isnan(x)).mean(axis=0)))
    np.testing.assert_allclose(made.cov, wanted.cov)
    assert isinstance(made.noise, nj.noise.Missing)
    assert not made.only_sums
    plain = {name: np.nan_to_num(frame[name]) for name in frame}
    made, wanted = (table(plain, target="y", noise={"a": 0.1}, gaps=g) for g in ("random", None))
    np.testing.assert_array_equal(made.cov, wanted.cov)
    assert made.seen is None
    copies = np.stack([x, x + rng.normal(size=x.shape)], axis=1)[~np.isnan(x).any(axis=1)]
    made = from_arrays(copies, np.zeros(len(copies)), gaps="random")
    assert made.cov is None  # estimated from replicates


def test_replicates_of_columns_without_gaps(rng):
    """Their errors are estimated as without gaps elsewhere; subjects may lack a value."""
    frame = drawn(rng)
    b = frame.pop("b")
    copies = {"b1": b, "b2": b + 0.5 * rng.normal(size=len(b))}
    copies["b2"][:50] = np.nan
    options = {"target": "y", "replicates": {"b": ["b1", "b2"]}}
    made = table(frame | copies, noise={"a": 0.25}, gaps="random", **options)
    whole = {name: np.nan_to_num(values) for name, values in frame.items()}
    wanted = table(whole | copies, noise={"a": 0.25}, **options)
    b = made.names.index("b")
    np.testing.assert_allclose(made.cov[:, b, b], wanted.cov[:, b, b])
    assert np.isfinite(made.x).all()
    assert np.isfinite(made.cov).all()
    long = {name: np.repeat(frame[name], 2) for name in frame}
    long |= {"b": np.column_stack([copies["b1"], copies["b2"]]).ravel(), "id": np.arange(800) // 2}
    long = {name: values[~np.isnan(long["b"])] for name, values in long.items()}
    by_subject = {"target": "y", "replicates": ["b"], "subject": "id"}
    same = table(long, noise={"a": 0.25}, gaps="random", **by_subject)
    order = [same.names.index(name) for name in made.names]
    np.testing.assert_allclose(same.cov[:, order][:, :, order], made.cov)


def test_errors_in_y_that_depend_on_errors_in_x(rng):
    """E[u e] is c whether or not a cell is missing; columns beside replicates too."""
    frame = drawn(rng)
    options = {"target": "y", "cross_cov": [0.1, 0.0, 0.0], "gaps": "random"}
    made = table(frame, noise={"a": 0.25, "b": 0.16}, **options)
    np.testing.assert_array_equal(made.cross_cov, [0.1, 0, 0])
    frame["b2"] = frame["b"] + rng.normal(size=400)
    made = table(frame, noise={"a": 0.25}, replicates={"b": ["b", "b2"]}, **options)
    np.testing.assert_allclose(made.cross_cov, np.tile([0.1, 0, 0], (400, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": {"a": 0.2}, "gaps": None}, r"impute them first.*gaps='random'"),
        ({"gaps": "informative"}, "gaps must be 'random'"),
        ({"noise": nj.noise.Missing(0.7)}, "not Missing of all columns"),
        ({"noise": {"d": nj.noise.Misclassified(np.eye(2))}}, "no misclassified column.*'d'"),
        ({"noise": {"b": 0.1}, "products": [("b", "b")]}, "takes no products"),
        ({"noise": {"a": nj.reliability(0.8)}}, "'a' has gaps and a reliability"),
        ({"replicates": {"a": ["a", "a2"]}}, "'a' has no value in"),
    ],
)
def test_what_is_not_supported_says_so(options, message, rng):
    frame = drawn(rng)
    frame |= {"d": 1.0 * (rng.random(400) < 0.5)}
    if "replicates" in options:
        frame["a2"] = frame["a"] + 0.1
    raises(message, table, frame, **{"target": "y", "gaps": "random", **options})


def test_fits_that_need_each_row_and_copies_say_so(rng, tmp_path):
    frame = drawn(rng)
    made = table(frame, target="y", noise={"a": 0.25, "b": 0.16}, gaps="random")
    linear, fourier = nj.methods.SIMEX("linear"), nj.methods.Fourier(length_scale=1.0)
    for method in (fourier, nj.methods.Poisson(), linear):
        raises("takes no gaps beside errors", nj.fit, made, method)
    x = np.stack(2 * [np.column_stack([frame[name] for name in "abc"])], axis=1)
    raises("takes one copy of a row", from_arrays, x, frame["y"], noise=0.1, gaps="random")
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n1,2,3\n,2,1\n")
    raises("option gaps='random'", csv, path, target="y", noise={"a": 0.1})
