"""The guarantee of multilevel estimates of the whole gradient: moments, bias, regret."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from tests import keys
from tests.errors import raises

SCALE, RADIUS, TARGET = 0.8, 1.5, 1.0
OPTIONS = {"length_scale": SCALE, "radius": RADIUS, "y_second_moment": TARGET**2}
KERNEL = nj.kernels.gaussian(length_scale=SCALE)


@pytest.mark.claim("EXT-WholeGradient")
@pytest.mark.parametrize("base", [1, 2])
@pytest.mark.parametrize("variance", [0.02, 0.1])
def test_the_bias_at_the_cap_is_below_its_bound(base, variance):
    """‖2F_m − F_{m/2} − G‖ of f = Wk(c, ·) and y = −B_y in one dimension, by quadrature."""
    noise = nj.noise.Gaussian(variance)
    theory = nj.bounds.unknown_noise(noise, dim=1, horizon=1, base=base, **OPTIONS)
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    weights, worst = weights / weights.sum(), 0.0
    for x in np.linspace(0, 3, 13):
        points = [x + (variance / copies) ** 0.5 * nodes for copies in (32, 16)]
        points = np.concatenate([*points, [x]])
        shares = np.concatenate([2 * weights, -weights, [-1.0]])
        coefficients = shares * 2 * (RADIUS * np.exp(-(points**2) / 2 / SCALE**2) + TARGET)
        gram = np.exp(-((points[:, None] - points[None]) ** 2) / 2 / SCALE**2)
        worst = max(worst, coefficients @ gram @ coefficients)
    assert 0.01 <= worst**0.5 / (theory.bias / (2 * RADIUS)) <= 1


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-WholeGradient")
@pytest.mark.parametrize("noise", [nj.noise.Gaussian(0.1), nj.noise.Laplace(0.3)], ids=repr)
def test_the_second_moment_is_below_its_bound_and_above_a_tenth(noise):
    """Of the first gradient in the ball, at f = Wk(c, ·) and y = −B_y."""
    theory = nj.bounds.unknown_noise(noise, dim=2, horizon=1, **OPTIONS)
    g = nj.unbiased.multilevel(lambda p: p)
    center = jnp.zeros((1, 2))

    @jax.jit
    @jax.vmap
    def square(key):
        noise_key, own = jax.random.split(key)
        points, weights = g.points(noise.centred(noise_key, jnp.full((g.copies, 2), 0.2)), own)
        slopes = weights * 2 * (RADIUS * KERNEL(center, points)[0] + TARGET)
        return slopes @ KERNEL(points, points) @ slopes

    draws = np.asarray(square(jax.random.split(keys.key(5), 100_000)))
    error = draws.std() / len(draws) ** 0.5
    assert draws.mean() - 5 * error < theory.second_moment
    assert draws.mean() + 5 * error > 0.1 * theory.second_moment
    np.testing.assert_allclose(theory.copies, g.mean_copies)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-WholeGradient")
@pytest.mark.parametrize("variance", [0.01, 0.2])
def test_the_worst_stream_that_is_found_has_less_regret(variance):
    noise, horizon = nj.noise.Gaussian(variance), 16
    theory = nj.bounds.unknown_noise(noise, dim=1, horizon=horizon, **OPTIONS)
    options = {"radius": RADIUS, "horizon": horizon, "estimate": "multilevel"}
    learner = nj.learners.unknown_noise(KERNEL, nj.losses.squared(), **options)
    found = nj.adversaries.worst(
        learner, noise, horizon, keys.key(6), radius=RADIUS, kernel=KERNEL, x_norm=2.0,
        y_size=TARGET, guarantee=theory, steps=20, draws=4, held_out=64,
    )  # fmt: skip
    assert found.excess[1] < 0
    assert found.ratio > 0.03


def test_it_grows_like_the_root_of_the_horizon_and_is_informative():
    noise = nj.noise.Gaussian(0.05)
    options = {"length_scale": 1.0, "radius": 1.0, "y_second_moment": 1.0}
    bound = partial(nj.bounds.unknown_noise, noise, dim=10, **options)
    short, long = bound(horizon=1000), bound(horizon=100_000)
    np.testing.assert_allclose(long.regret - long.bias, 10 * (short.regret - short.bias))
    expected = 8**0.5 * (long.second_moment * 1e5) ** 0.5 + long.bias
    np.testing.assert_allclose(long.regret, expected, rtol=1e-6)
    assert not long.vacuous
    assert long.bias < 0.2 * long.idle
    quiet = nj.bounds.unknown_noise(nj.noise.Gaussian(0.0), dim=3, horizon=1, **options)
    np.testing.assert_allclose(quiet.second_moment, 4 * (1 + 1) ** 2)
    assert quiet.bias == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": 0.1}, "noise must be a Noise"),
        ({"base": 0}, "base must be a whole number of at least 1, got 0"),
        ({"radius": 0.0}, "radius must be positive"),
    ],
)
def test_bad_arguments_give_one_clear_line(change, message):
    given = {"noise": nj.noise.Gaussian(0.1), "dim": 2, "horizon": 9, **OPTIONS}
    raises(message, nj.bounds.unknown_noise, **given | change)
