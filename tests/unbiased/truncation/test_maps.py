import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import factorial

import noisy_jax as nj
from noisy_jax.unbiased import kernel_gradient
from noisy_jax.unbiased.truncation.maps import MapOrders
from tests.quadrature import tensor

X, Z = np.array([0.5, -0.4]), np.array([0.3, 0.6])
KERNELS = {
    "polynomial": (nj.kernels.polynomial(degree=2), 2),
    "homogeneous": (nj.kernels.polynomial(degree=3, offset=0.0), 3),
    "binomial": (nj.kernels.binomial(alpha=0.7), 3),
    "gaussian": (nj.kernels.gaussian(length_scale=0.8**0.5), 2),
}


def maps_of(name, order, x_second_moment=0.45, **options):
    return kernel_gradient(
        KERNELS[name][0], nj.losses.squared(), radius=1.0, x_second_moment=x_second_moment,
        kernel_order=order, max_bias=10.0, **options,
    ).maps  # fmt: skip


def every_estimate(maps, x, noise):
    """Estimates of Ψ(x) over all orders and both signs of each noise, their probabilities."""
    signs, chances = tensor([-1.0, 1.0], [0.5, 0.5], maps.copies)
    envelopes = [1.0] if maps.envelope is None else maps.envelope.orders.probabilities
    orders = np.outer(maps.orders.probabilities, envelopes)
    order, copy = np.indices((orders.size, len(signs))).reshape(2, -1)
    drawn = MapOrders(*(each.ravel()[order] for each in np.indices(orders.shape)))
    copies = x + signs[copy][:, :, None] * noise
    return jax.jit(jax.vmap(maps.estimate))(drawn, copies), orders.ravel()[order] * chances[copy]


def truncated_map(maps, x):
    """Ψ(x) as it is cut off, written out: h(x) √β_n x⊗⋯⊗x for n up to the order."""
    parts, power = [], np.ones(1)
    for beta in maps.series.coefficients:
        parts.append(math.sqrt(beta) * power)
        power = np.kron(power, x)
    h = 1.0 if maps.envelope is None else maps.envelope.series(x @ x)
    return float(h) * np.concatenate(parts)


@pytest.mark.slow
@pytest.mark.claim("NK-Setting", "NK-Eq2", "NK-Sub2", "NK-Sub3", "NK-Sub4", "NK-Lemma4", "NK-Eq6")
@pytest.mark.claim("NK-Sub6", "NK-Lemma6")
@pytest.mark.parametrize(
    ("name", "distribution"), [*((name, "geometric") for name in KERNELS), ("gaussian", "optimal")]
)
def test_inner_products_are_right_on_average_by_enumeration(x64, rng, name, distribution):
    kernel, order = KERNELS[name]
    own = {"p": 1.7} if distribution == "geometric" else {}
    maps = maps_of(name, order, distribution=distribution, **own)
    noise, more = 0.3 * rng.normal(size=(2, maps.copies, 2))
    estimates, chances = every_estimate(maps, X, noise)
    others, other_chances = every_estimate(maps, Z, more)
    np.testing.assert_allclose(chances.sum(), 1, rtol=1e-12)

    inner = chances @ maps.inner(estimates, others) @ other_chances
    np.testing.assert_allclose(inner, truncated_map(maps, X) @ truncated_map(maps, Z), rtol=1e-11)

    value = chances @ maps.evaluate(estimates, maps.points(jnp.asarray(Z)[None]))[:, 0]
    h = 1.0 if maps.envelope is None else math.exp(-(Z @ Z) / 1.6) / maps.envelope.series(Z @ Z)
    np.testing.assert_allclose(value, h * inner, rtol=1e-11)
    bias = abs(value - kernel(X[None], Z[None])[0, 0])
    assert bias <= maps.bias(0.45) + 1e-12
    assert (maps.bias(0.45) == 0) == (name in ("polynomial", "homogeneous"))


@pytest.mark.claim("NK-Lemma3", "NK-Lemma5")
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.slow
def test_second_moment_by_enumeration(x64, rng, name):
    maps = maps_of(name, KERNELS[name][1], p=1.7)
    noise = np.broadcast_to(0.3 * rng.normal(size=2), (maps.copies, 2))
    estimates, chances = every_estimate(maps, X, noise)
    squares = jax.vmap(lambda e: maps.inner(*[jax.tree.map(lambda a: a[None], e)] * 2)[0, 0])
    second = X @ X + noise[0] @ noise[0]
    moment = chances @ squares(estimates)
    assert moment <= maps.second_moment(second) * (1 + 1e-12)
    if maps.envelope is None:
        np.testing.assert_allclose(moment, maps.second_moment(second), rtol=1e-11)
    else:  # E⟨x̃, x̃'⟩² is below (E‖x̃‖²)² under noise, and equal to it without
        assert moment > 0.8 * maps.second_moment(second)
        clean, chances = every_estimate(maps, X, 0 * noise)
        np.testing.assert_allclose(chances @ squares(clean), maps.second_moment(X @ X), rtol=1e-11)


@pytest.mark.claim("NK-Lemma5")
def test_gaussian_second_moment_is_the_closed_form(x64):
    """(p/(p − 1))² I₀(√p B/ℓ²) e^(pB/ℓ²), where the printed bound is exceeded."""
    maps = maps_of("gaussian", 60, x_second_moment=1.3 * 1.6)
    assert maps.second_moment(1.3 * 1.6) == pytest.approx(6213.314157189244, rel=1e-12)
    moment, unit = maps.second_moment(1.6), 1.0
    printed = 4 * math.exp((math.sqrt(2) * unit + 4 * math.sqrt(unit)) / 1.0)
    assert moment == pytest.approx(928.7, abs=0.05)
    assert printed < 0.97 * moment


@pytest.mark.slow
@pytest.mark.claim("NK-Eq6", "NK-Sub6", "NK-Sub7", "NK-Lemma6")
def test_printed_gaussian_inner_product_is_wrong(x64):
    """Sub7 as printed: 2^(2n) and (n!)² and s^(4n), by the orders' sum at exact moments."""
    s2, order, x, z = 2.0, 14, np.array([0.6, 0.2]), np.array([0.5, -0.3])
    n1, n2 = np.meshgrid(np.arange(order), np.arange(order), indexing="ij")
    common = (-1.0) ** n1 / (factorial(n1) * s2**n1) * (x @ x) ** n1 * (x @ z) ** n2
    common = common * math.exp(-(z @ z) / s2)
    corrected = np.sum(common * 2.0**n2 / (factorial(n2) * s2**n2))
    printed = np.sum(common * 2.0 ** (2 * n2) / (factorial(n2) ** 2 * s2 ** (2 * n2)))
    kernel, options = nj.kernels.gaussian(length_scale=(s2 / 2) ** 0.5), {"x_second_moment": 0.5}
    maps = kernel_gradient(kernel, nj.losses.squared(), radius=1.0, kernel_order=13, **options).maps
    orders = MapOrders(*map(jnp.asarray, (n2.ravel(), n1.ravel())))
    estimates = jax.vmap(maps.estimate, (0, None))(orders, jnp.broadcast_to(x, (maps.copies, 2)))
    chances = maps.orders.probabilities[n2] * maps.envelope.orders.probabilities[n1]
    ours = chances.ravel() @ maps.evaluate(estimates, maps.points(jnp.asarray(z)[None]))[:, 0]
    assert ours == pytest.approx(corrected, rel=1e-12)
    assert ours == pytest.approx(float(kernel(x[None], z[None])[0, 0]), rel=1e-10)
    assert abs(printed - ours) > 1e-3


@pytest.mark.slow
@pytest.mark.claim("NK-Sub5")
@pytest.mark.parametrize("name", ["polynomial", "gaussian"])
def test_copies_are_counted_and_used_once(rng, name):
    maps = maps_of(name, 2)
    copies = jnp.asarray(rng.normal(size=(maps.copies, 2)), jnp.float32)

    def size(copies, orders):
        estimate = maps.estimate(orders, copies)
        return jnp.sum(estimate.factors[:, :-1] ** 2 + estimate.factors[:, -1:]), estimate

    slope_of = jax.jit(jax.grad(size, has_aux=True))
    for order, envelope in np.ndindex(3, 3 if name == "gaussian" else 1):
        orders = MapOrders(jnp.int32(order), jnp.int32(envelope))
        slope, estimate = slope_of(copies, orders)
        assert estimate.copies == order + 2 * envelope
        assert np.sum(np.any(slope != 0, axis=1)) == estimate.copies


def test_instances_may_be_whole_numbers():
    maps = maps_of("polynomial", 2, p=1.7)
    orders = MapOrders(jnp.int32(1), jnp.int32(0))
    whole, real = (maps.estimate(orders, jnp.full((2, 3), 2, kind)) for kind in (int, float))
    chex.assert_trees_all_equal(whole, real)
    assert whole.factors[0, 0] != jnp.trunc(whole.factors[0, 0])


@pytest.mark.claim("EXT-OptimalGauss")
def test_optimal_distribution_of_the_envelope_is_poisson(x64):
    maps = maps_of("gaussian", 30, distribution="optimal", x_second_moment=1.6)
    poisson = np.exp(-1.0) / factorial(np.arange(31))
    np.testing.assert_allclose(maps.envelope.orders.probabilities, poisson, rtol=1e-10)
    assert maps.second_moment(1.6) == pytest.approx(354, abs=0.5)  # EXT-OptimalGauss
