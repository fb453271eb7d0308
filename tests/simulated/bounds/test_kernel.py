import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.bounds import as_printed, parallel_worlds, surrogate_radius


@pytest.mark.claim("DA-Thm3", "DA-short")
@pytest.mark.parametrize("variance", [0.0, 0.3])
def test_witness_of_the_printed_second_moment_in_parallel_worlds(x64, variance):
    """E‖g̃Ψ̂‖² = 4R² E(Wk̂(x, x̃)/R + B_y)² at ŵ = WΨ̂(x)/R, ỹ = −B_y, by Gauss–Hermite."""
    diagonal, radius = (1 - 2 * variance) ** -0.5, 1.5
    y = radius * diagonal**0.5
    nodes, weights = np.polynomial.hermite.hermgauss(80)
    values = diagonal * np.exp(-2 * variance * nodes**2 / (1 - 2 * variance))
    attained = 4 * diagonal * weights @ (radius * values / diagonal**0.5 + y) ** 2 / np.pi**0.5
    given = {"horizon": 1, "radius": radius, "y_second_moment": y**2}
    corrected = parallel_worlds(diagonal, **given).second_moment
    printed = as_printed.parallel_worlds(diagonal, **given).second_moment
    assert printed < attained <= corrected * (1 + 1e-12)
    np.testing.assert_allclose(corrected, 2 * printed)
    if variance == 0:
        np.testing.assert_allclose(attained, corrected)


@pytest.mark.claim("DA-Thm3", "DA-Thm5")
def test_parallel_worlds_by_hand():
    """R² = 4, W = 3, B_y² = 25, T = 100: η = W/(2R(WR + B_y)√T), printed with √(W²R² + B_y²)."""
    given = {"horizon": 100, "radius": 3.0, "y_second_moment": 25.0}
    for bound, root in ((parallel_worlds, 11), (as_printed.parallel_worlds, 61**0.5)):
        expected = 3 / (4 * root * 10), 12 * root * 10, 16 * root**2
        np.testing.assert_allclose(bound(4.0, **given), expected, rtol=1e-6)


def test_large_constants_do_not_overflow_on_the_way():
    """GT = 4e40 is beyond float32; its root is not."""
    found = parallel_worlds(1e20, horizon=10**6, radius=1e-3, y_second_moment=1.0)
    root = 2e10 * (1e7 + 1) * 1e3
    np.testing.assert_allclose(found[:2], (1e-3 / root, 1e-3 * root), rtol=1e-5)


def world(ratio=np.inf):
    kernel, options = nj.kernels.gaussian(length_scale=0.5**0.5), {"dim": 1, "diagonal": 1.0}
    return nj.worlds.world_of(kernel, kernel, ratio=ratio, **options)


@jax.vmap
def radius_at_ratio_one(norm, angle):
    radii = surrogate_radius, as_printed.surrogate_radius
    return tuple(radius(world(1.0), norm=norm, angle=angle) for radius in radii)


@pytest.mark.statistical
@pytest.mark.claim("DA-Lemma5")
def test_lemma_5_is_tight(x64, rng):
    """‖u₊‖² + ‖u₋‖² ≤ ‖u‖²/(1 − cos β), ‖u‖² past a right angle; printed 5‖u‖²/sin²β."""
    positive = rng.normal(size=(5000, 3))
    negative = rng.normal(size=(5000, 3)) + rng.normal(size=(5000, 1)) * positive
    lengths = [np.linalg.norm(part, axis=1) for part in (positive, negative)]
    negative[::2] *= (lengths[0] / lengths[1])[::2, None]
    squares = [np.sum(part**2, axis=1) for part in (positive, negative)]
    cosines = np.sum(positive * negative, axis=1) / np.sqrt(squares[0] * squares[1])
    norms = np.linalg.norm(positive - negative, axis=1)
    tight, printed = (np.square(w) for w in radius_at_ratio_one(norms, np.arccos(cosines)))
    attained = (squares[0] + squares[1]) / tight
    assert 0.99 < attained.max() <= 1 + 1e-9
    np.testing.assert_allclose(attained[::2][cosines[::2] > 0], 1, rtol=1e-6)
    assert np.any(cosines < -0.5)
    assert np.any(cosines > 0.99)
    assert np.all(printed >= 2.5 * (1 - 1e-9) * tight)


@pytest.mark.claim("DA-Lemma6")
@pytest.mark.parametrize(
    ("epsilon", "claimed"), [(1.0, (2.9, 2.99, 10.9)), (0.3, (6.0, 22, 57)), (0.1, (6.7, 190, 477))]
)
def test_two_opposite_points_close_together(epsilon, claimed):
    """The claims' example: a = ±1 at distance ε, σ = .6, s = 1; squares in units of ‖u‖²."""
    ratio = (1 - 2 * 0.36) ** -0.5
    square, lifted = 2 * (1 - np.exp(-(epsilon**2))), -2 * ratio * np.expm1(-(epsilon**2) / 0.28)
    options = {"norm": square**0.5, "angle": np.arccos(np.exp(-(epsilon**2)))}
    radii = surrogate_radius, as_printed.surrogate_radius
    found = [lifted, *(float(radius(world(ratio), **options)) ** 2 for radius in radii)]
    np.testing.assert_allclose(np.divide(found, square), claimed, rtol=0.01)


def test_surrogate_radius_at_small_and_obtuse_angles():
    found = [surrogate_radius(world(r), norm=2.0, angle=np.arccos(0.75)) for r in (9.0, 0.25)]
    np.testing.assert_allclose(found, [12, 2])
    # Beyond a right angle the radius stays the same, also as printed.
    for radius, expected in ((surrogate_radius, 6), (as_printed.surrogate_radius, 6 * 5**0.5)):
        found = radius(world(9.0), norm=2.0, angle=np.arccos(-0.5))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    # 1 − cos β = β²/2 of angles whose cosine or square float32 cannot represent; and π, which in
    # float32 is above π.
    for angle, radius in ((1e-5, 2**0.5 * 1e5), (1e-30, 2**0.5 * 1e30), (np.float32(np.pi), 1.0)):
        found = surrogate_radius(world(1.0), norm=1.0, angle=angle)
        np.testing.assert_allclose(found, radius, rtol=1e-6)
    traced = jax.vmap(lambda angle: surrogate_radius(world(0.5), norm=1.0, angle=angle))
    found = traced(jnp.array([-0.5, 0.0, 3.0, 4.0, np.inf]))
    np.testing.assert_allclose(found, [np.nan, np.inf, 0.5**0.5, np.nan, np.nan], rtol=1e-6)
