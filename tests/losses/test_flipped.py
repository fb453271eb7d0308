import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.base import Sample
from noisy_jax.simulated.rollouts import warn_of_other_flips
from tests.errors import raises
from tests.keys import key

MARGIN = {
    "logistic": losses.logistic(),
    "exponential": losses.exponential(),
    "smoothed_hinge": losses.smoothed_hinge(sharpness=1.7),
    "hinge": losses.hinge(margin=0.6),
    "perceptron": losses.hinge(margin=0.0),
    "nu_hinge": losses.nu_hinge(nu=0.2).at(0.5),
}
RATES = (0.35, 0.05)


def norma(loss, **options):
    """NORMA with a linear kernel, which holds its weights."""
    options |= {"regularization": 0.1, "buffer": nj.engine.weight_vector()}
    return nj.learners.norma(nj.kernels.linear(), loss, **options)


@pytest.mark.slow
@pytest.mark.claim("EXT-FlippedLabels")
@pytest.mark.parametrize("rate", [RATES, 0.2])
@pytest.mark.parametrize("name", MARGIN)
def test_the_mean_over_flips_is_the_loss_of_the_clean_label(name, rate, x64):
    loss, p = MARGIN[name], np.linspace(-2, 2, 9)
    corrected, chances = losses.flipped(loss, rate), np.broadcast_to(rate, 2)
    for label, chance in zip((1.0, -1.0), chances, strict=True):
        y = np.full_like(p, label)
        for corrects, plain, least in (
            (corrected, loss, 0.05),
            (corrected.gradient, loss.gradient, 0.04),
        ):
            mean, blind = ((1 - chance) * of(p, y) + chance * of(p, -y) for of in (corrects, plain))
            np.testing.assert_allclose(mean, plain(p, y), atol=1e-12)
            assert np.max(np.abs(blind - plain(p, y))) > least


@pytest.mark.claim("EXT-FlippedLabels")
def test_a_learned_margin_moves_as_with_clean_labels_on_average(x64):
    loss, x = losses.nu_hinge(nu=0.2, initial=0.5), jnp.array([[0.3, -0.4]])

    @partial(jax.jit, static_argnums=0)
    def after(loss):
        """ρ and f(x) after a label +1 and after a label −1, `[2, 2]`, from f(x) = ¼, ρ = −0.1."""

        def one(label):
            learner = norma(loss, learning_rate=1.0)
            state = learner.init(2)
            rule = state.rule._replace(scale=jnp.asarray(-0.1))
            state = state._replace(weights=x[0], rule=rule)
            state = learner.step(state, Sample(x, label), jax.random.key(0))
            return jnp.stack([state.rule.scale, learner.predict(state, x)[0]])

        return jax.vmap(one)(jnp.array([1.0, -1.0]))

    clean, chances = after(loss), np.array(RATES)[:, None]
    for of, corrects in ((losses.flipped(loss, RATES), True), (loss, False)):
        mean = (1 - chances) * after(of) + chances * after(of)[::-1]
        assert np.all((np.abs(mean - clean) < 1e-12) == corrects)


def test_rates_may_be_traced_and_wrong_ones_end_in_nan():
    loss, p = losses.hinge(), jnp.float32(0.3)

    def both(rate):
        label = nj.noise.Flip(rate).sample(jax.random.key(0), jnp.float32(1.0))
        return losses.flipped(loss, rate)(p, 1.0), label

    values, labels = jax.jit(jax.vmap(both))(jnp.array([0.0, 0.2, 0.5, -0.1]))
    np.testing.assert_allclose(values[:2], [0.7, (0.8 * 0.7 - 0.2 * 1.3) / 0.6], rtol=1e-6)
    assert np.all(np.isnan(values[2:]) & np.isnan(labels[2:]))
    assert np.all(np.abs(labels[:2]) == 1)


@pytest.mark.statistical
def test_flips_have_their_rates_and_are_noise_of_labels_only():
    flip = nj.noise.Flip(RATES)
    draws = jax.jit(jax.vmap(flip.sample, (0, None)))
    for label, rate in zip((1.0, -1.0), RATES, strict=True):
        noisy = draws(jax.random.split(key(), 4000), label)
        assert abs(np.mean(noisy != label) - rate) < 5 * np.sqrt(rate * (1 - rate) / 4000)
    stream = nj.Stream(jnp.ones((3, 1)), jnp.ones(3))
    learner, none = nj.learners.known_covariance(radius=1.0), nj.noise.Gaussian(0.0)
    raises("y_noise", nj.rollout, learner, stream, flip, jax.random.key(0))
    raises("no covariance: it is y_noise", nj.bounds.moments, stream, none, y_noise=flip)
    raises("no covariance: it is y_noise", nj.bounds.moments, stream, flip)
    raises("labels", flip.sample, jax.random.key(0), 0.3)


LINEAR = nj.moments.known_covariance()
ONES = nj.Stream(jnp.ones((4, 2)), jnp.ones(4))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:labels are flipped")
@pytest.mark.parametrize(
    ("learner", "fits"),
    [
        (nj.learners.two_copies(radius=1.0), False),
        (nj.learners.known_covariance(radius=1.0), False),
        (nj.learners.corrected_ftrl(LINEAR), False),
        (nj.learners.uncorrected_kernel(nj.kernels.linear(), horizon=4, radius=1.0), False),
        (nj.learners.known_covariance(radius=1.0, loss=losses.exponential()), True),
        (nj.learners.perceptron(nj.kernels.linear(), buffer=4), True),
        (nj.wrappers.noiseless(nj.learners.uncorrected(radius=1.0), ONES), True),
    ],
)
def test_learners_of_the_squared_loss_do_not_run_under_flips(learner, fits):
    """E ỹ = (1 − 2ρ)y: their gradients are biased, alone and beside a learner of labels."""

    def run(learner):
        rounds = ONES, nj.noise.Gaussian(0.0), key()
        flips = nj.noise.Flip(0.1)
        jax.eval_shape(lambda: nj.rollout(learner, *rounds, y_noise=flips).predictions)

    labels = nj.learners.perceptron(nj.kernels.linear(), buffer=4)
    own = nj.learners.gradient_descent(lambda w, sample: w, copies=1, radius=1.0)
    run(own)  # its gradient may be corrected
    for one in (learner, nj.wrappers.paired(labels, learner)):
        if fits:
            run(one)
        else:
            raises("under which this learner is biased: use .*flipped", run, one)


def kernel_learner(make, loss, **options):
    return make(nj.kernels.linear(), loss, buffer=nj.engine.weight_vector(), **options)


def gradient_in_a_model(loss):
    return nj.learners.model(lambda w, x: w @ x, jnp.zeros(2), loss, radius=1.0)


OF_LABELS = {
    "norma": lambda loss: norma(loss),
    "norma of an adaptive loss": lambda loss: norma(loss),
    "parameter_free": lambda loss: kernel_learner(nj.learners.parameter_free, loss),
    "unknown_noise": lambda loss: nj.learners.unknown_noise(
        nj.kernels.linear(), loss, radius=1.0, horizon=4
    ),
    "known_covariance": lambda loss: nj.learners.known_covariance(radius=0.1, loss=loss),
    "model": gradient_in_a_model,
}


def loss_of(name):
    adaptive = name == "norma of an adaptive loss"
    return losses.nu_hinge(nu=0.3) if adaptive else losses.smoothed_hinge(sharpness=0.5)


def messages(learner, y_noise):
    """What `rollout` warns of before its first round."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_other_flips(learner, y_noise)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("name", OF_LABELS)
def test_flips_that_the_loss_does_not_correct_for_are_a_warning(name):
    make, loss, flips = OF_LABELS[name], loss_of(name), nj.noise.Flip((0.3, 0.1))
    right, plain = make(losses.flipped(loss, (0.3, 0.1))), make(loss)
    changing = nj.noise.PerRound(jax.vmap(nj.noise.Flip)(jnp.array([0.1, 0.1, 0.2, 0.1])))
    assert messages(right, flips) == messages(plain, None) == []
    assert messages(nj.wrappers.paired(plain, right), flips) == []  # compared with the right one
    assert "does not correct for it: give losses.flipped(loss, rate)" in messages(plain, flips)[0]
    for y_noise in (nj.noise.Flip(0.2), changing):
        assert "are flipped, and learner corrects for other rates" in messages(right, y_noise)[0]
    assert "labels are not flipped" in messages(right, None)[0]


@pytest.mark.slow
def test_a_rollout_and_a_study_warn_of_flips_once():
    rounds = ONES, nj.noise.Gaussian(0.0), key()
    learner, options = norma(losses.hinge()), {"y_noise": nj.noise.Flip(0.1)}
    with pytest.warns(UserWarning, match="labels are flipped, and learner does") as caught:
        jax.eval_shape(lambda: nj.rollout(learner, *rounds, **options).predictions)
    assert [one.filename for one in caught] == [__file__]
    best = nj.comparators.linear_ball(radius=1.0)
    options |= {"num_seeds": 2, "horizons": [4], "comparator": best, "loss": losses.hinge()}
    with pytest.warns(UserWarning, match=r"and learners\['plain'\] does not") as caught:
        nj.study({"plain": learner}, *rounds, **options)
    assert [one.filename for one in caught] == [__file__]


def test_a_noiseless_learner_needs_the_loss_itself():
    flipped = norma(losses.flipped(losses.hinge(), 0.1))
    raises("give it the loss itself", nj.wrappers.noiseless, flipped, ONES)
    clean = nj.wrappers.noiseless(norma(losses.hinge()), ONES)
    assert messages(clean, nj.noise.Flip(0.1)) == []
    zeros = ONES._replace(y=jnp.zeros(4))
    raises(r"stream\.y must be labels", nj.wrappers.noiseless, norma(losses.hinge()), zeros)


def test_rates_of_flips_may_be_a_list():
    loss = losses.flipped(losses.logistic(), 0.1)
    rates = loss._replace(flips=[0.1, 0.1])
    assert rates.gradient(0.3, 1.0) == loss.gradient(0.3, 1.0)
    raises("^Loss.flips must be a tuple", loss._replace(flips=0.1).gradient, 0.3, 1.0)
