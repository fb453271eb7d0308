"""Exponentiated gradient against a NumPy loop, its guarantee, and why it needs the correction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from tests.keys import key
from tests.learners import references


def loop(gradients, radius):
    """AdaHedge over the corners ±B e_i of the ball: weights before each round, and 2BΔ."""
    shares, gap = references.adahedge(np.append(gradients, -gradients, axis=1))
    plus, minus = np.split(shares[:-1], 2, axis=1)
    return radius * (plus - minus), 2 * radius * gap


@pytest.mark.slow
@pytest.mark.claim("EXT-ExponentiatedGradient")
@pytest.mark.parametrize("kind", ["normal", "heavy tails", "growing", "against the weights"])
def test_equals_a_numpy_loop_and_its_bound_holds_for_all_vectors(x64, rng, kind):
    """Σ⟨g, w − u⟩ ≤ 2BΔ ≤ 2B√(ln(2d) Σ‖g‖∞²) + 4B max ‖g‖∞ at the best corner u."""
    radius, g = 1.5, rng.normal(size=(200, 4))
    if kind == "heavy tails":
        g = rng.standard_t(1.2, size=g.shape)
    if kind == "growing":
        g *= 1.1 ** np.arange(200)[:, None]

    def gradient(weights, sample):  # "against the weights" raises the loss of what leads
        return sample.x[0] + 3 * jnp.sign(weights) * (kind == "against the weights")

    learner = nj.learners.exponentiated_gradient(gradient, radius=radius)

    def one_round(state, row):
        sample = nj.Sample(row[None], jnp.zeros(()))
        used = state.weights, gradient(state.weights, sample)
        return learner.step(state, sample, None), used

    state, (weights, used) = jax.lax.scan(one_round, learner.init(4), jnp.asarray(g))
    used = np.asarray(used)
    expected, bound = loop(used, radius)
    np.testing.assert_allclose(weights, expected, atol=1e-9)
    assert nj.bounds.exponentiated_gradient(state, radius=radius) == pytest.approx(bound, rel=1e-9)
    sizes = np.abs(used).max(axis=1)
    regret = np.sum(used * weights) + radius * np.abs(used.sum(axis=0)).max()
    root = np.sqrt(np.log(8) * np.sum(sizes**2))
    assert 0 < regret <= bound <= 2 * radius * root + 4 * radius * sizes.max()


@pytest.mark.claim("EXT-ExponentiatedGradient")
@pytest.mark.statistical
@pytest.mark.slow
def test_without_the_correction_it_fails():
    """Two of 50 features predict y: regret grows like √T with the correction, else like T."""
    x = jax.random.rademacher(key(0), (8192, 50), float)
    stream = nj.Stream(x, x[:, 0] - 0.5 * x[:, 1])
    noise, make = nj.noise.Gaussian(0.5), nj.learners.exponentiated_gradient
    learners = {"one": make(radius=1.5), "two": make(radius=1.5, copies=2)}
    learners["none"] = nj.wrappers.assuming(make(radius=1.5), 0.0)
    best, ends = nj.comparators.l1_ball(radius=1.5), [512, 2048, 8192]
    result = nj.study(learners, stream, noise, key(1), num_seeds=8, horizons=ends, comparator=best)
    last = {row.learner: row for row in result.rows if row.horizon == 8192}
    for name in ("one", "two"):
        assert result.growth[name].high < 0.75
        assert last[name].high < last["none"].low / 2
    assert result.growth["none"].low > 0.8
