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
from tests.residuals import signs

W, X, Y = np.array([0.5, -0.9]), np.array([1.0, 0.4]), 0.7
SLOPES, SCALE = np.array([0.8, -0.3]), np.array([0.5, 0.9])


def samples():
    """All 32 samples of two copies whose first one is correlated with y, `[32, …]`."""
    drawn = signs(5)
    noise = drawn[:, :4].reshape(-1, 2, 2) * SCALE
    y = Y + noise[:, 0] @ SLOPES + 0.4 * drawn[:, 4]
    cov = np.broadcast_to(SCALE**2, (32, 2))
    return nj.Sample(X + noise, y, cov, cov * SLOPES)


@pytest.mark.slow
@pytest.mark.claim("EXT-CorrelatedNoise")
@pytest.mark.parametrize("name", ["known_covariance", "two_copies"])
def test_gradients_moments_and_clean_estimates_are_unbiased(x64, name):
    """With `cross_cov`; without it they are not, except the gradient from two copies."""
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

    moments = getattr(nj.moments, name)()
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
    cross = moments.corrected(moments.sums(seen, jnp.full(32, 1 / 32)))[1]
    np.testing.assert_allclose(cross, Y * X, atol=1e-12)
    assert np.abs(moments.sums(blind, jnp.full(32, 1 / 32)).cross - Y * X).max() > 0.05


@pytest.mark.slow
def test_observe_draws_it():
    """The noise in y is that of the first copy, and its covariance is in the sample."""
    noise, y_noise = Rademacher(SCALE), Correlated(SLOPES, Rademacher(0.4))
    sample = observe(key(), jnp.asarray(X), jnp.asarray(Y), noise, copies=2, y_noise=y_noise)
    rest = sample.y - Y - (sample.x[0] - X) @ SLOPES
    np.testing.assert_allclose(abs(rest), 0.4, rtol=1e-5)
    np.testing.assert_allclose(sample.cross_cov, SCALE**2 * SLOPES, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.statistical
def test_rollouts_need_a_learner_that_corrects_for_it():
    stream = nj.streams.linear(jax.random.key(0), 4_000, 2)
    noise, y_noise = Laplace(0.4), Correlated(np.array([1.5, 1.5]))
    learners = nj.wrappers.paired(
        nj.learners.known_covariance(radius=1.0),
        nj.learners.two_copies(radius=1.0),
        nj.learners.uncorrected(radius=1.0),
    )
    run = jax.jit(lambda key: nj.rollout(learners, stream, noise, key, y_noise=y_noise))(key(1))
    losses = ((run.predictions - stream.y[:, None]) ** 2)[2_000:].mean(axis=0)
    assert np.all(losses[:2] < 0.2 * losses[2])
    world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=Gaussian(0.1))
    kernel = nj.learners.parallel_worlds(world, horizon=8, radius=1.0)
    short = nj.Stream(stream.x[:8], stream.y[:8])
    with pytest.raises(ValueError, match="independent of the noise in x"):
        nj.rollout(kernel, short, Gaussian(0.1), key(), y_noise=y_noise)
    raises("no bound is known", nj.bounds.moments, stream, noise, y_noise=y_noise)
    raises("data of dimension 3", observe, key(), np.ones(3), 1.0, noise, copies=1, y_noise=y_noise)
    raises(r"must be \[d\]", Correlated, 0.5)
    changing = PerRound(jax.vmap(Correlated)(jnp.ones((8, 2))))
    learner = nj.learners.known_covariance(radius=1.0)
    assert nj.rollout(learner, short, noise, key(), y_noise=changing).diverged_at == -1


@pytest.mark.slow
@pytest.mark.statistical
def test_fits_and_learners_of_tables_correct_for_it(rng):
    n, cov = 20_000, np.array([0.3, 0.1])
    x, errors = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) * cov**0.5
    y = 1 + x @ [1.0, -1.0] + errors @ [0.9, 0.0] + 0.1 * rng.normal(size=n)
    cross = np.broadcast_to(cov * [0.9, 0.0], (n, 2))
    table = from_arrays(x + errors, y, noise=cov, cross_cov=cross)
    blind = from_arrays(x + errors, y, noise=cov)
    for method in ("sandwich", "jackknife"):
        fit = nj.fit(table, errors=method)
        assert np.all(np.abs(fit.values - [1, 1, -1]) < 5 * fit.std_error)
        assert np.all(fit.std_error < 0.03)
        truth = 0.9**2 * cov[0] + 0.01  # what is known of the noise is its variance, not its draws
        assert abs(fit.risk.corrected - truth) < 5 * fit.risk.corrected_std_error
    fit, centred = nj.fit(table), x + errors - (x + errors).mean(axis=0)
    beta = fit.coefficients
    residuals = y - y.mean() - centred @ beta
    scores = centred * residuals[:, None] + (1 - 1 / n) * (cov * beta - cov * [0.9, 0.0])
    bread = np.diag([float(n), 0, 0])
    bread[1:, 1:] = centred.T @ centred - (n - 1) * np.diag(cov)
    z, scores = np.column_stack([np.ones(n), centred]), np.column_stack([residuals, scores])
    without = bread[None] - z[:, :, None] * z[:, None]  # of all rows but one
    moves = np.linalg.solve(without, scores[:, :, None])[:, 1:, 0]
    np.testing.assert_allclose(fit.covariance[1:, 1:], moves.T @ moves, rtol=1e-6)

    wrong = nj.fit(blind)
    assert abs(wrong.coefficients[0] - 1) > 10 * wrong.std_error[1]

    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    risks = [nj.learn(learner, each, key()) for each in (table, blind)]
    # Early predictions are worse than the last ones.
    assert -5 * risks[0].risk_std_error < risks[0].risk - truth < 0.03
    assert risks[1].risk < truth - 0.5
    small = table.rows(np.arange(300))
    assert np.shape(small.cross_cov)[-1] == 2
    world = nj.worlds.gaussian(dim=2, length_scale=2.0, noise=Gaussian(cov))
    kernel = nj.learners.parallel_worlds(world, horizon=300, radius=1.0)
    pairs = from_arrays(small.x.repeat(2, axis=1), small.y, noise=cov, cross_cov=cov)
    raises("errors in x and y are correlated", nj.learn, kernel, pairs, key(), standardize=False)
    raises("independent of those in x", nj.fit, table, nj.methods.Fourier(length_scale=1.0))
    counts = from_arrays(x, np.ones(n), noise=cov, cross_cov=cov)
    raises("independent of those in x", nj.fit, counts, model="poisson")
    raises(r"cross_cov must be \[2\]", from_arrays, x, y, noise=cov, cross_cov=[0.1])


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
