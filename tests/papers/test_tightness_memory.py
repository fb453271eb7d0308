import numpy as np
import pytest

from tests.errors import raises
from tightness_memory import growing_start


@pytest.mark.claim("NORMA-Thm6")
@pytest.mark.parametrize(
    ("decay", "excess", "start"),
    [
        *((0.9, 0.3, 7), (0.9, 0.4, 26), (0.9, 0.45, 334), (0.5, 0.4, 80)),
    ],
)
def test_the_window_grows_from_where_the_three_conditions_hold(decay, excess, start):
    assert growing_start(decay, excess) == start
    t = np.arange(start - 1, 10**5, dtype=float)
    holds = (
        (decay * t**-0.5 <= 1)
        & (np.exp(-decay * t**excess) <= decay * t**-0.5)
        & (np.ceil(t ** (0.5 + excess)) <= 0.75 * t)
    )
    assert not holds[0]
    assert np.all(holds[1:])


def test_large_starts_are_found():
    assert f"{growing_start(0.1, 0.2):.1e}" == "7.1e+10"
    assert f"{growing_start(0.9, 0.49):.1e}" == "3.1e+12"


@pytest.mark.parametrize(
    ("decay", "excess", "message"),
    [
        (0.0, 0.3, "decay must be positive"),
        (0.9, 0.499, r"put t0 beyond e\^36 rounds"),
        (0.5, "0.3", "excess must be numbers, got '0.3'"),
        (0.5, 0.0, "excess must be above 0 and below 0.5, got 0.0"),
    ],
)
def test_rejects_bad_arguments(decay, excess, message):
    raises(message, growing_start, decay, excess)
