import functools

import jax
import numpy as np
import pytest

from noisy_jax.robust import contaminations
from tests.errors import raises
from tests.keys import key
from tests.robust import checks
from tests.robust.checks import BIG, ROWS, SHARE, TABLE, compiled, corrupted

RUNS = {
    name: compiled(getattr(contaminations, name), "predictions" if name == "adaptive" else None)
    for name in ("one_sided", "shift", "adaptive", "covariate")
}


@pytest.mark.claim("SQ-Def1")
@pytest.mark.parametrize("name", RUNS)
def test_rewrites_the_share_that_is_trimmed_and_nothing_else(name):
    checks.check_rows(RUNS[name], moves=name == "covariate")


@pytest.mark.parametrize("name", RUNS)
def test_no_key_is_used_twice(name):
    checks.check_keys(RUNS[name])


@pytest.mark.statistical
def test_random_rows_are_uniform_and_differ_by_key():
    x, y, target = TABLE
    keys = jax.random.split(key(1), 400)
    run = jax.vmap(RUNS["one_sided"], in_axes=(0, None, None, None, None))
    rows = np.asarray(run(keys, x, y, SHARE, target).corrupted)
    assert np.abs(rows.mean(axis=0) - SHARE).max() < 5 * (SHARE * (1 - SHARE) / 400) ** 0.5
    assert np.all(rows.sum(axis=1) == SHARE * ROWS)
    assert rows[0].tolist() != rows[1].tolist()


@pytest.mark.claim("SQ-Def1")
def test_adaptive_turns_the_rows_that_pull_down_most():
    _, y, target = TABLE
    made = corrupted(RUNS["adaptive"])
    residuals = y - target
    assert set(np.flatnonzero(made.corrupted)) == set(np.argsort(residuals)[:10])
    edge, rows = np.sort(np.abs(residuals))[29], made.corrupted
    np.testing.assert_allclose(made.y[rows], target[rows] + edge, rtol=1e-5)
    blind = np.asarray(contaminations.random_rows(jax.random.key(0), y, SHARE))
    assert (made.y - y).sum() > (target + edge - y)[blind].sum()


@pytest.mark.statistical
def test_moved_instances_have_the_stated_distribution():
    made = corrupted(RUNS["covariate"], BIG, 0.4, key=key(0))
    there = made.x[made.corrupted]
    assert np.abs(there.mean(axis=0) - 0.8).max() < 5 * 0.15 / 40
    assert np.abs(there.std(axis=0) - 0.15).max() < 5 * 0.15 / (2 * 1600) ** 0.5
    assert abs(np.corrcoef(there, rowvar=False)[0, 1]) < 5 / 1600**0.5
    np.testing.assert_array_equal(made.y[made.corrupted], -2)


CONTAMINATION = r"contamination must be one number in \[0, 0.5\), got "


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *((name, {"contamination": 0.5}, f"{CONTAMINATION}0.5") for name in RUNS),
        ("random_rows", {"contamination": -0.1}, f"{CONTAMINATION}-0.1"),
        ("random_rows", {"contamination": "a"}, "contamination must be numbers, got 'a'"),
        ("random_rows", {"contamination": 0.1j}, "contamination must be real, got 0.1j"),
        ("random_rows", {"y": np.ones(())}, r"y must be \[n\] with n >= 1, got \[\]"),
        ("random_rows", {"y": np.ones(0)}, r"y must be \[n\] with n >= 1, got \[0\]"),
        ("one_sided", {"y": np.zeros(3)}, r"x must be \[T, d\] and y \[T\]"),
        ("one_sided", {"x": np.full((4, 1), np.nan)}, "x must be finite"),
        ("one_sided", {"key": 0}, "key must be a key .* got 0"),
        ("one_sided", {"label": np.nan}, "label must be finite, got nan"),
        ("shift", {"target": np.zeros(3)}, r"target must be \[4\], as y, got \[3\]"),
        ("shift", {"size": np.ones(2)}, r"size must be one number, got shape \[2\]"),
        ("adaptive", {"predictions": 0.0}, r"predictions must be \[4\], as y, got \[\]"),
        ("covariate", {"spread": -1.0}, "spread must be finite and >= 0, got -1"),
        ("covariate", {"center": np.ones(2)}, r"center must be one number or \[1\], .* got \[2\]"),
        ("covariate", {"center": np.nan}, "center must be finite"),
        ("covariate", {"center": iter([1.0, 2.0])}, r"center must be one number or .* got \[2\]"),
        ("covariate", {"center": jax.random.key(0)}, "center must be numbers, got a key"),
        ("covariate", {"contamination": jax.random.key(0)}, "contamination must be numbers, got a"),
    ],
)
def test_bad_input_raises(name, options, message):
    good = {"key": jax.random.key(0), "y": np.zeros(4), "contamination": 0.25}
    good |= {} if name == "random_rows" else {"x": np.zeros((4, 1))}
    good |= {"predictions": np.zeros(4)} if name == "adaptive" else {}
    raises(message, getattr(contaminations, name), **good | options)


@pytest.mark.parametrize("name", ["one_sided", "shift", "covariate"])
def test_a_traced_share_that_is_nan_gives_nan(name):
    run = jax.jit(functools.partial(getattr(contaminations, name), jax.random.key(0)))
    assert np.any(np.isnan(run(*TABLE[:2], np.nan).y))


def test_labels_far_away_or_moved_from_the_target():
    made = corrupted(RUNS["one_sided"])
    np.testing.assert_array_equal(made.y[made.corrupted], 10)
    x, y, target = TABLE
    run = jax.jit(functools.partial(contaminations.shift, target=target, size=0.5))
    small = jax.device_get(run(jax.random.key(0), x, y, SHARE))
    rows = small.corrupted
    np.testing.assert_allclose(small.y[rows], target[rows] + 0.5, rtol=1e-6)
    np.testing.assert_allclose(corrupted(RUNS["shift"]).y[rows], y[rows] + 3, rtol=1e-6)
