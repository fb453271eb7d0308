"""Guarantees of adaptive rates and mixtures after a run, by hand."""

import jax.numpy as jnp
import numpy as np

import noisy_jax as nj
from noisy_jax.engine import AdaptiveState


def test_of_adaptive_rates():
    """√8 B √Σ‖g_t‖², which is √8 times the theorem's B√(GT) where all gradients have its size."""
    state = AdaptiveState(jnp.array(9.0))
    np.testing.assert_allclose(
        nj.bounds.adaptive_rate(state, radius=0.7), 8**0.5 * 0.7 * 3, rtol=1e-6
    )
    theory = nj.bounds.Guarantee(jnp.array(0.1), jnp.array(2.0), jnp.array(1.0))
    before = nj.bounds.at_adaptive_rate(theory)
    np.testing.assert_allclose(before.regret, 2 * 8**0.5, rtol=1e-6)
    assert np.isnan(before.learning_rate)


def test_of_a_mixture():
    columns = [nj.learners.two_copies(radius=radius) for radius in (0.1, 1.0)]
    state = nj.wrappers.mixture(*columns).init(2)._replace(gap=jnp.array(1.5))
    assert nj.bounds.mixture(state) == 3
