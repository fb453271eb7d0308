from functools import partial

import jax
import numpy as np
import pytest
from scipy import stats

import noisy_jax as nj
from noisy_jax.simulated.streams import linear, teacher
from tests.errors import raises
from tests.keys import key

POLE = nj.kernels.binomial(alpha=1.0)  # at ⟨x, z⟩ = 1
GAUSSIAN = nj.kernels.gaussian(length_scale=0.5**0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "spread"),
    [(linear, 1.0), (partial(teacher, kernel=nj.kernels.linear(), spread=3.0), 3.0)],
)
def test_a_linear_teacher_is_recovered_and_has_weights_of_its_norm(make, spread):
    stream = make(jax.random.key(0), 2000, 4, radius=0.8)
    weights, residual, *_ = np.linalg.lstsq(stream.x, stream.y)
    np.testing.assert_allclose(np.linalg.norm(weights), 0.8, rtol=1e-5)
    assert residual < 1e-8
    assert 2 / 3 < np.linalg.norm(stream.x, axis=1).max() / spread <= 1


@pytest.mark.statistical
def test_instances_are_uniform_in_the_ball():
    """‖x‖^d is uniform, and so is the direction: its square has the moments of a sphere."""
    x = np.asarray(linear(key(), 20_000, 3).x, np.float64)
    sizes = np.linalg.norm(x, axis=1)
    assert stats.kstest(sizes**3, "uniform").pvalue > 1e-6
    directions = x / sizes[:, None]
    assert np.abs(directions.mean(axis=0)).max() < 5 * (1 / 3 / 20_000) ** 0.5
    error = (4 / 45 / 20_000) ** 0.5  # Var u_i² = 1/5 − 1/9
    assert np.abs((directions**2).mean(axis=0) - 1 / 3).max() < 5 * error


@pytest.mark.slow
def test_teacher_of_a_gaussian_kernel_has_its_norm(x64):
    stream = teacher(jax.random.key(0), 60, 1, kernel=GAUSSIAN, centers=3, radius=0.8)
    # The least norm of what interpolates the data; with enough of them, the teacher's own.
    best = nj.comparators.kernel_ball(GAUSSIAN(stream.x, stream.x), stream.y, 10.0)
    assert best.loss < 1e-12
    np.testing.assert_allclose(best.norm, 0.8, rtol=1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("make", [linear, partial(teacher, kernel=GAUSSIAN)])
def test_label_noise_has_its_half_width(make):
    plain, label_noise = (make(key(0), 2000, 4, label_noise=m) for m in (0.0, 0.3))
    difference = np.asarray(label_noise.y - plain.y)
    assert 0.29 < np.abs(difference).max() <= 0.3 + 1e-6
    assert abs(difference.mean()) < 0.02


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (linear, {"label_noise": -1.0}, "label_noise must be finite and >= 0"),
        (teacher, {"key": 0}, "key must be a key .* got 0"),
        (teacher, {"kernel": POLE, "spread": 2.0}, r"values must be finite.*: for spread = 2\.0"),
        (teacher, {"horizon": 0}, "horizon must be a whole"),
        (teacher, {"kernel": "gaussian"}, "kernel must be a Kernel, got 'gaussian': kernels"),
        (teacher, {"centers": 0}, "centers must be a whole number of at least 1, got 0"),
        (teacher, {"radius": 0.0}, "radius must be positive and finite, got 0.0"),
        (teacher, {"spread": np.inf}, "spread must be positive and finite, got inf"),
    ],
)
def test_bad_input_raises(make, wrong, message):
    good = {"key": jax.random.key(0), "horizon": 5, "dim": 3}
    raises(message, make, **good | ({"kernel": GAUSSIAN} if make is teacher else {}) | wrong)
