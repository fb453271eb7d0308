import numpy as np

from noisy_jax.running import Running


def test_parts_together_are_the_whole(rng):
    values = 100 + rng.normal(size=(50, 3))
    parts = Running.of(values[:1]).plus(Running.of(values[1:20])).plus(Running.of(values[20:]))
    assert parts.count == 50
    np.testing.assert_allclose(parts.mean, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(parts.std_error, values.std(axis=0, ddof=1) / 50**0.5, rtol=1e-9)


def test_nothing_adds_nothing_and_one_value_has_no_standard_error():
    one = Running.of(np.array([[2.0]]))
    assert one.plus(Running.of(np.zeros((0, 1)))) is one
    assert np.isnan(one.std_error).all()
    assert np.isnan(Running.of(np.zeros((0, 1))).std_error).all()
