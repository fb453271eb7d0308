"""A learner gives the same numbers over several devices as on one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, Mesh, PartitionSpec

import noisy_jax as nj
from noisy_jax.noise.observation import BLOCK
from tests.errors import raises
from tests.learners import registry

ROUNDS = BLOCK + 8
STREAM = nj.Stream(jnp.eye(3)[jnp.arange(ROUNDS) % 3], 2.0 * (jnp.arange(ROUNDS) % 2) - 1)
WAVES = nj.moments.unbiased(jnp.sin, nj.unbiased.replicates)
EVERY = registry.LEARNERS | {
    "leader of features": registry.Case(
        lambda *, radius, learning_rate: nj.learners.corrected_ftrl(WAVES, radius=radius)
    ),
    "known_covariance, loss": registry.Case(
        functools.partial(nj.learners.known_covariance, loss=nj.losses.smoothed_hinge())
    ),
}
LAPLACE, GAUSSIAN = nj.noise.Laplace(0.2), nj.noise.Gaussian(np.array([0.05, 0.1, 0.15]))
WORLDS = {  # those with loops of their own; the registry has the Gaussian kernel and noise
    "Laplace": (nj.worlds.gaussian, LAPLACE, {"noise": LAPLACE}),
    "Matern": (nj.worlds.matern, GAUSSIAN, {"nu": 1.5, "noise": GAUSSIAN, "cutoff": 3.0}),
}


def over_two_devices(run):
    return jax.shard_map(
        run, mesh=Mesh(np.array(jax.devices()[:2]), "seeds"),
        in_specs=PartitionSpec("seeds"), out_specs=PartitionSpec("seeds"),
    )  # fmt: skip


def check_seeds(learner, noise):
    """Predictions of seeds on two devices are those on one, and differ between seeds."""

    def run(keys):
        return jax.vmap(lambda key: nj.rollout(learner, STREAM, noise, key).predictions)(keys)

    keys = jax.random.split(jax.random.key(0), 2)
    found = jax.jit(over_two_devices(run))(keys)
    np.testing.assert_allclose(found, jax.jit(run)(keys), rtol=1e-3, atol=1e-4)
    assert np.ptp(np.asarray(found), axis=0).max() > 0.01


def explicitly(run, keys):
    """`run` of keys that a mesh of explicit axes divides."""
    with jax.set_mesh(jax.make_mesh((2, 4), ("seeds", "rest"), (AxisType.Explicit,) * 2)):
        found = jax.jit(run)(jax.device_put(keys, PartitionSpec("seeds")))
        assert {leaf.sharding.spec[0] for leaf in jax.tree.leaves(found)} == {"seeds"}
    return found


@pytest.mark.slow
def test_one_run_among_explicit_axes_and_its_regret_are_those_without():
    learner = nj.learners.two_copies(radius=1.0)

    @jax.jit
    def run(key):
        given = learner, STREAM, nj.noise.Gaussian(0.1), key
        loss, comparator = nj.losses.squared(), jnp.zeros(ROUNDS)
        regret = nj.simulated.final_regret(*given, loss=loss, comparator=comparator)
        return nj.rollout(*given), regret

    alone = run(jax.random.key(0))
    with jax.set_mesh(jax.make_mesh((4,), ("seeds",), (AxisType.Explicit,))):
        found = run(jax.random.key(0))
    for one, expected in zip(*map(jax.tree.leaves, (found, alone)), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_a_learner_of_divided_arrays_says_where_to_build_it():
    def run(radius):
        learner = nj.learners.two_copies(radius=radius)
        return nj.rollout(learner, STREAM, nj.noise.Gaussian(0.1), jax.random.key(0)).predictions

    radii = np.array([0.5, 1.0, 1.5, 2.0], np.float32)
    with jax.set_mesh(jax.make_mesh((4,), ("seeds",), (AxisType.Explicit,))):
        divided = jax.device_put(radii, PartitionSpec("seeds"))
        raises("built from arrays on a mesh of explicit axes", jax.jit(jax.vmap(run)), divided)
        whole = jax.sharding.auto_axes(run, out_sharding=PartitionSpec())
        found = jax.jit(jax.vmap(whole))(divided)
    np.testing.assert_allclose(found, jax.jit(jax.vmap(run))(radii), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_seeds_are_divided_in_the_context_of_a_mesh():
    learner = nj.learners.two_copies(radius=1.0)

    def run(key):
        return jnp.mean(nj.rollout(learner, STREAM, nj.noise.Gaussian(0.1), key).predictions)

    alone = nj.monte_carlo(run, 8, jax.random.key(0))
    for kind in AxisType.Explicit, AxisType.Auto:
        mesh = jax.make_mesh((4,), ("seeds",), (kind,))
        with jax.set_mesh(mesh):
            divided = None if kind == AxisType.Explicit else mesh
            found = nj.monte_carlo(run, 8, jax.random.key(0), mesh=divided)
        np.testing.assert_allclose(found.mean, alone.mean, rtol=1e-5)


@pytest.mark.slow
def test_options_may_differ_between_devices():
    """They reach the loss by a closure, where no argument of the step shows that it varies."""

    def run(level):
        learner = nj.learners.model(
            lambda w, x: x @ w, jnp.zeros(3), lambda p, y: (p - y - level) ** 2,
            optimizer=optax.sgd(0.1),
        )  # fmt: skip
        return nj.rollout(learner, STREAM, nj.noise.Gaussian(0.1), jax.random.key(0)).state.params

    levels = jnp.array([0.0, 1.0])
    found = jax.jit(over_two_devices(lambda level: run(level[0])[None]))(levels)
    np.testing.assert_allclose(found, jax.jit(jax.vmap(run))(levels), rtol=1e-4)


MOST = "parallel_worlds", "random_truncation", "norma", "model", "corrected_ftrl"
MOST += ("known_covariance, loss",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name if name in MOST else pytest.param(name, marks=pytest.mark.long) for name in EVERY],
)
def test_every_learner_runs_there(name):
    """In rollouts, also over explicit axes, and by steps from states that are the same on all."""
    learner, dim = EVERY[name].make(**registry.OPTIONS), registry.DIM
    x = jax.random.normal(jax.random.key(5), (registry.T, dim)) / 3
    stream = nj.Stream(x, jnp.sign(x[:, 0]))

    def at_x(state):
        return learner.predict(learner.finish(state) if learner.finish else state, x)

    def rollout(key):
        run = nj.rollout(learner, stream, registry.NOISE, key)
        return run, at_x(run.state)

    def steps(key):
        noisy = x[:1] + jax.random.normal(key, (learner.needs.copies, dim)) / 3
        sample, state = nj.Sample(noisy, stream.y[0], jnp.float32(0.2)), learner.init(dim)
        for _ in range(2):
            state = learner.step(state, sample, key)
        return at_x(state)

    def predictions(keys):
        return jax.vmap(lambda key: (rollout(key)[0].predictions, steps(key)))(keys)

    keys = jax.random.split(jax.random.key(0), 2)
    alone, by_steps = jax.jit(jax.vmap(lambda key: (rollout(key), steps(key))))(keys)
    explicit = explicitly(jax.vmap(rollout), keys)
    shards = jax.jit(over_two_devices(predictions))(keys)
    for found, expected in ((explicit, alone), (shards, (alone[0].predictions, by_steps))):
        for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    assert np.isfinite(by_steps).all()
    assert np.ptp(np.asarray(alone[0].predictions), axis=0).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_every_world_runs_there(name):
    make, noise, options = WORLDS[name]
    world = make(dim=3, length_scale=1.0, **options)
    check_seeds(nj.learners.parallel_worlds(world, radius=1.0, horizon=ROUNDS), noise)


@pytest.mark.slow
def test_a_model_may_have_a_loop_over_its_parameters():
    def apply(w, x):
        return jnp.sum(jax.lax.scan(lambda h, w: (jnp.sin(h @ w), None), x, w)[0])

    w = jax.random.normal(jax.random.key(3), (2, 3, 3)) / 2
    learner = nj.learners.model(
        apply, w, nj.losses.squared(), optimizer=optax.sgd(0.01), estimate=nj.unbiased.pair
    )

    check_seeds(learner, nj.noise.Gaussian(0.1))


def test_a_model_that_is_divided_over_devices_raises():
    """Its gradient would be that of the sum of the losses of all devices."""

    def apply(w, x):
        half = jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index("seeds"), 1)
        return jax.jit(lambda part: jax.lax.psum(part, "seeds"))(half @ w)

    learner = nj.learners.model(
        apply, jnp.ones(1), nj.losses.squared(), estimate=nj.unbiased.replicates, radius=1.0
    )

    def step(x):
        sample = nj.Sample(jnp.ones((2, 2)), x[0, 0])
        return learner.step(learner.init(2), sample, jax.random.key(0)).params[None]

    message = "apply and loss must compute on one device, but call psum"
    raises(message, over_two_devices(step), np.ones((2, 1), np.float32))


@pytest.mark.long
def test_kernels_have_derivatives_there():
    """In both modes, of a run by an option that differs between devices."""

    def loss(scale, key):
        kernel = nj.kernels.gaussian(length_scale=scale)
        learner = nj.learners.unknown_noise(
            kernel, nj.losses.squared(), radius=1.0, horizon=ROUNDS, estimate=nj.unbiased.replicates
        )
        run = nj.rollout(learner, STREAM, nj.noise.Gaussian(0.1), key)
        return jnp.sum((run.predictions - STREAM.y) ** 2)

    def slopes(scales):
        slope = [jax.vmap(of(loss), (0, None)) for of in (jax.grad, jax.jacfwd)]
        return jnp.stack([each(scales, jax.random.key(0)) for each in slope], axis=1)

    scales = jnp.array([0.5, 1.0])
    found = jax.jit(over_two_devices(slopes))(scales)
    np.testing.assert_allclose(found, jax.jit(slopes)(scales), rtol=1e-3)
    assert np.abs(found).min() > 0
