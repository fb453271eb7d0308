"""The guarantee of the parameter-free learner, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.engine import ExpansionState
from noisy_jax.learners import ParameterFreeState


@pytest.mark.parametrize(("norm", "squares"), [(0.0, 50.0), (60.0, 50.0), (2.0, 5000.0)])
def test_of_the_parameter_free_learner(norm, squares):
    """Where the first or the second of its two terms is the larger one, and at zero."""
    unit, first, hint, excess = 0.5, 2.0, 3.0, 0.7
    numbers = (unit, first, hint, squares, 1.0, excess)
    rule = ParameterFreeState(*map(jnp.float32, numbers))
    state = ExpansionState((), jnp.zeros(2), jnp.zeros(()), jnp.int32(9), rule)

    def log(a):
        return np.log(max(a, 1.0))

    least = unit * first**2
    small = 2 * norm * np.sqrt(squares * log(2 * norm * squares / least))
    large = 4 * hint * norm * log(4 * hint * norm * np.sqrt(squares) / least)
    expected = unit * first + max(small, large) + excess + (hint - first) * norm
    found = nj.bounds.parameter_free(state, comparator_norm=norm)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
