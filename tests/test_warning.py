"""Warnings point at the line of the user."""

import inspect
import warnings

import jax
import numpy as np
import pandas
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from noisy_jax.warning import warn

CODED = {"x": 9 * [1.0, 2.0, 3.0, -999.0], "y": 12 * [0.0, 1.0, 3.0]}


def line_of(call):
    """The line on which this file's function `call` has its last line."""
    lines, first = inspect.getsourcelines(call)
    return first + len(lines) - 1


def two_values():
    """Rows in which a column of two values is said to be noisy."""
    x = np.arange(200)[:, None] % 2 * 1.0
    return from_arrays(x, x[:, 0] + np.arange(200) % 7, noise=0.1)


def fitted():
    return nj.fit(two_values())


def of_moments():
    return nj.fit([nj.fits.moments(two_values())])


def of_chunks():
    return nj.fit(iter([two_values(), two_values()]))


def of_the_method():
    return nj.methods.Linear(errors="jackknife").fitted(two_values())


def selected():
    return nj.select({"fit": nj.fit}, two_values(), jax.random.key(0))


def learned():
    return nj.learn(nj.learners.known_covariance(radius=3.0), two_values(), jax.random.key(0))


def of_a_frame():
    return nj.table(CODED, target="y", noise={"x": 0.1})


CALLS = {
    fitted: "2 values",
    of_moments: "2 values",
    of_chunks: "2 values",
    of_the_method: "2 values",
    selected: "2 values",
    learned: "2 values",
    of_a_frame: "-999",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_warning_is_at_the_line_that_calls_the_library(call):
    with pytest.warns(UserWarning, match=CALLS[call]) as caught:
        call()
    assert {(one.filename, one.lineno) for one in caught} == {(__file__, line_of(call))}


def test_files_too(tmp_path):
    frame = pandas.DataFrame({"x": [1.0, 2.0, -999.0, np.nan] * 9, "y": 36 * [1.0]})
    frame.to_csv(tmp_path / "rows.csv", index=False)

    def read():
        return nj.csv(tmp_path / "rows.csv", target="y", noise={"x": 0.1}, missing=[])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read()
    assert len(caught) == 2  # of rows that are left out, and of a code for missing values
    assert {(one.filename, one.lineno) for one in caught} == {(__file__, line_of(read))}


def test_a_function_of_the_user_between_two_calls_of_the_library_is_where_it_is():
    def parts():
        yield of_a_frame()
        yield of_a_frame()

    with pytest.warns(UserWarning, match="-999") as caught:
        nj.fit(parts())
    assert line_of(of_a_frame) in {one.lineno for one in caught}


def test_frames_of_context_managers_are_left_out():
    def told():
        warn("told")

    def call():
        return jax.default_matmul_precision("highest")(told)()

    with pytest.warns(UserWarning, match="told") as caught:
        call()
    assert caught[0].lineno == line_of(told)
