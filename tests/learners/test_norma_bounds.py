"""The learner itself against its guarantees, on streams whose labels drift."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.engine import weight_vector
from noisy_jax.simulated.bounds import drift, margin_errors, mistakes, regularized_risk
from tests.drifting import drifting_streams, hinge


def played(x, y, eta, lam, margin, power):
    """Predictions and ‖f_t‖² before each round, `[m]`, at η_t = η t^power."""
    learner = nj.learners.norma(
        nj.kernels.linear(),
        nj.losses.soft_margin(margin=margin),
        learning_rate=lambda t: eta * (t + 1.0) ** power,
        regularization=lam,
        buffer=weight_vector(),
    )

    def one_round(state, shown):
        now = learner.predict(state, shown[0]), state.squared_norm
        sample = Sample(shown[0][None], shown[1])
        return learner.step(state, sample, jax.random.key(0)), now

    return jax.lax.scan(one_round, learner.init(x.shape[1]), (x, y))[1]


@pytest.mark.statistical
@pytest.mark.slow
def test_theorems_2_to_4_hold_for_the_learner(x64, rng):
    x, y, g = drifting_streams(rng, dim=2, rounds=500, repeats=1)
    m, ones = x.shape[1], np.ones(len(x))
    over_streams = jax.jit(jax.vmap(played))

    def run(guarantee, margin, factor=1.0):
        """y f_t(x_t), `[S, m]`, at the theorem's rates, or at a multiple of η and 1/λ."""
        rates = guarantee.learning_rate * factor, guarantee.regularization / factor
        return y * over_streams(x, y, *rates, margin * ones, 0 * ones)[0]

    diagonal, moved = np.sum(x**2, axis=2).max(axis=1), jax.vmap(drift)(g)
    mu, rho = 1.0, 0.2
    given = {"horizon": m, "comparator_margin": mu, "comparator_loss": hinge(g, x, y, mu)}
    allowed = margin_errors(diagonal, moved, margin=rho, **given)
    ratios = [np.sum(run(allowed, rho) <= rho, axis=1) / allowed.mistakes]
    slow = np.sum(run(allowed, rho, factor=1e-3) <= rho, axis=1)
    assert np.any(slow > allowed.mistakes)  # not whatever the rates
    allowed = mistakes(diagonal, moved, **given)
    ratios += [
        np.sum(run(allowed, margin) <= 0, axis=1) / allowed.mistakes
        for margin in (0.0, allowed.margin)
    ]
    for ratio in ratios:
        assert 0.1 < np.max(ratio) <= 1

    # Theorem 4, against the minimiser of the first stream's risk, at the best rate.
    lam, rate = 0.3, 0.5**0.5 / 0.3
    bound = regularized_risk(diagonal[0], horizon=m, slope=1.0, regularization=lam)
    np.testing.assert_allclose(bound.learning_rate, rate)
    scores, norms = over_streams(x, y, rate * ones, lam * ones, ones, -ones / 2)
    risks = np.maximum(1 - y * scores, 0) + lam / 2 * norms
    loss = nj.losses.soft_margin()
    best = nj.comparators.regularized(jnp.asarray(x[0] @ x[0].T), jnp.asarray(y[0]), loss, lam)
    assert best.converged
    excess = risks[0].sum() - m * best.risk
    assert 0.01 * bound.regret < excess <= bound.regret
