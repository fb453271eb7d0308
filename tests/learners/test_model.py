"""Any model as a learner: against NumPy, by quadrature, with modules, and through the library."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import noisy_jax as nj
from tests.errors import raises
from tests.quadrature import gauss_hermite
from tests.unbiased.cases import HIDDEN

KEY = jax.random.key(0)
SQUARED = nj.losses.squared()


def affine(params, x):
    return jnp.vdot(params["w"], x) + params["b"]


def network(params, x):
    return jnp.tanh(x @ params["in"]) @ params["out"]


def network_params():
    return {"in": jnp.asarray(HIDDEN, float), "out": jnp.array([0.5, -0.7, 0.4])}


def sines(params, x):
    return jnp.sin(x @ params["in"]) @ params["out"]


def rows(count, copies, dim=2, seed=0):
    """Samples with a leading axis, from NumPy."""
    rng = np.random.default_rng(seed)
    noisy = rng.normal(size=(count, 1, dim)) + 0.5 * rng.normal(size=(count, copies, dim))
    return nj.Sample(jnp.asarray(noisy), jnp.asarray(rng.normal(size=count)))


def after(learner, samples, dim=2):
    """The state after all samples, predictions and clean estimates."""
    keys = jax.random.split(KEY, len(samples.y))
    return jax.jit(learner.unroll)(learner.init(dim), samples, samples.x[:, 0], keys)


@pytest.mark.slow
@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize("radius", [0.3, 50.0])
def test_a_linear_model_is_two_copies_in_numpy(x64, radius):
    """w and b as one vector, at the adaptive rate in a ball around the start; both orders."""
    samples, start = rows(60, 2), {"w": jnp.array([0.4, -0.2]), "b": jnp.asarray(0.1)}
    learner = nj.learners.model(
        affine, start, SQUARED, estimate=nj.unbiased.replicates, radius=radius
    )
    state, predictions, _ = after(learner, samples)
    first = np.append(start["w"], start["b"])
    theta, squares, found, outside = first, 0.0, [], 0
    for copies, y in zip(np.asarray(samples.x), np.asarray(samples.y), strict=True):
        a, b = np.append(copies, np.ones((2, 1)), axis=1)
        found.append(theta @ a)
        gradient = (theta @ a - y) * b + (theta @ b - y) * a
        squares += gradient @ gradient
        theta = theta - np.sqrt(2) * radius / np.sqrt(squares) * gradient
        norm = np.linalg.norm(theta - first)
        if norm > radius:
            theta, outside = first + (theta - first) * radius / norm, outside + 1
    np.testing.assert_allclose(predictions, found, rtol=1e-10)
    np.testing.assert_allclose(np.append(state.params["w"], state.params["b"]), theta, rtol=1e-10)
    assert (outside > 10) == (radius < 1)


@pytest.mark.slow
def test_gradient_and_clean_estimates_are_exact_by_quadrature(x64):
    """Over Gaussian noise in a pair of copies: those of the clean input."""
    params, options = network_params(), {"estimate": nj.unbiased.pair, "optimizer": optax.sgd(1.0)}
    learner = nj.learners.model(sines, params, SQUARED, **options)
    x, y, cov = jnp.array([0.7, -0.4]), 0.3, np.array([[0.1, 0.04], [0.04, 0.2]])
    errors, weights = gauss_hermite(9, np.kron(np.eye(2), cov))

    @jax.jit
    @jax.vmap
    def one(copies):
        sample = nj.Sample(copies, jnp.asarray(y))
        state = learner.init(2)
        step = jax.tree.map(jnp.subtract, params, learner.step(state, sample, KEY).params)
        return step, learner.clean_estimates(state, sample, KEY)

    found = one(np.asarray(x) + errors.reshape(-1, 2, 2))
    mean = jax.tree.map(lambda leaf: np.tensordot(weights, leaf, axes=1), found)
    value = sines(params, x)
    slope = jax.grad(lambda params: (sines(params, x) - y) ** 2)(params)
    chex.assert_trees_all_close(mean, (slope, (value, value**2)), rtol=1e-5, atol=1e-6)
    assert np.abs(slope["out"]).max() > 0.1


@pytest.mark.slow
def test_an_estimate_without_its_noise_reads_the_covariance_of_the_round():
    params, samples = network_params(), rows(3, 1)
    learner = nj.learners.model(
        sines, params, SQUARED, estimate=nj.unbiased.gaussian, optimizer=optax.sgd(1.0)
    )
    assert learner.needs.noise is nj.noise.Gaussian
    sample = nj.Sample(samples.x[0], samples.y[0])
    raises(r"the estimate needs sample\.cov", learner.step, learner.init(2), sample, KEY)

    def loss(params, x, y):
        return (sines(params, x) - y) ** 2

    for cov in jnp.array([0.1, 0.2, 0.4]):
        step = learner.step(learner.init(2), sample._replace(cov=cov), KEY)
        slope = jax.grad(nj.unbiased.gaussian(loss, cov, 1))(params, sample.x, sample.y, key=KEY)
        moved = jax.tree.map(jnp.subtract, params, step.params)
        chex.assert_trees_all_close(moved, slope, rtol=1e-4, atol=1e-5)
    told = functools.partial(nj.unbiased.gaussian, noise=0.2)
    make = functools.partial(nj.learners.model, sines, params, SQUARED, radius=1.0)
    assert make(estimate=told).needs.noise.cov == 0.2
    pair = make(estimate=nj.unbiased.pair)
    with pytest.warns(UserWarning, match="built for other noise"):
        nj.rollout(pair, nj.streams.linear(KEY, 5, 2), nj.noise.Laplace(0.1), KEY)


BATCHES = optax.MultiSteps(optax.sgd(0.1), 3)


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "radius"), [(optax.adam(0.03), 0.05), (BATCHES, None)])
def test_an_optimizer_descends_as_in_a_loop_of_ones_own(optimizer, radius):
    """Batches of rounds are optax's multiple steps."""
    samples = rows(20, 4)
    params = start = network_params()
    learner = nj.learners.model(network, params, SQUARED, optimizer=optimizer, radius=radius)
    g = nj.unbiased.replicates(lambda params, x, y: (network(params, x) - y) ** 2, 1)
    state = optimizer.init(params)
    for copies, y in zip(samples.x, samples.y, strict=True):
        moves, state = optimizer.update(jax.grad(g)(params, copies, y), state)
        params = optax.apply_updates(params, moves)
        if radius:
            apart = jax.tree.map(jnp.subtract, params, start)
            apart = optax.projections.projection_l2_ball(apart, radius)
            params = jax.tree.map(jnp.add, start, apart)
    chex.assert_trees_all_close(after(learner, samples)[0].params, params, rtol=1e-4, atol=1e-5)


def equinox_model():
    eqx = pytest.importorskip("equinox")
    net = eqx.nn.MLP(2, "scalar", 3, 1, jnp.tanh, use_bias=False, use_final_bias=False, key=KEY)
    weights = [jnp.asarray(HIDDEN.T, float), network_params()["out"][None]]
    net = eqx.tree_at(lambda net: [layer.weight for layer in net.layers], net, weights)
    return (lambda net, x: net(x)), net, lambda p: (p.layers[0].weight.T, p.layers[1].weight[0])


def flax_model():
    nnx = pytest.importorskip("flax.nnx")

    class Model(nnx.Module):
        def __init__(self):
            self.first = nnx.Linear(2, 3, use_bias=False, rngs=nnx.Rngs(0))
            self.first.kernel = nnx.Param(jnp.asarray(HIDDEN, float))
            self.last = nnx.Param(network_params()["out"])

        def __call__(self, x):
            return jnp.tanh(self.first(x)) @ self.last[...]

    return (lambda net, x: net(x)), Model(), lambda p: (p.first.kernel[...], p.last[...])


@pytest.mark.slow
@pytest.mark.parametrize("made", [equinox_model, flax_model])
def test_modules_of_equinox_and_flax_learn_as_they_are(made):
    """As a dictionary of the same weights does, also through a rollout."""
    apply, net, weights = made()
    stream, noise = nj.streams.linear(KEY, 30, 2), nj.noise.Laplace(0.3)
    options = {"radius": 0.5, "estimate": functools.partial(nj.unbiased.multilevel, levels=2)}

    @functools.partial(jax.jit, static_argnums=0)
    def run(learner, key):
        return nj.rollout(learner, stream, noise, key)

    expected = run(nj.learners.model(network, network_params(), SQUARED, **options), KEY)
    found = run(nj.learners.model(apply, net, SQUARED, **options), KEY)
    np.testing.assert_allclose(found.predictions, expected.predictions, rtol=1e-4, atol=1e-5)
    params = expected.state.params
    for a, b in zip(weights(found.state.params), (params["in"], params["out"]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert np.abs(params["in"] - HIDDEN).max() > 0.01


@pytest.mark.slow
def test_what_is_no_array_of_floating_point_is_held_fixed():
    params = {"w": np.array([0.5, 0.1], np.float32), "power": jnp.int32(2), "function": jnp.tanh}
    learner = nj.learners.model(
        lambda p, x: p["function"](p["w"] @ x) ** p["power"], params, SQUARED, radius=1.0
    )
    state = after(learner, rows(5, 4))[0]
    assert state.params["power"] is None
    assert state.params["function"] is None
    moved = nj.learners.model(lambda w, x: jnp.tanh(w @ x) ** 2, params["w"], SQUARED, radius=1.0)
    np.testing.assert_allclose(state.params["w"], after(moved, rows(5, 4))[0].params, rtol=1e-5)


@pytest.mark.slow
def test_rounds_read_only_the_copies_that_they_use():
    """Others may be NaN, in the step and in the clean estimates."""
    estimate = nj.unbiased.multilevel
    learner = nj.learners.model(network, network_params(), SQUARED, estimate=estimate, radius=1.0)
    assert learner.needs.copies == 32
    samples, keys = rows(20, 32), jax.random.split(KEY, 20)
    needed = jax.vmap(estimate(jnp.sum).copies_needed)(keys)
    assert needed.max() < 32
    seen = np.where(np.arange(32)[:, None] < np.asarray(needed)[:, None, None], samples.x, np.nan)
    full, part = (after(learner, samples._replace(x=jnp.asarray(x))) for x in (samples.x, seen))
    chex.assert_trees_all_close(part[::2], full[::2], rtol=1e-5, atol=1e-6)


def curved(key, count):
    x = jax.random.normal(key, (count, 1))
    return nj.Stream(x, jnp.sin(2 * x[:, 0]))


@pytest.mark.slow
def test_a_known_covariance_is_read_in_the_units_of_the_rows():
    """`learn` standardizes the rows: the learner is the one that is told the noise in its units."""
    stream = curved(KEY, 400)
    noisy = 3 * stream.x + 1.5 * jax.random.normal(jax.random.key(1), (400, 1))
    table = nj.observations.from_arrays(np.asarray(noisy), np.asarray(stream.y), noise=2.25)
    params = network_params() | {"in": jnp.asarray(HIDDEN[:1], float)}
    make = functools.partial(nj.learners.model, sines, params, SQUARED, radius=1.0)
    learned = nj.learn(make(estimate=nj.unbiased.gaussian), table, KEY)
    told = functools.partial(nj.unbiased.gaussian, noise=2.25 / learned.scale**2)
    expected = nj.learn(make(estimate=told), table, KEY)
    chex.assert_trees_all_close(learned.state, expected.state, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(learned.risk, expected.risk, rtol=1e-4)
    assert learned.risk < learned.variance


def test_parameters_may_be_traced():
    def prediction(params):
        learner = nj.learners.model(lambda w, x: w @ x, params, SQUARED, radius=1.0)
        return learner.predict(learner.init(2), jnp.ones(2))

    params = jnp.array([1.0, 2.0])
    assert jax.jit(prediction)(params) == 3
    assert np.isnan(jax.jit(prediction)(params * jnp.nan))
