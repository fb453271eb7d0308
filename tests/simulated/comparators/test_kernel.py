import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.comparators import kernel_ball, linear_ball, world_ball


def gaussian_gram(x, length_scale):
    return np.exp(-np.sum((x[:, None] - x[None]) ** 2, axis=-1) / (2 * length_scale**2))


def gaussian_world(dim, length_scale, variance):
    """The Gaussian kernel under N(0, σ²I), independent of `worlds.gaussian`."""
    diagonal = (1 - variance / length_scale**2) ** (-dim / 2)
    narrow = nj.kernels.gaussian(length_scale=(length_scale**2 - variance) ** 0.5)
    return nj.worlds.world_of(
        nj.kernels.gaussian(length_scale=length_scale),
        lambda x, z: diagonal * narrow(x, z),
        dim=dim, diagonal=diagonal, ratio=diagonal, noise=nj.noise.Gaussian(variance),
    )  # fmt: skip


def cosine_of_parts(gram, a):
    """Of the angle between the parts of positive and of negative coefficients."""
    positive, negative = np.maximum(a, 0), np.maximum(-a, 0)
    parts = np.sqrt((positive @ gram @ positive) * (negative @ gram @ negative))
    return positive @ gram @ negative / parts


def kernel_problem(rng):
    """A Gaussian Gram matrix of condition 10⁸, targets and weights.

    Other tests have 30 rows as well, so that they need no other programs.
    """
    x = rng.normal(size=(30, 2))
    y = np.sin(3 * x[:, 0]) + x[:, 1]
    return gaussian_gram(x, 0.8), y, rng.integers(1, 5, 30).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("radius", [0.5, 100.0])
def test_kernel_ball_of_finitely_many_features_is_a_linear_ball(x64, rng, radius):
    """K = ΦΦᵀ is singular; the larger ball has the unconstrained minimiser inside."""
    features, y, m = rng.normal(size=(30, 4)), rng.normal(size=30), rng.uniform(0.5, 3, 30)
    root = np.sqrt(m)
    best = linear_ball(nj.streams.from_arrays(root[:, None] * features, root * y), radius)
    found = kernel_ball(features @ features.T, y, radius, weights=m)
    np.testing.assert_allclose(found.loss, best.loss, rtol=1e-12)
    np.testing.assert_allclose(found.multiplier, best.multiplier, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.norm, np.linalg.norm(best.weights), rtol=1e-10)
    np.testing.assert_allclose(features.T @ found.coefficients, best.weights, atol=1e-11)
    np.testing.assert_allclose(found.predictions, features @ best.weights, atol=1e-11)
    least = root * (np.linalg.pinv((root[:, None] * features).T) @ best.weights)
    np.testing.assert_allclose(found.coefficients, least, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("radius", [0.1, 4.0, 1e4])
def test_kernel_ball_optimality_conditions(rng, bits, radius):
    """KM(Ka − y) + μKa = 0, ‖f‖ ≤ B, μ ≥ 0, μ(‖f‖ − B) = 0: enough, as the problem is convex."""
    gram, y, m = kernel_problem(rng)
    with jax.enable_x64(bits == 64):
        found = jax.tree.map(np.float64, kernel_ball(gram, y, radius, weights=m))
    # Directions under the rank tolerance of 8√n ε are left where they are; the rest is rounding.
    tolerance = 1e-4 if bits == 32 else 1e-12
    gradient = gram @ (m * (found.predictions - y)) + found.multiplier * found.predictions
    np.testing.assert_allclose(gradient, 0, atol=tolerance * np.abs(gram @ (m * y)).max())
    assert found.norm <= radius * (1 + tolerance)
    assert found.multiplier >= 0
    assert found.multiplier == 0 or found.norm >= radius * (1 - tolerance)
    assert (found.multiplier == 0) == (radius == 1e4)
    if bits == 64:
        np.testing.assert_allclose(gram @ found.coefficients, found.predictions, atol=1e-10)
        loss = np.sum(m * (found.predictions - y) ** 2)
        np.testing.assert_allclose(found.loss, loss, atol=1e-12 * (m @ y**2))


@pytest.mark.slow
@pytest.mark.claim("DA-Def-β")
def test_angle_and_lifted_norm(x64, rng):
    gram, y, _ = kernel_problem(rng)
    surrogate = gaussian_gram(rng.normal(size=(30, 2)), 0.3)
    found = kernel_ball(gram, y, 2.0, surrogate=surrogate)
    a = np.asarray(found.coefficients)
    np.testing.assert_allclose(found.angle, np.arccos(cosine_of_parts(gram, a)), rtol=1e-12)
    np.testing.assert_allclose(found.lifted_norm, np.sqrt(a @ surrogate @ a), rtol=1e-12)
    assert np.isnan(kernel_ball(gram, y, 2.0).lifted_norm)
    # One part is empty: a right angle.
    assert kernel_ball(np.eye(2), [1.0, 2.0], 1.0).angle == np.pi / 2


@pytest.mark.parametrize("angle", [1e-4, 0.5, np.pi - 1e-4])
def test_angles_near_zero_and_near_pi(x64, angle):
    """Their cosines have lost half of the digits: two unit vectors at that angle."""
    gram = np.array([[1, np.cos(angle)], [np.cos(angle), 1]])
    np.testing.assert_allclose(kernel_ball(gram, [1.0, -1.0], 1.0).angle, angle, rtol=1e-7)


def test_zero_kernels_or_zero_targets_give_zero_coefficients(x64):
    for gram, y in [(np.zeros((30, 30)), np.ones(30)), (np.ones((30, 30)), np.zeros(30))]:
        found = kernel_ball(gram, y, 1.0, surrogate=gram)
        np.testing.assert_array_equal(found.coefficients, 0)
        np.testing.assert_allclose(found.loss, np.sum(y**2))
        assert found.norm == found.lifted_norm == 0
        np.testing.assert_allclose(found.angle, np.pi / 2)


@pytest.mark.slow
def test_world_ball_merges_rounds_and_answers_in_their_order(rng):
    """Against `kernel_ball` of all rounds, repeated and with targets of their own, in float64."""
    distinct = rng.normal(size=(12, 2))
    rounds = rng.integers(0, 12, 30)
    stream = nj.streams.from_arrays(distinct[rounds], rng.normal(size=30))
    world, x = gaussian_world(2, 1.0, 0.2), np.asarray(stream.x, np.float64)
    found = world_ball(stream, world, 1.0)
    with jax.enable_x64(True):
        whole = kernel_ball(gaussian_gram(x, 1.0), np.asarray(stream.y, np.float64), 1.0)
    np.testing.assert_allclose(found.predictions, whole.predictions, atol=1e-6)
    np.testing.assert_allclose(found.loss, whole.loss, rtol=1e-6)
    assert len(found.points) == len(np.unique(rounds))
    a = found.coefficients
    predictions = world.kernel(stream.x, found.points) @ a
    np.testing.assert_allclose(predictions, found.predictions, atol=1e-5)
    for gram, norm in ((world.surrogate, found.lifted_norm), (world.kernel, found.norm)):
        np.testing.assert_allclose(norm**2, a @ gram(found.points, found.points) @ a, rtol=1e-5)
    assert found.lifted_norm > found.norm
    assert all(leaf.dtype == jnp.float32 for leaf in found)


@pytest.mark.slow
def test_world_ball_is_exact_where_float32_is_not(rng):
    """A smooth kernel: most eigenvalues lie below the rounding of float32, not of float64."""
    x = rng.uniform(-2, 2, size=(30, 1)).astype(np.float32)
    stream = nj.streams.from_arrays(x, np.abs(x[:, 0]))
    world = gaussian_world(1, 4.0, 0.0)
    with jax.enable_x64(True):
        y = np.asarray(stream.y, np.float64)
        best = float(kernel_ball(gaussian_gram(x.astype(np.float64), 4.0), y, 50.0).loss)
    np.testing.assert_allclose(world_ball(stream, world, 50.0).loss, best, rtol=1e-6)
    assert kernel_ball(world.kernel(x, x), stream.y, 50.0).loss > 1.05 * best


@pytest.mark.slow
def test_world_ball_keeps_small_angles(rng):
    """1 − cos β = 5e-10: no cosine in float32 holds it, and W is finite and large enough."""
    x = rng.uniform(-2, 2, size=(40, 1)).astype(np.float32)
    stream, world = nj.streams.from_arrays(x, np.abs(x[:, 0])), gaussian_world(1, 4.0, 0.5)
    found = world_ball(stream, world, 200.0)
    with jax.enable_x64(True):
        wide = world_ball(nj.Stream(x, np.abs(x[:, 0])), world, 200.0)
    gram = gaussian_gram(x[np.argsort(x[:, 0])].astype(np.longdouble), 4.0)
    gap = float(1 - cosine_of_parts(gram, np.asarray(wide.coefficients, np.longdouble)))
    assert 1e-10 < gap < 1e-9
    assert np.float32(1 - gap) == 1
    np.testing.assert_allclose(2 * np.sin(np.float64(found.angle) / 2) ** 2, gap, rtol=1e-6)
    radius = nj.bounds.surrogate_radius(world, norm=found.norm, angle=found.angle)
    np.testing.assert_allclose(radius, 200 * np.sqrt(world.ratio / gap), rtol=1e-6)
    assert 1.01 * found.norm < found.lifted_norm < radius


def test_kernel_ball_goes_through_jit_and_vmap(rng):
    gram, y, m = kernel_problem(rng)
    radii = jnp.array([0.5, 2.0])
    swept = jax.jit(jax.vmap(lambda radius: kernel_ball(gram, y, radius, weights=m).loss))(radii)
    singles = [kernel_ball(gram, y, radius, weights=m).loss for radius in radii]
    np.testing.assert_allclose(swept, singles, rtol=1e-5)
