"""Every learner is lowered for GPUs and TPUs, which needs neither."""

import jax
import jax.numpy as jnp
import pytest
from jax import export

import noisy_jax as nj
from tests.learners.registry import DIM, LEARNERS, NOISE, OPTIONS, T, parallel_worlds


def fourier_moments():
    return nj.moments.fourier(
        nj.moments.gaussian_frequencies(
            jax.random.key(1), 8, dim=DIM, length_scale=1.0, characteristic=NOISE
        )
    )


def leader(moments):
    return lambda **_: nj.learners.corrected_ftrl(moments(), solve_every=16)


def mixture(*, radius, learning_rate):
    rates = jnp.array([1.0, 2.0]) * learning_rate
    learners = nj.wrappers.swept(
        lambda rate: parallel_worlds(radius=radius, learning_rate=rate), rates
    )
    return nj.wrappers.mixture(learners)


ALL = {
    **{name: case.make for name, case in LEARNERS.items()},
    "mixture": mixture,
    "leader": leader(nj.moments.known_covariance),
    "leader of functions": leader(fourier_moments),
}


def lowered(learner):
    """A rollout as a program for both, in which an operation of CPUs alone is an error."""

    def predictions(stream, key):
        return nj.rollout(learner, stream, NOISE, key).predictions

    key = jax.eval_shape(lambda: jax.random.key(0))
    stream = jax.eval_shape(lambda: nj.streams.linear(jax.random.key(0), T, DIM))
    return export.export(jax.jit(predictions), platforms=["cuda", "tpu"])(stream, key)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_rollout_lowers_for_gpu_and_tpu(name):
    program = lowered(ALL[name](**OPTIONS))
    assert program.platforms == ("cuda", "tpu")
    assert program.out_avals[0].shape[0] == T


@pytest.mark.slow
def test_a_learner_that_calls_the_host_does_not_lower():
    learner = LEARNERS["uncorrected"].make(**OPTIONS)

    def predict(state, x):
        return jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct((), x.dtype), x[..., 0].sum())

    with pytest.raises(Exception, match="callback"):
        lowered(learner._replace(predict=predict, unroll=None))
