"""Wrong arguments of learners and of their wrappers: concrete ones are one clear line.

Traced ones cannot raise: the run ends in NaN, which `rollout` reports.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.engine import everything, growing, ring, weight_vector
from noisy_jax.engine.memory import Space
from noisy_jax.engine.rules import squared_loss
from noisy_jax.simulated.bounds.guarantee import at_rate_factor
from tests.errors import raises, told

losses, learners, wrappers = nj.losses, nj.learners, nj.wrappers
KEY, KERNEL, LINEAR = jax.random.key(0), nj.kernels.gaussian(length_scale=1.0), nj.kernels.linear()
NOISE = nj.noise.Gaussian(0.1)
AFFINE, QUADRATIC = nj.kernels.polynomial(degree=1), nj.kernels.polynomial(degree=2)
WORLD = nj.worlds.gaussian(dim=3, length_scale=1.0, noise=NOISE)
FEATURES = nj.worlds.fourier(KEY, WORLD, 8)
MEMORY = weight_vector()(Space(KERNEL.gram, KERNEL.gram))
TWO, SQUARED = learners.two_copies, losses.squared()
DESCENT = partial(learners.gradient_descent, gradient=lambda w, sample: w, copies=1, radius=1.0)
EXPONENTIATED = partial(learners.exponentiated_gradient, radius=1.0)
CORRECTED, PERCEPTRON = partial(learners.known_covariance, radius=1.0), learners.perceptron
PARALLEL = partial(learners.parallel_worlds, world=WORLD, horizon=5, radius=1.0)
ALMA = partial(learners.alma, kernel=KERNEL, threshold=1.0, buffer=10)
NORMA = partial(learners.norma, kernel=KERNEL, loss=losses.hinge(), regularization=0.1, buffer=10)
RATED = partial(NORMA, learning_rate=0.1)
FREE = partial(
    learners.parameter_free, kernel=LINEAR, loss=losses.absolute(), buffer=weight_vector()
)
UNKNOWN = partial(learners.unknown_noise, kernel=KERNEL, loss=SQUARED, radius=1.0, horizon=9)
PARAMS = {"in": jnp.ones((3, 3)), "out": jnp.ones(3)}
MODEL = partial(
    learners.model, apply=lambda p, x: jnp.sin(x @ p["in"]) @ p["out"], params=PARAMS, loss=SQUARED
)
ESTIMATOR = nj.unbiased.kernel_gradient(QUADRATIC, SQUARED, radius=2.0, x_second_moment=0.45)
TRUNCATED = partial(learners.random_truncation, estimator=ESTIMATOR, horizon=5, learning_rate=0.1)
THREE_RATES = TWO(radius=1.0, learning_rate=lambda t: jnp.ones(3))
POLYAK = partial(TWO, radius=1.0, optimizer=optax.polyak_sgd())


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (TWO, {"radius": 0.0, "learning_rate": 0.1}, "radius must be positive and finite, got 0.0"),
        (TWO, {"radius": 1.0, "learning_rate": -0.1}, "learning_rate must be positive and finite"),
        (TWO, {"radius": 1e39, "learning_rate": 0.1}, "float32 cannot hold others; change units"),
        (TWO, {"radius": jnp.ones(2)}, r"radius must be one number, got shape"),
        (TWO, {"radius": 1.0, "learning_rate": jnp.ones(2)}, r"learning_rate must be one .* \[2\]"),
        (TWO, {"radius": 1.0, "learning_rate": optax.sgd(0.1)}, "optimizer: .* as optimizer"),
        (TWO, {"radius": 1.0, "optimizer": optax.adam}, r"as optax\.adam\(0\.1\), got function"),
        (TWO, {"radius": 1.0, "learning_rate": 0.1, "optimizer": optax.sgd(0.1)}, "not both"),
        (DESCENT, {"gradient": "squared"}, "gradient must be a function"),
        (DESCENT, {"gradient": TWO(radius=1.0)}, "gradient must be a function"),
        (DESCENT, {"labels": "yes"}, "labels must be True or False"),
        (learners.several_copies, {"copies": 1, "radius": 1.0}, "copies must be .* at least 2"),
        (EXPONENTIATED, {"copies": 0}, "copies must be a whole number of at least 1, got 0"),
        (CORRECTED, {"loss": SQUARED, "as_printed": True}, "as_printed must be False"),
        (PARALLEL, {"world": KERNEL}, "world must be a World, got Kernel"),
        (PARALLEL, {"radius": None, "learning_rate": 0.1}, "radius must be numbers, got None"),
        (learners.fourier_worlds, {"features": WORLD, "radius": 1.0}, "a FourierWorld, got World"),
        (ALMA, {"threshold": -1.0}, "threshold must be finite and >= 0"),
        (ALMA, {"scale": 0.0}, "scale must be positive"),
        (ALMA, {"threshold": np.ones(2)}, r"threshold must be one number, got shape \[2\]"),
        (ALMA, {"buffer": 0}, "buffer must be a whole number of at least 1"),
        (ALMA, {"kernel": KERNEL.gram}, "kernel must be a Kernel"),
        (RATED, {"learning_rate": 10.0}, r"rate must be below 1/regularization = 10\.0, got 10\.0"),
        (RATED, {"learning_rate": lambda t: 11.0 / (t + 1)}, r"below 1/reg.* 10\.0, got 11\.0"),
        (RATED, {"learning_rate": lambda t: t**-0.5}, "at round 0 must be finite .* from 0"),
        (RATED, {"learning_rate": 0.0}, "learning_rate must be positive"),
        (RATED, {"learning_rate": np.ones(2)}, r"rate must be one number, got shape \[2\]"),
        (RATED, {"regularization": -1.0}, "regularization must be finite and >= 0"),
        (RATED, {"buffer": 0}, "buffer must be a whole number of at least 1, got 0"),
        (RATED, {"buffer": MEMORY}, r"got Memory: .* \(or a memory such as engine\.ring"),
        (RATED, {"loss": losses.squared}, "loss must be one such as losses.hinge"),
        (RATED, {"loss": losses.novelty(nu=0.9), "offset": True}, "must be False with the novelty"),
        (RATED, {"kernel": KERNEL.gram}, "kernel must be a Kernel, a World or a FourierWorld"),
        (RATED, {"decay": "never"}, "decay must be 'always' or 'on_update', got 'never'"),
        (RATED, {"copies": 3}, "copies must be 1 or 2, got 3"),
        (NORMA, {"regularization": 0.0}, "regularization must be positive"),
        (NORMA, {"buffer": growing(20, start=5, excess=0.3)}, r"be given with engine\.growing"),
        (NORMA, {"loss": losses.poisson()}, "learning_rate must be given with .*no bound"),
        (NORMA, {"loss": losses.exponential()}, "learning_rate must be given with .*no bound"),
        (PERCEPTRON, {"kernel": FEATURES, "buffer": 10}, "must be None with random feat"),
        (PERCEPTRON, {"kernel": KERNEL, "buffer": weight_vector()}, "linear functions"),
        (PERCEPTRON, {"kernel": AFFINE, "buffer": weight_vector()}, "linear functions"),
        (PERCEPTRON, {"kernel": LINEAR, "buffer": lambda space: 5}, "make a Memory"),
        (FREE, {"loss": SQUARED}, r"bounded slope, .* got squared\(\)"),
        (FREE, {"loss": losses.exponential()}, r"bounded slope, .* got exponential\(\)"),
        (FREE, {"loss": losses.poisson()}, r"bounded slope, .* got poisson\(\)"),
        (FREE, {"loss": losses.novelty(nu=0.1)}, "loss must be a Loss, got AdaptiveLoss"),
        (FREE, {"buffer": ring(5)}, "keeps all of f, .* got one that forgets"),
        (FREE, {"buffer": 5}, "buffer must be a memory that keeps all of f, .* got 5"),
        (FREE, {"kernel": "linear"}, "kernel must be .* got str"),
        (FREE, {"unit": 0.0}, "unit must be positive and finite, got 0.0"),
        (FREE, {"copies": 3}, "copies must be 1 or 2, got 3"),
        (UNKNOWN, {"loss": losses.hinge()}, r"smooth derivative, got .* losses\.smoothed_hinge"),
        (UNKNOWN, {"loss": losses.logistic(), "estimate": nj.unbiased.pair}, "entire .*logistic"),
        (UNKNOWN, {"radius": -1.0}, "radius must be positive"),
        (UNKNOWN, {"loss": None}, "loss must be a Loss, got None"),
        (MODEL, {}, "give radius, for the adaptive rate in a ball, or optimizer, or both"),
        (MODEL, {"radius": -1.0}, "radius must be positive and finite"),
        (MODEL, {"optimizer": optax.adam}, r"such as optax\.adam\(0\.1\), got function"),
        (MODEL, {"radius": 1.0, "apply": None}, "apply must be a function, got None"),
        (MODEL, {"radius": 1.0, "loss": "squared"}, "loss must be a function, got 'squared'"),
        (MODEL, {"radius": 1.0, "loss": losses.hinge()}, "loss must have a smooth derivative"),
        (MODEL, {"radius": 1.0, "params": jnp.arange(2)}, "params must have at least one array"),
        (MODEL, {"radius": 1.0, "params": [jnp.ones(1), jnp.array([1.0, jnp.nan])]}, r"\[1\] is n"),
        (TRUNCATED, {"estimator": KERNEL}, "estimator must be a GradientEstimator"),
        (TRUNCATED, {"learning_rate": -0.1}, "learning_rate must be positive"),
        (TRUNCATED, {"horizon": 0}, "horizon must be a whole number"),
    ],
)
def test_of_learners(make, options, message):
    raises(message, make, **options)


FIVE = nj.streams.linear(KEY, 5, 3)
ONE, IN_WORLD = TWO(radius=1.0), PARALLEL()
MIXTURE = wrappers.mixture(ONE, learners.uncorrected(radius=1.0))
PER_ROUND = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(np.linspace(0.0, 0.2, 5)))
LAPLACES = nj.noise.PerRound(jax.vmap(nj.noise.Laplace)(np.ones(5)))
CLONED = wrappers.cloned(ONE, PER_ROUND)
OF_LAPLACE = ONE._replace(needs=nj.Needs(2, noise=nj.noise.Laplace(0.3)))


def cloned_of_laplace(variance):
    return wrappers.cloned(OF_LAPLACE, nj.noise.Gaussian(variance)).init(3).weights


def two_clones_in_a_world(variance, length_scale):
    return nj.worlds.gaussian(
        dim=3, length_scale=length_scale, noise=nj.noise.Gaussian(variance).cloned(2)
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: wrappers.averaged(TWO), "learner must .* got function"),
        (lambda: wrappers.averaged(RATED()), r"hold all of f.*engine\.everything"),
        (lambda: wrappers.paired([ONE]), "pass learners one by one, not as one"),
        (lambda: wrappers.assuming(None, 0.1), "learner must be a Learner, got None"),
        (lambda: wrappers.assuming(ONE, -0.1), r"cov must be finite and >= 0, got -0\.1: it hold"),
        (lambda: wrappers.noiseless(None, None), "learner must be a Learner, got None"),
        (lambda: wrappers.noiseless(ONE, ()), "stream must .* got tuple"),
        (lambda: wrappers.noiseless(CLONED, FIVE), "a learner that is right on clean data"),
        (lambda: wrappers.cloned(ONE, nj.noise.Laplace(1.0)), "Gaussian noise, got Laplace"),
        (lambda: wrappers.cloned(ONE, LAPLACES), "Gaussian noise, got Laplace"),
        (lambda: wrappers.cloned(IN_WORLD, NOISE), r"its world with noise\.cloned\(2\)"),
        (lambda: wrappers.cloned(IN_WORLD, PER_ROUND), "built for no noise in particular"),
        (lambda: cloned_of_laplace(0.1), "but the learner was built for Laplace"),
        (lambda: jax.jit(cloned_of_laplace)(0.1), "but the learner was built for Laplace"),
        (lambda: two_clones_in_a_world(0.25, 0.5**0.5), "length_scale must be above"),  # 2σ² = ℓ²
        (wrappers.mixture, "at least one learner, got none"),
        (lambda: wrappers.mixture(TWO), "learner must be a Learner, got function"),
        (lambda: wrappers.mixture(ONE, RATED()), "clean_estimates.* of learner 1"),
        (lambda: wrappers.mixture(ONE, IN_WORLD).init(2), "of dimension 3, got dimension 2"),
        (lambda: MIXTURE.step(MIXTURE.init(3), sample_of((1, 3)), KEY), "the sample has 1"),
        (lambda: wrappers.swept(ONE, jnp.ones(2)), "make must be a function value -> Learner"),
        (lambda: wrappers.swept(lambda r: r, jnp.ones(2)), "make returns must be a Learner"),
        (lambda: wrappers.swept(RATED, 0.1), r"axis K >= 1, got the shapes \[\[\]\]"),
        (lambda: wrappers.swept(RATED, ()), "one leading axis K >= 1"),
        (lambda: wrappers.swept(RATED, np.array(["1.0"])), "values must be an array of"),
    ],
)
def test_of_wrappers(build, message):
    raises(message, build)


STATE = TWO(radius=1.0, learning_rate=0.1).init(2)
THEORY = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
ADAPTIVE = nj.bounds.at_adaptive_rate(THEORY)
OTHER = "got GradientDescentState"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nj.bounds.adaptive_rate(STATE, radius=1.0), "must hold one adaptive rate"),
        (lambda: nj.bounds.mixture(STATE), f"MixtureState, {OTHER}"),
        (lambda: nj.bounds.parameter_free(STATE, comparator_norm=1.0), f"parameter_free, {OTHER}"),
        (lambda: nj.bounds.exponentiated_gradient(STATE, radius=1.0), r"learners\.exponentiated_g"),
        (lambda: nj.bounds.at_adaptive_rate(1.5), r"guarantee must bound the regret .* got 1\.5"),
        (lambda: at_rate_factor(ADAPTIVE, 2.0), "must be at the theorem's own rate"),
        (lambda: squared_loss(), "radius must be given for the adaptive rate"),
        (lambda: squared_loss(0.0), "learning_rate must be positive"),
    ],
)
def test_of_bounds_and_rules(call, message):
    raises(message, call)


def sample_of(shape, cov=None):
    return Sample(jnp.ones(shape), jnp.zeros(shape[:-2]), cov)


KNOWN = CORRECTED()
LAPLACIAN = nj.kernels.laplacian(length_scale=1.0)
NOT_ENTIRE = UNKNOWN(kernel=LAPLACIAN, estimate=nj.unbiased.pair)
KINKED = MODEL(apply=lambda p, x: jnp.tanh(x) @ p["out"], radius=1.0, estimate=nj.unbiased.pair)


def along(gradient):
    return DESCENT(gradient=gradient)


@pytest.mark.parametrize(
    ("learner", "sample", "message"),
    [
        (ONE, sample_of((1, 3)), "reads 2 independent noisy copies .* sample has 1"),
        (ONE, sample_of((5, 2, 3)), r"sample\.x must be \[V, d\], got \[5, 2, 3\]"),
        (KNOWN, sample_of((1, 2), 0.1), r"weights of shape \[3\] does not fit .* dimension 2"),
        (KNOWN, sample_of((1, 3), jnp.ones(2)), r"sample\.cov of shape \[2\] does not fit"),
        (KNOWN, sample_of((1, 3)), r"needs sample\.cov, .* covariance of this noise is not known"),
        (KNOWN, sample_of((1, 3), -5.0), r"sample\.cov must be finite and >= 0"),
        (KNOWN, sample_of((1, 3), np.array([1, 1, -5])), r"sample\.cov must be finite and >= 0"),
        (KNOWN, sample_of((1, 3), np.diag([1, 1, -5])), r"sample\.cov must be finite and >= 0"),
        (along(lambda w, s: 1.0), sample_of((1, 3)), r"gradient must be \[3\], .* got \[\]"),
        (along(lambda w, s: s.x), sample_of((1, 3)), r"gradient must be \[3\], .* got \[1, 3\]"),
        (along(lambda w, s: None), sample_of((1, 3)), r"gradient must be \[3\], .* got \[\]"),
        (TRUNCATED(), sample_of((3, 3)), "reads 4 independent noisy copies"),
        (NOT_ENTIRE, sample_of((2, 3)), "pair needs an entire function of x"),
        (KINKED, sample_of((2, 3)), "tanh"),
        (CLONED, sample_of((1, 3)), r"sample\.cov must be the covariance of the round"),
    ],
)
def test_of_a_step(learner, sample, message):
    raises(message, learner.step, learner.init(3), sample, KEY)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"x": np.ma.array(np.ones((2, 2)), mask=np.eye(2))}, "sample.x must have no mask"),
        ({"x": np.array([[3_000_000_000, 1]])}, "sample.x must be of floats, or of whole numbers"),
        ({"x": 1j * np.ones((2, 2))}, "sample.x must be an array of real numbers"),
        ({"y": np.ma.masked}, "sample.y must have no mask"),
        ({"y": 3_000_000_000}, "sample.y must be of floats, .* got 3000000000"),
        ({"cov": np.ones(3)}, r"sample.cov of shape \[3\] does not fit data of dimension 2"),
        ({"cov": np.ones((1, 2))}, r"sample.cov must be \[\], \[d\] or \[d, d\], got \[1, 2\]"),
        ({"cross_cov": [0.1, 0.0]}, "sample.cross_cov must be an array, got list"),
        ({"cross_cov": 0.1}, r"sample.cross_cov must be \[2\], one for each feature, got \[\]"),
    ],
)
def test_of_a_part_of_a_sample(part, message):
    sample = Sample(jnp.ones((2, 2)), jnp.ones(()), 0.1, jnp.zeros(2))._replace(**part)
    raises(message, ONE.step, ONE.init(2), sample, KEY)


@pytest.mark.parametrize(
    ("learner", "dim", "message"),
    [
        (THREE_RATES, 3, r"learning_rate must be \[\], .* got \[3\]"),
        (ONE, 2.5, "dim must be a whole number of at least 1, got 2.5"),
        (POLYAK(), 3, r"must work from gradients alone.* missing .* 'value"),
        (POLYAK(optimizer=optax.lbfgs()), 3, r"must work from gradients alone.* missing .* 'value"),
        (MODEL(apply=lambda p, x: x, radius=1.0), 3, r"apply's result must be \[\], .* got \[3\]"),
        (IN_WORLD, 2, "made for data of dimension 3, got dimension 2"),
    ],
)
def test_of_the_first_state(learner, dim, message):
    raises(message, learner.init, dim)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (KNOWN, r"weights of shape \[3\] does not fit .* dimension 2"),
        (FREE(), r"weights of shape \[3\] does not fit .* dimension 2"),
        (RATED(), "points of dimension 2 do not fit those of dimension 3"),
        (RATED(buffer=everything(9)), "points of dimension 2 do not fit those of dimension 3"),
        (IN_WORLD, "made for data of dimension 3"),
        (learners.fourier_worlds(FEATURES, radius=1.0), "made for data of dimension 3"),
    ],
)
def test_of_points_of_another_dimension(learner, message):
    raises(message, learner.predict, learner.init(3), jnp.ones((4, 2)))
    sample = Sample(jnp.ones((learner.needs.copies, 2)), jnp.ones(()), 0.1)
    raises(message, learner.step, learner.init(3), sample, KEY)


def test_lists_are_instances_and_no_samples():
    leader = learners.corrected_ftrl(nj.moments.known_covariance())
    for one in ONE, RATED(), leader, wrappers.paired(ONE, leader):
        assert np.all(one.predict(one.init(2), [0.0, 1.0]) == 0)
        with told("sample must be a Sample, got tuple"):
            one.step(one.init(2), (jnp.zeros((2, 2)), 0.0), KEY)
    sample = Sample([[1.0, 0.0]] * 2, 1.0, 0.1)  # type: ignore[arg-type]
    for one in ONE, RATED(), leader:
        with told("sample.x must be an array, got list"):
            one.step(one.init(2), sample, KEY)


def falling(rate):
    """A schedule that for 0.03 is negative from round 4 on."""
    return TWO(radius=1.0, learning_rate=lambda t: 0.1 - rate * t)


BLIND = partial(learners.uncorrected_kernel, KERNEL, horizon=9, radius=1.0)
RATES, DECAYS = {-0.1: 1, 0.0: 1, 0.03: -1, np.nan: 1}, {0.9: -1, 1.1: 1, -0.1: 1}
VARIANCES = {0.1: -1, -0.1: 1}
TRACED = {  # a function of one number, and in which round its runs end in NaN
    "rate": (lambda rate: TWO(radius=1.0, learning_rate=rate), RATES),
    "schedule": (falling, {-0.1: -1, 0.0: -1, 0.03: 5, np.nan: 1}),
    "rate in a kernel's space": (lambda rate: BLIND(learning_rate=rate), RATES),
    "rate of norma": (lambda rate: NORMA(regularization=1.0, learning_rate=rate), DECAYS),
    "share of norma": (lambda nu: RATED(loss=losses.nu_hinge(nu=nu)), {0.9: -1, 1.0: 1, 0.0: 1}),
    "margin of alma": (lambda theta: ALMA(threshold=theta), {0.0: -1, -1.0: 1}),
    "scale of alma": (lambda c: ALMA(scale=c), {1.0: -1, 0.0: 1}),
    "variance": (lambda v: wrappers.assuming(KNOWN, v), VARIANCES),
    "variances": (lambda v: wrappers.assuming(KNOWN, jnp.stack([0.1, 0.1, v])), VARIANCES),
    "matrix": (lambda v: wrappers.assuming(KNOWN, jnp.diag(jnp.stack([0.1, 0.1, v]))), VARIANCES),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACED)
def test_traced_ones_end_in_nan(name):
    make, ends = TRACED[name]
    x = jax.random.normal(KEY, (9, 3))
    stream = nj.Stream(x, jnp.where(x[:, 0] > 0, 1.0, -1.0))

    def diverged_at(value):
        return nj.rollout(make(value), stream, NOISE, KEY).diverged_at

    found = jax.jit(jax.vmap(diverged_at))(jnp.array([*ends]))
    np.testing.assert_array_equal(found, [*ends.values()])


def truncated(loss, kernel=QUADRATIC, **options):
    options |= {"radius": 0.1**0.5, "loss_order": 2, "max_bias": 9.0}
    return TRUNCATED(estimator=nj.unbiased.kernel_gradient(kernel, loss, **options))


def of_logistic():
    return truncated(losses.logistic(), x_second_moment=0.45)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["norma", "alma", "random_truncation"])
def test_labels_other_than_signs_raise_or_end_in_nan(name):
    makers = {"norma": RATED, "alma": ALMA, "random_truncation": of_logistic}
    learner = makers[name]()
    assert learner.needs.labels
    message = r"y must be labels −1 and \+1, got 0; 2y − 1"
    sample = sample_of((learner.needs.copies, 3))
    raises(message, learner.step, learner.init(3), sample, KEY)
    signs = jnp.array([1.0, -1.0, 1.0, -1.0, 1.0])
    ends = jax.jit(lambda y: nj.rollout(learner, FIVE._replace(y=y), NOISE, KEY).diverged_at)
    assert ends(signs) == -1
    assert ends(signs.at[2].set(0.0)) == 3


READERS = {
    "unknown_noise": lambda loss: UNKNOWN(loss=loss),
    "model": lambda loss: MODEL(loss=loss, radius=1.0),
    "random_truncation": partial(truncated, x_second_moment=0.45),
    "random_truncation in a world": partial(truncated, kernel=WORLD),
}


@pytest.mark.parametrize("name", READERS)
def test_noise_in_y_is_allowed_where_the_gradient_is_linear_in_y(name):
    assert READERS[name](SQUARED).needs.targets == "independent"
    biased = READERS[name](losses.smoothed_absolute())
    assert biased.needs.targets == "exact"
    every = [biased, wrappers.paired(biased)]
    if biased.needs.noise is None:
        every += [wrappers.cloned(biased, NOISE)]
    for learner in every:
        given = learner, FIVE, NOISE, KEY
        raises("must be None: this learner is biased", nj.rollout, *given, y_noise=NOISE)
