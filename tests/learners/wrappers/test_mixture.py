"""`swept` against single learners, and `mixture` against NumPy and its guarantee."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import estimated_errors, unrolled
from noisy_jax.learners.wrappers.mixture import after_round
from tests.keys import key
from tests.learners import references
from tests.rounds import observations

T, DIM = 128, 2
NOISE = nj.noise.Gaussian(0.1)
RATES = jnp.array([0.003, 0.03, 0.3])
PERCEPTRON = nj.learners.perceptron(nj.kernels.linear(), buffer=5)


def world(noise=NOISE, length_scale=1.0):
    return nj.worlds.gaussian(dim=DIM, length_scale=length_scale, noise=noise)


def in_world(rate, noise=NOISE):
    options = {"horizon": T, "radius": 2.0, "learning_rate": rate, "block": 16}
    return nj.learners.parallel_worlds(world(noise), **options)


def linear(rate):
    return nj.learners.two_copies(radius=2.0, learning_rate=rate)


def cloned(rate):
    return nj.wrappers.cloned(in_world(rate, noise=NOISE.cloned(2)), NOISE)


def of_length_scale(scale):
    """Features that depend on what is swept, so that nothing can be shared."""
    features = nj.worlds.fourier(jax.random.key(0), world(length_scale=scale), 8)
    return nj.learners.fourier_worlds(features, radius=2.0)


def leader(share):
    """The last 32 rounds are not a whole block: `finish` counts them."""
    moments = nj.moments.two_copies()
    return nj.learners.corrected_ftrl(moments, regularization=share, solve_every=48)


def stream():
    return nj.streams.linear(jax.random.key(0), T, DIM)


MAKERS = {
    "weights": (linear, RATES),
    "one copy": (cloned, RATES),
    "length scales": (of_length_scale, jnp.array([0.7, 1.0, 2.0])),
    "leaders": (leader, jnp.array([0.1, 1.0, 3.0])),
}
KINDS = ["normal", "heavy tails", "one is far worse", "no difference"]
KINDS += ["given up, then far better", "given up, then a little better"]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.slow
def test_columns_are_what_each_learner_gives_alone(name):
    make, values = MAKERS[name]

    def played(learner):
        run = nj.rollout(learner, stream(), NOISE, jax.random.key(1))
        return run, () if learner.finish is None else learner.finish(run.state).weights

    run, finished = jax.jit(lambda: played(nj.wrappers.swept(make, values)))()
    assert run.predictions.shape == (T, 3)
    single = jax.jit(lambda value: played(make(value)))
    for k, value in enumerate(values):
        alone, weights = single(value)
        np.testing.assert_allclose(run.predictions[:, k], alone.predictions, rtol=1e-4, atol=1e-5)
        if name == "leaders":
            np.testing.assert_allclose(finished[k], weights, rtol=1e-4)
            assert not np.allclose(finished[k], run.state.weights[k], rtol=1e-3)
    if name == "one copy":  # stored once for all
        assert run.state.atoms.shape == alone.state.atoms.shape
        assert run.state.weights.shape == (3, *alone.state.weights.shape)


@pytest.mark.claim("EXT-Mixture")
@pytest.mark.slow
def test_the_mixture_equals_a_numpy_loop_and_keeps_its_guarantee():
    """Some of the learners that are mixed have several columns, in two levels."""
    nested = nj.wrappers.swept(lambda r: nj.wrappers.paired(linear(r), linear(3 * r)), RATES)
    columns = nj.wrappers.paired(nested, cloned(0.1))
    learner = nj.wrappers.mixture(nested, cloned(0.1))
    key = jax.random.key(1)
    run = jax.jit(lambda key: nj.rollout(learner, stream(), NOISE, key))(key)
    samples, own = observations(stream(), NOISE, key, copies=learner.needs.copies)
    given = columns.init(DIM), samples, stream().x, own
    _, predictions, estimates = jax.jit(unrolled(columns))(*given)
    losses = np.asarray(estimated_errors(estimates, samples.y[:, None]), np.float64)
    shares, gap = references.adahedge(losses)
    expected = np.sum(shares[:-1] * predictions, axis=1)
    np.testing.assert_allclose(run.predictions, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(run.state.shares, shares[-1], atol=1e-3)
    assert nj.bounds.mixture(run.state) == pytest.approx(2 * gap, rel=1e-3)
    assert 0 < np.sum(shares[:-1] * losses) - losses.sum(axis=0).min() < 2 * gap


@functools.cache
def given_losses():
    """A mixture whose three estimated losses are the sample's x, and its run: one program."""
    given = nj.Learner(
        lambda dim: (), lambda state, sample, key: (), lambda state, x: x,
        needs=nj.Needs(1), clean_estimates=lambda state, sample, key: (jnp.zeros(3), sample.x[0]),
    )  # fmt: skip
    learner = nj.wrappers.mixture(given)
    return learner, jax.jit(unrolled(learner))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-Mixture")
@pytest.mark.parametrize("kind", KINDS)
def test_the_guarantee_holds_for_arbitrary_losses(x64, rng, kind):
    """On estimates that are drawn at random: 100 sequences; a mixture that plays 1/K breaks it."""
    ratios, uniform = [], []
    learner, run = given_losses()
    for _ in range(100 if "given up" not in kind else 1):
        losses = rng.normal(size=(T, 3))
        if kind == "heavy tails":
            losses = rng.standard_t(1.2, size=(T, 3))
        if kind == "one is far worse":
            losses += np.array([0.0, 0.1, 1e4])
        if kind == "no difference":
            losses = np.repeat(losses[:, :1], 3, axis=1)
        if "given up" in kind:  # the shares of the others have vanished, or nearly
            losses = np.repeat([[0.0, 1.0, 1.0]], T, axis=0)
            losses[:70] = 1.0 if "little" in kind else losses[:70]
            losses[-1, 1] = -40.0 if "little" in kind else -1000.0
        samples = nj.Sample(jnp.asarray(losses)[:, None], jnp.zeros(T))
        keys = jnp.zeros((T, 2), jnp.uint32)
        # It "predicts" the losses themselves, so that its predictions are its mean losses.
        state, played, _ = run(learner.init(3), samples, jnp.asarray(losses), keys)
        bound = float(nj.bounds.mixture(state))
        regret = float(played.sum()) - losses.sum(axis=0).min()
        assert regret <= bound + 1e-9
        ratios.append(regret / max(bound, 1e-9))
        uniform.append(losses.mean(axis=1).sum() - losses.sum(axis=0).min() > bound)
    if kind == "one is far worse":
        assert all(uniform)
    if kind == "given up, then a little better":
        assert bound < 10  # it is still given up
    elif kind != "no difference":
        assert max(ratios) > 0.05


def test_the_bound_holds_in_float32_where_a_share_has_vanished():
    state = nj.wrappers.mixture(nj.wrappers.paired(linear(0.1), linear(0.2))).init(DIM)
    played, total = 0.0, np.zeros(2)
    for losses in [(0.0, 1.0)] * 200 + [(0.0, -1000.0)]:
        played += float(np.dot(state.shares, losses))
        total += losses
        state = after_round(state, jnp.array(losses))
    assert 800 < played - total.min() < nj.bounds.mixture(state) < 1700


def test_side_by_side_all_must_allow_errors_of_x_and_y_to_covary():
    """A loss other than the squared one is biased then, whatever stands beside it."""
    other = nj.learners.known_covariance(radius=1.0, loss=nj.losses.poisson())
    assert nj.wrappers.paired(linear(0.1), linear(0.2)).needs.targets == "any"
    assert nj.wrappers.paired(linear(0.1), other).needs.targets != "any"


@pytest.mark.slow
@pytest.mark.statistical
def test_the_mixture_finds_the_best_radius_and_a_wrong_estimate_does_not():
    """With the copies' plain products in place of clean estimates it prefers to predict zero."""
    long, noise = nj.streams.linear(key(3), 4096, 3), nj.noise.Gaussian(0.5)
    radii = nj.wrappers.swept(lambda r: nj.learners.two_copies(radius=r), jnp.array([0.03, 1.0]))

    def biased(state, sample, key):
        value, _ = radii.clean_estimates(state, sample, key)
        return value, value**2 + 0.5 * jnp.sum(state.weights**2, axis=-1)

    def shares(learner):
        learner = nj.wrappers.mixture(learner)
        return jax.jit(lambda key: nj.rollout(learner, long, noise, key).state.shares)(key(4))

    assert shares(radii)[1] > 0.99
    assert shares(radii._replace(clean_estimates=biased, unroll=None))[1] < 0.01


def test_an_estimate_that_is_not_known_is_reported():
    """Estimates of `uncorrected` are NaN if the noise is unknown: no weights can be right then."""
    learner = nj.wrappers.mixture(linear(0.1), nj.learners.uncorrected(radius=1.0))
    sample = nj.Sample(jnp.ones((2, DIM)), jnp.ones(()))
    state = learner.step(learner.init(DIM), sample, jax.random.key(0))
    assert np.isnan(learner.predict(state, jnp.ones(DIM)))
