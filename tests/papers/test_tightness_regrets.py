import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
import tightness_regrets as regrets
from tests.papers.test_tightness_learners import family_of


def exact_risk_regret(x, y, rate, lam):
    """Descent on |f(x) − y| + ½λf² in NumPy float64, and its regret to 1e-9."""
    w, total = 0.0, 0.0
    for t in range(len(x)):
        total += abs(w * x[t] - y[t]) + lam / 2 * w**2
        step = rate / (t + 1) ** 0.5
        w = (1 - step * lam) * w - step * np.sign(w * x[t] - y[t]) * x[t]
    at = np.linspace(-1 / lam, 1 / lam, 200_001)
    risks = np.abs(at[:, None] * x - y).sum(axis=1) + len(x) * lam / 2 * at**2
    return total - risks.min(), at[np.argmin(risks)]


def regret_of_risk(stream, rounds):
    keeping, noise = family_of("norma"), nj.noise.Gaussian(0.0)
    run = keeping.build(0.5, 0.3, None), stream, noise, jax.random.key(0)
    return keeping.regret(*run, radius=0.5, rounds=rounds)


@pytest.mark.slow
def test_the_regret_of_a_regularized_risk_is_that_of_numpy(rng):
    x, y = rng.uniform(-1, 1, 7).round(2), rng.uniform(-2, 2, 7).round(2)
    y += 3 * x  # the best weight is at the edge of the ball without the norm, and inside with it
    padded = nj.Stream(*(jnp.pad(jnp.asarray(a, jnp.float32), (0, 3)) for a in (x, y)))
    padded = padded._replace(x=padded.x[:, None])
    regret = regret_of_risk(padded, 7)
    expected, best = exact_risk_regret(x, y, 0.3, 2.0)
    np.testing.assert_allclose(regret, expected, rtol=1e-4)
    found = regrets.best_weight(regrets.ABSOLUTE, padded, 0.5, 7 * 2.0)
    np.testing.assert_allclose(found, best, atol=1e-5)


@pytest.mark.slow
def test_the_gradient_of_the_regret_of_a_risk_is_that_of_differences(x64, rng):
    stream = nj.Stream(jnp.asarray(rng.uniform(-1, 1, (6, 1))), jnp.asarray(rng.uniform(-2, 2, 6)))

    def regret(step):
        return regret_of_risk(nj.Stream(stream.x + step, stream.y - 2 * step), 6)

    slope = (regret(1e-6) - regret(-1e-6)) / 2e-6
    np.testing.assert_allclose(jax.grad(regret)(0.0), slope, rtol=1e-5)


@pytest.mark.parametrize("radius", [0.3, 5.0])
def test_the_best_weight_minimizes_the_loss_in_the_ball(rng, radius):
    x, y = rng.uniform(-1, 1, 9), rng.uniform(-2, 2, 9)
    stream = nj.Stream(jnp.asarray(x[:, None], jnp.float32), jnp.asarray(y, jnp.float32))
    losses = np.abs(np.linspace(-radius, radius, 100_001)[:, None] * x - y).sum(axis=1)
    best = float(regrets.best_weight(regrets.ABSOLUTE, stream, radius))
    np.testing.assert_allclose(np.abs(best * x - y).sum(), losses.min(), rtol=1e-5)


@pytest.mark.slow
def test_a_bound_on_mistakes_is_attained():
    """By the perceptron on orthogonal instances; a margin error at half the margin counts twice."""
    found = {name: (number, bound) for name, number, bound in regrets.counted(32)}
    np.testing.assert_allclose(found["perceptron, mistakes"], [32, 32], rtol=1e-6)
    np.testing.assert_allclose(found["norma, margin errors"], [32, 64], rtol=1e-6)
    number, bound = found["alma, mistakes"]
    assert number == 32 < bound < 2.2 * 32


@pytest.mark.slow
def test_numbers_of_rounds_without_a_count_have_no_row():
    assert regrets.counted(1) == regrets.counted(regrets.MOST_COUNTED + 1) == []
    assert regrets.counted(2)[1][1:] == (2.0, pytest.approx(4.0))
