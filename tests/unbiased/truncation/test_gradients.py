import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.unbiased import kernel_gradient
from noisy_jax.unbiased.truncation import MeanEstimator
from noisy_jax.unbiased.truncation.gradients import GradientOrders
from noisy_jax.unbiased.truncation.maps import MapEstimator, MapOrders
from noisy_jax.unbiased.truncation.worlds import WorldMaps
from tests.errors import raises
from tests.keys import key

POLYNOMIAL, BINOMIAL = nj.kernels.polynomial(degree=2), nj.kernels.binomial(alpha=1.0)
GAUSSIAN, HINGE = nj.kernels.gaussian(length_scale=2**0.5), nj.losses.smoothed_hinge(sharpness=0.5)
EXPONENTIAL, LOSS = nj.kernels.exponential(), nj.losses.exponential()
LONG = {"kernel_order": 60, "loss_order": 60}


def of(kernel=POLYNOMIAL, loss=None, **options):
    options = {"radius": 1.0, "x_second_moment": 0.4, **options}
    return kernel_gradient(kernel, nj.losses.squared() if loss is None else loss, **options)


def total_copies(estimator, highest=400):
    """The distribution of all copies of a round, by convolution of those of its parts."""
    one = np.zeros(highest)
    tensor = estimator.maps.orders.probabilities
    one[: len(tensor)] = tensor
    if estimator.maps.envelope is not None:
        pairs = np.zeros(highest)
        chances = estimator.maps.envelope.orders.probabilities
        pairs[: 2 * len(chances) : 2] = chances
        one = np.convolve(one, pairs)[:highest]
    total, power = np.zeros(highest), one
    for chance in estimator.derivative.orders.probabilities:
        total += chance * power
        power = np.convolve(power, one)[:highest]
    return total


@pytest.mark.claim("NK-Thm1", "NK-Sub5", "NK-Thm2")
def test_copies_follow_the_geometric_distribution_if_series_are_long(x64):
    """P(Q ≥ n) = r^n with r = p/(p² − p + 1), of mean p/(p − 1)²; thrice that for a Gaussian."""
    for p in (2.0, 3.0):
        estimator = of(EXPONENTIAL, LOSS, p=p, **LONG)
        r, n = p / (p**2 - p + 1), np.arange(40)
        np.testing.assert_allclose(total_copies(estimator)[:40], (1 - r) * r**n, atol=1e-12)
        assert estimator.mean_copies == pytest.approx(p / (p - 1) ** 2, rel=1e-9)
        gaussian = of(GAUSSIAN, LOSS, p=p, **LONG)
        assert gaussian.mean_copies == pytest.approx(3 * p / (p - 1) ** 2, rel=1e-9)


def test_mean_and_largest_number_of_copies_of_cut_off_series():
    for kernel in (POLYNOMIAL, GAUSSIAN):
        estimator = of(kernel, HINGE)
        distribution = total_copies(estimator)
        mean = distribution @ np.arange(len(distribution))
        np.testing.assert_allclose(mean, estimator.mean_copies, rtol=1e-9)
        assert np.flatnonzero(distribution).max() == estimator.copies


def test_orders_are_the_smallest_that_are_allowed():
    given = EXPONENTIAL, nj.losses.smoothed_hinge(sharpness=0.7)
    chosen = of(*given, max_bias=0.02)
    assert chosen.kernel_bias <= 0.02 * float(jnp.exp(0.4)) < chosen.maps.series.coefficients[0]
    assert chosen.derivative_bias <= 0.02
    for name, part in (("kernel_order", chosen.maps), ("loss_order", chosen.derivative)):
        order = len(part.series.coefficients) - 1
        message = rf"{name} is too small.*{name}={order} would do"
        raises(message, of, *given, max_bias=0.02, **{name: order - 1})


def test_polynomials_lose_nothing():
    estimator = of(kernel_order=7, loss_order=9)
    assert (estimator.kernel_bias, estimator.derivative_bias) == (0, 0)
    assert estimator.copies == 4  # two of the stored estimate, two of the single value of f
    assert np.all(np.asarray(estimator.derivative.orders.probabilities) == [0, 1])


@pytest.mark.parametrize("order", [2, 4])
def test_bias_bounds_hold_for_the_gaussian_kernel(order):
    """Cut off early, its mean map is longer than 1, and values exceed √B_w."""
    kernel, options = nj.kernels.gaussian(length_scale=0.5**0.5), {"loss_order": 6, "max_bias": 9.0}
    estimator = of(kernel, LOSS, x_second_moment=1.0, kernel_order=order, **options)
    b, maps = np.linspace(0, 1, 41), estimator.maps
    cut = np.polyval(maps.envelope.series.coefficients[::-1], b)
    powers = maps.series.coefficients[::-1]
    norm = np.sqrt((cut**2 * np.polyval(powers, b)).max())
    assert (norm > 1) == (order == 2)
    assert norm <= maps.largest_norm(1.0) < 1.6 * norm
    a = norm * np.linspace(-1, 1, 41)
    error = np.polyval(estimator.derivative.series.coefficients[::-1], a) - LOSS.derivative(a)
    assert np.abs(error).max() <= estimator.derivative_bias * (1 + 1e-6)

    inner = np.sqrt(b[:, None, None] * b[:, None]) * np.linspace(-1, 1, 21)
    seen = cut[:, None, None] * np.exp(-b)[:, None] * np.polyval(powers, inner)
    error = np.abs(seen - np.exp(2 * inner - b[:, None, None] - b[:, None])).max()
    assert error <= estimator.kernel_bias < 5 * error


def test_parameters_may_be_traced_where_orders_are_given():
    def moments(options):
        made = of(EXPONENTIAL, HINGE, kernel_order=3, loss_order=3, **options)
        return made.map_second_moment, made.derivative_second_moment, made.mean_copies

    options = {"radius": 0.5, "x_second_moment": 0.3, "p": 1.8}
    np.testing.assert_allclose(jax.jit(moments)(options), moments(options), rtol=2e-5)
    traced = jax.jit(lambda r: of(loss=HINGE, radius=r).mean_copies)
    raises("loss_order must be given if parameters are traced", traced, 1.0)


LARGE = {"kernel": BINOMIAL, "x_second_moment": 0.6}
TOO_LARGE = LARGE | {"x_second_moment": 1.2, "distribution": "optimal"}


@pytest.mark.claim("NK-Lemma3")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": nj.losses.hinge()}, r"hinge.*losses\.smoothed_hinge"),
        ({"loss": nj.losses.huber()}, r"huber.*losses\.smoothed_absolute"),
        ({"loss": "squared"}, "loss must be a Loss"),
        ({"kernel": nj.kernels.laplacian(length_scale=1.0)}, "kernel must have a power series"),
        ({"kernel": nj.kernels.matern(nu=1.5, length_scale=1.0)}, "must have a power series"),
        ({"p": 1.0}, "p must be above 1"),
        ({"p": 2.0, "distribution": "optimal"}, "p has no effect with distribution='optimal'"),
        ({"value_second": 0.5}, "value_second has no effect with distribution='geometric'"),
        ({"distribution": "uniform"}, "distribution must be 'geometric' or 'optimal'"),
        (LARGE, r"p must be .* below 1\.66667, got 2\.0: .* scale .*, or distribution='optimal'"),
        (TOO_LARGE, r"^x_second_moment must be .* below 1, got 1\.2: .*scale the data down$"),
        ({"kernel": EXPONENTIAL, "x_second_moment": 40.0}, "x_second_moment = 40.0 is too large"),
        ({"p": "2"}, "p must be numbers, got '2'"),
        ({"p": np.array([2.0, 3.0])}, r"p must be one number, got shape \[2\]; use jax\.vmap"),
        ({"x_second_moment": np.ones(3)}, r"x_second_moment must be one number, got shape \[3\]"),
        ({"y_largest": -1.0}, "y_largest must be finite and >= 0, got -1.0"),
        ({"radius": 0.0}, "radius must be positive"),
        ({"x_second_moment": -1.0}, "x_second_moment must be positive"),
        ({"loss": nj.losses.logistic(), "radius": 3.0}, "no order up to 40 would do"),
        ({"kernel_order": 1}, r"kernel_order is too small.*kernel_order=2 would do"),
        ({"kernel_order": 2.5}, "kernel_order must be a whole number"),
    ],
)
def test_bad_arguments_raise_with_what_would_do(options, message):
    raises(message, of, **options)


def test_too_few_copies_raise():
    estimator = of()
    orders = estimator.draw_orders(jax.random.key(0))
    raises("needs 4 independent copies, got 3", estimator.estimates, orders, jnp.ones((3, 2)))


def test_optimal_distribution_allows_larger_data_and_has_the_smaller_bound():
    """At its default guess; a guess far too small may do worse than the geometric distribution."""
    options = {"x_second_moment": 0.6, "distribution": "optimal", "max_bias": 0.2}
    assert of(nj.kernels.binomial(alpha=0.5), **options).kernel_bias > 0
    options = {"loss": nj.losses.smoothed_absolute(), "max_bias": 100.0, "loss_order": 12}
    geometric = of(**options).derivative_second_moment
    assert of(**options, distribution="optimal").derivative_second_moment < geometric
    guessed = of(**options, distribution="optimal", value_second=0.01)
    assert guessed.derivative_second_moment > geometric


@pytest.mark.parametrize(("order", "center"), [(2, 0.0), (5, 0.3)])
def test_slope_bias_is_attained(x64, order, center):
    """By e^(−a), whose terms have one sign at a ≤ c: at the margin −√B_w ‖Ψ‖ for c ≥ 0."""
    estimator = of(loss=LOSS, loss_order=order, center=center, max_bias=9.0, radius=0.8)
    largest = 0.8 * (1 + 0.4)  # √B_w times √Q(B_x²) for Q(a) = (1 + a)²
    assert estimator.largest_value == pytest.approx(largest, rel=1e-12)
    reach = largest + center
    powers = np.polyval(estimator.derivative.series.coefficients[::-1], -reach)
    assert estimator.derivative_bias == pytest.approx(abs(powers + np.exp(largest)), rel=1e-9)
    assert estimator.derivative_bias == pytest.approx(estimator.derivative.bias(reach), rel=1e-12)


def test_slope_bias_of_residuals_includes_the_targets(x64):
    """|f − y| ≤ √B_w ‖Ψ‖ + B_y: a bound there, within a factor of two."""
    loss = nj.losses.smoothed_absolute(sharpness=0.5)
    estimator = of(loss=loss, loss_order=3, y_largest=0.7, max_bias=9.0, radius=0.8)
    a = 0.8 * 1.4 + 0.7
    error = abs(np.polyval(estimator.derivative.series.coefficients[::-1], a) - loss.derivative(a))
    assert error <= estimator.derivative_bias < 2 * error
    without = of(loss=loss, loss_order=3, y_largest=0.0, max_bias=9.0, radius=0.8)
    assert without.derivative_bias < 0.5 * error


def gaussian_maps(tensor_order, envelope_order):
    """A Gaussian kernel's map with its two series cut off at different orders."""
    kernel = nj.kernels.gaussian(length_scale=0.5**0.5)
    options = {"x_second_moment": 0.3, "max_bias": 9.0}
    maps = of(kernel, kernel_order=tensor_order, **options).maps
    envelope = of(kernel, kernel_order=envelope_order, **options).maps.envelope
    return MapEstimator(kernel, maps.series, maps.orders, MeanEstimator(*envelope))


@pytest.mark.parametrize("order", [1, 2])
def test_kernel_bias_of_each_cut_off_series(x64, order):
    """At ‖x‖² = ‖z‖² = B = .3 and x = z, where k = 1 and h = e^(−B)."""
    second = 0.3
    powers = [2.0**n / math.factorial(n) * second**n for n in range(order + 1)]
    lost = 1 - np.exp(-2 * second) * sum(powers)
    np.testing.assert_allclose(gaussian_maps(order, 25).bias(second), lost, rtol=1e-9)

    maps = gaussian_maps(25, order)
    cut = sum((-second) ** n / math.factorial(n) for n in range(order + 1))
    error = abs(cut * np.exp(second) - 1)  # of h, relative to h
    assert error < maps.bias(second) < 1.5 * error
    # ‖E Ψ̃‖ = h̃/h, where the cut-off h̃ exceeds h.
    longest = max(cut * np.exp(second), 1)
    assert longest <= maps.largest_norm(second) <= 1 + 1.5 * error


@pytest.mark.claim("NK-Lemma2")
@pytest.mark.parametrize(("y_largest", "center"), [(0.0, 0.0), (0.7, -0.3)])
def test_second_moment_of_the_slope_is_that_at_the_largest_value(x64, y_largest, center):
    """That of values of at most √(B_w B_Ψ) + B_y + |c| for residuals, B_y as it is given."""
    options = {"loss": nj.losses.smoothed_absolute(sharpness=0.5), "loss_order": 3, "radius": 0.8}
    estimator = of(**options, y_largest=y_largest, center=center, max_bias=9.0)
    size = np.sqrt(0.64 * estimator.map_second_moment) + y_largest + abs(center)
    exact = estimator.derivative.second_moment(size**2)
    np.testing.assert_allclose(estimator.derivative_second_moment, exact, rtol=1e-9)


def test_a_world_gives_its_diagonal_and_its_error():
    """A radial kernel cut off at rate 1.5 is k(0, 0) < 1 on its diagonal, the surrogate R² > 1."""
    world = nj.worlds.rational(dim=2, noise=nj.noise.Gaussian(0.1), cutoff=1.5)
    maps, origin = WorldMaps(world), jnp.zeros((1, 2))
    square = float(world.kernel(origin, origin)[0, 0])
    assert square < 0.99
    np.testing.assert_allclose(maps.largest_norm(None), square**0.5, rtol=1e-5)
    surrogate = world.surrogate(origin, origin)[0, 0]
    np.testing.assert_allclose(maps.second_moment(None), surrogate, rtol=1e-5)
    np.testing.assert_allclose(maps.bias(None), 1 - square, rtol=1e-4)


def test_copies_of_the_queries_that_the_order_uses_are_counted():
    """One copy of the stored estimate, 2 + 0 of the first two queries, none of the third."""
    estimator = of(loss=HINGE, loss_order=3, max_bias=9.0)
    maps = MapOrders(jnp.array([1, 2, 0, 1]), jnp.zeros(4, int))
    x = jnp.ones((estimator.copies, 2))
    stored, _ = estimator.estimates(GradientOrders(jnp.int32(2), maps), x)
    assert stored.copies == 3


def test_draws_use_no_key_twice():
    estimator = of(GAUSSIAN, HINGE)
    copies = jnp.ones(estimator.derivative.copies)
    with jax.debug_key_reuse(True):
        jax.jit(estimator.draw_orders)(key(0))
        jax.jit(lambda k: estimator.derivative.draw(k, copies))(key(1))


@pytest.mark.statistical
@pytest.mark.claim("NK-Thm4", "NK-Sub1", "NK-Alg1", "NK-Sub5")
def test_orders_of_a_round_are_independent():
    """Orders of the derivative, of each tensor and of each envelope: no two are correlated."""
    options = {"kernel_order": 2, "loss_order": 2, "max_bias": 9.0}
    estimator = of(nj.kernels.gaussian(length_scale=1.0), LOSS, **options)
    orders = jax.jit(jax.vmap(estimator.draw_orders))(jax.random.split(key(2), 20_000))
    drawn = np.column_stack([orders.derivative, orders.maps.tensor, orders.maps.envelope])
    assert drawn.shape == (20_000, 1 + 2 * 3)
    for numbers in (drawn, drawn == 0):
        off_diagonal = np.corrcoef(numbers.T)[np.triu_indices(7, 1)]
        assert np.abs(off_diagonal).max() < 5 / 20_000**0.5
