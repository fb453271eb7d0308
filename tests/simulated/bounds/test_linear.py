"""The guarantees of linear learners, and what their proofs use."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
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
from tests.errors import raises, told
from tests.quadrature import gauss_hermite, laplace, tensor

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


SIGNS = np.array([-1.0, 1.0]), np.array([0.5, 0.5])


@pytest.mark.parametrize(
    ("noise", "rule"),
    [
        (nj.noise.Gaussian(COV := np.array([[0.5, 0.2], [0.2, 0.3]])), gauss_hermite(3, COV)),
        (nj.noise.Laplace(SCALES := np.array([0.3, 0.8])), laplace(40, SCALES)),
        (nj.noise.Rademacher(0.7), (0.7 * tensor(*SIGNS, 2)[0], tensor(*SIGNS, 2)[1])),
    ],
    ids=["gaussian", "laplace", "rademacher"],
)
def test_moments_are_those_of_the_noise_exactly(noise, rule):
    """By quadrature, of the larger of two rows."""
    stream = nj.streams.from_arrays([[0.3, -0.2], [0.9, 0.4]], [0.5, -1.0])
    ours = moments(stream, noise, y_noise=nj.noise.Gaussian(0.25))
    squares = np.sum((rule[0] + np.array([[0.9, 0.4]])) ** 2, axis=1)
    largest = np.linalg.eigvalsh(noise.covariance(2))[-1]
    expected = rule[1] @ squares, rule[1] @ squares**2, 1.25, largest
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


DISTRIBUTION = DataMoments(2.0, 5.0, 1.5, 0.1)


def test_horizon_may_be_traced_and_a_bad_one_raises():
    traced = jax.jit(lambda t: [each(DISTRIBUTION, horizon=t, radius=1.0) for each in BOUNDS])(100)
    plain = [bound(DISTRIBUTION, horizon=100, radius=1.0) for bound in BOUNDS]
    np.testing.assert_allclose(traced, plain, rtol=1e-6)
    message = "horizon must be positive and finite, got 0"
    raises(message, two_copies, DISTRIBUTION, horizon=0, radius=1.0)
    message = r"radius must be positive and finite, got -1\.0"
    raises(message, two_copies, DISTRIBUTION, horizon=10, radius=-1.0)


@pytest.mark.parametrize(
    ("bound", "values", "message"),
    [
        (two_copies, (0.0, 0.0, 0.0, 0.0), "second moment .* must be positive and finite"),
        (two_copies, (1e38, 1e38, 1e38, 1.0), "second moment .* must be positive and finite"),
        (self_bounding, (1.0, 1.0, -1.0, 0.0), "y_second_moment must be finite and >= 0"),
    ],
)
def test_moments_without_a_finite_bound_raise(bound, values, message):
    raises(message, bound, DataMoments(*values), horizon=10, radius=10.0)


def test_noise_without_the_moment_raises():
    stream = nj.streams.linear(jax.random.key(0), 5, 2)
    heavy = moments(stream, nj.noise.StudentT(df=3.0, scale=1.0))
    assert np.isfinite(two_copies(heavy, horizon=10, radius=1.0).regret)
    message = "x_fourth_moment must be positive and finite"
    raises(message, known_covariance, heavy, horizon=10, radius=1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stream": nj.Stream(np.ones((3, 2)), np.ones(2))}, r"got x \[3, 2\] and y \[2\]"),
        ({"stream": (np.ones((3, 2)), np.ones(3))}, "stream must be a Stream, got tuple"),
        ({"noise": 0.1}, r"noise must be a Noise, got 0\.1: "),
        ({"noise": per_round(np.ones(4))}, "along the 3 rounds"),
        ({"y_noise": nj.noise.Gaussian(np.ones(2))}, r"scalar distribution, got \[2\]"),
    ],
)
def test_bad_arguments_of_moments_raise(changes, message):
    good = {"stream": nj.Stream(np.ones((3, 2)), np.ones(3)), "noise": nj.noise.Gaussian(0.1)}
    raises(message, moments, **good | changes)


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


@pytest.mark.parametrize("name", nj.bounds.DataMoments._fields)
def test_moments_below_zero_are_errors(name):
    wrong = nj.bounds.DataMoments(1.0, 1.0, 1.0, 1.0)._replace(**{name: -1.0})
    bounds = [nj.bounds.uncorrected]
    bounds += [] if name == "x_fourth_moment" else [nj.bounds.self_bounding]
    bounds = [nj.bounds.self_bounding] if name == "x_second_moment" else bounds
    for bound in bounds:
        with told(f"moments.{name} must be"):
            bound(wrong, horizon=10, radius=1.0)
    with told("bound must be a function"):
        nj.bounds.rate_of(1.0)  # type: ignore[arg-type]
