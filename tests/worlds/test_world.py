"""Claims on surrogates and parallel worlds, by NumPy."""

import dataclasses

import numpy as np
import pytest

import noisy_jax as nj
from tests.errors import told
from tests.learners import references
from tests.quadrature import gauss_hermite
from tests.residuals import residuals


@pytest.mark.claim("EXT-Rescue3")
def test_residuals_in_parallel_worlds_are_small_on_average():
    """EXT-Rescue3: S ≤ T(W²R² + B_y²)/(1 − 2ηR²), in a world of one wave and coins for noise."""
    squared_norm, rate, radius, y = 1.5, 0.05, 1.0, (-1.0) ** np.arange(5)
    phases = 0.4 + np.array([-0.5, 0.5])
    wave = np.sqrt(squared_norm) * np.stack([np.cos(phases), np.sin(phases)], axis=1)
    total, spread = residuals(np.stack([wave] * 5), y, rate, radius)
    denominator = 1 - 2 * rate * squared_norm
    assert y @ y + spread < total <= (y @ y + spread) / denominator
    assert total <= 5 * (radius**2 * squared_norm + 1) / denominator


@pytest.mark.claim("DA-Def-β")
def test_angle_is_zero_where_parts_are_proportional_only():
    """Examples of both signs at the same points do not make β zero, as is printed."""
    x = np.array([0.0, 1.0])
    gram = np.exp(-((x[:, None] - x[None]) ** 2))

    def cosine(a, b):
        return a @ gram @ b / np.sqrt((a @ gram @ a) * (b @ gram @ b))

    assert cosine(np.ones(2), 2 * np.ones(2)) == pytest.approx(1, abs=1e-15)
    assert cosine(np.ones(2), np.array([1.0, 2.0])) < 0.98


@pytest.mark.claim("EXT-SingleCopyKernel")
def test_one_copy_has_a_product_of_kernels(rng):
    """E h(z, x̃; a) = k(z, x)k(x, a); h is what two clones of the copy give on average."""
    length_scale, cov = 1.0, np.array([[0.3, 0.1], [0.1, 0.2]])
    x, z, a = rng.normal(size=(3, 2))
    kernel = references.gaussian_kernel(length_scale)
    bump = references.gaussian_surrogate(length_scale / 2**0.5, cov)

    def h(copies):
        far = np.exp(-np.sum((z - a) ** 2) / (4 * length_scale**2))
        return far * bump(copies, (z + a)[None] / 2)

    nodes, weights = gauss_hermite(60, cov)
    truth = kernel(z, x) * kernel(x, a)
    np.testing.assert_allclose(weights @ h(x + nodes), truth, rtol=1e-10)
    naive = weights @ (kernel(z, x + nodes) * kernel(x + nodes, a))
    assert abs(naive - truth) > 0.05 * truth
    cloned = references.gaussian_surrogate(length_scale, 2 * cov)
    by_clones = weights @ (cloned(z, x + nodes) * cloned(x - nodes, a))
    np.testing.assert_allclose(by_clones, h(x[None])[0], rtol=1e-10)


@pytest.mark.claim("DA-Thm4")
def test_a_radial_kernel_in_one_dimension_need_not_be_a_mixture():
    """(1 − r)₊ is positive definite on the line, not on the plane, and zero where no mixture is."""

    def smallest(points):
        r = np.linalg.norm(points[:, None] - points[None], axis=-1)
        return np.linalg.eigvalsh(np.maximum(1 - r, 0))[0]

    line = np.linspace(-2, 2, 60)[:, None]
    plane = 0.7 * np.stack(np.meshgrid(np.arange(10), np.arange(10)), axis=-1).reshape(-1, 2)
    assert smallest(line) > 0
    assert smallest(plane) < -0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": lambda x, z: x @ z.T}, "kernel must be a Kernel"),
        ({"surrogate": 1.0}, "surrogate must be a function"),
        ({"dim": 0}, "dim must be a whole number"),
        ({"diagonal": -1.0}, "diagonal must be"),
        ({"ratio": np.nan}, "ratio must be positive"),
        ({"approximation_error": -0.1}, "approximation_error must be"),
        ({"noise": 0.1}, "noise must be a Noise"),
        ({"spectrum": 3}, "spectrum must be a function"),
    ],
)
def test_the_parts_of_a_world_are_checked(options, message):
    kernel = nj.kernels.gaussian(length_scale=1.0)
    right = {"kernel": kernel, "surrogate": kernel.gram, "dim": 2, "diagonal": 1.0}
    with told(message):
        nj.worlds.world_of(**right | options)
    world = nj.worlds.world_of(**right)
    with told(message):
        dataclasses.replace(world, **options)
    world = nj.worlds.world_of(**right | {"surrogate": lambda x, z: np.zeros(3)})
    with told("surrogate(x, z) must be [1, 4]"):
        world.surrogate(np.ones((1, 2)), np.ones((4, 2)))


def test_a_surrogate_takes_lists_and_names_the_points_that_are_wrong():
    world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.1))
    x = np.array([[0.1, 0.2], [0.3, -0.4]])
    np.testing.assert_array_equal(world.surrogate(x.tolist(), x), world.surrogate(x, x))
    with told("z must be one array"):
        world.surrogate(x, [[0.1, 0.2], [0.3]])


def test_points_are_rows_of_real_numbers():
    noise = nj.noise.Gaussian(0.1)
    worlds = (
        nj.worlds.gaussian(dim=2, length_scale=1.0, noise=noise),
        nj.worlds.rational(dim=2, noise=noise, cutoff=0.5),
    )
    for gram in [gram for world in worlds for gram in (world.kernel, world.surrogate)]:
        assert gram([[0, 1], [2, 3]], [[0.0, 1.0]]).shape == (2, 1)
        with told("x must be [n, d], got [2]; one point is x[None]"):
            gram([0.0, 1.0], [[0.0, 1.0]])
        with told("z must be an array"):
            gram([[0.0, 1.0]], [["a", "b"]])
