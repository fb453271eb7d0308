"""Claims on noisy data that no other test shows: exact expectations, by NumPy."""

import itertools

import numpy as np
import pytest
from scipy.special import i0

import noisy_jax as nj
from tests.learners import references
from tests.quadrature import gauss_hermite


def signs(count):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=count)))


@pytest.mark.claim("DA-Lemma3")
def test_projected_descent_keeps_its_inequality(rng):
    """Σ⟨v_t, w_t − u⟩ ≤ ‖u‖²/(2η) + ½η Σ‖v_t‖² for u in the ball; attained at u = w_{T+1}."""
    v, rate = rng.normal(size=(50, 3)), 0.1

    def slack(u, radius, v=v):
        w, inner = np.zeros(3), 0.0
        for gradient in v:
            inner += gradient @ (w - u)
            w = w - rate * gradient
            w = w * min(1, radius / np.linalg.norm(w))
        return u @ u / (2 * rate) + rate / 2 * np.sum(v**2) - inner

    inside = rng.normal(size=(200, 3))
    inside /= np.maximum(np.linalg.norm(inside, axis=1, keepdims=True), 1)
    assert min(slack(u, 1.0) for u in inside) > 0
    last = -rate * v.sum(axis=0)
    np.testing.assert_allclose(slack(last, 100.0), 0, atol=1e-12)
    steady = np.tile([1.0, 0.0, 0.0], (50, 1))
    assert slack(np.array([-1.0, 0.0, 0.0]), 0.1, steady) < 0  # outside the ball


@pytest.mark.claim("DA-Identity")
def test_for_the_squared_loss_convexity_is_an_identity(rng):
    """⟨∇, w − u⟩ = ℓ(w) − ℓ(u) + ⟨x, w − u⟩²."""
    x, w, u = rng.normal(size=(3, 4))
    loss = [(a @ x - 0.7) ** 2 for a in (w, u)]
    left = 2 * (w @ x - 0.7) * x @ (w - u)
    np.testing.assert_allclose(left, loss[0] - loss[1] + (x @ (w - u)) ** 2, rtol=1e-12)


def residuals(copies, y, rate, radius):
    """ΣE(⟨w_t, x̃_t⟩ − y_t)² and ΣE w_tᵀΣ_t w_t of descent from two copies, by enumeration.

    `copies[T, n, d]` are the atoms of a copy in each round, equally likely.
    """
    w, total, spread = np.zeros((1, copies.shape[2])), 0.0, 0.0
    for atoms, target in zip(copies, y, strict=True):
        errors = w @ atoms.T - target
        total += np.mean(errors**2)
        spread += np.mean(errors**2) - np.mean(errors.mean(axis=1) ** 2)
        steps = 2 * errors[:, :, None, None] * atoms[None, None]
        w = (w[:, None, None] - rate * steps).reshape(-1, w.shape[1])
        w *= np.minimum(1, radius / np.maximum(np.linalg.norm(w, axis=1), 1e-300))[:, None]
    return total, spread


@pytest.mark.claim("EXT-Rescue1")
@pytest.mark.parametrize("variance", [0.0, 0.5])
def test_residuals_of_two_copies_are_small_on_average(variance):
    """EXT-Rescue1: S ≤ (ΣEỹ² + ΣE wᵀΣw)/(1 − 2ηB_x²), and so is G as printed, on average."""
    x, y, rate = np.ones((5, 1, 1)), (-1.0) ** np.arange(5), 0.1
    copies = x + np.sqrt(variance) * np.array([-1.0, 1.0])[None, :, None]
    second = 1 + variance
    total, spread = residuals(copies, y, rate, radius=2.0)
    bound = (y @ y + spread) / (1 - 2 * rate * second)
    assert 0.75 * bound < total <= bound
    assert total > y @ y + spread  # which the bound without its denominator is


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


@pytest.mark.claim("EXT-CorrelatedNoise")
def test_correlated_target_noise_needs_its_own_correction(rng):
    """E[2(⟨w, x̃⟩ − ỹ)x̃] = ∇ + 2Σw − 2c with c = E[n^y n^x]; from two copies nothing is needed."""
    w, x, y = *rng.normal(size=(2, 2)), 0.3
    root, share = rng.normal(size=(2, 2)), rng.normal(size=2)
    n, m = (each.reshape(-1, 2) for each in np.broadcast_arrays(signs(2)[:, None], signs(2)[None]))
    copy, other = x + n @ root.T, x + m @ root.T
    residual = 2 * (copy @ w - y - n @ share)
    clean, cov, c = 2 * (w @ x - y) * x, root @ root.T, root @ share
    one = np.mean(residual[:, None] * copy, axis=0) - 2 * cov @ w
    np.testing.assert_allclose(one + 2 * c, clean, atol=1e-12)
    assert np.abs(one - clean).max() > 0.1
    two = np.mean(residual[:, None] * other, axis=0)
    np.testing.assert_allclose(two, clean, atol=1e-12)


@pytest.mark.statistical
@pytest.mark.claim("EXT-Symmetrised")
def test_symmetrised_gradients_vary_less(rng):
    """The mean over both orders of the copies: the same mean, a smaller second moment."""
    w, x, y = *rng.normal(size=(2, 2)), 0.3
    root = rng.normal(size=(2, 2))
    atoms = x + signs(2) @ root.T
    first, second = np.broadcast_arrays(atoms[:, None], atoms[None])
    one, other = (2 * (a @ w - y)[..., None] * b for a, b in ((first, second), (second, first)))
    both = (one + other) / 2
    np.testing.assert_allclose(both.mean(axis=(0, 1)), 2 * (w @ x - y) * x, atol=1e-12)
    plain, symmetrised = (np.mean(np.sum(g**2, axis=-1)) for g in (one, both))
    given = np.mean(np.sum(atoms**2, axis=1))
    assert symmetrised < 0.98 * plain
    assert plain <= 4 * given * (np.linalg.norm(w) * np.sqrt(given) + abs(y)) ** 2


@pytest.mark.claim("EXT-Cloning")
def test_clones_average_to_the_gradient_of_one_copy(rng):
    """E_ξ 2(⟨w, x̃ + ξ⟩ − y)(x̃ − ξ) = 2(⟨w, x̃⟩ − y)x̃ − 2Σw, and not −Σw."""
    w, x, y = *rng.normal(size=(2, 2)), 0.3
    root = rng.normal(size=(2, 2))
    xi = signs(2) @ root.T
    mean = np.mean(2 * ((x + xi) @ w - y)[:, None] * (x - xi), axis=0)
    given = w, x[None], y, root @ root.T
    np.testing.assert_allclose(mean, references.gradient("known_covariance", *given), atol=1e-12)
    assert np.abs(mean - references.gradient("as_printed", *given)).max() > 0.1


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
        return np.exp(-np.sum((z - a) ** 2) / (4 * length_scale**2)) * bump(
            copies, (z + a)[None] / 2
        )

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


@pytest.mark.claim("DA-Thm5", "DA-Lemma7", "DA-Lemma9")
def test_norm_of_noisy_copies_of_the_case_study():
    """App. E, Lemma 7: k̂(x, x) ≤ exp(2σ²c); with σ in place of σ² it is exceeded."""
    for dim, sigma, c in ((10, 1.0, 2.475), (50, 3.0, 1.38)):
        world = nj.worlds.rational(dim=dim, noise=nj.noise.Gaussian(sigma**2), cutoff=c / dim)
        tight = (1 - 2 * sigma**2 * c / dim) ** (-dim / 2) * (1 - np.exp(-c))
        assert world.diagonal <= tight <= np.exp(2 * sigma**2 * c)
        assert sigma == 1 or world.diagonal > np.exp(2 * sigma * c)


@pytest.mark.claim("NK-Sec3.1", "NK-Sec3.3")
def test_one_copy_will_do_for_a_linear_loss_and_two_for_a_quadratic_map():
    """E c x̃ = c x, printed without c; E x̃ ⊗ x̃' = x ⊗ x, and E x̃ ⊗ x̃ is not."""
    x, c = np.array([0.5, -1.0]), 0.3
    copies = x + signs(2) * np.array([0.4, 0.7])
    np.testing.assert_allclose(np.mean(c * copies, axis=0), c * x, atol=1e-15)
    two = np.einsum("ni,mj->ij", copies, copies) / len(copies) ** 2
    one = np.einsum("ni,nj->ij", copies, copies) / len(copies)
    np.testing.assert_allclose(two, np.outer(x, x), atol=1e-15)
    np.testing.assert_allclose(one - two, np.diag([0.16, 0.49]), atol=1e-15)


@pytest.mark.claim("NK-AppA")
def test_regret_on_noisy_instances_is_linear():
    """min_w E(⟨w, x̃⟩ − 1)² = 1/(1 + xᵀΣ⁻¹x), where on clean instances nothing need be lost."""
    x, cov = np.array([0.6, 0.8]), np.diag([0.2, 0.5])
    w = np.linalg.solve(np.outer(x, x) + cov, x)
    floor = (w @ x - 1) ** 2 + w @ cov @ w
    np.testing.assert_allclose(floor, 1 / (1 + x @ np.linalg.solve(cov, x)), rtol=1e-12)
    assert floor == pytest.approx(0.24509803921568626)
    best = 2 * x
    assert ((best @ (best / (best @ best)) - 1) ** 2) == pytest.approx(0)
    assert ((best @ (best / np.linalg.norm(best)) - 1) ** 2) == pytest.approx(1)  # as printed


@pytest.mark.claim("NK-tradeoff")
def test_fewer_copies_do_not_always_mean_a_larger_second_moment(x64):
    """At B_x/σ² = ¼ the moment of the Gaussian map is smallest in between."""

    def moment(unit, p):
        maps = nj.unbiased.gradient(
            nj.kernels.gaussian(length_scale=0.5**0.5), nj.losses.squared(), radius=1.0,
            x_second_moment=unit, kernel_order=60, p=p,
        ).maps  # fmt: skip
        exact = (p / (p - 1)) ** 2 * i0(2 * p**0.5 * unit) * np.exp(2 * p * unit)
        assert maps.second_moment(unit) == pytest.approx(exact, rel=1e-9)
        return exact

    large, small = ([moment(unit, p) for p in (1.5, 2.0, 4.0)] for unit in (1.0, 0.25))
    np.testing.assert_allclose(large, [572, 929, 5.99e4], rtol=2e-3)
    np.testing.assert_allclose(small, [20.9, 12.3, 16.6], rtol=5e-3)
