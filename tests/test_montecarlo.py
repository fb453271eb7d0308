import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

import noisy_jax as nj
from noisy_jax import montecarlo
from noisy_jax.montecarlo import monte_carlo

KEY = jax.random.key(7)


def run(key):
    a, b = jax.random.split(key)
    return {"a": jax.random.normal(a, (3,)), "b": (jax.random.bernoulli(b, 0.3), jnp.int32(2))}


def direct(num_seeds, run=run):
    """Mean and standard error from all values at once, in float64."""
    keys = jax.vmap(lambda s: jax.random.fold_in(KEY, s))(jnp.arange(num_seeds))
    values = jax.tree.map(lambda v: np.asarray(v, np.float64), jax.vmap(run)(keys))
    mean = jax.tree.map(lambda v: v.mean(axis=0), values)
    error = jax.tree.map(lambda v: v.std(axis=0, ddof=1) / np.sqrt(num_seeds), values)
    return mean, error


@pytest.mark.parametrize("batch_size", [None, 1, 7, 20, 64])
def test_moments_equal_the_direct_ones_for_any_batch(batch_size):
    estimate = monte_carlo(run, KEY, 20, batch_size=batch_size)
    chex.assert_trees_all_close((estimate.mean, estimate.std_error), direct(20), atol=1e-6)
    assert estimate.num_seeds == 20


def test_is_stable_where_the_spread_is_far_below_the_mean():
    offset = lambda key: 1e4 + 0.01 * jax.random.normal(key)  # noqa: E731
    estimate = monte_carlo(offset, KEY, 5000, batch_size=50)
    mean, error = direct(5000, offset)
    np.testing.assert_allclose(estimate.mean, mean, atol=0.01 * error)
    np.testing.assert_allclose(estimate.std_error, error, rtol=1e-3)


def test_one_seed_has_no_standard_error():
    assert np.isnan(monte_carlo(run, KEY, 1).std_error["b"][0])


def test_padding_seeds_do_not_count_even_if_they_diverge():
    def broken(key):  # finite for the first three seeds only
        first = jax.vmap(lambda s: jax.random.key_data(jax.random.fold_in(KEY, s)))(jnp.arange(3))
        mine = jax.random.key_data(key)
        return jnp.where((first == mine[None]).all(axis=1).any(), 1.0, jnp.nan)

    assert monte_carlo(broken, KEY, 3, batch_size=8).mean == 1.0


def test_a_second_call_and_a_sweep_trace_nothing_anew():
    traces = []

    def scaled(scale, key):
        traces.append(key)
        return scale * jax.random.normal(key)

    sweep = [jax.tree_util.Partial(scaled, jnp.float32(s)) for s in (1.0, 2.0, 4.0)]
    first = monte_carlo(sweep[0], KEY, 10)
    count = len(traces)
    means = [monte_carlo(run, KEY, 10).mean for run in sweep]
    assert len(traces) == count
    np.testing.assert_allclose(means, first.mean * np.array([1, 2, 4]), rtol=1e-6)


@pytest.mark.parametrize("num_seeds", [16, 13])
def test_same_numbers_on_one_device_and_on_eight(num_seeds):
    devices = np.array(jax.devices())
    assert len(devices) == 8
    alone = monte_carlo(run, KEY, num_seeds, batch_size=8)
    spread = monte_carlo(run, KEY, num_seeds, batch_size=5, mesh=Mesh(devices, "seeds"))
    plane = monte_carlo(run, KEY, num_seeds, mesh=Mesh(devices.reshape(4, 2), ("a", "b")))
    chex.assert_trees_all_close(alone, spread, atol=1e-6)
    chex.assert_trees_all_close(alone, plane, atol=1e-6)


def test_a_rollout_runs_on_a_mesh():
    stream = nj.streams.linear(jax.random.key(0), 40, 3)
    learner = nj.learners.known_covariance(radius=1.0, learning_rate=0.1)
    noise = nj.noise.Gaussian(jnp.eye(3) * 0.1)
    roll = lambda key: nj.rollout(learner, stream, noise, key).predictions  # noqa: E731
    mesh = Mesh(np.array(jax.devices()), "seeds")
    chex.assert_trees_all_close(
        monte_carlo(roll, KEY, 16), monte_carlo(roll, KEY, 16, mesh=mesh), atol=1e-6
    )


def test_a_mesh_of_explicit_axes_and_data_on_one_device():
    data = jax.device_put(jnp.arange(3.0), jax.devices()[0])
    with_data = jax.tree_util.Partial(lambda x, key: x + jax.random.normal(key), data)
    spread = monte_carlo(with_data, KEY, 8, mesh=jax.make_mesh((4,), ("seeds",)))
    chex.assert_trees_all_close(spread, monte_carlo(with_data, KEY, 8), atol=1e-6)


def test_progress_is_reported_between_batches():
    calls = []
    monte_carlo(run, KEY, 10, batch_size=4, progress=lambda *call: calls.append(call))
    assert calls == [(4, 10), (8, 10), (10, 10)]


class InterruptedRunError(Exception):
    pass


def test_resumes_exactly_and_loses_at_most_a_batch(tmp_path):
    def interrupt(done, total):
        if done == 8:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        monte_carlo(run, KEY, 22, batch_size=4, checkpoint=tmp_path / "c", progress=interrupt)
    batches = []
    resumed = monte_carlo(
        run, KEY, 22, batch_size=4, checkpoint=tmp_path / "c",
        progress=lambda done, _: batches.append(done),
    )  # fmt: skip
    assert batches == [12, 16, 20, 22]
    chex.assert_trees_all_equal(resumed, monte_carlo(run, KEY, 22, batch_size=4))


def test_more_seeds_can_be_added_later(tmp_path):
    monte_carlo(run, KEY, 10, batch_size=4, checkpoint=tmp_path)
    more = monte_carlo(run, KEY, 25, batch_size=4, checkpoint=tmp_path)
    chex.assert_trees_all_close(more, monte_carlo(run, KEY, 25), atol=1e-6)
    with pytest.raises(ValueError, match="already holds 25 seeds, more than the 12 asked for"):
        monte_carlo(run, KEY, 12, checkpoint=tmp_path)


def shifted(shift):
    return lambda key: shift + jax.random.normal(key, (3,))


@pytest.mark.parametrize(
    ("other", "key"),
    [
        (shifted(np.float32(0.5)), KEY),  # another number in the run
        (lambda key: jax.random.uniform(key, (3,)), KEY),  # another run of the same shapes
        (shifted(np.float32(1.0)), jax.random.key(8)),  # another key
        (jax.tree_util.Partial(lambda s, key: s + jax.random.normal(key, (3,)), 1.5), KEY),
        (run, KEY),  # another structure
    ],
    ids=["number", "run", "key", "leaf", "structure"],
)
def test_refuses_a_checkpoint_of_another_configuration(tmp_path, other, key):
    monte_carlo(shifted(np.float32(1.0)), KEY, 4, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="made by another configuration"):
        monte_carlo(other, key, 8, checkpoint=tmp_path)
    monte_carlo(shifted(np.float32(1.0)), KEY, 8, checkpoint=tmp_path)  # a new closure, same run


def jitted(shift):
    constant = jnp.full(3, shift)  # closed over inside an inner jit, inside a scan

    @jax.jit
    def inner(total, key):
        return total + constant + jax.random.normal(key, (3,)), None

    return lambda key: jax.lax.scan(inner, jnp.zeros(3), jax.random.split(key, 2))[0]


def test_refuses_a_checkpoint_where_an_inner_constant_differs(tmp_path):
    monte_carlo(jitted(1.0), KEY, 4, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="made by another configuration"):
        monte_carlo(jitted(2.0), KEY, 8, checkpoint=tmp_path)
    monte_carlo(jitted(1.0), KEY, 8, checkpoint=tmp_path)


def test_refuses_a_checkpoint_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot write to the folder"):
        monte_carlo(run, KEY, 4, checkpoint=tmp_path / "file" / "below")


@pytest.mark.parametrize("damage", ["truncated", "foreign", "empty"])
def test_refuses_a_damaged_checkpoint(tmp_path, damage):
    monte_carlo(run, KEY, 4, checkpoint=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(
        {"truncated": whole[: len(whole) // 2], "foreign": b"hello", "empty": b""}[damage]
    )
    with pytest.raises(ValueError, match=r"not a readable checkpoint .* delete it"):
        monte_carlo(run, KEY, 8, checkpoint=tmp_path)


def test_a_write_that_breaks_off_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    monte_carlo(run, KEY, 4, batch_size=4, checkpoint=tmp_path)

    def breaks_off(file, **arrays):
        file.write(b"half a file")
        raise InterruptedRunError

    with monkeypatch.context() as patch:
        patch.setattr(montecarlo.np, "savez", breaks_off)
        with pytest.raises(InterruptedRunError):
            monte_carlo(run, KEY, 8, batch_size=4, checkpoint=tmp_path)
    resumed = monte_carlo(run, KEY, 8, batch_size=4, checkpoint=tmp_path)
    chex.assert_trees_all_equal(resumed, monte_carlo(run, KEY, 8, batch_size=4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_seeds": 0}, "num_seeds must be a whole number of at least 1, got 0"),
        ({"num_seeds": 2.5}, r"got 2\.5"),
        ({"num_seeds": 4, "batch_size": 0}, "batch_size must be a whole number of at least 1"),
    ],
)
def test_refuses_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        monte_carlo(run, KEY, **options)
