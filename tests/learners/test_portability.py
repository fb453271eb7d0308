"""Every learner and estimate is exported for GPUs and TPUs, which needs neither."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import noisy_jax as nj
from tests.learners.registry import DIM, LEARNERS, NOISE, OPTIONS, T

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
    "leader, pair": leader(lambda: nj.moments.pair(features)),
    "leader, multilevel": leader(lambda: nj.moments.multilevel(features, levels=2)),
}
ESTIMATES = {
    "multilevel": functools.partial(nj.unbiased.multilevel, levels=2),
    "replicates": nj.unbiased.replicates,
    "pair": nj.unbiased.pair,
    "gaussian": functools.partial(nj.unbiased.gaussian, noise=0.1),
}
PLATFORMS = "cpu", "cuda", "tpu"
INPUTS: Any = (*nj.streams.linear(jax.random.key(0), T, DIM), jax.random.key(1))


def read_again(function, *args):
    """A program for all platforms, in which an operation of one alone is an error, from a file."""
    shapes = jax.eval_shape(lambda: args)
    return export.deserialize(
        export.export(jax.jit(function), platforms=PLATFORMS)(*shapes).serialize()
    )


def lowered(learner):
    """A rollout for all platforms."""

    def predictions(x, y, key):
        return nj.rollout(learner, nj.Stream(x, y), NOISE, key).predictions

    return read_again(predictions, *INPUTS), predictions


@pytest.mark.parametrize("name", ALL)
def test_a_rollout_is_exported_for_gpu_and_tpu(name):
    program, _ = lowered(ALL[name](**OPTIONS))
    assert program.platforms == PLATFORMS
    assert program.out_avals[0].shape[0] == T


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


def test_an_exported_rollout_runs_again():
    program, predictions = lowered(ALL["model"](**OPTIONS))
    np.testing.assert_allclose(program.call(*INPUTS), predictions(*INPUTS), rtol=1e-4, atol=1e-6)


def test_a_learner_that_calls_the_host_is_not_exported():
    learner = LEARNERS["uncorrected"].make(**OPTIONS)

    def predict(state, x):
        return jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct((), x.dtype), x[..., 0].sum())

    with pytest.raises(Exception, match="callback"):
        lowered(learner._replace(predict=predict, unroll=None))
