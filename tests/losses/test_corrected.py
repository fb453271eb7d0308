"""Losses and learners of linear predictors that are right at one noisy copy, by quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.base import Sample
from noisy_jax.learners.known_covariance import corrected_gradient
from tests.errors import raises
from tests.keys import key
from tests.quadrature import gauss_hermite, laplace

COV = np.array([[0.5, 0.2], [0.2, 0.4]])
WEIGHTS, X = np.array([0.8, -0.5]), np.array([0.6, 0.9])
GAUSSIAN = {
    "squared": (losses.squared(), 0.7),
    "exponential": (losses.exponential(), -1.0),
    "poisson": (losses.poisson(), 3.0),
    "smoothed_absolute": (losses.smoothed_absolute(sharpness=0.6), 0.2),
    "smoothed_hinge": (losses.smoothed_hinge(sharpness=0.6), 1.0),
    "hinge": (losses.smoothed(losses.hinge(margin=0.4), width=1.1), -1.0),
    "tube": (losses.smoothed(losses.epsilon_insensitive(epsilon=0.3), width=1.1), 0.2),
}
LAPLACE = {**GAUSSIAN, "logistic": (losses.logistic(), 1.0)}


def check(fixed, y, cov, v, noise, chances, least):
    """Values and gradients of a corrected loss have the clean ones as means; others do not."""
    loss, noise = fixed.loss, np.append(noise, [[0.0, 0.0]], axis=0)  # the last copy is x

    @jax.jit
    @jax.vmap
    def at_copies(n):
        copy = X + n
        p, sample = copy @ WEIGHTS, Sample(copy[None], y, cov)
        corrects = corrected_gradient(jnp.asarray(WEIGHTS), sample, loss=fixed)
        return (fixed(p, y, v), corrects), (loss(p, y), loss.gradient(p, y) * copy)

    for corrects, plain in zip(*jax.device_get(at_copies(noise)), strict=True):
        np.testing.assert_allclose(chances @ corrects[:-1], plain[-1], atol=1e-10)
        assert np.max(np.abs(chances @ plain[:-1] - plain[-1])) > least


@pytest.mark.slow
@pytest.mark.claim("EXT-CorrectedLosses")
@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_noise_has_no_effect_on_average(name, x64):
    loss, y = GAUSSIAN[name]
    v = WEIGHTS @ COV @ WEIGHTS
    check(losses.corrected(loss), y, jnp.asarray(COV), v, *gauss_hermite(60, COV), 0.03)


@pytest.mark.slow
@pytest.mark.claim("EXT-CorrectedLosses")
@pytest.mark.parametrize("name", ["squared", "exponential", "poisson", "logistic", "hinge"])
def test_laplace_noise_has_no_effect_on_average(name, x64):
    loss, y = LAPLACE[name]
    scales = np.array([0.4, 0.3])
    fixed = losses.corrected(loss, noise="laplace")
    check(fixed, y, 2 * scales**2, 2 * (scales * WEIGHTS) ** 2, *laplace(60, scales), 0.01)


@pytest.mark.claim("EXT-CorrectedLosses")
def test_flipped_labels_and_noisy_inputs_are_corrected_together(x64):
    hinge, rates = losses.smoothed_hinge(sharpness=0.6), (0.35, 0.05)
    noise, chances = gauss_hermite(40, COV)
    both = losses.corrected(losses.flipped(hinge, rates))
    p, v, ones = (X + noise) @ WEIGHTS, WEIGHTS @ COV @ WEIGHTS, np.ones(len(noise))
    kept, flipped = map(jax.jit(lambda labels: both(p, labels, v)), (ones, -ones))
    mean = chances @ (0.65 * kept + 0.35 * flipped)
    np.testing.assert_allclose(mean, hinge(X @ WEIGHTS, 1.0), atol=1e-10)


@pytest.mark.slow
def test_covariance_and_sharpness_may_be_traced_and_too_much_noise_ends_in_nan(x64):
    sample = Sample(jnp.ones((1, 1)), jnp.asarray(1.0))

    def weights_after(variance, sharpness):
        loss = losses.smoothed_hinge(sharpness=sharpness)
        learner = nj.learners.known_covariance(radius=1.0, loss=loss, learning_rate=0.5)
        seen = sample._replace(cov=variance)
        state = learner.step(learner.init(1), seen, jax.random.key(0))
        return learner.step(state, seen, jax.random.key(0)).weights[0]

    variances, sharpness = jnp.array([0.0, 1.0, 1.0, 40.0]), jnp.array([0.5, 0.5, 0.9, 0.5])
    found = jax.jit(jax.vmap(weights_after))(variances, sharpness)
    np.testing.assert_array_equal(np.isfinite(found), [True, True, True, False])

    def by_hand(variance, sharpness):
        def mean_loss(w):
            s = sharpness * jax.lax.rsqrt(1 - 2 * sharpness**2 * variance * w**2)
            return losses.smoothed_hinge(sharpness=s)(w, 1.0)

        first = -0.5 * jax.grad(mean_loss)(0.0)
        return first - 0.5 * jax.grad(mean_loss)(first)

    wanted = jax.jit(jax.vmap(by_hand))(variances[:3], sharpness[:3])
    np.testing.assert_allclose(found[:3], wanted, rtol=1e-12)
    assert np.all(np.abs(np.diff(wanted)) > 0.01)
    steep = losses.corrected(losses.poisson(), noise="laplace")  # E e^p̃ is infinite for b|w| ≥ 1
    slopes = jax.grad(steep, (0, 2))
    for first, judged in ((1.9, np.isfinite), (2.1, np.isnan)):
        p, v = slopes(0.0, 1.0, jnp.array([first, 0.1]))
        assert judged([p, *v]).all()


@pytest.mark.slow
def test_smoothed_losses_are_averages_and_the_named_ones_special_cases(x64):
    a, y = np.linspace(-3, 3, 13), np.ones(13)
    for kinked, other in (
        (losses.epsilon_insensitive(epsilon=0.0), losses.smoothed_absolute(sharpness=0.7)),
        (losses.hinge(), losses.smoothed_hinge(sharpness=0.7)),
    ):
        one = losses.smoothed(kinked, width=1 / (0.7 * np.sqrt(2)))
        np.testing.assert_allclose(one(a, y), other(a, y), atol=1e-14)
        np.testing.assert_allclose(one.gradient(a, y), other.gradient(a, y), atol=1e-14)
    tube, z = losses.epsilon_insensitive(epsilon=0.3), np.linspace(-9, 9, 200_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    mean = [density @ np.asarray(tube.value(p + 0.8 * z)) for p in a]
    smooth = losses.smoothed(tube, width=0.8)
    np.testing.assert_allclose(smooth.value(a), mean, atol=1e-8)
    slopes = jax.vmap(jax.grad(smooth.value))(a)
    np.testing.assert_allclose(smooth.derivative(a), slopes, atol=1e-14)


@pytest.mark.slow
def test_poisson_has_its_gradient_and_its_minimizer():
    loss, p, y = losses.poisson(), jnp.linspace(-1.0, 1.0, 5), jnp.arange(5.0)
    np.testing.assert_allclose(loss(p, y), jnp.exp(p) - y * p, rtol=1e-6)
    np.testing.assert_allclose(loss.gradient(p, y), jax.vmap(jax.grad(loss))(p, y), rtol=1e-5)
    fixed = nj.comparators.regularized(np.eye(5), np.asarray(y), loss, 1.0)
    assert fixed.converged
    slopes = loss.gradient(fixed.predictions, y)
    np.testing.assert_allclose(fixed.coefficients, -slopes / 5, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [nj.noise.Multiplicative(0.1), nj.noise.Laplace(0.1)])
def test_noise_of_another_kind_is_a_warning(noise):
    """An estimate of Σ is enough for the squared loss only, and the distribution matters."""
    stream = nj.streams.linear(jax.random.key(0), 4, 2)
    learner = nj.learners.known_covariance(radius=1.0, loss=nj.losses.smoothed_absolute())
    with pytest.warns(UserWarning, match="built for other noise"):
        jax.eval_shape(lambda: nj.rollout(learner, stream, noise, key()).predictions)
    y = np.arange(4.0)
    rows = nj.observations.from_arrays(np.stack([y + 1, y + 1], axis=1), y, noise=noise)
    raises("built for Gaussian noise", nj.learn, learner, rows, key())
