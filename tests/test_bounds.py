import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import noisy_jax as nj
from noisy_jax.bounds import Moments, known_covariance, moments, noise_blind, two_copies

BOUNDS = [two_copies, known_covariance, noise_blind]


def test_witness_of_the_printed_second_moment():
    """Lemma 1: x̃ = x = w = 1, ỹ = y = −1 attains the corrected bound and breaks the printed one."""
    given_moments = Moments(1.0, 1.0, 1.0, 0.0)
    attained = (2 * (1.0 * 1.0 - (-1.0)) * 1.0) ** 2
    corrected = two_copies(given_moments, horizon=1, radius=1.0).second_moment
    printed = two_copies(given_moments, horizon=1, radius=1.0, as_printed=True).second_moment
    assert attained == 16
    np.testing.assert_allclose(corrected, 16)
    np.testing.assert_allclose(printed, 8)


def discrete_law(rng, dim):
    """A random law of x̃ on a few atoms, heavy-tailed: atoms `[n, d]` and probabilities `[n]`."""
    n = rng.integers(1, 6)
    atoms = rng.normal(size=(n, dim)) * np.exp(2 * rng.normal(size=(n, 1)))
    return atoms, rng.dirichlet(np.full(n, 0.5))


@given(seed=st.integers(0, 10**6), dim=st.integers(1, 4))
def test_second_moments_hold_for_random_laws_exactly(seed, dim):
    rng = np.random.default_rng(seed)
    atoms, p = discrete_law(rng, dim)
    targets, q = rng.normal(size=3) * np.exp(rng.normal()), rng.dirichlet(np.ones(3))
    w = rng.normal(size=dim)
    radius = np.linalg.norm(w) + 1e-9
    x = p @ atoms
    cov = np.einsum("n,ni,nj->ij", p, atoms - x[None], atoms - x[None])
    law = Moments(
        p @ np.sum(atoms**2, axis=1), p @ np.sum(atoms**2, axis=1) ** 2, q @ targets**2,
        np.linalg.eigvalsh(cov)[-1],
    )  # fmt: skip
    residual = 2 * (atoms @ w)[:, None] - 2 * targets[None]
    pairs = np.einsum("ny,mi->nmyi", residual, atoms)
    squares = np.sum(pairs**2, axis=-1)
    two = np.einsum("n,m,y,nmy->", p, p, q, squares)
    one = residual[:, :, None] * atoms[:, None] - 2 * (cov @ w)[None, None]
    debiased = np.einsum("n,y,ny->", p, q, np.sum(one**2, axis=-1))
    blind = np.einsum(
        "n,y,ny->", p, q, np.sum((residual[..., None] * atoms[:, None]) ** 2, axis=-1)
    )
    for value, bound in [(two, two_copies), (debiased, known_covariance), (blind, noise_blind)]:
        assert value <= float(bound(law, horizon=1, radius=radius).second_moment) * (1 + 1e-4)


@pytest.mark.parametrize("bound", BOUNDS)
def test_rate_and_regret_follow_from_the_second_moment(bound):
    law = Moments(2.0, 5.0, 1.5, 0.0)  # no noise: nothing linear is left in noise_blind's bound
    for as_printed in (False, True):
        g = bound(law, horizon=400, radius=1.3, as_printed=as_printed)
        np.testing.assert_allclose(g.learning_rate, 1.3 / np.sqrt(g.second_moment * 400), rtol=1e-6)
        np.testing.assert_allclose(g.regret, 1.3 * np.sqrt(g.second_moment * 400), rtol=1e-6)


def test_constants_by_hand():
    law, options = Moments(2.0, 9.0, 4.0, 0.5), {"horizon": 100, "radius": 2.0}
    np.testing.assert_allclose(
        two_copies(law, **options).second_moment, 8 * (2 * 2**0.5 + 2) ** 2, rtol=1e-6
    )
    np.testing.assert_allclose(
        two_copies(law, **options, as_printed=True).second_moment, 8 * (8 + 4), rtol=1e-6
    )
    g2 = 12 * (2 * 3**0.5 + 2) ** 2
    np.testing.assert_allclose(known_covariance(law, **options).second_moment, g2, rtol=1e-6)
    np.testing.assert_allclose(
        known_covariance(law, **options, as_printed=True).second_moment,
        8 * 4 * 9 + 8 * 4 * 3 + 4 * 4 * 3 * 0.5 + 0.25 * 4,
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        noise_blind(law, **options).regret, 2 * np.sqrt(g2 * 100) + 100 * 4 * 0.5 / 2, rtol=1e-6
    )


@pytest.mark.parametrize(
    "noise",
    [
        nj.noise.Gaussian(np.array([[0.5, 0.2], [0.2, 0.3]])),
        nj.noise.Laplace(np.array([0.3, 0.8])),
        nj.noise.StudentT(df=20.0, scale=0.5),
        nj.noise.Rademacher(0.7),
    ],
    ids=["gaussian", "laplace", "student", "rademacher"],
)
def test_moments_against_samples(noise):
    stream = nj.streams.from_arrays([[0.3, -0.2], [0.9, 0.4]], [0.5, -1.0])
    ours = moments(stream, noise, y_noise=nj.noise.Gaussian(0.25))
    noisy = np.asarray(
        noise.sample(jax.random.key(0), jnp.tile(stream.x[1][None], (400_000, 1))), np.float64
    )
    squares = np.sum(noisy**2, axis=1)
    for value, sample in [(ours.x_second, squares), (ours.x_fourth, squares**2)]:
        assert abs(float(value) - sample.mean()) < 5 * sample.std() / np.sqrt(len(sample))
    np.testing.assert_allclose(ours.y_second, 1.25)
    np.testing.assert_allclose(
        ours.noise_norm, np.linalg.eigvalsh(noise.covariance(2))[-1], rtol=1e-5
    )


def test_moments_of_noise_that_changes_take_the_worst_round():
    stream = nj.streams.from_arrays([[1.0, 0.0], [0.0, 0.5]], [0.5, -1.0])
    noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(jnp.array([0.1, 2.0])))
    ours = moments(stream, noise)
    np.testing.assert_allclose(ours.x_second, 0.25 + 4.0)
    np.testing.assert_allclose(ours.noise_norm, 2.0)


@pytest.mark.parametrize("bound", BOUNDS)
def test_horizon_may_be_traced(bound):
    law = Moments(2.0, 5.0, 1.5, 0.1)
    traced = jax.jit(lambda horizon: bound(law, horizon=horizon, radius=1.0))(100)
    np.testing.assert_allclose(traced, bound(law, horizon=100, radius=1.0), rtol=1e-6)


@pytest.mark.parametrize("bound", BOUNDS)
def test_refuses_bad_input(bound):
    law = Moments(2.0, 5.0, 1.5, 0.1)
    with pytest.raises(ValueError, match="horizon must be positive and finite, got 0"):
        bound(law, horizon=0, radius=1.0)
    with pytest.raises(ValueError, match=r"radius must be positive and finite, got -1\.0"):
        bound(law, horizon=10, radius=-1.0)


@pytest.mark.parametrize(
    "law",
    [Moments(0.0, 0.0, 0.0, 0.0), Moments(-1.0, -1.0, 1.0, 0.0), Moments(1e38, 1e38, 1e38, 1.0)],
)
def test_refuses_moments_without_a_finite_bound(law):
    with pytest.raises(ValueError, match=r"second moment .* must be positive and finite"):
        two_copies(law, horizon=10, radius=10.0)


def test_refuses_noise_without_the_moment():
    stream = nj.streams.linear(jax.random.key(0), 5, 2)
    heavy = moments(stream, nj.noise.StudentT(df=3.0, scale=1.0))
    assert np.isfinite(two_copies(heavy, horizon=10, radius=1.0).regret)
    with pytest.raises(ValueError, match="no finite moment"):
        known_covariance(heavy, horizon=10, radius=1.0)
