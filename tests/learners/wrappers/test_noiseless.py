"""Learners that are shown other than what the samples say: clean data, or a covariance."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from tests.errors import raises

T, DIM = 40, 3
STREAM = nj.streams.linear(jax.random.key(0), T, DIM, label_noise=0.2)
NOISE, NOTHING = nj.noise.Gaussian(0.5), nj.noise.Gaussian(0.0)
TUNING = {"radius": 0.8, "learning_rate": 0.3}
KERNEL = nj.kernels.gaussian(length_scale=0.5**0.5)
LEARNERS = {
    "uncorrected_kernel": nj.learners.uncorrected_kernel(KERNEL, horizon=T, **TUNING),
    "known_covariance": nj.learners.known_covariance(**TUNING),
    "two_copies": nj.learners.two_copies(**TUNING),
}


def predictions(*learners, distribution, y_noise=None):
    """`[L, T]`, in one rollout."""
    every = nj.wrappers.paired(*learners)
    return nj.rollout(every, STREAM, distribution, jax.random.key(0), y_noise=y_noise).predictions.T


@pytest.fixture(scope="module")
def expected():
    """Predictions without noise."""
    return dict(zip(LEARNERS, predictions(*LEARNERS.values(), distribution=NOTHING), strict=True))


@pytest.mark.slow
def test_noiseless_is_the_learner_on_clean_data_whatever_the_noise(expected):
    shown = [nj.wrappers.noiseless(learner, STREAM) for learner in LEARNERS.values()]
    by_step = [learner._replace(unroll=None) for learner in shown]
    every = predictions(*shown, *by_step, *LEARNERS.values(), distribution=NOISE, y_noise=NOISE)
    clean = np.array(list(expected.values()))
    np.testing.assert_allclose(every[:3], clean, atol=1e-6)
    np.testing.assert_allclose(every[3:6], clean, atol=1e-6)
    assert np.all(np.abs(every[6:] - clean).max(axis=1) > 0.01)


@pytest.mark.slow
def test_one_run_of_noiseless_serves_all_draws(expected):
    learner = nj.wrappers.noiseless(LEARNERS["uncorrected_kernel"], STREAM)

    def run(key):
        return nj.rollout(learner, STREAM, NOISE, key).predictions

    keys = jax.random.split(jax.random.key(1), 3)
    at_once = jax.vmap(run, out_axes=None)  # rejects what differs between keys
    np.testing.assert_allclose(at_once(keys), expected["uncorrected_kernel"], atol=1e-6)


@pytest.mark.slow
def test_noiseless_resumes_where_it_stopped_and_ends_with_its_stream(expected):
    learner, key = nj.wrappers.noiseless(LEARNERS["two_copies"], STREAM), jax.random.key(0)

    @jax.jit
    def run(stream, state, first_round):
        return nj.rollout(learner, stream, NOISE, key, state=state, first_round=first_round)

    halves = nj.Stream(STREAM.x[:20], STREAM.y[:20]), nj.Stream(STREAM.x[20:], STREAM.y[20:])
    first = run(halves[0], learner.init(DIM), 0)
    assert first.state.round == 20
    rest = run(halves[1], first.state, 20)
    joined = jnp.concatenate([first.predictions, rest.predictions])
    np.testing.assert_allclose(joined, expected["two_copies"], atol=1e-6)
    assert np.isnan(run(halves[1], rest.state, 40).predictions[1:]).all()

    twice = nj.Stream(jnp.tile(STREAM.x, (2, 1)), jnp.tile(STREAM.y, 2))
    raises("80 rounds, but the learner has room for 40", nj.rollout, learner, twice, NOISE, key)
    assert nj.wrappers.noiseless(LEARNERS["uncorrected_kernel"], twice).needs.horizon == T


def world(distribution):
    return nj.worlds.gaussian(dim=DIM, length_scale=1.5**0.5, noise=distribution)


def features(distribution):
    return nj.worlds.fourier(jax.random.key(0), world(distribution), 8)


def weighted(distribution):
    options = {"dim": DIM, "length_scale": 1.0, "noise": distribution}
    return nj.worlds.fourier_gaussian(jax.random.key(0), 8, **options)


def in_world(distribution):
    return nj.learners.parallel_worlds(world(distribution), horizon=T, **TUNING)


def norma(world):
    options = {"learning_rate": 0.1, "regularization": 0.1, "buffer": 8}
    return nj.learners.norma(world, nj.losses.squared(), **options)


def informed(distribution):
    return nj.wrappers.assuming(LEARNERS["known_covariance"], distribution.cov)


BUILT_FOR = {
    "parallel_worlds": in_world,
    "fourier_worlds": lambda noise: nj.learners.fourier_worlds(features(noise), **TUNING),
    "norma": lambda noise: norma(world(noise)),
    "perceptron_on_features": lambda noise: nj.learners.perceptron(weighted(noise)),
    "paired": lambda noise: nj.wrappers.paired(LEARNERS["two_copies"], in_world(noise)),
    "paired_with_none": lambda noise: nj.wrappers.paired(in_world(NOTHING), in_world(noise)),
    "averaged": lambda noise: nj.wrappers.averaged(in_world(noise)),
    "assuming": informed,
    "assuming_twice": lambda noise: nj.wrappers.assuming(informed(noise), 0.0),
}


@pytest.mark.parametrize("make", BUILT_FOR.values(), ids=BUILT_FOR)
def test_noiseless_rejects_a_learner_built_for_noise(make):
    message = r"got one built for Gaussian.*build it for noise\.Gaussian"
    raises(message, nj.wrappers.noiseless, make(NOISE), STREAM)
    learner, clean = make(NOTHING), STREAM
    if learner.needs.labels:
        clean = STREAM._replace(y=jnp.sign(STREAM.y))
    assert nj.wrappers.noiseless(learner, clean).needs.copies == learner.needs.copies


def test_clones_have_the_noise_that_features_and_pairs_were_built_for():
    for name in ("fourier_worlds", "paired"):
        assert nj.wrappers.cloned(BUILT_FOR[name](NOISE.cloned(2)), NOISE).needs.copies == 1
        with pytest.raises(ValueError, match=r"noise of covariance 1\.0, but .* built for Gauss"):
            nj.wrappers.cloned(BUILT_FOR[name](NOISE), NOISE)


@pytest.mark.slow
def test_a_learner_does_as_the_covariance_that_it_is_told():
    learner = LEARNERS["known_covariance"]
    covs = 0.5, np.full(DIM, 0.5), 0.5 * np.eye(DIM), 0.0, 0.25
    *truths, zero, quarter = (nj.wrappers.assuming(learner, cov) for cov in covs)
    blind = nj.learners.uncorrected(**TUNING)
    printed = nj.learners.known_covariance(as_printed=True, **TUNING)
    learners = learner, *truths, truths[1]._replace(unroll=None), zero, blind, quarter, printed
    every = predictions(*learners, distribution=NOISE)
    np.testing.assert_allclose(every[1:5], np.tile(every[0], (4, 1)), atol=1e-6)
    np.testing.assert_allclose(every[5], every[6], atol=1e-6)
    np.testing.assert_allclose(every[7], every[8], atol=1e-6)
    assert np.abs(every[0] - every[6]).max() > 0.01
    assert np.abs(every[6] - every[8]).max() > 0.01


@pytest.mark.slow
def test_assuming_serves_where_the_covariance_is_unknown_and_can_be_swept():
    learner = LEARNERS["known_covariance"]
    sample = Sample(STREAM.x[:1], STREAM.y[0], None)

    def stepped(variance):
        told = nj.wrappers.assuming(learner, variance)
        return told.step(told.init(DIM)._replace(weights=jnp.full(DIM, 0.1)), sample, None).weights

    zero, half = jax.vmap(stepped)(jnp.array([0.0, 0.5]))
    np.testing.assert_allclose(half - zero, 0.3 * 2 * 0.5 * np.full(DIM, 0.1), rtol=1e-4)


def test_assuming_takes_an_iterator_of_variances():
    told = nj.wrappers.assuming(LEARNERS["known_covariance"], iter([0.1, 0.2]))
    np.testing.assert_allclose(told.needs.noise.cov, [0.1, 0.2])


def test_assuming_raises_if_the_learner_ignores_the_covariance():
    ignoring = [LEARNERS["two_copies"], LEARNERS["uncorrected_kernel"], in_world(NOTHING)]
    for learner in (*ignoring, nj.wrappers.paired(*ignoring)):
        with pytest.raises(ValueError, match=r"assuming needs a learner that reads sample\.cov"):
            nj.wrappers.assuming(learner, 0.1).init(DIM)
    heeding = LEARNERS["known_covariance"]
    for cov in (0.1, np.full(DIM, 0.1), 0.1 * np.eye(DIM)):
        for learner in (heeding, nj.wrappers.averaged(heeding)):
            nj.wrappers.assuming(learner, cov).init(DIM)


WRAPPERS = {
    "noiseless": lambda learner: nj.wrappers.noiseless(learner, STREAM),
    "averaged": nj.wrappers.averaged,
    "assuming": lambda learner: nj.wrappers.assuming(learner, 0.5),
    "cloned": lambda learner: nj.wrappers.cloned(learner, NOISE),
    "paired": lambda learner: nj.wrappers.paired(learner, LEARNERS["known_covariance"]),
    "swept": lambda learner: nj.wrappers.swept(lambda share: learner, jnp.ones(2)),
    "mixture": lambda learner: nj.wrappers.mixture(learner, LEARNERS["known_covariance"]),
}


class Counted(NamedTuple):
    weights: jax.Array
    counted: jax.Array
    last: jax.Array


def counting():
    """A learner that counts its rounds by 16, and the last ones by `finish`."""

    def step(state, sample, key):
        last = state.last + 1
        full = last == 16
        weights = state.weights + jnp.max(jnp.asarray(sample.cov)) * sample.x[0]
        return Counted(weights, state.counted + 16 * full, jnp.where(full, 0, last))

    return nj.Learner(
        init=lambda dim: Counted(jnp.zeros(dim), jnp.int32(0), jnp.int32(0)),
        step=step,
        predict=lambda state, x: x @ state.weights,
        needs=nj.Needs(1),
        clean_estimates=lambda state, sample, key: (state.weights @ sample.x[0], jnp.float32(1.0)),
        finish=lambda state: state._replace(counted=state.counted + state.last),
        weights=lambda state: state.weights,
        with_weights=lambda state, weights: state._replace(weights=weights),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_keep_what_a_learner_can_do(name):
    """Also `finish`: after it the last rounds, too few for a block, are counted."""
    wrapped = WRAPPERS[name](counting())
    assert wrapped.finish is not None
    linear, readable = name != "mixture", name != "mixture"
    assert [wrapped.weights is not None, wrapped.with_weights is not None] == [linear, linear]
    assert (wrapped.clean_estimates is not None) == readable
    state = nj.rollout(wrapped, STREAM, NOISE, jax.random.key(0)).state
    counts = [counted(each) for each in (state, wrapped.finish(state))]
    np.testing.assert_array_equal(counts, [T - T % 16, T])
    if linear:
        kept = wrapped.with_weights(state, wrapped.weights(state))
        chex.assert_trees_all_equal(kept, state)
        zero = jax.tree.map(jnp.zeros_like, wrapped.weights(state))
        assert np.all(wrapped.predict(wrapped.with_weights(state, zero), STREAM.x[0]) == 0)


def counted(state):
    """Rounds that the learner inside has counted."""

    def is_counted(node):
        return isinstance(node, Counted)

    (found,) = filter(is_counted, jax.tree.leaves(state, is_leaf=is_counted))
    (count,) = {*np.ravel(found.counted).tolist()}
    return count


def test_the_learners_own_errors_are_not_hidden():
    """Both wrappers run the learner to see what depends on a value."""

    def gradient(weights, sample):
        raise ValueError("a mistake of the user's own")

    learner = nj.learners.gradient_descent(gradient, copies=1, radius=1.0)
    rates = jnp.array([0.1, 0.2])
    for wrapped in (
        nj.wrappers.assuming(learner, 0.5),
        nj.wrappers.swept(lambda rate: learner, rates),
    ):
        raises("a mistake of the user's own", wrapped.init, DIM)
