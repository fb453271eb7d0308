"""NORMA against plain loops, against itself in other units, and against other libraries."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import SGDRegressor

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.base import Sample
from noisy_jax.engine import everything, weight_vector
from noisy_jax.learners import norma, perceptron
from tests.keys import key
from tests.learners import references

T, DIM, LENGTH_SCALE = 60, 2, 0.75**0.5
KERNEL, PLAIN = (
    nj.kernels.gaussian(length_scale=LENGTH_SCALE),
    references.gaussian_kernel(LENGTH_SCALE),
)
NU, SIGMA = 0.3, 0.6


def labelled(rng, rounds=T):
    x = rng.normal(size=(rounds, DIM))
    return x, np.where(x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=rounds) > 0, 1.0, -1.0)


def valued(rng, rounds=T):
    x = rng.normal(size=(rounds, DIM))
    return x, np.sin(2 * x[:, 0]) + 0.5 * rng.standard_t(3, size=rounds)


def inputs(x, y):
    x, y = jnp.asarray(x), jnp.asarray(y)
    return Sample(x[:, None], y), x, jax.random.split(jax.random.key(0), len(y))


def unrolled(learner, x, y):
    """(state, predictions) by `unroll`."""
    return jax.jit(learner.unroll)(learner.init(x.shape[1]), *inputs(x, y))


def scanned(learner, x, y):
    """(state, predictions, rule states before each round) by a scan over `step`."""

    def one_round(state, shown):
        sample, x, key = shown
        return learner.step(state, sample, key), (learner.predict(state, x), state.rule)

    state, output = jax.jit(functools.partial(jax.lax.scan, one_round))(
        learner.init(x.shape[1]), inputs(x, y)
    )
    return state, *output


# Each loss as it is given to `norma`, and (α_t, s_{t+1}) of a round as the corrected claims write
# them, from the rate e, the prediction p, the target y and the scale s.
CLASSES = {
    "soft margin": (
        losses.soft_margin(margin=0.4),
        lambda e, p, y, s: (e * y * (y * p <= 0.4), s),
    ),
    "logistic": (losses.logistic(), lambda e, p, y, s: (e * y / (1 + np.exp(y * p)), s)),
    "nu": (
        losses.nu_soft_margin(nu=NU),
        lambda e, p, y, s: (e * y * (y * p <= s), s + e * (NU - (y * p <= s))),
    ),
    "novelty": (
        losses.novelty(nu=NU),
        lambda e, p, y, s: (e, s - e * (1 - NU)) if p <= s else (0.0, s + e * NU),
    ),
}
VALUES = {
    "squared": (losses.squared(), lambda e, p, y, s: (2 * e * (y - p), s)),
    "tube": (
        losses.epsilon_insensitive(epsilon=0.2),
        lambda e, p, y, s: (e * np.sign(y - p) * (abs(y - p) > 0.2), s),
    ),
    "nu tube": (
        losses.nu_epsilon_insensitive(nu=NU, initial=0.5),
        lambda e, p, y, s: (
            (e * np.sign(y - p), s + (1 - NU) * e) if abs(y - p) > s else (0.0, s - NU * e)
        ),
    ),
    "huber": (
        losses.huber(width=SIGMA),
        lambda e, p, y, s: (e * np.sign(y - p) if abs(y - p) > SIGMA else e * (y - p) / SIGMA, s),
    ),
    "huber quantile": (
        losses.nu_huber(nu=NU),
        lambda e, p, y, s: (e * np.clip((y - p) / s, -1, 1), s + e * ((abs(y - p) > s) - NU)),
    ),
    "huber joint": (
        losses.nu_huber(nu=NU, tracker="joint"),
        lambda e, p, y, s: (
            e * np.clip((y - p) / s, -1, 1),
            s + e * ((0.5 if abs(y - p) > s else (y - p) ** 2 / (2 * s**2)) - NU),
        ),
    ),
}
FAR = {  # the rounds that ν counts; for the joint gradient, what takes their place
    "nu": lambda p, y, s: y * p <= s,
    "novelty": lambda p, y, s: p <= 0,  # predictions are f(x) − ρ
    "nu tube": lambda p, y, s: np.abs(y - p) > s,
    "huber quantile": lambda p, y, s: np.abs(y - p) > s,
    "huber joint": lambda p, y, s: np.minimum(1, ((y - p) / s) ** 2) / 2,
}


def kept(alpha, size):
    """Coefficients as a ring holds them."""
    slots = np.zeros(size)
    newest = np.arange(max(0, len(alpha) - size), len(alpha))
    slots[newest % size] = alpha[newest]
    return slots


@pytest.mark.claim("NORMA-Eq10-12", "NORMA-offset", "NORMA-Eq13-16,18", "NORMA-Eq19", "NORMA-Eq20")
@pytest.mark.claim("NORMA-Eq24", "NORMA-adaptive-σ")
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", [*CLASSES, *VALUES])
def test_constant_rate_and_small_ring_equal_the_loop(rng, name):
    loss, step = {**CLASSES, **VALUES}[name]
    x, y = (labelled if name in CLASSES else valued)(rng)
    offset, rate, decay, size = name != "novelty", 0.1, 0.04, 20
    with warnings.catch_warnings(action="ignore"):  # few support vectors
        learner = norma(
            KERNEL, loss, learning_rate=rate, regularization=decay / rate, buffer=size,
            offset=offset,
        )  # fmt: skip
    predictions, scales, alpha, b, scale = references.norma(
        PLAIN, lambda t, *values: step(rate, *values), lambda t, added: 1 - decay, x, y,
        oldest=lambda t: t - size, offset=offset, scale=getattr(loss, "initial", 0.0),
    )  # fmt: skip
    if name == "novelty":
        predictions = predictions - scales
    state, made, rules = scanned(learner, x, y)  # the test below unrolls
    np.testing.assert_allclose(made, predictions, atol=1e-12)
    np.testing.assert_allclose(state.weights[:size], kept(alpha, size), atol=1e-12)
    np.testing.assert_allclose(state.rule.offset, b, atol=1e-12)
    assert np.any(rules.offset != 0) == offset
    if name in FAR:
        np.testing.assert_allclose(rules.scale, scales, atol=1e-12)
        np.testing.assert_allclose(state.rule.scale, scale, atol=1e-12)
        share = np.mean(FAR[name](np.asarray(made), y, np.asarray(rules.scale)))
        change = float(state.rule.scale) - loss.initial
        np.testing.assert_allclose(abs(share - NU), abs(change) / (rate * T), atol=1e-12)
        assert change != 0
    else:
        assert state.rule.scale is None


@pytest.mark.claim("NORMA-Eq7-9")
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", [*CLASSES, *VALUES])
def test_schedule_and_decay_on_updates_equal_the_loop(rng, name):
    loss, step = {**CLASSES, **VALUES}[name]
    x, y = (labelled if name in CLASSES else valued)(rng)
    learner = norma(
        KERNEL, loss, learning_rate=lambda t: 0.5 / jnp.sqrt(t + 1), regularization=0.3,
        buffer=T + 7, decay="on_update",
    )  # fmt: skip
    predictions, scales, alpha, _, scale = references.norma(
        PLAIN, lambda t, *values: step(0.5 / np.sqrt(t + 1), *values),
        lambda t, added: 1 - 0.15 / np.sqrt(t + 1) * (added != 0), x, y,
        oldest=lambda t: 0, scale=getattr(loss, "initial", 0.0),
    )  # fmt: skip
    if name == "novelty":
        predictions = predictions - scales
    state, made = unrolled(learner, x, y)
    np.testing.assert_allclose(made, predictions, atol=1e-12)
    np.testing.assert_allclose(state.weights[:T], alpha, atol=1e-12)
    if name in FAR:
        np.testing.assert_allclose(state.rule.scale, scale, atol=1e-12)


@pytest.mark.claim("NORMA-Eq10-12", "NORMA-Fig1")
@pytest.mark.usefixtures("x64")
def test_the_recursion_equals_the_closed_form(rng):
    """f_t = Σ α_i β^(t − 1 − i) k(x_i, ·) over the τ newest, each α_i as it was born (Figure 1)."""
    x, y = labelled(rng)
    rate, regularization, size = 0.5, 0.2, 15
    learner = norma(
        KERNEL, losses.soft_margin(), learning_rate=rate, regularization=regularization, buffer=size
    )
    beta, births = 1 - rate * regularization, np.zeros(T)
    predictions = np.zeros(T)
    for t in range(T):
        i = np.arange(max(0, t - size), t)
        predictions[t] = births[i] * beta ** (t - 1 - i) @ PLAIN(x[i], x[t])
        births[t] = rate * y[t] * (y[t] * predictions[t] <= 1)
    np.testing.assert_allclose(unrolled(learner, x, y)[1], predictions, atol=1e-12)


@pytest.mark.claim("NORMA-Eq13-16,18")
@pytest.mark.usefixtures("x64")
def test_only_two_numbers_matter(rng):
    """f(η, λ, ρ) = η f(1, ηλ, ρ/η): one compiled sweep, which traces the hyper-parameters."""
    x, y = labelled(rng)

    @jax.jit
    @jax.vmap
    def predictions(rate, regularization, margin):
        learner = norma(
            KERNEL, losses.soft_margin(margin=margin), learning_rate=rate,
            regularization=regularization, buffer=30,
        )  # fmt: skip
        return learner.unroll(learner.init(DIM), *inputs(x, y))[1]

    first, unit, other = predictions(
        jnp.array([0.2, 1.0, 0.2]), jnp.array([0.5, 0.1, 0.5]), jnp.array([0.3, 1.5, 1.5])
    )
    np.testing.assert_allclose(first, 0.2 * unit, atol=1e-14)
    assert np.abs(other - 0.2 * unit).max() > 0.05


@pytest.mark.claim("NORMA-Eq13-16,18", "NORMA-Eq25-27")
def test_perceptron_is_norma_without_margin_and_decay(rng):
    x, y = labelled(rng)
    learner = norma(
        KERNEL, losses.soft_margin(margin=0.0), learning_rate=0.25, regularization=0.0, buffer=30
    )
    state, predictions = unrolled(perceptron(KERNEL, buffer=30), x, y)
    slow, quarter = unrolled(learner, x, y)
    np.testing.assert_array_equal(predictions * 0.25, quarter)
    np.testing.assert_array_equal(state.weights * 0.25, slow.weights)
    mistakes = np.asarray(y * predictions <= 0)
    assert np.any(mistakes[1:])
    np.testing.assert_array_equal(
        np.asarray(state.weights)[:30], kept(y * mistakes, 30).astype(np.float32)
    )


@pytest.mark.claim("NORMA-offset")
@pytest.mark.usefixtures("x64")
def test_perceptron_makes_the_mistakes_of_river():
    from river.linear_model import Perceptron

    x, y = load_breast_cancer(return_X_y=True)
    x, signs = (x - x.mean(axis=0)) / x.std(axis=0), np.where(y == 1, 1.0, -1.0)
    model, chances = Perceptron(), []
    for row, label in zip(x.tolist(), y == 1, strict=True):
        row = dict(enumerate(row))
        chances.append(model.predict_proba_one(row)[True])
        model.learn_one(row, label)
    learner = perceptron(nj.kernels.linear(), buffer=lambda space: weight_vector(), offset=True)
    state, predictions = unrolled(learner, x, signs)
    mistakes = np.asarray(signs * predictions <= 0)
    np.testing.assert_array_equal(mistakes, signs * (np.array(chances) - 0.5) <= 0)
    assert 10 < mistakes.sum() < 100
    np.testing.assert_allclose(state.weights, list(model.weights.values()), atol=1e-9)
    np.testing.assert_allclose(state.rule.offset, model.intercept, atol=1e-9)


@pytest.mark.claim("NORMA-Fig2-repro")
@pytest.mark.statistical
def test_untuned_norma_beats_the_perceptron_on_a_drifting_target():
    """Over 2,000 rounds it makes under 0.85 of the mistakes, by 5 standard errors of 20 seeds."""
    kernel = nj.kernels.gaussian(length_scale=0.5)
    learners = (
        perceptron(kernel, buffer=2000),
        norma(
            kernel, losses.soft_margin(), learning_rate=1.0, regularization=0.03, buffer=200,
        ),
    )  # fmt: skip

    @jax.jit
    @jax.vmap
    def mistakes(stream_key):
        x, y = nj.streams.drifting(stream_key, 2000)
        return [
            jnp.sum(y * learner.unroll(learner.init(2), *inputs(x, y))[1] <= 0)
            for learner in learners
        ]

    theirs, ours = map(np.asarray, mistakes(jax.random.split(key(0), 20)))
    excess = ours - 0.85 * theirs
    assert excess.mean() < -5 * excess.std() / 20**0.5, ours / theirs
    assert theirs.mean() < 400


@pytest.mark.claim("NORMA-Eq21")
@pytest.mark.usefixtures("x64")
def test_squared_loss_on_the_linear_kernel_is_sgd_of_scikit_learn():
    x, y = load_diabetes(return_X_y=True)
    x, y = (x / x.std(axis=0))[:150], (y[:150] - y.mean()) / y.std()
    eta, alpha = 0.05, 0.3  # of ½(y − p)² + (α/2)‖w‖²
    peer = SGDRegressor(
        alpha=alpha, learning_rate="constant", eta0=eta, shuffle=False, max_iter=1, tol=None
    )
    theirs = []
    for row, target in zip(x, y, strict=True):
        theirs.append(peer.predict(row[None])[0] if theirs else 0.0)
        peer.partial_fit(row[None], [target])
    learner = norma(
        nj.kernels.linear(), losses.squared(), learning_rate=eta / 2, regularization=2 * alpha,
        buffer=150, offset=True,
    )  # fmt: skip
    state, ours = unrolled(learner, x, y)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    np.testing.assert_allclose(state.rule.offset, peer.intercept_[0], atol=1e-12)


def alarms(sign, initial, nu=0.1, rate=0.05, rounds=600):
    """Shares of alarms under ρ ← ρ + sign · η(ν − σ), with decay 1 − η as in Eq. 20."""
    x = np.random.default_rng(1).normal(size=(rounds, DIM))

    def step(t, f, _, rho):
        alarm = f < rho
        return rate * alarm, rho + sign * rate * (nu - alarm)

    predictions, scales, *_ = references.norma(
        PLAIN, step, lambda t, added: 1 - rate, x, x[:, 0], oldest=lambda t: t - 100, scale=initial
    )
    return np.mean(predictions < scales)


@pytest.mark.claim("NORMA-Eq20")
def test_the_printed_sign_of_novelty_sounds_no_alarm_or_every_one():
    assert alarms(-1, 0.0) == 0
    assert alarms(-1, 0.1) == 1
    np.testing.assert_allclose([alarms(1, 0.0), alarms(1, 0.1)], 0.1, atol=0.02)


@pytest.mark.claim("NORMA-Eq19", "NORMA-Eq22")
def test_printed_updates_of_other_scales_miss_their_share(rng):
    rate, rounds = 0.1, 1000

    def share(data, step, far):
        x, y = data(rng, rounds)
        predictions, scales, *_ = references.norma(
            PLAIN, step, lambda t, added: 0.96, x, y, oldest=lambda t: t - 100
        )
        return np.mean(far(predictions, y, scales))

    def margin(sign):
        def step(t, p, y, s):
            error = y * p <= s
            return rate * y * error, s + sign * rate * (NU - error)

        return share(labelled, step, FAR["nu"])

    def tube(excess, rest):
        def step(t, p, y, s):
            far = abs(y - p) > s
            return rate * np.sign(y - p) * far, s + rate * (excess if far else -rest)

        return share(valued, step, FAR["nu tube"])

    assert margin(-1) > 0.9  # Eq. 19 as printed
    np.testing.assert_allclose(tube(NU, 1 - NU), 1 - NU, atol=0.02)  # the text below Eq. 22
    np.testing.assert_allclose([margin(1), tube(1 - NU, NU)], NU, atol=0.02)


@pytest.mark.claim("NORMA-adaptive-σ")
@pytest.mark.usefixtures("x64")
def test_scales_are_clamped(rng):
    x = rng.normal(size=(T, DIM))
    for loss, least in (
        (losses.nu_epsilon_insensitive(nu=0.9), 0.0),
        (losses.nu_huber(nu=0.45, tracker="joint", smallest=0.05), 0.05),
    ):
        learner = norma(KERNEL, loss, learning_rate=0.1, regularization=0.1, buffer=T)
        _, _, rules = scanned(learner, x, np.zeros(T))  # nothing to learn: scales fall
        assert np.min(rules.scale) == least


@pytest.mark.claim("NORMA-Eq17")
@pytest.mark.usefixtures("x64")
def test_everything_kept_gives_a_norm_below_the_bound(rng):
    """‖f‖ ≤ X/λ for the soft margin, and ‖f‖² is αᵀKα."""
    x, y = labelled(rng)
    learner = norma(
        KERNEL, losses.soft_margin(), learning_rate=0.5, regularization=0.5,
        buffer=functools.partial(everything, horizon=T),
    )  # fmt: skip
    state, _ = unrolled(learner, x, y)
    alpha = np.asarray(state.weights)[:T]
    squared_norm = alpha @ PLAIN(x[:, None], x[None]) @ alpha
    np.testing.assert_allclose(state.squared_norm, squared_norm, rtol=1e-12)
    assert np.abs(alpha).sum() <= 1 / 0.5
    assert np.sqrt(squared_norm) <= 1 / 0.5


@pytest.mark.usefixtures("x64")
def test_norma_in_a_world_without_decay_is_parallel_worlds(rng):
    """The squared loss at two copies; and with one copy, another learner."""
    x, y = valued(rng)
    noise = nj.noise.Gaussian(0.3)
    world = nj.worlds.gaussian(dim=DIM, length_scale=LENGTH_SCALE, noise=noise)
    samples, x, keys = inputs(x, y)
    copies = noise.sample(jax.random.key(1), jnp.stack([x, x], axis=1))
    samples = samples._replace(x=copies)

    def predictions(learner):
        return jax.jit(learner.unroll)(learner.init(DIM), samples, x, keys)[1]

    options = {"learning_rate": 0.1, "regularization": 0.0, "buffer": T}
    peer = nj.learners.parallel_worlds(world, horizon=T, radius=1e6, learning_rate=0.1)
    ours, theirs = predictions(norma(world, losses.squared(), **options)), predictions(peer)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    one_copy = predictions(norma(world, losses.squared(), copies=1, **options))
    assert np.abs(one_copy - theirs).max() > 0.05


@pytest.mark.usefixtures("x64")
def test_in_a_world_a_small_ring_with_decay_equals_the_loop(rng):
    """Noisy inputs and drift together: f is read at the second copy, and terms hold the first."""
    (x, y), variance, size = labelled(rng), 0.2, 15
    world = nj.worlds.gaussian(
        dim=DIM, length_scale=LENGTH_SCALE, noise=nj.noise.Gaussian(variance)
    )
    surrogate = references.gaussian_surrogate(LENGTH_SCALE, variance * np.eye(DIM))
    copies = x[:, None] + variance**0.5 * rng.normal(size=(T, 2, DIM))
    alpha, predictions = np.zeros(T), np.zeros(T)
    for t in range(T):
        kept = slice(max(t - size, 0), t)
        predictions[t] = alpha[kept] @ PLAIN(copies[kept, 0], x[t])
        value = alpha[kept] @ surrogate(copies[kept, 0], copies[t, 1])
        alpha *= 0.94
        alpha[t] = 0.3 * y[t] * (y[t] * value <= 1)
    learner = norma(world, losses.soft_margin(), learning_rate=0.3, regularization=0.2, buffer=size)
    samples, x, keys = inputs(x, y)
    samples = samples._replace(x=jnp.asarray(copies))
    made = jax.jit(learner.unroll)(learner.init(DIM), samples, x, keys)[1]
    np.testing.assert_allclose(made, predictions, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_a_second_copy_makes_the_step_right_on_average():
    """After one fixed round, the mean step over all pairs of ±n is the clean one; of one, not."""
    linear = nj.kernels.linear()  # its own surrogate under any noise
    first, second, y = jnp.array([[1.0]]), 1.5, -1.0

    @functools.partial(jax.jit, static_argnums=0)
    def after(copies, second_round):
        learner = norma(
            linear, losses.squared(), learning_rate=0.1, regularization=0.1, buffer=4, copies=copies
        )
        state = learner.init(1)
        for x, target in ((jnp.broadcast_to(first, (2, 1)), 1.0), (second_round[:, None], y)):
            state = learner.step(state, Sample(x, jnp.asarray(target)), jax.random.key(0))
        return learner.predict(state, jnp.ones(1))

    signs = jnp.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) * 0.5
    clean = after(1, jnp.full(2, second))
    two, one = (jnp.mean(jax.vmap(lambda n, v=v: after(v, second + n))(signs)) for v in (2, 1))
    np.testing.assert_allclose(two, clean, atol=1e-12)
    assert abs(one - clean) > 0.005


def test_features_of_clean_data_need_one_copy(rng):
    x, y = labelled(rng, rounds=200)
    x = x.astype(np.float32)
    features = nj.worlds.fourier_gaussian(
        jax.random.key(0), 512, dim=DIM, length_scale=LENGTH_SCALE, noise=nj.noise.Gaussian(0.0)
    )
    options = {"learning_rate": 0.3, "regularization": 0.1}
    loss = losses.logistic()
    _, ours = unrolled(norma(features, loss, copies=1, **options), x, y)
    _, exact = unrolled(norma(KERNEL, loss, buffer=200, **options), x, y)
    assert np.std(exact) > 0.2
    np.testing.assert_allclose(ours, exact, atol=0.1)


def test_labels_are_checked(rng):
    x, y = labelled(rng)
    learner = norma(
        KERNEL, losses.soft_margin(), learning_rate=0.1, regularization=0.1, buffer=T, block=16
    )
    state, key = learner.init(DIM), jax.random.key(0)
    sample = Sample(jnp.asarray(x[:1]), jnp.asarray(0.0))
    with pytest.raises(ValueError, match=r"y must be labels −1 and \+1, got 0; 2y − 1 turns"):
        learner.step(state, sample, key)
    with pytest.raises(ValueError, match=r"y must be labels −1 and \+1, got 3$"):
        learner.step(state, sample._replace(y=jnp.asarray(3.0)), key)
    y[20] = 0.0
    _, predictions = unrolled(learner, x, y)
    np.testing.assert_array_equal(np.isfinite(predictions), np.arange(T) <= 20)
    unlabelled = norma(
        KERNEL, losses.novelty(nu=0.5), learning_rate=0.1, regularization=0.1, buffer=T, block=16
    )
    assert np.all(np.isfinite(unrolled(unlabelled, x, y)[1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 10.0}, r"rate must be below 1/regularization = 10\.0, got 10\.0"),
        ({"learning_rate": lambda t: 11.0 / (t + 1)}, r"below 1/regularization = 10\.0, got 11\.0"),
        ({"learning_rate": lambda t: t**-0.5}, "at round 0 must be finite .* counted from 0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": np.ones(2)}, r"learning_rate must be one number, got shape \[2\]"),
        ({"regularization": np.ones(2)}, "regularization must be one number"),
        ({"regularization": -1.0}, "regularization must be finite and >= 0"),
        ({"buffer": 0}, "buffer must be a whole number of at least 1, got 0"),
        ({"buffer": None}, "buffer must be a whole number of at least 1, got None"),
        ({"buffer": weight_vector()}, r"buffer must be .* got Memory: .* \(or lambda space: "),
        ({"loss": losses.squared}, "loss must be one such as losses.soft"),
        (
            {"loss": losses.novelty(nu=0.9), "offset": True},
            "offset must be False with the novelty",
        ),
        ({"kernel": lambda x, z: x @ z.T}, "kernel must be a Kernel, a World or a FourierWorld"),
        ({"decay": "never"}, "decay must be 'always' or 'on_update', got 'never'"),
        ({"copies": 3}, "copies must be 1 or 2, got 3"),
    ],
)
def test_rejects_bad_arguments(options, message):
    valid = {
        "kernel": KERNEL, "loss": losses.soft_margin(), "learning_rate": 0.1,
        "regularization": 0.1, "buffer": 10,
    }  # fmt: skip
    norma(**valid)
    with pytest.raises(ValueError, match=message):
        norma(**{**valid, **options})


def test_features_reject_a_buffer():
    features = nj.worlds.fourier_gaussian(
        jax.random.key(0), 8, dim=DIM, length_scale=LENGTH_SCALE, noise=nj.noise.Gaussian(0.0)
    )
    with pytest.raises(ValueError, match="buffer must be None with random features"):
        perceptron(features, buffer=10)


@pytest.mark.parametrize("regularization", [1.0, 0.293])  # 0.293 · (1/0.293) > 1 in float32
def test_a_schedule_may_start_where_all_would_be_forgotten(rng, regularization):
    x, y = labelled(rng)
    learner = norma(
        KERNEL, losses.soft_margin(), learning_rate=lambda t: 1 / regularization / jnp.sqrt(t + 1),
        regularization=regularization, buffer=T,
    )  # fmt: skip
    assert np.all(np.isfinite(unrolled(learner, x, y)[1]))


def test_a_bad_traced_share_is_reported(rng):
    x, y = labelled(rng)

    @jax.jit
    @jax.vmap
    def predictions(nu):
        learner = norma(
            KERNEL, losses.nu_soft_margin(nu=nu), learning_rate=0.1, regularization=1.0, buffer=8
        )
        return learner.unroll(learner.init(DIM), *inputs(x, y))[1]

    sound, large, none = np.isfinite(predictions(jnp.array([0.9, 1.0, 0.0])))
    assert np.all(sound)
    assert not np.any(large[2:] | none[2:])


def test_a_bad_traced_rate_is_reported(rng):
    x, y = labelled(rng)

    @jax.jit
    @jax.vmap
    def predictions(rate):
        learner = norma(
            KERNEL, losses.soft_margin(), learning_rate=rate, regularization=1.0, buffer=8
        )
        return learner.unroll(learner.init(DIM), *inputs(x, y))[1]

    sound, large, negative = np.isfinite(predictions(jnp.array([0.9, 1.1, -0.1])))
    assert np.all(sound)
    assert not np.any(large[2:] | negative[2:])


def falling(t):
    """η_t of Figure 3."""
    return (t + 1.0) ** -0.5


@pytest.mark.claim("NORMA-Eq20", "NORMA-Fig3")
@pytest.mark.parametrize(
    ("rate", "buffer", "decay", "warns"),
    [
        (0.002, 5000, "always", True),
        (0.002, 5000, "on_update", False),
        (0.0004, 5000, "always", False),
        (falling, 5000, "always", True),
        (falling, functools.partial(everything, horizon=5000), "always", True),
        (falling, 10**7, "always", False),
        (falling, 5000, "on_update", False),
    ],
)
def test_warns_where_decay_leaves_few_support_vectors(rate, buffer, decay, warns):
    def build():
        return norma(
            KERNEL, losses.novelty(nu=0.01), learning_rate=rate, regularization=1.0, buffer=buffer,
            decay=decay,
        )  # fmt: skip

    if warns:
        with pytest.warns(UserWarning, match="nu = 0.01 is too small for a decay .* than 25"):
            build()
    else:
        build()


@pytest.mark.parametrize(
    ("rate", "advice"),
    [(0.002, r"a nu of at least 0\.05, less decay, or"), (0.05, r"Use less decay")],
)
def test_the_warning_names_a_share_only_where_there_is_one(rate, advice):
    with pytest.warns(UserWarning, match=f"support vectors stay in memory.*{advice}"):
        norma(KERNEL, losses.novelty(nu=0.01), learning_rate=rate, regularization=1.0, buffer=9)


@pytest.mark.parametrize(
    ("kernel", "buffer", "message"),
    [
        (
            nj.kernels.gaussian(length_scale=0.5**0.5),
            lambda space: weight_vector(),
            "its own space",
        ),
        (nj.kernels.polynomial(degree=1), lambda space: weight_vector(), "its own space"),
        (nj.kernels.linear(), lambda space: 5, "must make a Memory from a space"),
    ],
)
def test_a_buffer_must_hold_the_functions_of_the_kernel(kernel, buffer, message):
    with pytest.raises(ValueError, match=message.replace("its own", "kernel's own")):
        perceptron(kernel, buffer=buffer)
