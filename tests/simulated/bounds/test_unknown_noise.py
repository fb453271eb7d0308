"""Bounds under unknown noise, of random truncation and of multilevel estimates."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.bounds import as_printed, random_truncation
from noisy_jax.unbiased import kernel_gradient
from tests import keys

SETTINGS = {
    "linear": (nj.kernels.linear(), nj.losses.squared()),
    "polynomial": (nj.kernels.polynomial(degree=2), nj.losses.exponential()),
    "exponential": (nj.kernels.exponential(), nj.losses.smoothed_absolute(sharpness=0.3)),
    "gaussian": (nj.kernels.gaussian(length_scale=2**0.5), nj.losses.smoothed_hinge(sharpness=0.5)),
}


def of(name, **options):
    options = {"radius": 0.5, "x_second_moment": 0.5, "max_bias": 1e-4, **options}
    return kernel_gradient(*SETTINGS[name], **options)


@pytest.mark.claim("NK-Thm4", "NK-Thm2")
@pytest.mark.parametrize("name", SETTINGS)
def test_closed_forms_bound_the_exact_sums_within_a_factor(x64, name):
    exact = random_truncation(of(name), horizon=1000)
    closed = random_truncation(of(name), horizon=1000, closed_form=True)
    assert exact.second_moment <= closed.second_moment <= 60 * exact.second_moment
    rooted = exact.regret - 1000 * 2 * of(name).derivative_bias * of(name).largest_value
    for form in (closed, exact._replace(regret=rooted)):
        np.testing.assert_allclose(form.regret, 0.5 * math.sqrt(form.second_moment * 1000))
        np.testing.assert_allclose(form.learning_rate, 0.25 / form.regret, rtol=1e-9)


@pytest.mark.claim("NK-Thm1")
def test_corrected_closed_form_is_the_theorems(x64):
    """Theorem 1 with Q(a) = (1 + a)² and ℓ'₊ = exp: η and regret from u."""
    p, radius, second = 3.0, 0.25, 0.5
    u = radius * (p / (p - 1)) ** 2 * (1 + p * second) ** 2
    derivative = math.exp(math.sqrt((p - 1) * u))
    guarantee = random_truncation(of("polynomial"), horizon=100, closed_form=True, p=p)
    regret = derivative * math.sqrt(u * 100)
    assert guarantee.regret == pytest.approx(regret, rel=1e-9)
    assert guarantee.learning_rate == pytest.approx(radius / regret, rel=1e-9)
    assert guarantee.copies == pytest.approx(p / (p - 1) ** 2)


@pytest.mark.claim("NK-Lemma5", "NK-Thm2")
def test_printed_gaussian_moment_is_not_free_of_units(x64):
    """Rescaling x and ℓ together changes nothing but the printed bound, which is then exceeded."""

    def forms(scale):
        kernel, loss = nj.kernels.gaussian(length_scale=(scale / 2) ** 0.5), nj.losses.exponential()
        estimator = kernel_gradient(kernel, loss, radius=0.1, x_second_moment=scale, max_bias=0.5)
        corrected = random_truncation(estimator, horizon=1.0, closed_form=True)
        printed = as_printed.random_truncation(estimator, horizon=1.0)
        return float(corrected.regret), float(printed.regret)

    (corrected, printed), (same, other) = forms(1.0), forms(100.0)
    assert corrected == pytest.approx(same, rel=1e-6)
    assert other < 0.1 * corrected < 0.2 * printed


@pytest.mark.claim("NK-Lemma2")
def test_residual_losses_pay_for_their_targets(x64):
    corrected = random_truncation(of("exponential"), horizon=100, closed_form=True)
    printed = as_printed.random_truncation(of("exponential"), horizon=100)
    assert printed.regret < 0.9 * corrected.regret


def test_squared_loss_over_a_linear_kernel_has_the_bound_of_two_copies():
    estimator = of("linear", radius=1.0, x_second_moment=1.5, y_largest=0.7)
    ours = random_truncation(estimator, horizon=100)
    moments = nj.bounds.DataMoments(1.5, 9.0, 0.49, 0.0)
    theirs = nj.bounds.two_copies(moments, horizon=100, radius=1.0)
    assert ours.regret == pytest.approx(float(theirs.regret), rel=1e-6)
    assert ours.copies == 2


def test_says_when_it_is_vacuous():
    estimator = of("linear", radius=1.0, x_second_moment=1.0)
    turn = float(random_truncation(estimator, horizon=10).informative_from)
    assert turn == pytest.approx(16.0)  # 4√T against T
    assert random_truncation(estimator, horizon=15).vacuous
    assert not random_truncation(estimator, horizon=17).vacuous


def test_overflow_is_infinite_and_vacuous_not_an_error():
    kernel, loss = nj.kernels.gaussian(length_scale=0.5), nj.losses.smoothed_hinge(sharpness=1.0)
    orders = {"kernel_order": 14, "loss_order": 4, "max_bias": 1e9}
    estimator = kernel_gradient(kernel, loss, radius=1.0, x_second_moment=2.0, **orders)
    guarantee = random_truncation(estimator, horizon=1000, closed_form=True)
    assert guarantee.regret == math.inf
    assert guarantee.vacuous
    assert guarantee.learning_rate == 0


def test_closed_forms_are_infinite_where_the_series_is():
    """At p B_x² = 1.2, where an estimator with the optimal distribution still exists."""
    kernel, loss = nj.kernels.binomial(alpha=0.5), nj.losses.squared()
    options = {"max_bias": 0.2, "distribution": "optimal"}
    estimator = kernel_gradient(kernel, loss, radius=1.0, x_second_moment=0.6, **options)
    for guarantee in (
        random_truncation(estimator, horizon=1000, closed_form=True),
        as_printed.random_truncation(estimator, horizon=1000),
    ):
        assert guarantee.regret == guarantee.informative_from == math.inf
        assert guarantee.vacuous
    assert random_truncation(estimator, horizon=1000).regret < math.inf
    assert as_printed.random_truncation(of("gaussian"), horizon=1000, p=1e6).regret == math.inf


def test_a_slope_that_is_cut_off_costs_its_bias():
    coarse, fine = of("gaussian", max_bias=0.05), of("gaussian", max_bias=1e-6)
    assert coarse.derivative_bias > 100 * fine.derivative_bias
    guarantee = random_truncation(coarse, horizon=10**6)
    paid = guarantee.regret - 0.5 * math.sqrt(guarantee.second_moment * 10**6)
    bias = 10**6 * 2 * coarse.derivative_bias * coarse.largest_value
    assert paid == pytest.approx(bias, rel=1e-6)
    assert 0.5 <= coarse.largest_value < 0.55


SCALE, RADIUS, TARGET = 0.8, 1.5, 1.0
OPTIONS = {"length_scale": SCALE, "radius": RADIUS, "y_second_moment": TARGET**2}
KERNEL = nj.kernels.gaussian(length_scale=SCALE)


@pytest.mark.claim("EXT-WholeGradient")
@pytest.mark.parametrize(("levels", "base", "variance"), [(5, 1, 0.02), (4, 2, 0.1)])
def test_the_bias_at_the_cap_is_below_its_bound(levels, base, variance):
    """‖2F_m − F_{m/2} − G‖ of f = Wk(c, ·) and y = −B_y in one dimension, by quadrature."""
    noise = nj.noise.Gaussian(variance)
    theory = nj.bounds.unknown_noise(noise, dim=1, horizon=1, levels=levels, base=base, **OPTIONS)
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
def test_the_second_moment_is_below_its_bound_and_above_a_tenth():
    """Of the first gradient in the ball, at f = Wk(c, ·) and y = −B_y."""
    noise = nj.noise.Laplace(0.3)
    theory = nj.bounds.unknown_noise(noise, dim=2, horizon=1, **OPTIONS)
    g = nj.unbiased.multilevel(lambda p: p)
    center = jnp.zeros((1, 2))

    @jax.jit
    @jax.vmap
    def square(key):
        noise_key, own = jax.random.split(key)
        points, weights, _ = g.points(noise.centred(noise_key, jnp.full((g.copies, 2), 0.2)), own)
        slopes = weights * 2 * (RADIUS * KERNEL(center, points)[0] + TARGET)
        return slopes @ KERNEL(points, points) @ slopes

    draws = np.asarray(square(jax.random.split(keys.key(5), 20_000)))
    error = draws.std() / len(draws) ** 0.5
    assert draws.mean() - 5 * error < theory.second_moment
    assert draws.mean() + 5 * error > 0.1 * theory.second_moment
    np.testing.assert_allclose(theory.copies, g.mean_copies)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.claim("EXT-WholeGradient")
def test_the_worst_stream_that_is_found_has_less_regret():
    noise, horizon = nj.noise.Gaussian(0.2), 8
    theory = nj.bounds.unknown_noise(noise, dim=1, horizon=horizon, **OPTIONS)
    options = {"radius": RADIUS, "horizon": horizon, "estimate": nj.unbiased.multilevel}
    learner = nj.learners.unknown_noise(KERNEL, nj.losses.squared(), **options)
    found = nj.adversaries.worst(
        learner, noise, horizon, keys.key(6), radius=RADIUS, kernel=KERNEL, x_norm=2.0,
        y_size=TARGET, guarantee=theory, steps=10, draws=4, held_out=64,
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
