"""The guarantee of the corrected leader, by hand."""

import jax.numpy as jnp
import numpy as np

import noisy_jax as nj


def test_of_the_corrected_leader():
    """λ‖w‖² + the penalty, once no round is pending."""
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    state = learner.init(2)._replace(regularization=jnp.array(0.5), penalty=jnp.array(0.25))
    for norm in (0.0, 1.0, 3.0):
        bound = nj.bounds.corrected_ftrl(state, comparator_norm=norm)
        np.testing.assert_allclose(bound, 0.5 * norm**2 + 0.25, rtol=1e-6)
