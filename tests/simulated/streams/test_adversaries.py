import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax.noise import observe
from noisy_jax.simulated.streams import one_copy_adversaries
from tests.errors import raises
from tests.keys import key

HORIZON = 4000


@pytest.fixture(scope="module")
def shown():
    """Two copies a round under each adversary, `[2, T, 2]`, for the clean rounds of each."""
    adversaries = jax.jit(lambda key: one_copy_adversaries(key, HORIZON))(key(0))

    @jax.jit
    def copies(adversary):
        show = jax.vmap(lambda k, x, y: observe(k, x, y, adversary.noise, copies=2).x[:, 0])
        return show(jax.random.split(key(1), HORIZON), *adversary.stream)

    return adversaries, np.stack([copies(adversary) for adversary in adversaries])


@pytest.mark.slow
@pytest.mark.claim("NK-Thm5")
@pytest.mark.statistical
def test_single_copies_have_the_same_distribution(shown):
    _, copies = shown
    five_errors = 2.5 / np.sqrt(HORIZON)
    for first in copies[..., 0]:
        np.testing.assert_array_equal(np.unique(first), [-1, 3])
        high = first == 3
        assert abs(high.mean() - 0.5) < five_errors
        # Independent of the round before: pairs of rounds are equally often alike and not.
        assert abs((high[1:] == high[:-1]).mean() - 0.5) < five_errors


@pytest.mark.slow
@pytest.mark.statistical
def test_two_copies_tell_them_apart(shown):
    _, (noiseless, noisy) = shown
    np.testing.assert_array_equal(noiseless[:, 0], noiseless[:, 1])
    assert abs((noisy[:, 0] == noisy[:, 1]).mean() - 0.5) < 2.5 / np.sqrt(HORIZON)


@pytest.mark.statistical
@pytest.mark.claim("NK-Thm5")
def test_clean_data_have_different_best_weights(shown):
    (noiseless, noisy), copies = shown
    np.testing.assert_array_equal(noiseless.stream.x[:, 0], copies[0, :, 0])
    for adversary, best in ((noiseless, 0.2), (noisy, 1.0)):
        assert adversary.stream.y.dtype == jnp.float32
        x, y = (np.asarray(part, float) for part in adversary.stream)
        np.testing.assert_array_equal(y, 1)
        assert (x[:, 0] @ y) / (x[:, 0] @ x[:, 0]) == pytest.approx(best, abs=0.02)
    assert (noiseless.noise.cov, noisy.noise.cov) == (0, 4)


def test_bad_input_raises():
    raises("key must be a key .* got 0", one_copy_adversaries, 0, 5)
    message = "horizon must be a whole number of at least 1, got 0"
    raises(message, one_copy_adversaries, jax.random.key(0), 0)
