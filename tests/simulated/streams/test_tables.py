import importlib.util
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.streams import dataset, from_arrays, linear, resampled, scaled
from noisy_jax.simulated.streams.tables import bundled
from tests.errors import raises
from tests.keys import key


@pytest.mark.parametrize(
    ("name", "shape"),
    [("diabetes", (442, 10)), ("breast_cancer", (569, 30)), ("digits", (1797, 64))],
)
def test_bundled_data_sets_are_scaled_as_documented(name, shape):
    stream = dataset(name)
    assert stream.x.shape == shape
    np.testing.assert_allclose(np.linalg.norm(stream.x, axis=1).max(), 1, rtol=1e-5)
    np.testing.assert_allclose(np.abs(stream.y).max(), 1, rtol=1e-5)
    if name == "breast_cancer":
        assert set(np.unique(stream.y)) == {-1.0, 1.0}
        assert int((stream.y == 1).sum()) == 357  # benign
    else:
        assert abs(float(stream.y.mean())) < 1e-5
    np.testing.assert_allclose(stream.x.mean(axis=0), 0, atol=1e-5)
    spread = np.asarray(stream.x).std(axis=0)
    varying = spread[spread > 0]
    np.testing.assert_allclose(varying, varying[0], rtol=1e-4)
    assert (spread == 0).sum() == (3 if name == "digits" else 0)  # blank pixels


@pytest.mark.parametrize("name", nj.streams.DATASETS)
def test_bundled_data_sets_are_those_that_scikit_learn_loads(name, monkeypatch, tmp_path):
    read = bundled(name)
    (tmp_path / "__init__.py").write_text("")  # a version that has its files elsewhere
    spec = importlib.util.spec_from_file_location("sklearn", tmp_path / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", {"sklearn": spec}.get)
    for ours, loaded in zip(scaled(*read), scaled(*bundled(name)), strict=True):
        np.testing.assert_allclose(ours, loaded, rtol=1e-6, atol=1e-7)


def test_without_scikit_learn_its_data_sets_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"'digits' comes with .* noisy_jax\[demo\]"):
        dataset("digits")


@pytest.mark.statistical
def test_resampled_draws_rows_with_replacement():
    stream = resampled(key(), from_arrays(np.arange(5.0)[:, None], np.arange(5.0)), 10_000)
    np.testing.assert_array_equal(stream.x[:, 0], stream.y)
    counts = np.bincount(np.asarray(stream.y, int), minlength=5)
    assert np.all(np.abs(counts - 2000) < 5 * np.sqrt(10_000 * 0.2 * 0.8))


KEY, ONE = jax.random.key(0), np.ones((2, 1))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: scaled([[1.0], [3.0]], [2, 2]), r"the target is constant \(2\.0\)"),
        (lambda: scaled([[1.0], [1.0]], [2, 3]), "every feature is constant"),
        (lambda: from_arrays(np.ones((3, 2)), np.ones(4)), r"got x \[3, 2\] and y \[4\]"),
        (lambda: from_arrays([[1.0], [np.nan]], [1.0, 2.0]), r"x\[1, 0\] is nan"),
        (lambda: from_arrays([[1e300]], [1.0]), r"x\[0, 0\] is 1e\+300, which overflows float32"),
        (lambda: scaled([[1.0], [2.0]], [1e300, 0]), r"y\[0\] is 1e\+300, which overflows"),
        (lambda: from_arrays([[1.0, 2.0], [3.0]], [1, 2]), "row 0 has 2 values and row 1 has 1"),
        (lambda: from_arrays([["a"]], [1.0]), r"x\[0, 0\] must be a number, got 'a'"),
        (lambda: dataset("boston"), "name must be 'diabetes', .* got 'boston'"),
        (lambda: resampled(KEY, dataset("diabetes"), 1.5), "got 1.5"),
        (lambda: resampled(0, from_arrays([[1.0]], [1.0]), 5), "key must be a key .* got 0"),
        (lambda: resampled(KEY, (ONE, np.ones(2)), 6), "stream must be a Stream, got tuple: "),
    ],
)
def test_bad_input_raises(build, message):
    raises(message, build)


class Frame:
    """What a data frame offers of itself: names of columns, and an array of mixed objects."""

    def __init__(self, **columns):
        self.columns, self._values = list(columns), np.array([*columns.values()], object).T

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)


def test_data_frames_are_tables_and_errors_name_their_columns():
    stream = from_arrays(Frame(rooms=[1, 2], old=[True, False]), [0.5, 1.5])
    np.testing.assert_array_equal(stream.x, [[1, 1], [2, 0]])
    text, gap = Frame(rooms=[1, 2], city=[1, "Rome"]), Frame(rooms=[None, 2], old=[True, False])
    raises("row 1 of column 'city' must be a number, got 'Rome'", from_arrays, text, [0.5, 1.5])
    raises(r"row 0 of column 'rooms' is nan \(1 in all\)", scaled, gap, [0.5, 1.5])


def test_values_that_float32_cannot_tell_apart_give_a_warning_unless_scaled(rng):
    x = np.column_stack([rng.normal(size=50), 1e9 + rng.normal(size=50), np.full(50, 0.1)])
    y = 1e8 + rng.normal(size=50)
    message = r"rounds the values of x\[:, 1\] by more .*mean in float64"
    with pytest.warns(UserWarning, match=message):
        from_arrays(x, y - 1e8)
    with pytest.warns(UserWarning, match=r"of column 'time' by"):
        from_arrays(Frame(time=x[:, 1].tolist(), other=x[:, 0].tolist()), y - 1e8)
    with pytest.warns(UserWarning, match="rounds the values of y by"):
        from_arrays(x[:, :1], y)
    from_arrays(2000.0 + np.arange(50)[:, None], y - 1e8)  # years: no warning
    for ours, theirs in zip(scaled(x, y), scaled(x - [0, 1e9, 0], y - 1e8), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-200, 1e30])
def test_scaling_does_not_depend_on_units(unit, rng):
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    for ours, theirs in zip(scaled(unit * x, unit * y), scaled(x, y), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_no_key_is_used_twice_under_jit():
    table, kernel = from_arrays(np.eye(3), np.ones(3)), nj.kernels.linear()
    with jax.debug_key_reuse(True):
        for make in (
            lambda key: resampled(key, table, 5),
            lambda key: linear(key, 5, 2, label_noise=0.1),
            lambda key: nj.streams.teacher(key, 5, 2, kernel=kernel, label_noise=0.1),
            lambda key: nj.streams.drifting(key, 20),
            lambda key: nj.streams.switching(key, 5, period=5),
            lambda key: nj.streams.one_copy_adversaries(key, 5).noiseless.stream,
        ):
            made = jax.eval_shape(make, jax.random.key(0))
            assert isinstance(made, nj.Stream)
            assert (made.x.ndim, made.x.dtype) == (2, jnp.float32)
