"""What the columns are, and what is said of them twice or not at all."""

import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from tests.errors import raises, told

N = 20
ROWS = np.random.default_rng(0)
FRAME = {name: ROWS.normal(size=N) for name in ("a1", "a2", "age", "b", "y")}
FRAME |= {"sd": np.full(N, 0.1), "who": np.repeat(np.arange(10.0), 2), "text": ["t"] * N}
COPIES = {"a": ["a1", "a2"]}


def names(**options):
    return nj.table(FRAME, target="y", **options).names


def test_features_are_what_is_not_named_as_something_else():
    drop = ["text", "who"]
    assert names(noise={}, drop=[*drop, "sd"]) == ("a1", "a2", "age", "b")
    assert names(replicates=COPIES, drop=[*drop, "sd"]) == ("a", "age", "b")
    assert names(noise=0.1, replicates=COPIES, features=["a"]) == ("a",)
    assert names(noise={"b": nj.sd(column="sd")}, drop=drop) == ("a1", "a2", "age", "b")
    assert names(noise={"b": nj.sd(column="sd")}, features=["b", "a2"]) == ("b", "a2")
    assert names(replicates=COPIES, features=["age", "a"]) == ("age", "a")
    assert names(replicates={"a1": "a2"}, features=["a1"]) == ("a1",)
    both = {"b": nj.sd(column="sd"), "age": nj.sd(column="sd")}
    assert names(noise=both, features=["b", "age"]) == ("b", "age")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": {"z": 0.1}}, "the frame has no feature 'z'; it has 'a1', 'a2', 'age', 'b'"),
        ({"noise": {"b": nj.sd(column="age")}, "features": ["b", "age"]}, "'age' is named twice"),
        ({"noise": {"b": nj.sd(column="y")}}, "'y' is named twice, as the target and as a column"),
        ({"noise": {}, "features": ["b", "y"]}, "'y' is named twice, as the target and as a fea"),
        ({"replicates": COPIES, "features": ["a", "a"]}, "different names, but 'a' is named twi"),
        ({"replicates": COPIES, "features": ["b", "a1"]}, "'a1' is named twice, as a replicate"),
        ({"replicates": COPIES, "noise": {"a1": 0.1}}, "replicates of 'a', but not 'a2'"),
        ({"replicates": COPIES, "noise": {"a": 0.1, "a1": 0.1, "a2": 0.1}}, "names 'a' and its r"),
        ({"replicates": {"a": ["a1"]}}, "replicates of 'a' must be two columns or more"),
        ({"replicates": {"a": ["a1", "sd"]}}, "'sd' is named twice, as one to drop and as a rep"),
        ({"replicates": ["a1", "a2"]}, r"a mapping from a feature .*, as subject='id'"),
        ({"replicates": COPIES, "subject": "who"}, "with subject, replicates must be names of"),
        ({"subject": "who", "noise": {"a1": 0.1}}, "with subject, replicates must be names of"),
        ({"replicates": ["y"], "subject": "who"}, "'y' is the target, whose replicates are"),
        ({"noise": {}, "drop": ["a1", "a2", "age", "b", "sd", "who", "text"]}, "has no feature b"),
    ],
)
def test_contradictions_give_one_clear_line(options, message):
    dropped = [one for one in ("text", "who", "sd") if one not in str(options.get("subject"))]
    if any("sd" in str(getattr(v, "column", "")) for v in (options.get("noise") or {}).values()):
        dropped.remove("sd")
    options = {"drop": () if "features" in options else dropped} | options
    raises(message, nj.table, FRAME, target="y", **options)


LABELS = np.random.default_rng(1).permutation(N)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, 9137 * (LABELS + 7) % 999_983) for name in ("PatientID", "case_id")),
        ("Unnamed: 0", LABELS),
        ("whatever", LABELS[::-1] + 1),
    ],
)
def test_labels_of_rows_are_told_by_content(name, values):
    """Unique whole numbers in any order; sparse ones where the name says so."""
    with told(f"column '{name}' of the frame numbers or labels the rows"):
        nj.table({"x": FRAME["b"], name: values, "y": FRAME["y"]}, target="y", noise={"x": 0.1})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("income", 1000 * (LABELS + 7) % 98_317),  # unique, but sparse
        ("age", np.append(LABELS[1:] + 18, LABELS[1] + 18)),
        ("pid", np.append(LABELS[1:], LABELS[1])),
        ("x id", LABELS + 0.5),
    ],
)
def test_features_of_whole_numbers_are_no_labels(name, values):
    frame = {"x": FRAME["b"], name: values, "y": FRAME["y"]}
    assert nj.table(frame, target="y", noise={"x": 0.1}).names == ("x", name)


def test_replicates_of_the_target_are_averaged():
    wide = {"x": FRAME["b"], "y": FRAME["y"], "y2": FRAME["a1"]}
    mean = "frame['y'] = frame[['y', 'y2']].mean(axis=1)"
    for replicates in ({"y": ["y", "y2"]}, {"y": "y2"}, {"x": ["x", "x2"], "y": ["y2"]}):
        with told("'y' is the target, whose replicates are averaged", mean):
            nj.table(wide, target="y", noise={"x": 0.1}, replicates=replicates)
    with told("'y' is the target", "frame['y'] = frame[['ya', 'yb']].mean(axis=1)"):
        nj.table({"x": FRAME["b"]}, target="y", noise={"x": 0.1}, replicates={"y": ["ya", "yb"]})
    with told("'y' is the target", "frame['y'] = frame.groupby('who')['y'].transform('mean')"):
        nj.table(FRAME, target="y", subject="who", replicates=["b", "y"])


def test_frames_without_rows_or_columns_are_told():
    with told("the frame has no columns"):
        nj.table(pd.DataFrame(), target="y", noise={"x": 0.1})
    for frame in (pd.DataFrame({"x": [1.0], "y": [1.0]}).iloc[:0], {"x": [], "y": []}):
        with told("the frame has no rows"):
            nj.table(frame, target="y", noise={"x": 0.1})


def test_columns_of_several_levels_have_tuples_as_names():
    columns = {"a": "a1", "b": "a2", "c": "age", "d": "b"}
    frame = pd.DataFrame({("m", one): FRAME[name] for one, name in columns.items()})
    frame[("out", "y")] = FRAME["y"]
    frame[("m", "w")] = 1 + FRAME["y"] ** 2
    table = nj.table(
        frame,
        target=("out", "y"),
        noise={("m", "d"): 0.1},
        replicates={("m", "a"): [("m", "a"), ("m", "b")]},
        features=[("m", "d"), ("m", "a"), ("m", "c")],
        weights=("m", "w"),
    )
    assert table.names == ("('m', 'd')", "('m', 'a')", "('m', 'c')")
    wanted = [FRAME["b"], (FRAME["a1"] + FRAME["a2"]) / 2, FRAME["age"]]
    np.testing.assert_allclose(table.x.mean(axis=1), np.transpose(wanted))
    np.testing.assert_allclose(table.beside["weights"].values, frame[("m", "w")])
    options = {"target": ("out", "y"), "noise": {("m", "d"): 0.1}}
    pairs = [(("m", "c"), ("m", "d"))]
    drop = [("m", "a"), ("m", "b"), ("m", "w")]
    assert nj.table(frame, products=pairs, drop=drop, **options).products.factors == ((0, 1),)


def test_a_column_is_named_and_not_given():
    for column in FRAME["y"], pd.Series(FRAME["y"]), ["y"]:
        with told("target must be the name of a column"):
            nj.table(FRAME, target=column, noise={"b": 0.1})
        with told("target must be the name of a column"):
            nj.observations.from_arrays(FRAME["b"][:, None], FRAME["y"], target=column, noise=0.1)
        with told("subject must be the name of a column"):
            nj.table(FRAME, target="y", replicates=["a1"], subject=column)
    with told("names must be a list of 1 names, got 3"):
        nj.observations.from_arrays(FRAME["b"][:, None], FRAME["y"], names=3, noise=0.1)
