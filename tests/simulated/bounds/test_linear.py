"""The guarantees of linear learners, and what their proofs use."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noisy_jax as nj
from noisy_jax.simulated.bounds import (
    DataMoments,
    as_printed,
    known_covariance,
    moments,
    self_bounding,
    two_copies,
    uncorrected,
)
from tests.quadrature import gauss_hermite

BOUNDS = [two_copies, known_covariance, uncorrected]
MODULES = nj.bounds, as_printed


@pytest.mark.claim("DA-Lemma1", "DA-short")
def test_witness_of_the_printed_second_moment():
    """Lemma 1: x̃ = x = w = 1, ỹ = y = −1 attains the corrected bound and breaks the printed one."""
    assert (2 * (1.0 * 1.0 - (-1.0)) * 1.0) ** 2 == 16
    for bound, second_moment in ((two_copies, 16), (as_printed.two_copies, 8)):
        found = bound(DataMoments(1.0, 1.0, 1.0, 0.0), horizon=1, radius=1.0)
        np.testing.assert_allclose(found.second_moment, second_moment)


@pytest.mark.slow
@pytest.mark.claim("DA-Lemma1", "DA-Lemma2")
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), dim=st.integers(1, 4))
def test_second_moments_hold_for_random_distributions_exactly(seed, dim):
    """x̃ is of a random heavy-tailed distribution: atoms `[n, d]` and probabilities `[n]`."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 6)
    atoms = rng.normal(size=(n, dim)) * np.exp(2 * rng.normal(size=(n, 1)))
    p = rng.dirichlet(np.full(n, 0.5))
    targets, q = rng.normal(size=3) * np.exp(rng.normal()), rng.dirichlet(np.ones(3))
    w = rng.normal(size=dim)
    radius = np.linalg.norm(w) + 1e-9
    x = p @ atoms
    cov = np.einsum("n,ni,nj->ij", p, atoms - x[None], atoms - x[None])
    squares, largest = np.sum(atoms**2, axis=1), np.linalg.eigvalsh(cov)[-1]
    distribution = DataMoments(p @ squares, p @ squares**2, q @ targets**2, largest)
    residual = 2 * (atoms @ w)[:, None] - 2 * targets[None]
    two = np.einsum("n,m,y,ny,m->", p, p, q, residual**2, squares)
    plain = residual[:, :, None] * atoms[:, None]
    debiased = np.einsum("n,y,nyi->", p, q, (plain - 2 * (cov @ w)[None, None]) ** 2)
    blind = np.einsum("n,y,nyi->", p, q, plain**2)
    for value, bound in [(two, two_copies), (debiased, known_covariance), (blind, uncorrected)]:
        moment = float(bound(distribution, horizon=1, radius=radius).second_moment)
        assert value <= moment * (1 + 1e-4)


@pytest.mark.claim("DA-Thm1")
def test_rate_and_regret_follow_from_the_second_moment():
    for module, bound in itertools.product(MODULES, BOUNDS):
        # Without noise, the bound of `uncorrected` has no linear part.
        options = {"horizon": 400, "radius": 1.3}
        g = getattr(module, bound.__name__)(DataMoments(2.0, 5.0, 1.5, 0.0), **options)
        root = np.sqrt(g.second_moment * 400)
        np.testing.assert_allclose(g[:2], (1.3 / root, 1.3 * root), rtol=1e-6)


@pytest.mark.claim("DA-Thm1", "DA-Thm2")
def test_constants_by_hand():
    distribution, options = DataMoments(2.0, 9.0, 4.0, 0.5), {"horizon": 100, "radius": 2.0}
    g2 = 12 * (2 * 3**0.5 + 2) ** 2
    for bound, second_moment in (
        (two_copies, 8 * (2 * 2**0.5 + 2) ** 2),
        (as_printed.two_copies, 8 * (8 + 4)),
        (known_covariance, g2),
        (as_printed.known_covariance, 8 * 4 * 9 + 8 * 4 * 3 + 4 * 4 * 3 * 0.5 + 0.25 * 4),
    ):
        found = bound(distribution, **options).second_moment
        np.testing.assert_allclose(found, second_moment, rtol=1e-6)
    regrets = [module.uncorrected(distribution, **options).regret for module in MODULES]
    expected = 2 * np.sqrt(g2 * 100) + np.array([100 * 4 * 0.5 / 2, 0])
    np.testing.assert_allclose(regrets, expected, rtol=1e-6)


def test_moments_are_those_of_the_noise_exactly():
    """By quadrature, of the larger of two rows."""
    cov = np.array([[0.5, 0.2], [0.2, 0.3]])
    nodes, weights = gauss_hermite(3, cov)
    stream = nj.streams.from_arrays([[0.3, -0.2], [0.9, 0.4]], [0.5, -1.0])
    ours = moments(stream, nj.noise.Gaussian(cov), y_noise=nj.noise.Gaussian(0.25))
    squares = np.sum((nodes + np.array([[0.9, 0.4]])) ** 2, axis=1)
    expected = weights @ squares, weights @ squares**2, 1.25, np.linalg.eigvalsh(cov)[-1]
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def per_round(covs):
    return nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(covs))


def test_moments_of_noise_that_changes_take_the_worst_round():
    stream = nj.streams.from_arrays([[1.0, 0.0], [0.0, 0.5]], [0.5, -1.0])
    noise = per_round(jnp.array([0.1, 2.0]))
    ours = moments(stream, noise)
    np.testing.assert_allclose([ours.x_second_moment, ours.noise_norm], [0.25 + 4.0, 2.0])
    y_noise = nj.noise.PerRound(jax.vmap(nj.noise.Laplace)(jnp.array([1.0, 0.1])))
    ours = moments(stream, noise, y_noise=y_noise)
    np.testing.assert_allclose(ours.y_second_moment, 0.25 + 2.0, rtol=1e-6)  # not 1 + 2


@pytest.mark.claim("EXT-SelfBounding")
@pytest.mark.parametrize(
    "given_moments", [DataMoments(1.0, 1.0, 1.0, 0.0), DataMoments(3.0, 9.0, 0.5, 2.0)]
)
def test_the_self_bounding_rate_minimizes_what_its_proof_shows(given_moments):
    horizon, radius, (square, _, target, norm) = 50, 0.7, given_moments

    def proved(eta):  # B²/(2η) + 2ηB_x² S
        residuals = horizon * (target + radius**2 * norm) / (1 - 2 * eta * square)
        return radius**2 / (2 * eta) + 2 * eta * square * residuals

    bound = self_bounding(given_moments, horizon=horizon, radius=radius)
    etas = np.linspace(0, 1 / (2 * square), 200_001)[1:-1]
    np.testing.assert_allclose(bound.regret, proved(etas).min(), rtol=1e-6)
    np.testing.assert_allclose(bound.learning_rate, etas[proved(etas).argmin()], rtol=1e-3)
    assert bound.regret < two_copies(given_moments, horizon=horizon, radius=radius).regret


@pytest.mark.statistical
@pytest.mark.claim("EXT-SelfBounding")
def test_the_self_bounding_guarantee_holds_exactly(rng):
    """Both copies are x ± ½ in 4 rounds: all 256 draws, for streams with |x| = 1 and |y| <= 1."""
    horizon, variance = 4, 0.25
    given_moments = DataMoments(1 + variance, 1.0, 1.0, variance)
    bound = self_bounding(given_moments, horizon=horizon, radius=1.0)
    signs = 2.0 * (np.arange(256)[:, None] >> np.arange(8) & 1).reshape(256, 2, 4) - 1
    largest = 0.0
    for _ in range(200):
        x, y = rng.choice([-1.0, 1.0], size=4), rng.choice([-1.0, 0.3, 1.0], size=4)
        copies, w, loss = x + 0.5 * signs, np.zeros(256), 0.0
        for t in range(horizon):
            loss += np.mean((w * x[t] - y[t]) ** 2)
            step = 2 * (w * copies[:, 0, t] - y[t]) * copies[:, 1, t]
            w = np.clip(w - float(bound.learning_rate) * step, -1, 1)
        largest = max(largest, loss - np.sum((np.clip(x @ y / 4, -1, 1) * x - y) ** 2))
    assert 0.3 * bound.regret < largest <= bound.regret


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
    np.testing.assert_allclose(slack(-rate * v.sum(axis=0), 100.0), 0, atol=1e-12)
    steady = np.tile([1.0, 0.0, 0.0], (50, 1))
    assert slack(np.array([-1.0, 0.0, 0.0]), 0.1, steady) < 0  # outside the ball


@pytest.mark.claim("DA-Identity")
def test_for_the_squared_loss_convexity_is_an_identity(rng):
    """⟨∇, w − u⟩ = ℓ(w) − ℓ(u) + ⟨x, w − u⟩²."""
    x, w, u = rng.normal(size=(3, 4))
    loss = [(a @ x - 0.7) ** 2 for a in (w, u)]
    left = 2 * (w @ x - 0.7) * x @ (w - u)
    np.testing.assert_allclose(left, loss[0] - loss[1] + (x @ (w - u)) ** 2, rtol=1e-12)
