"""Intervals cover the truth in simulated tables of all kinds, with their rows in any order."""

import numpy as np
import pytest

from tests.observed.coverage import CASES, LEAST, one_table


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_the_truth_and_uncorrected_ones_less_often(name):
    """Of 200 tables, in random order and sorted by y; `tests.observed.coverage` prints more."""
    count = 50 if name in ("kernel", "simex") else 200
    every = (one_table(name, number) for number in range(count))
    found = [one for one in every if not isinstance(one, str)]
    random, ordered, plain = (np.mean(parts, axis=0) for parts in zip(*found, strict=True))
    print(f"{name}: {len(found)} tables, coverage {random}, {ordered}; uncorrected {plain}")
    error = (0.95 * 0.05 / count) ** 0.5
    assert len(found) >= 0.95 * count
    assert min(random.mean(), ordered.mean()) > LEAST - error
    assert min(random.min(), ordered.min()) > LEAST - 3 * error
    assert plain.min() < random.min()
