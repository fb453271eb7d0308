import jax
import pytest

import noisy_jax as nj
from noisy_jax.engine import everything, function_space
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
