"""Fits of tables of all kinds have the numbers that were stored of them.

A change that is meant to move numbers says which and why, and stores them again by
`python -m tests.observed.stored`.
"""

import json

import numpy as np
import pytest

from tests.observed import stored

BEFORE = json.loads(stored.FILE.read_text("utf-8"))


def slow(name):
    """Curves of one's own and kernel fits are compiled."""
    return name.startswith(("kernel", "model"))


NAMES = [pytest.param(one, marks=pytest.mark.slow) if slow(one) else one for one in stored.CASES]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_that_were_stored(name):
    tolerance = stored.CASES[name].tolerance
    assert stored.apart(stored.run(name), BEFORE[name], tolerance) == []


def test_all_stored_numbers_are_of_a_case():
    assert [*BEFORE] == [*stored.CASES]


@pytest.mark.parametrize("value", [1.0 + 1e-7, np.nan, "1", [1.0, 1.0]])
def test_a_number_that_moves_is_told(value):
    found = {"slope": np.atleast_1d(value) if not isinstance(value, str) else value}
    wrong = stored.apart(found, {"slope": [1.0]}, stored.EXACT)
    assert [one.split(":")[0] for one in wrong] == ["slope"]
    assert stored.apart({}, {"slope": [1.0]}, stored.EXACT) == ["slope is in one only"]
