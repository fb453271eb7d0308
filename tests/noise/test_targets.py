"""Noise of targets: correlated with that of x, by exact means over Rademacher noise; and flips.

Losses under flips are tested in `losses/test_flipped.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import estimated_errors
from noisy_jax.noise import Correlated, Gaussian, Laplace, PerRound, Rademacher, observe
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import key
from tests.noise.cases import fit_by_numpy
from tests.residuals import signs

W, X, Y = np.array([0.5, -0.9]), np.array([1.0, 0.4]), 0.7
SLOPES, SCALE = np.array([0.8, -0.3]), np.array([0.5, 0.9])


def samples():
    """All 128 samples of three copies whose first one is correlated with y, `[128, …]`."""
    drawn = signs(7)
    noise = drawn[:, :6].reshape(-1, 3, 2) * SCALE
    y = Y + noise[:, 0] @ SLOPES + 0.4 * drawn[:, 6]
    cov = np.broadcast_to(SCALE**2, (128, 2))
    return nj.Sample(X + noise, y, cov, cov * SLOPES)


@pytest.mark.slow
@pytest.mark.claim("EXT-CorrelatedNoise")
@pytest.mark.parametrize("name", ["known_covariance", "two_copies"])
def test_gradients_moments_and_clean_estimates_are_unbiased(x64, name):
    """With `cross_cov`; without it they are not, except the gradient from two copies.

    The moments of `two_copies` are those of three.
    """
    seen = samples()
    blind = seen._replace(cross_cov=None)
    learner = getattr(nj.learners, name)(radius=9.0, learning_rate=1.0)
    state = learner.init(2)._replace(weights=jnp.asarray(W))

    def stepped(sample):
        return learner.step(state, sample, jax.random.key(0)).weights

    clean = W - 2 * (W @ X - Y) * X
    np.testing.assert_allclose(jax.vmap(stepped)(seen).mean(axis=0), clean, atol=1e-12)
    off = np.abs(jax.vmap(stepped)(blind).mean(axis=0) - clean).max()
    assert off < 1e-12 if name == "two_copies" else off > 0.3

    moments = getattr(nj.moments, name)(*([3] if name == "two_copies" else []))
    truth = (W @ X - Y) ** 2 + (SCALE * SLOPES) @ (SCALE * SLOPES) + 0.16
    for read in (
        moments.clean_estimates,
        lambda w, s: learner.clean_estimates(state, s, jax.random.key(0)),
    ):
        errors = [
            estimated_errors(jax.vmap(read, (None, 0))(jnp.asarray(W), s), s.y).mean()
            for s in (seen, blind)
        ]
        assert abs(errors[0] - truth) < 1e-12 < 0.1 < abs(errors[1] - truth)
    cross = moments.corrected(moments.sums(seen, jnp.full(128, 1 / 128)))[1]
    np.testing.assert_allclose(cross, Y * X, atol=1e-12)
    assert np.abs(moments.sums(blind, jnp.full(128, 1 / 128)).cross - Y * X).max() > 0.05


@pytest.mark.slow
def test_observe_draws_it():
    """The noise in y is that of the first copy, and its covariance is in the sample."""
    noise, y_noise = Rademacher(SCALE), Correlated(SLOPES, Rademacher(0.4))
    sample = observe(key(), jnp.asarray(X), jnp.asarray(Y), noise, copies=2, y_noise=y_noise)
    rest = sample.y - Y - (sample.x[0] - X) @ SLOPES
    np.testing.assert_allclose(abs(rest), 0.4, rtol=1e-5)
    np.testing.assert_allclose(sample.cross_cov, SCALE**2 * SLOPES, rtol=1e-6)


@pytest.mark.slow
def test_a_fit_of_a_table_corrects_for_it(rng):
    cov, slopes = np.array([0.3, 0.1]), [0.9, 0.0]
    x, errors = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) * cov**0.5
    y = 1 + x @ [1.0, -1.0] + errors @ slopes + 0.1 * rng.normal(size=300)
    fit = nj.fit(from_arrays(x + errors, y, noise=cov, cross_cov=cov * slopes))
    beta, covariance = fit_by_numpy(x + errors, y, np.tile(cov, (300, 1)), cov * slopes)
    np.testing.assert_allclose(fit.coefficients, beta, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance[1:, 1:], covariance, rtol=1e-6)


@pytest.mark.slow
def test_methods_without_the_correction_raise(rng):
    noise, y_noise = Laplace(0.4), Correlated(np.array([1.5, 1.5]))
    stream = nj.streams.linear(jax.random.key(0), 8, 2)
    options = {"horizon": 8, "radius": 1.0}
    world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=Gaussian(0.1))
    kernel = nj.learners.parallel_worlds(world, **options)
    message = "independent of the noise in x"
    raises(message, nj.rollout, kernel, stream, Gaussian(0.1), key(), y_noise=y_noise)
    raises("no bound is known", nj.bounds.moments, stream, noise, y_noise=y_noise)
    raises("data of dimension 3", observe, key(), np.ones(3), 1.0, noise, copies=1, y_noise=y_noise)
    raises(r"must be \[d\]", Correlated, 0.5)
    changing = PerRound(jax.vmap(Correlated)(jnp.ones((8, 2))))
    learner = nj.learners.known_covariance(radius=1.0)
    assert nj.rollout(learner, stream, noise, key(), y_noise=changing).diverged_at == -1

    x, y = rng.normal(size=(8, 2, 2)), np.arange(8.0)
    pairs = from_arrays(x, y, noise=0.1, cross_cov=[0.1, 0.1])
    raises("errors in x and y are correlated", nj.learn, kernel, pairs, key(), standardize=False)
    table = from_arrays(x[:, 0], y, noise=0.1, cross_cov=[0.1, 0.1])
    raises("independent of those in x", nj.fit, table, nj.methods.Fourier(length_scale=1.0))
    raises("independent of those in x", nj.fit, table, model="poisson")
    raises(r"cross_cov must be \[2\]", from_arrays, x[:, 0], y, noise=0.1, cross_cov=[0.1])


def test_impossible_covariances_raise(rng):
    """|c_i| ≤ √(Σ_ii Var ỹ): an error of a column without noise is correlated with nothing."""
    x = rng.normal(size=(600, 2))
    y = x @ [1.0, -1.0]
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    for noise, cross in (([0.1, 0.0], [0.0, 0.2]), ([0.1, 0.1], [0.0, -0.9])):
        table = from_arrays(x, y, noise=noise, cross_cov=cross)
        chunks = [table.rows(np.arange(300)), table.rows(np.arange(300, 600))]
        for use in (
            lambda table=table: nj.fit(table),
            lambda chunks=chunks: nj.fit(chunks),
            lambda table=table: nj.learn(learner, table, key()),
        ):
            raises(r"cross_cov of 'x2' is .* what is possible", use)
    y = y + rng.normal(size=600)
    assert np.all(np.isfinite(nj.fit(from_arrays(x, y, noise=0.1, cross_cov=[0, 0.1])).std_error))


def test_it_is_not_noise_of_x():
    noise = Correlated(SLOPES)
    raises("give it as y_noise", from_arrays, np.ones((3, 2)), np.ones(3), noise=noise)
    raises("give it as y_noise", observe, key(), X, Y, noise, copies=1)
