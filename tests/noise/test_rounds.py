"""Noise of many rounds: drawn in blocks, it is that of each round by itself."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.noise import (
    Attributes,
    ContaminatedGaussian,
    Correlated,
    Flip,
    Gaussian,
    Laplace,
    Missing,
    Multiplicative,
    Poisson,
    gaussian,
    observe,
)
from noisy_jax.noise.gaussian import standard_normal
from noisy_jax.noise.observation import BLOCK, observe_block
from noisy_jax.noise.rounds import by_round
from noisy_jax.xla import random_bits
from tests.keys import key
from tests.noise.cases import DISTRIBUTIONS, per_round
from tests.rounds import observations, of_rounds

ROUNDS, DIM = BLOCK + 20, 3
STREAM = nj.Stream(jnp.ones((ROUNDS, DIM)), jnp.where(jnp.arange(ROUNDS) % 2, 1.0, -1.0))
VARIANCES = jnp.linspace(0.1, 0.9, ROUNDS)
FULL = jnp.eye(DIM) * 0.3 + 0.1


@nj.noise.register_distribution
class OneScale(nj.noise.Noise):
    """A custom distribution that draws one scale for all that it is given."""

    mean: float = 0.0
    cov = 1.0

    def centred(self, key, x):
        return x + jax.random.rademacher(key) * jnp.linspace(0.5, 1.5, DIM)


NOISES = {
    "gaussian": (Gaussian(FULL), None),
    "counts": (Poisson(), Flip(0.3)),
    "attributes": (Attributes(2), Correlated(jnp.ones(DIM), Laplace(0.3))),
    "changing": (per_round(Gaussian, VARIANCES), per_round(Laplace, VARIANCES)),
    "custom": (OneScale(), None),
}


@functools.partial(jax.jit, static_argnames=("length", "copies"))
def shown(key, noises, first, length, copies=2):
    """The rounds from first on, as one block; their keys as numbers."""
    rounds = first + jnp.arange(length)
    noises = [of_rounds(noise, rounds) for noise in noises]
    offset, clean = first % BLOCK, (STREAM.x[rounds], STREAM.y[rounds])
    samples, keys = observe_block(key, rounds, offset, *clean, *noises, copies=copies)
    return samples, jax.random.key_data(keys)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.slow
def test_a_round_is_the_same_in_any_block(name):
    """Alone, in a full block, in a rest, and in a block that starts anywhere."""
    noise, y_noise = NOISES[name]
    samples, keys = observations(STREAM, noise, key(), copies=2, y_noise=y_noise)
    alone = samples, jax.random.key_data(keys)
    for first, length in ((0, BLOCK), (BLOCK, 20), (7, BLOCK)):
        expected = jax.tree.map(lambda leaf: leaf[first : first + length], alone)  # noqa: B023
        found = shown(key(), NOISES[name], first, length)
        chex.assert_trees_all_close(expected, found, rtol=1e-5, atol=1e-6)


def test_rounds_copies_blocks_and_seeds_have_different_noise():
    rows = [(n, first) for n in range(2) for first in (0, BLOCK)]
    x = np.stack([shown(key(n), NOISES["gaussian"], first, 20)[0].x for n, first in rows])
    assert x.shape == (4, 20, 2, DIM)
    assert len(np.unique(x)) == x.size


OTHERS = [*DISTRIBUTIONS.values(), Missing(0.5), Multiplicative(0.1)]


@pytest.mark.parametrize("noises", [*NOISES.values(), *((other, None) for other in OTHERS)])
def test_no_key_is_used_twice(noises):
    noise, _ = by_round(of_rounds(noises[0], 0))
    own = ContaminatedGaussian(1.0, probability=0.5)

    @jax.jit
    def one_round(key):
        return observe(key, STREAM.x[0], STREAM.y[0], noise, copies=2, y_noise=own)

    with jax.debug_key_reuse(True):  # jit looks at keys while it traces
        jax.eval_shape(lambda key: shown(key, noises, 7, 20), key())
        jax.eval_shape(one_round, key())


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_of_features_and_targets_and_draws_of_learners_are_independent():
    """Also where a learner draws from its own key as the noise is drawn."""
    noise = per_round(Laplace, jnp.ones(ROUNDS))
    samples, keys = observations(STREAM, noise, key(), copies=1, y_noise=Laplace(1.0))
    own = jax.vmap(lambda k: jax.random.laplace(k, (DIM + 1,)))(keys)
    errors = samples.y - STREAM.y
    drawn = np.column_stack([samples.x[:, 0] - STREAM.x, errors, own])
    correlation = np.corrcoef(drawn, rowvar=False)
    assert np.abs(np.tril(correlation, -1)).max() < 5 / ROUNDS**0.5


@pytest.mark.slow
def test_noise_that_changes_from_a_constant_to_the_same_is_that_constant():
    constant = per_round(Gaussian, jnp.full(ROUNDS, 0.3))
    one, other = (shown(key(), (n, None), 0, 20)[0].x for n in (constant, Gaussian(0.3)))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), [("gaussian", "rbg"), ("changing", "threefry2x32")])
def test_learners_of_different_numbers_of_copies_share_copies(name, kind):
    first = jax.random.key(1, impl=kind), NOISES[name], 0, 20
    one, three = (shown(*first, copies=copies)[0] for copies in (1, 3))
    np.testing.assert_allclose(one.x[:, 0], three.x[:, 0], rtol=1e-6)
    np.testing.assert_allclose(one.y, three.y, rtol=1e-6)
    assert not np.allclose(three.x[:, 1], three.x[:, 2])


@pytest.mark.slow
def test_random_bits_are_those_of_jax():
    keys, size = jax.random.split(key(), 3), 1001
    found = jax.vmap(lambda key: random_bits(key, size))(keys)
    np.testing.assert_array_equal(found, jax.vmap(lambda key: jax.random.bits(key, (size,)))(keys))
    assert random_bits(jax.random.key(1, impl="rbg"), size).shape == (size,)


def test_standard_normal_draws_are_the_map_of_box_and_muller(monkeypatch):
    """The radius is exact in both tails of its 32 bits, and equal steps of the others go round."""
    count = 4096
    first = np.concatenate([2 ** np.arange(32), 2**32 - 2 ** np.arange(32), [0, 2**32 - 1]])
    second = (np.arange(count) + 0.5) * (2**32 / count)
    grid = [np.ravel(a) for a in np.meshgrid(first, second)]
    bits = jnp.asarray(np.concatenate(grid), jnp.uint32)
    monkeypatch.setattr(gaussian, "random_bits", lambda *_: bits)
    n = np.asarray(standard_normal(key(), bits.size, jnp.float32), np.float64)
    cosine, sine = n.reshape(2, count, len(first))
    radius = np.sqrt(-2 * np.log((first.astype(np.float32) + np.float32(1)) * 2.0**-32))
    np.testing.assert_allclose(np.hypot(cosine, sine), np.tile(radius, (count, 1)), rtol=1e-5)
    angles = np.sort(np.arctan2(sine[:, 0], cosine[:, 0]))
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / count, rtol=2e-2)
    np.testing.assert_allclose(cosine[:, 0].sum() / radius[0], 0, atol=1e-3)
