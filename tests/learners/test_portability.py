"""Every learner and estimate is exported for GPUs and TPUs, which needs neither."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import noisy_jax as nj
from tests.learners.registry import DIM, LEARNERS, NOISE, OPTIONS, T
from tests.noise.cases import DISTRIBUTIONS
from tests.running import printed

pytestmark = pytest.mark.slow


def fourier_moments():
    options = {"dim": DIM, "length_scale": 1.0, "characteristic": NOISE}
    return nj.moments.fourier(nj.moments.gaussian_frequencies(jax.random.key(1), 8, **options))


def features(x):
    return jnp.cos(x @ (jnp.arange(2.0 * DIM).reshape(DIM, 2) / DIM))


def leader(moments):
    return lambda **_: nj.learners.corrected_ftrl(moments(), solve_every=16)


ALL = {
    **{name: case.make for name, case in LEARNERS.items()},
    "leader": leader(nj.moments.known_covariance),
    "leader of functions": leader(fourier_moments),
    "leader, multilevel": leader(
        lambda: nj.moments.unbiased(features, functools.partial(nj.unbiased.multilevel, levels=2))
    ),
    "assuming": lambda **options: nj.wrappers.assuming(
        nj.learners.known_covariance(**options), 0.1
    ),
    "noiseless": lambda **options: nj.wrappers.noiseless(
        nj.learners.uncorrected(**options), nj.streams.linear(jax.random.key(0), T, DIM)
    ),
}
ESTIMATES = {
    "multilevel": functools.partial(nj.unbiased.multilevel, levels=2),
    "replicates": nj.unbiased.replicates,
    "pair": nj.unbiased.pair,
    "gaussian": functools.partial(nj.unbiased.gaussian, noise=0.1),
}
PLATFORMS = "cpu", "cuda", "tpu"


def read_again(function, *args):
    """A program for all platforms, in which an operation of one alone is an error, from a file."""
    shapes = jax.eval_shape(lambda: args)
    return export.deserialize(
        export.export(jax.jit(function), platforms=PLATFORMS)(*shapes).serialize()
    )


@pytest.mark.of_each_kind
@pytest.mark.parametrize("name", ALL)
def test_a_rollout_and_a_round_are_exported_for_gpu_and_tpu(name):
    """A process that loads a round gives states, samples and keys as they are, and gets states."""
    learner = ALL[name](**OPTIONS)

    def predictions(stream, key):
        return nj.rollout(learner, stream, NOISE, key).predictions

    def one_round(state, sample, key):
        after = learner.step(state, sample, key)
        return after, learner.predict(after, sample.x)

    stream = nj.streams.linear(jax.random.key(0), T, DIM)
    program = read_again(predictions, stream, jax.random.key(1))
    assert program.platforms == PLATFORMS
    assert program.out_avals[0].shape[0] == T

    copies = jax.random.normal(jax.random.key(2), (learner.needs.copies, DIM))
    sample = nj.Sample(copies, jnp.float32(1.0), jnp.float32(0.2), jnp.zeros(DIM))
    args = learner.init(DIM), sample, jax.random.key(3)
    program = read_again(one_round, *args)
    assert program.platforms == PLATFORMS
    found, expected = program.call(*args), jax.jit(one_round)(*args)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=1e-6)


NOISES = {
    "gaussian": DISTRIBUTIONS["gaussian_full"],
    "product": nj.noise.Product(
        [nj.noise.Laplace(0.1), *[nj.noise.StudentT(df=9.0, scale=0.4)] * 2]
    ),
    "misclassified": nj.noise.Misclassified([[0.9, 0.1], [0.2, 0.8]], categories=("a", "b")),
    "per round": nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(jnp.linspace(0.1, 0.2, T))),
}


@pytest.mark.parametrize("name", NOISES)
def test_a_rollout_is_exported_with_stream_and_noise_as_arguments(name):
    noise = NOISES[name]
    x = jax.random.bernoulli(jax.random.key(1), 0.5, (T, 3)).astype(float)
    learner = nj.learners.known_covariance(radius=1.0)

    def run(stream, noise, key):
        return nj.rollout(learner, stream, noise, key)

    args = nj.Stream(x, x[:, 0]), noise, jax.random.key(3)
    found, expected = read_again(run, *args).call(*args), jax.jit(run)(*args)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=1e-6)


def test_a_state_is_read_by_a_process_that_has_only_imported_learners(tmp_path):
    learner = ALL["averaged_kernel"](**OPTIONS)
    state = learner.init(DIM)
    program = export.export(jax.jit(learner.predict))(state, jnp.ones(DIM))
    (tmp_path / "predict").write_bytes(program.serialize())
    script = """
import sys, pathlib, jax, numpy as np, noisy_jax.learners
program = jax.export.deserialize(bytearray(pathlib.Path(sys.argv[1]).read_bytes()))
(state, x), _ = jax.tree.map(lambda a: np.ones(a.shape, a.dtype), program.in_tree.unflatten(
    program.in_avals))
print(type(state).__name__, program.call(state, x).shape)
"""
    assert printed("-c", script, str(tmp_path / "predict")) == "AveragedState ()\n"


@pytest.mark.parametrize("name", ESTIMATES)
def test_gradients_of_estimates_are_exported_and_run_again(name):
    g = ESTIMATES[name](lambda w, x, y: (features(x) @ w - y) ** 2, argnum=1)

    def slope(w, copies, y, keys):
        own = name in ("multilevel", "gaussian")

        def risk(w):
            one = lambda c, y, k: g(w, c, y, key=k) if own else g(w, c, y)  # noqa: E731
            return jax.vmap(one)(copies, y, keys).mean()

        return jax.grad(risk)(w)

    copies = jax.random.normal(jax.random.key(0), (3, g.copies, DIM))
    args = jnp.ones(2), copies, jnp.ones(3), jax.random.split(jax.random.key(1), 3)
    program = read_again(slope, *args)
    assert program.platforms == PLATFORMS
    np.testing.assert_allclose(program.call(*args), slope(*args), rtol=1e-5)
