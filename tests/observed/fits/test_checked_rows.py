"""One measurement in several rows: told, but not of rounded measurements and what they become."""

import warnings

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.checked_rows import repeats
from tests.observed.rows import answered

GROUPS, EACH = 300, 5


def rows_of_groups(rng):
    """One measurement for all rows of a group, and a column and y of each row."""
    group = np.repeat(np.arange(GROUPS), EACH)
    x = rng.normal(size=GROUPS)
    measured = x + 0.5 * rng.normal(size=GROUPS)
    z, e = rng.normal(size=(2, GROUPS * EACH))
    return {"x": measured[group], "z": z, "y": 2 * x[group] + 0.3 * e, "group": group}


def made(frame, **options):
    return nj.table(frame, target="y", noise={"x": 0.25}, **options)


def test_one_measurement_for_all_rows_of_a_group(rng):
    """The right errors are those of clusters, which the warning names, which are larger."""
    frame = rows_of_groups(rng)
    fit, told = answered(made(frame, drop=["group"]))
    (text,) = told
    assert "one measurement stands in several rows, to the last digit, in 'x' (300 values" in text
    assert "clusters='school'" in text
    assert "drop_duplicates" in text
    assert text in fit.remarks
    right, none = answered(made(frame, clusters="group"))
    assert not none
    assert right.std_error[1] > 1.5 * fit.std_error[1]


def test_a_table_concatenated_three_times(rng):
    once = {name: values[::EACH] for name, values in rows_of_groups(rng).items()}
    del once["group"]
    three = {name: np.tile(values, 3) for name, values in once.items()}
    fit, told = answered(made(three))
    (text,) = told
    assert text.startswith("whole rows are there several times")
    assert "frame.drop_duplicates()" in text
    assert "clusters=" in text
    right, none = answered(made(once))
    assert not none
    np.testing.assert_allclose(right.coefficients, fit.coefficients, rtol=0.2)
    person = {**three, "person": np.tile(np.arange(GROUPS), 3)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nj.fit(made(person, clusters="person"))


@pytest.mark.parametrize("count", [500, 20_000])
def test_repeated_values_of_any_distribution(count, rng):
    """Also rounded to six digits, and with a limit of detection; in any order of rows."""
    sizes = rng.integers(1, 6, count)
    for values in (rng.normal(size=count), rng.random(count), rng.standard_t(3, count)):
        for one in (values, np.round(values, 6), np.maximum(values, np.quantile(values, 0.2))):
            assert repeats(rng.permutation(np.repeat(one, sizes)))


def whole_numbers(rng, n):
    """Measurements that are equal in several rows by chance."""
    weight, height = np.round(rng.normal(75, 15, n)), np.round(rng.normal(170, 9, n)) / 100
    yield "ratio of rounded measurements", weight / height**2
    age = rng.uniform(18, 90, n)
    yield "heaped at fives", np.where(rng.random(n) < 0.5, 5 * np.round(age / 5), np.round(age))
    counts = rng.poisson(np.exp(rng.normal(2, 1, n))) * 1.0
    yield "logarithm of counts", np.log1p(counts)
    yield "two digits", np.array([float(f"{v:.2g}") for v in np.exp(rng.normal(0, 2, n))])
    yield "mean of seven items", rng.integers(1, 6, (n, 7)).mean(axis=1)
    for draw in (rng.normal, rng.random, rng.standard_exponential):
        for step in (0.5, 0.1, 0.02, 0.005, 0.001):
            rounded = step * np.round(draw(size=n) / step)
            yield f"rounded to {step}", rounded
            yield f"exponential of rounded to {step}", np.exp(rounded)
            yield f"root of rounded to {step}", np.sqrt(rounded - rounded.min())


@pytest.mark.parametrize("n", [60, 3000])
def test_rounded_measurements_are_not_doubted(n, rng):
    for name, values in whole_numbers(rng, n):
        assert not repeats(values), name
        assert not repeats(np.sort(values)), name
