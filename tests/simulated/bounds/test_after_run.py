import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.engine.expansion import ExpansionState
from noisy_jax.engine.rules import AdaptiveState
from noisy_jax.learners.parameter_free import ParameterFreeState


def test_of_adaptive_rates():
    """√8 B √Σ‖g_t‖², which is √8 times the theorem's B√(GT) where all gradients have its size."""
    bound = nj.bounds.adaptive_rate(AdaptiveState(jnp.array(9.0)), radius=0.7)
    np.testing.assert_allclose(bound, 8**0.5 * 0.7 * 3, rtol=1e-6)
    theory = nj.bounds.Guarantee(jnp.array(0.1), jnp.array(2.0), jnp.array(1.0))
    before = nj.bounds.at_adaptive_rate(theory)
    np.testing.assert_allclose(before.regret, 2 * 8**0.5, rtol=1e-6)
    assert np.isnan(before.learning_rate)


@pytest.mark.parametrize(("norm", "squares"), [(0.0, 50.0), (60.0, 50.0), (2.0, 5000.0)])
def test_of_the_parameter_free_learner(norm, squares):
    """Where the first or the second of its two terms is the larger one, and at zero."""
    unit, first, hint, excess = 0.5, 2.0, 3.0, 0.7
    rule = ParameterFreeState(*map(jnp.float32, (unit, first, hint, squares, 1.0, excess)))
    state = ExpansionState((), jnp.zeros(2), jnp.zeros(()), jnp.int32(9), rule)

    def log(a):
        return np.log(max(a, 1.0))

    least = unit * first**2
    small = 2 * norm * np.sqrt(squares * log(2 * norm * squares / least))
    large = 4 * hint * norm * log(4 * hint * norm * np.sqrt(squares) / least)
    expected = unit * first + max(small, large) + excess + (hint - first) * norm
    found = nj.bounds.parameter_free(state, comparator_norm=norm)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
