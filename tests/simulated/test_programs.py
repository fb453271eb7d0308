"""How many programs a study compiles, and that one program for all horizons changes no number."""

import gc
import weakref
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from tests.errors import raises

LIMIT = 16  # of a study like the README's: 13 with JAX 0.10.2
BATCHES = "jit(_batch)"
NOISE = nj.noise.Gaussian(0.2)
COMPARATOR = nj.comparators.linear_ball(radius=1.0)
LOSS = nj.losses.squared()
STREAM = nj.streams.linear(jax.random.key(0), 300, 3, label_noise=0.1)
MOMENTS = nj.bounds.DataMoments(1.5, 3.0, 1.0, 0.2)
TUNED = nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, MOMENTS, radius=1.0)


@pytest.fixture
def compiled():
    """The names of the programs that are compiled from here on."""
    names = []

    def listen(event, _, fun_name="?", **__):
        if event.endswith("backend_compile_duration"):
            names.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    unregister = getattr(jax.monitoring, "unregister_event_duration_listener", None)
    if unregister is not None:  # JAX 0.8 has none
        unregister(listen)


def study(learners, horizons, noise=NOISE, **options):
    options = {"num_seeds": 2, "comparator": COMPARATOR} | options
    return nj.study(learners, STREAM, noise, jax.random.key(1), horizons=horizons, **options)


def test_linear_learners_share_one_program_over_the_horizons(compiled, tmp_path):
    """Programs are few, and none for other horizons of as many blocks, in numbers of NumPy too."""
    learners = {"given": nj.learners.uncorrected(radius=1.0), "tuned": TUNED}
    jax.clear_caches()
    study(learners, [100, 128, 200, 300])
    assert compiled.count(BATCHES) == 1
    assert len(compiled) <= LIMIT, compiled
    del compiled[:]
    sizes = {"num_seeds": np.int64(2), "batch_size": np.int64(2)}
    study(learners, np.array([90, 100, 200, 290]), **sizes).save(tmp_path)
    assert not compiled


def parallel_worlds():
    world = nj.worlds.gaussian(dim=3, length_scale=1.0, noise=NOISE)
    bound = partial(nj.bounds.parallel_worlds, world.diagonal, y_second_moment=1.0)
    return nj.tuned(partial(nj.learners.parallel_worlds, world), bound, radius=1.0)


def random_truncation():
    estimator = nj.unbiased.kernel_gradient(
        nj.kernels.linear(), LOSS, radius=1.0, x_second_moment=1.5
    )
    learner = partial(nj.learners.random_truncation, estimator)
    return nj.tuned(learner, partial(nj.bounds.random_truncation, estimator))


@pytest.mark.slow
@pytest.mark.parametrize("tuned", [parallel_worlds, random_truncation])
def test_kernel_learners_share_one_program_over_the_horizons(compiled, tuned):
    make = tuned()
    shared, *_ = study({"a": make}, [60, 200]).rows
    assert compiled.count(BATCHES) == 1
    (alone,) = study({"a": lambda horizon: make(horizon)}, [60]).rows  # with room for 60
    np.testing.assert_allclose(shared.regret, alone.regret, rtol=1e-3)
    assert shared.bound == alone.bound


@pytest.mark.slow
def test_a_function_for_any_horizon_shares_one_program_and_is_told_the_horizon(compiled):
    def make(horizon, room):
        learner = nj.learners.two_copies(radius=1.0, learning_rate=0.3 * horizon**-0.5)
        return learner._replace(needs=learner.needs._replace(horizon=room)), None

    shared = study({"a": nj.simulated.AnyHorizon(make)}, [60, 300]).rows
    assert compiled.count(BATCHES) == 1
    alone = study({"a": lambda horizon: make(horizon, 300)}, [60, 300]).rows
    for a, b in zip(shared, alone, strict=True):
        np.testing.assert_allclose(a.regret, b.regret, rtol=1e-4)
    del compiled[:]
    assert study({"a": nj.simulated.AnyHorizon(make)}, [60, 300]).rows[0].regret == shared[0].regret
    assert not compiled


@pytest.mark.slow
def test_a_learner_with_just_enough_room_shares_the_program(compiled):
    learner = nj.learners.two_copies(radius=1.0)
    full = learner._replace(needs=learner.needs._replace(horizon=300))
    study({"full": full}, [60, 300])
    assert compiled.count(BATCHES) == 1
    made = nj.tuned(lambda **options: full, nj.bounds.two_copies, MOMENTS, radius=1.0)
    assert study({"made": made}, [300]).rows[0].horizon == 300
    message = "the stream has 300 rounds, but the learner has room for 299"
    full = learner._replace(needs=learner.needs._replace(horizon=299))
    raises(message, study, {"full": full}, [60, 300])


def test_an_error_of_a_function_for_any_horizon_is_shown():
    """It was taken for a function that looks at the number."""

    def make(horizon, room):
        if isinstance(horizon, jax.core.Tracer):
            raise ValueError("no learner for this")
        return nj.learners.two_copies(radius=1.0), None

    raises("no learner for this", study, {"a": nj.simulated.AnyHorizon(make)}, [60])
    raises("make must be a function, got 3", nj.simulated.AnyHorizon, 3)


@pytest.mark.slow
def test_learners_of_a_study_are_kept_by_nothing_but_the_caches_of_jax():
    learner = nj.learners.two_copies(radius=1.0)
    kept = weakref.ref(learner.step)
    study({"a": learner}, [60])
    del learner
    jax.clear_caches()
    gc.collect()
    assert kept() is None


@pytest.mark.slow
def test_a_part_of_a_stream_gives_the_regret_of_the_shorter_stream():
    """Of each of two learners, which run side by side."""
    one, key = nj.learners.two_copies(radius=1.0), jax.random.key(1)
    learner, best = nj.wrappers.paired(one, nj.learners.uncorrected(radius=1.0)), jnp.zeros(300)

    run = partial(nj.simulated.final_regret, loss=LOSS, comparator=best)
    regret = jax.jit(lambda rounds: run(learner, STREAM, NOISE, key, rounds=rounds))
    predictions = nj.rollout(learner, STREAM, NOISE, key).predictions
    assert predictions.shape == (300, 2)
    each = jax.vmap(partial(nj.simulated.regret, LOSS), (1, None, None), 1)
    expected = each(predictions, best, STREAM.y)
    for rounds in (1, 100, 128, 129, 256, 257, 300):
        np.testing.assert_allclose(regret(rounds), expected[rounds - 1], rtol=1e-4, atol=1e-5)
    for rounds in (1, 300):
        whole = nj.Stream(STREAM.x[:rounds], STREAM.y[:rounds])
        total = run(learner, whole, NOISE, key, comparator=best[:rounds])
        np.testing.assert_allclose(total, expected[rounds - 1], rtol=1e-4, atol=1e-5)
    assert np.isnan([regret(0), regret(301)]).all()
    raises(r"rounds must be in \[1, 300\], got 301", run, learner, STREAM, NOISE, key, rounds=301)
