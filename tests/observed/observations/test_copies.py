"""Replicates of one row: their means, their errors, and what they may not be."""

from typing import Any

import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.errors import raises, told
from tests.observed.rows import agree


@pytest.mark.parametrize("place", [0, 3])
def test_a_replicate_that_is_the_mean_of_the_others(place):
    copies = np.insert(np.random.default_rng(0).normal(size=(20, 3)), place, 0.0, axis=1)
    copies[:, place] = copies.sum(axis=1) / 3
    frame = {f"a{v}": copies[:, v] for v in range(4)} | {"y": copies[:, 0]}
    message, names = f"replicate {place + 1} of 'a' is the mean of the others", [*frame][:-1]
    raises(message, nj.table, frame, target="y", replicates={"a": names})
    frame["a3"] = frame["a1"]
    raises("2 and 4 of 'a' are equal", nj.table, frame, target="y", replicates={"a": names})


def test_means_of_gaussian_copies_are_gaussian():
    """Beside a feature with one measurement, whose error is Gaussian as well, or of another law."""
    x = np.random.default_rng(1).normal(size=(200, 3))
    frame = {"a1": x[:, 0], "a2": x[:, 1], "b": x[:, 2], "y": x[:, 0]}
    noise = {"a": nj.noise.Gaussian(0.3), "b": nj.noise.Gaussian(0.2)}
    table = nj.table(frame, target="y", noise=noise, replicates={"a": ["a1", "a2"]})
    assert isinstance(table.noise, nj.noise.Gaussian)
    np.testing.assert_allclose(table.noise.cov, [0.15, 0.2])
    frame["a2"][0] = np.nan
    few: Any = nj.table(frame, target="y", noise=noise, replicates={"a": ["a1", "a2"]}).noise
    np.testing.assert_allclose(few.distribution.cov[:2], [[0.3, 0.2], [0.15, 0.2]])
    frame["a2"][0] = 0.0
    noise["b"] = nj.noise.Laplace(0.2)
    table = nj.table(frame, target="y", noise=noise, replicates={"a": ["a1", "a2"]})
    assert [type(one).__name__ for one in table.noise.columns] == ["Gaussian", "Laplace"]
    np.testing.assert_allclose(table.noise.columns[0].cov, 0.15, rtol=1e-6)
    np.testing.assert_allclose(np.diag(table.cov), [0.15, 0.08], rtol=1e-6)


def copies_with_errors(rng, n=1500):
    """Three copies of x with standard deviations of their own, one of them by row; y = 2x − z."""
    x, z = rng.normal(size=(2, n))
    errors = np.column_stack([np.full(n, 0.3), np.full(n, 0.8), rng.uniform(0.2, 1.5, n)])
    copies = x[:, None] + errors * rng.normal(size=errors.shape)
    copies[rng.random(n) < 0.3, 1] = np.nan
    return copies, errors, {"z": z, "y": 2 * x - z + 0.3 * rng.normal(size=n)}


def test_replicates_with_standard_deviations_of_their_own(rng):
    """As the table of their weighted means, in columns and in rows of subjects."""
    copies, errors, others = copies_with_errors(rng)
    weights = np.where(np.isnan(copies), 0.0, errors**-2.0)
    mean = np.sum(weights * np.nan_to_num(copies), axis=1) / weights.sum(axis=1)
    known = {"x": nj.sd(weights.sum(axis=1) ** -0.5)}
    wanted = nj.fit(nj.table({"x": mean, **others}, target="y", noise=known))
    wide = {"x1": copies[:, 0], "x2": copies[:, 1], "x3": copies[:, 2], **others}
    gaps = np.where(np.isnan(copies[:, 1]), np.nan, 0.8)
    wide |= {"e2": gaps, "e3": errors[:, 2]}
    noise = {"x1": nj.sd(0.3), "x2": nj.sd(column="e2"), "x3": nj.sd(column="e3")}
    options = {"target": "y", "replicates": {"x": ["x1", "x2", "x3"]}, "noise": noise}
    found = nj.fit(nj.table(wide, **options))
    assert found.names == ("x", "z")
    agree(found, wanted, "coefficients", "std_error", rtol=1e-9)
    n = len(mean)
    long = {name: np.repeat(values, 3) for name, values in others.items()}
    long |= {"who": np.repeat(np.arange(n), 3), "x": copies.ravel(), "e": errors.ravel()}
    kept = ~np.isnan(long["x"])
    long = {name: values[kept] for name, values in long.items()}
    options = {"target": "y", "subject": "who", "replicates": ["x"]}
    found = nj.fit(nj.table(long, noise={"x": nj.sd(column="e")}, **options))
    assert {*found.names} == {"x", "z"}
    order = [found.labels.index(name) for name in wanted.labels]
    np.testing.assert_allclose(found.values[order], wanted.values, rtol=1e-9)
    np.testing.assert_allclose(found.std_error[order], wanted.std_error, rtol=1e-9)


def test_errors_of_single_replicates_are_known_and_above_zero(rng):
    copies, _, others = copies_with_errors(rng, 50)
    wide = {"x1": copies[:, 0], "x3": copies[:, 2], **others}
    options = {"target": "y", "replicates": {"x": ["x1", "x3"]}}
    with told("must have a variance above 0"):
        nj.table(wide, noise={"x1": 0.0, "x3": 0.1}, **options)
    with told("each replicate of 'x' needs a known variance"):
        nj.table(wide, noise={"x1": nj.noise.CovarianceEstimate(0.1, 0.1), "x3": 0.1}, **options)


def test_a_learner_sees_means_of_known_copies_with_the_errors_of_means():
    """Three copies of one column beside one of another; the wrong copy's variance gives 1.17."""
    rng = np.random.default_rng(0)
    a, z = rng.normal(size=(2, 3000))
    frame = {f"a{k}": a + 0.5 * rng.normal(size=3000) for k in range(3)}
    frame["a2"][rng.random(3000) < 0.5] = np.nan
    frame |= {"z": z + 0.3 * rng.normal(size=3000), "y": a + z + 0.1 * rng.normal(size=3000)}
    known = {"noise": {"a": 0.25, "z": 0.09}, "replicates": {"a": ["a0", "a1", "a2"]}}
    table = nj.table(frame, target="y", **known)
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    found = nj.learn(learner, table, jax.random.key(0)).coefficients
    np.testing.assert_allclose(found, nj.fit(table).coefficients, atol=0.02)
