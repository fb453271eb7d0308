import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import unrolled
from noisy_jax.engine import everything, function_space
from noisy_jax.engine.expansion import ExpansionState
from noisy_jax.engine.rules import squared_loss
from tests.errors import raises

NOISE = nj.noise.Gaussian(0.1)
WORLD = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=NOISE)
FEATURES = nj.worlds.fourier(jax.random.key(0), WORLD, num_features=8)


@pytest.mark.parametrize(
    ("kernel", "buffer", "copies", "readable"),
    [
        (WORLD.kernel, 5, 1, False),
        (WORLD, 5, 2, True),
        (WORLD, everything(9), 2, True),
        (FEATURES, None, 2, True),
    ],
)
def test_a_space_says_what_its_learner_needs(kernel, buffer, copies, readable):
    space = function_space(kernel, buffer)
    learner = space.learner(squared_loss(0.1))
    assert learner.needs.copies == copies
    assert (learner.clean_estimates is not None) == readable
    assert learner.needs.noise is (NOISE if readable else None)
    assert (learner.weights is None) == (buffer == 5)
    single = space.learner(squared_loss(0.1), copies=1)
    assert (single.needs.copies, single.clean_estimates) == (1, None)
    raises("copies must be 1 or 2, got 3", space.learner, squared_loss(0.1), copies=3)


@pytest.mark.parametrize(("kernel", "size"), [(WORLD, 3), (WORLD, everything(9)), (FEATURES, None)])
def test_readings_of_one_round_are_those_of_unroll(rng, kernel, size):
    learner = function_space(kernel, size).learner(squared_loss(0.3))
    x = jnp.asarray(rng.normal(size=(6, 2, 2)), jnp.float32)
    samples, keys = nj.Sample(x, x[:, 0, 0]), jax.random.split(jax.random.key(0), 6)
    given = learner.init(2), samples, x[:, 0], keys
    blocks = jax.jit(learner.unroll)(*given)[2]
    rounds = jax.jit(unrolled(learner._replace(unroll=None)))(*given)[2]
    for one, other in zip(blocks, rounds, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
        assert one.shape == other.shape == (6,)


def test_columns_share_atoms_or_nothing():
    state = function_space(WORLD, 5).learner(squared_loss(0.1)).init(2)
    shared = ExpansionState(atoms=None, weights=0, squared_norm=0, round=None, rule=0)
    assert state.column_axes() == shared
    assert state._replace(round=jnp.zeros(3, int)).column_axes() == 0
