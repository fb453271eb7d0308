from typing import NamedTuple

import jax
import numpy as np

import noisy_jax as nj
from noisy_jax.learners.known_covariance import gradient_estimate
from noisy_jax.learners.uncorrected import gradient_estimate as uncorrected_gradient
from noisy_jax.noise import ContaminatedGaussian, Gaussian, Laplace, Rademacher, StudentT, Uniform
from tests.keys import key

FULL = np.array([[0.5, 0.2, 0.0], [0.2, 0.3, -0.1], [0.0, -0.1, 0.4]])
DISTRIBUTIONS = {
    "gaussian": Gaussian(0.3),
    "gaussian_diagonal": Gaussian(np.array([0.1, 0.4, 0.9])),
    "gaussian_full": Gaussian(FULL),
    "gaussian_singular": Gaussian(np.full((3, 3), 0.2)),
    "contaminated": ContaminatedGaussian(FULL, probability=0.3),
    "laplace": Laplace(np.array([0.2, 0.5, 1.0])),
    "uniform": Uniform(0.7),
    "rademacher": Rademacher(np.array([0.2, 0.5, 1.0])),
    "student": StudentT(df=9.0, scale=0.4),
}


def assert_mean_is(values, truth, largest_error):
    """|mean − truth| < 5·SE, where SE is small enough for the test to be able to fail."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert np.all(error < largest_error)
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - truth), 5 * error + 1e-7)


W, Y = np.array([0.5, 0.3, -1.0]), 0.6


def per_round(make, *parameters):
    return nj.noise.PerRound(jax.vmap(make)(*parameters))


def last_errors(stream, noise):
    """Of a corrected learner and an uncorrected one, in the second half of 2,000 rounds."""
    learners = nj.wrappers.paired(
        nj.learners.known_covariance(radius=1.0), nj.learners.uncorrected(radius=1.0)
    )
    run = nj.rollout(learners, stream, noise, key(1))
    return ((run.predictions - stream.y[:, None]) ** 2)[1_000:].mean(axis=0)


class Case(NamedTuple):
    """A distribution, an instance, and all its noisy copies `[m, 3]` with their probabilities."""

    noise: nj.noise.Noise
    x: np.ndarray
    copies: np.ndarray
    weights: np.ndarray


def full(cov):
    cov = np.asarray(cov)
    return cov if cov.ndim == 3 else cov[:, :, None] * np.eye(3)


def check_bound(case, fourth, bounds, rtol):
    """Those of x̃ in `nj.bounds.moments`; `bounds[m]` are of the norm of each x̃x̃ᵀ − Σ̂."""
    noise, x, copies, p = case
    known = nj.bounds.moments(nj.Stream(x[None], np.array([0.5])), noise)
    np.testing.assert_allclose(known.x_second_moment, p @ np.sum(copies**2, axis=1), rtol=rtol)
    np.testing.assert_allclose(known.x_fourth_moment, p @ fourth, rtol=rtol)
    estimates = np.einsum("mi,mj->mij", copies, copies)
    estimates -= full(jax.vmap(noise.estimated_cov)(copies))
    assert np.all(np.linalg.norm(estimates, ord=2, axis=(1, 2)) <= bounds + rtol)
    return known


def check_unbiased(case, *, atol, gradients=True):
    """E Σ̂ = Var(x̃ | x), and with it what is estimated from one copy has the clean mean."""
    noise, x, copies, p = case
    np.testing.assert_allclose(p @ copies, x, atol=min(atol, 1e-10))
    variance = np.einsum("m,mi,mj->ij", p, copies - x, copies - x)
    estimates = full(jax.jit(jax.vmap(noise.estimated_cov))(copies))
    np.testing.assert_allclose(np.tensordot(p, estimates, 1), variance, atol=atol)
    np.testing.assert_allclose(noise.covariance_at(x), variance, atol=atol)

    moments = nj.moments.known_covariance()

    @jax.jit
    def means(samples, p):
        each = moments.clean_estimates, gradient_estimate, uncorrected_gradient
        found = [jax.vmap(estimate, (None, 0))(W, samples) for estimate in each]
        gram, _ = moments.corrected(moments.sums(samples, p))
        return gram, *jax.tree.map(lambda leaf: p @ leaf, found)

    samples = nj.Sample(copies[:, None], np.full(len(p), Y), estimates)
    gram, read, unbiased, blind = means(samples, p)
    np.testing.assert_allclose(gram, np.outer(x, x), atol=atol)
    np.testing.assert_allclose(read, [W @ x, (W @ x) ** 2], atol=atol)
    if gradients:
        clean = 2 * (W @ x - Y) * x
        np.testing.assert_allclose(unbiased, clean, atol=atol)
        assert np.abs(blind - clean).max() > 0.05
