import numpy as np
import pytest

import contamination_adversaries as adversaries
from tests.keys import key
from tests.robust import checks
from tests.robust.checks import BIG, TABLE, compiled, corrupted

AIMING = ("hugging", "flip", "region")
RUNS = {
    name: compiled(getattr(adversaries, name), "target" if name in AIMING else None)
    for name in ("gross", "far_covariate", *AIMING)
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_rewrites_the_share_that_is_trimmed_and_nothing_else(name):
    checks.check_rows(RUNS[name], moves=name == "far_covariate")


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_no_key_is_used_twice(name):
    checks.check_keys(RUNS[name])


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["gross", "far_covariate"])
def test_rows_instances_and_labels_are_independent(name):
    checks.check_independence(RUNS[name])


def test_labels():
    x, y, target = TABLE
    made = corrupted(RUNS["gross"])
    sizes = np.abs(made.y[made.corrupted])
    assert np.all((sizes >= 5) & (sizes <= 20))
    assert {-1.0, 1.0} == set(np.sign(made.y[made.corrupted]))
    made = corrupted(RUNS["flip"])
    np.testing.assert_allclose(made.y[made.corrupted], -target[made.corrupted], rtol=1e-6)
    made = corrupted(RUNS["hugging"])
    edge = np.sort(np.abs(y - target))[29]  # the smallest that 30 of 40 do not exceed
    np.testing.assert_allclose(made.y[made.corrupted], target[made.corrupted] + edge, rtol=1e-5)
    made = corrupted(RUNS["region"])
    nearest = np.argsort(np.sum((x - 1) ** 2, axis=1))[:10]
    assert set(np.flatnonzero(made.corrupted)) == set(nearest)
    np.testing.assert_allclose(made.y[nearest], target[nearest] + 3, rtol=1e-6)


@pytest.mark.statistical
def test_moved_instances_have_the_stated_distribution():
    made = corrupted(RUNS["far_covariate"], BIG, 0.4, key=key(1))
    there, labels = made.x[made.corrupted], made.y[made.corrupted]
    assert 5.9 < np.abs(there).max() <= 6
    assert np.abs(np.mean(there**2) - 12) < 5 * 144 * (4 / 45) ** 0.5 / 3200**0.5
    assert np.abs(labels.std() - 3) < 5 * 3 / (2 * 1600) ** 0.5
