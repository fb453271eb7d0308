"""What the columns are, and what is said of them twice or not at all."""

import numpy as np
import pytest

import noisy_jax as nj
from tests.errors import raises

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
        ({"noise": {"who": 0.1}}, "the frame has no feature 'who'"),
        ({"noise": {"b": nj.sd(column="z")}}, "the frame has no column named 'z'; it has 'a1'"),
        ({"noise": {"b": nj.sd(column="age")}, "features": ["b", "age"]}, "'age' is named twice"),
        ({"noise": {"b": nj.sd(column="y")}}, "'y' is named twice, as the target and as a column"),
        ({"noise": {}, "features": ["b", "b"]}, "'b' is named twice, as a feature and as a feat"),
        ({"noise": {}, "features": ["b", "y"]}, "'y' is named twice, as the target and as a fea"),
        ({"replicates": COPIES, "features": ["a", "a"]}, "different names, but 'a' is named twi"),
        ({"replicates": COPIES, "features": ["b", "a1"]}, "'a1' is named twice, as a replicate"),
        ({"replicates": COPIES, "features": ["b"]}, "the frame has no feature 'a'; it has 'b'"),
        ({"replicates": COPIES, "noise": {"a1": 0.1}}, "'a1' is a replicate of 'a'"),
        ({"replicates": {"a": ["a1", "a1"]}}, "'a1' is named twice, as a replicate of 'a' and"),
        ({"replicates": {"a": ["a1"]}}, "replicates of 'a' must be two columns or more"),
        ({"replicates": {"a": ["a1", "a3"]}}, "the frame has no column named 'a3'"),
        ({"replicates": {"a": ["a1", "sd"]}}, "'sd' is named twice, as one to drop and as a rep"),
        ({"replicates": ["a1", "a2"]}, r"a mapping from a feature .*, as subject='id'"),
        ({"replicates": COPIES, "subject": "who"}, "with subject, replicates must be names of"),
        ({"subject": "who", "noise": {"a1": 0.1}}, "with subject, replicates must be names of"),
        ({"replicates": ["a1"], "subject": "id"}, "the frame has no column named 'id'"),
        ({"replicates": ["y"], "subject": "who"}, "'y' is named twice, as the target and as a re"),
        ({"noise": {}, "drop": ["z"]}, "the frame has no column named 'z'"),
        ({"noise": {}, "drop": ["a1", "a2", "age", "b", "sd", "who", "text"]}, "has no feature b"),
    ],
)
def test_contradictions_give_one_clear_line(options, message):
    dropped = [one for one in ("text", "who", "sd") if one not in str(options.get("subject"))]
    if any("sd" in str(getattr(v, "column", "")) for v in (options.get("noise") or {}).values()):
        dropped.remove("sd")
    options = {"drop": () if "features" in options else dropped} | options
    raises(message, nj.table, FRAME, target="y", **options)


def test_a_mean_among_replicates_is_no_replicate():
    """A column with the name of the feature is its first replicate, but not if it is their mean."""
    frame = {name: FRAME[name] for name in ("a1", "a2", "y")}
    mean = (frame["a1"] + frame["a2"]) / 2
    message = "replicate 1 of 'a' is the mean of the others: drop it, and name the feature"
    raises(message, nj.table, frame | {"a": mean}, target="y", replicates=COPIES)
    another = frame | {"a": mean + 0.1 * ROWS.normal(size=N)}
    assert nj.table(another, target="y", replicates=COPIES).x.shape == (N, 3, 1)
