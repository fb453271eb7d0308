import functools

import jax
import numpy as np
import pytest

import contamination_adversaries as adversaries
from tests.keys import SHIFT, key

N, D, SHARE = 40, 2, 0.25
NAMES = ("gross", "hugging", "flip", "region", "far_covariate")
AIMING = ("hugging", "flip", "region")


@pytest.fixture(scope="module")
def table():
    """x, y and the target, y without noise."""
    rng = np.random.default_rng(7 + 1000 * SHIFT)
    x = rng.normal(size=(N, D)).astype(np.float32)
    noise = 0.1 * rng.normal(size=N).astype(np.float32)
    return x, x[:, 0] + noise, x[:, 0]


@functools.cache
def compiled(name):
    """The adversary, the share traced."""
    corrupt = getattr(adversaries, name)

    @jax.jit
    def run(key, x, y, share, target):
        return corrupt(key, x, y, share, **({"target": target} if name in AIMING else {}))

    return run


def corrupted(name, table, share=SHARE, key=None):
    x, y, target = table
    key = jax.random.key(0) if key is None else key
    return jax.device_get(compiled(name)(key, x, y, share, target))


@pytest.mark.parametrize("name", NAMES)
def test_rewrites_the_share_that_is_trimmed_and_nothing_else(name, table):
    x, y, _ = table
    for share in (0.0, 0.1, 0.26, 0.45):  # 0.26 of 40 rows are 10.4
        made = corrupted(name, table, share)
        assert made.corrupted.sum() == N - np.ceil(N * (1 - share) - 1e-4)
        honest = ~made.corrupted
        np.testing.assert_array_equal(made.x[honest], x[honest])
        np.testing.assert_array_equal(made.y[honest], y[honest])
        if name == "far_covariate":
            assert np.all(made.x[made.corrupted] != x[made.corrupted])
        else:
            np.testing.assert_array_equal(made.x, x)


@pytest.mark.parametrize("name", NAMES)
def test_no_key_is_used_twice(name):
    with jax.debug_key_reuse(True):
        x, y, target = np.ones((4, 2)), np.ones(4), np.zeros(4)
        jax.make_jaxpr(compiled(name))(jax.random.key(0), x, y, SHARE, target)
        compiled(name)(jax.random.key(0), x, y, SHARE, target)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["gross", "far_covariate"])
def test_rows_instances_and_labels_are_independent(name):
    """Of one corrupted row of four: its index, instance, and the size and sign of its label."""
    runs, x, y = 10_000, np.zeros((4, 2), np.float32), np.zeros(4, np.float32)
    run = jax.vmap(compiled(name), in_axes=(0, None, None, None, None))
    made = jax.device_get(run(jax.random.split(key(2), runs), x, y, SHARE, y))
    row, index = made.corrupted, made.corrupted.argmax(axis=1)
    drawn = np.column_stack(
        [index == 0, index == 3, made.x[row], abs(made.y[row]), made.y[row] > 0]
    )
    drawn = drawn[:, drawn.std(axis=0) > 0].astype(float)
    correlation = np.corrcoef(drawn, rowvar=False)
    correlation[0, 1] = correlation[1, 0] = 0  # two indices of the same row exclude each other
    assert np.abs(correlation - np.eye(len(correlation))).max() < 5 / runs**0.5


def test_labels(table):
    x, y, target = table
    made = corrupted("gross", table)
    sizes = np.abs(made.y[made.corrupted])
    assert np.all((sizes >= 5) & (sizes <= 20))
    assert {-1.0, 1.0} == set(np.sign(made.y[made.corrupted]))
    made = corrupted("flip", table)
    np.testing.assert_allclose(made.y[made.corrupted], -target[made.corrupted], rtol=1e-6)
    made = corrupted("hugging", table)
    edge = np.sort(np.abs(y - target))[29]  # the smallest that 30 of 40 do not exceed
    np.testing.assert_allclose(made.y[made.corrupted], target[made.corrupted] + edge, rtol=1e-5)
    made = corrupted("region", table)
    nearest = np.argsort(np.sum((x - 1) ** 2, axis=1))[:10]
    assert set(np.flatnonzero(made.corrupted)) == set(nearest)
    np.testing.assert_allclose(made.y[nearest], target[nearest] + 3, rtol=1e-6)


@pytest.mark.statistical
def test_moved_instances_have_the_stated_distribution():
    big = np.zeros((4000, D)), np.zeros(4000), np.zeros(4000)
    made = corrupted("far_covariate", big, 0.4, key=key(1))
    there, labels = made.x[made.corrupted], made.y[made.corrupted]
    assert 5.9 < np.abs(there).max() <= 6
    assert np.abs(np.mean(there**2) - 12) < 5 * 144 * (4 / 45) ** 0.5 / 3200**0.5
    assert np.abs(labels.std() - 3) < 5 * 3 / (2 * 1600) ** 0.5
