"""Warnings point at the line of the user, however deep in the library they arise."""

import contextlib
import inspect
import warnings
from pathlib import Path

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


def of_a_frame():
    return nj.table(CODED, target="y", noise={"x": 0.1})


def selected():
    """By `fit`, which warns of a column of two values that is said to be noisy."""
    x = np.arange(200)[:, None] % 2 * 1.0
    rows = from_arrays(x, x[:, 0] + np.arange(200) % 7, noise=0.1)
    return nj.select({"fit": nj.fit}, rows, jax.random.key(0))


@pytest.mark.parametrize(("call", "message"), [(of_a_frame, "-999"), (selected, "2 values")])
def test_a_warning_is_at_the_line_that_calls_the_library(call, message):
    with pytest.warns(UserWarning, match=message) as caught:
        call()
    assert {(one.filename, one.lineno) for one in caught} == {(__file__, line_of(call))}


def test_each_warning_of_a_file_is_there_too(tmp_path):
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


def test_frames_of_context_managers_that_decorate_functions_of_the_library_are_left_out():
    @contextlib.contextmanager
    def context():
        yield

    names, file = {"warn": warn}, warn.__code__.co_filename
    exec(compile("def told(): warn('told')", file, "exec"), names)
    decorated = context()(names["told"])

    def call():
        return decorated()

    with pytest.warns(UserWarning, match="told") as caught:
        call()
    assert caught[0].lineno == line_of(call)


def test_no_other_module_warns_by_itself():
    """But for the version, whose warning is at the import of the library."""
    for path in Path(nj.__file__).parent.rglob("*.py"):
        own = "warnings.warn(" in path.read_text("utf-8")
        assert not own or path.name in ("warning.py", "version.py"), path
