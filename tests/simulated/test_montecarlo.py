import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from noisy_jax.simulated.estimates import Estimate
from noisy_jax.simulated.montecarlo import divided, monte_carlo
from tests.errors import raises
from tests.keys import key

KEY = key(7)


def run(key):
    a, b = jax.random.split(key)
    return {"a": jax.random.normal(a, (3,)), "b": (jax.random.bernoulli(b, 0.3), jnp.int32(2))}


def all_values(num_seeds, run=run):
    keys = jax.vmap(lambda s: jax.random.fold_in(KEY, s))(jnp.arange(num_seeds))
    return jax.tree.map(lambda v: np.asarray(v, np.float64), jax.vmap(run)(keys))


def direct(num_seeds, run=run):
    """Mean and standard error from all values at once, in float64."""
    values = all_values(num_seeds, run)
    mean = jax.tree.map(lambda v: v.mean(axis=0), values)
    return mean, jax.tree.map(lambda v: v.std(axis=0, ddof=1) / np.sqrt(num_seeds), values)


def test_is_stable_where_the_spread_is_far_below_the_mean():
    offset = lambda key: 1e4 + 0.01 * jax.random.normal(key)  # noqa: E731
    estimate = monte_carlo(offset, 5000, KEY, batch_size=50)
    mean, error = direct(5000, offset)
    np.testing.assert_allclose(estimate.mean, mean, atol=0.01 * error)
    np.testing.assert_allclose(estimate.std_error, error, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-30, 1e37])
def test_the_standard_error_has_no_limit_of_units(scale):
    scaled = jax.tree_util.Partial(lambda s, key: s * jax.random.normal(key), jnp.float32(scale))
    one = jax.tree_util.Partial(scaled.func, jnp.float32(1.0))
    estimate, unit = monte_carlo(scaled, 100, KEY, batch_size=40), monte_carlo(one, 100, KEY)
    np.testing.assert_allclose(estimate.mean, scale * unit.mean, rtol=1e-4)
    np.testing.assert_allclose(estimate.std_error, scale * unit.std_error, rtol=1e-4)


LEVELS = (0.07, 0.5, 0.9)


def quantiles_by_counting(num_seeds):
    """The smallest value of which enough seeds are at or below, from all values at once."""

    def counted(values):
        reached = np.sum(values[:, None] <= values[None], axis=0) / num_seeds
        return np.stack([np.where(reached >= q - 1e-9, values, np.inf).min(axis=0) for q in LEVELS])

    return jax.tree.map(counted, all_values(num_seeds))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("devices", "batch_size"), [(None, None), (None, 7), ((8,), 1), ((4, 2), 20), ((8,), 64)]
)
def test_moments_and_quantiles_are_exact_for_any_batch_on_any_mesh(batch_size, devices):
    mesh = devices and Mesh(np.array(jax.devices()).reshape(devices), tuple("ab")[: len(devices)])
    estimate = monte_carlo(run, 20, KEY, batch_size=batch_size, mesh=mesh, quantiles=LEVELS)
    chex.assert_trees_all_close(estimate.quantiles, quantiles_by_counting(20), atol=1e-6)
    chex.assert_trees_all_close((estimate.mean, estimate.std_error), direct(20), atol=1e-6)
    assert estimate.num_seeds == 20
    assert type(estimate.num_seeds) is int


def test_results_do_not_depend_on_the_batch_for_keys_of_another_kind():
    own = jax.random.key(7, impl="rbg")
    one, other = (monte_carlo(run, 6, own, batch_size=size) for size in (2, 6))
    chex.assert_trees_all_close(one, other, rtol=1e-5)


@pytest.mark.statistical
def test_seeds_that_diverge_count_as_the_largest():
    def broken(key):
        value = jax.random.uniform(key)
        return jnp.where(value > 0.8, jnp.nan, value)

    quantiles = monte_carlo(broken, 1000, KEY, quantiles=(0.5, 0.9)).quantiles
    assert abs(quantiles[0] - 0.5) < 5 * 0.5 / 1000**0.5
    assert np.isnan(quantiles[1])


@pytest.mark.parametrize("batch_size", [20, 7])
def test_huge_and_infinite_values_count_without_a_warning(batch_size):
    huge = lambda key: jnp.where(jax.random.bernoulli(key, 0.3), 3e38, 1.0)  # noqa: E731
    estimate = monte_carlo(huge, 20, KEY, batch_size=batch_size)
    np.testing.assert_allclose((estimate.mean, estimate.std_error), direct(20, huge), rtol=1e-6)
    infinite = monte_carlo(lambda key: jnp.inf, 20, KEY, batch_size=batch_size)
    assert np.isnan([infinite.mean, infinite.std_error]).all()


def test_one_seed_has_no_standard_error_and_quantiles_are_none_unless_asked_for():
    estimate = monte_carlo(run, 1, KEY)
    assert np.isnan(estimate.std_error["b"][0])
    assert estimate.quantiles is None


def test_padding_seeds_do_not_count_even_if_they_diverge():
    def broken(key):  # finite for the first three seeds only
        first = jax.vmap(lambda s: jax.random.key_data(jax.random.fold_in(KEY, s)))(jnp.arange(3))
        mine = jax.random.key_data(key)
        return jnp.where((first == mine[None]).all(axis=1).any(), 1.0, jnp.nan)

    assert monte_carlo(broken, 3, KEY, batch_size=8).mean == 1.0


def test_a_second_call_and_a_sweep_trace_nothing_anew():
    traces = []

    def scaled(scale, key):
        traces.append(key)
        return scale * jax.random.normal(key)

    sweep = [jax.tree_util.Partial(scaled, jnp.float32(s)) for s in (1.0, 2.0, 4.0)]
    first = monte_carlo(sweep[0], 10, KEY)
    count = len(traces)
    means = [monte_carlo(run, 10, KEY).mean for run in sweep]
    assert len(traces) == count
    np.testing.assert_allclose(means, first.mean * np.array([1, 2, 4]), rtol=1e-6)


def test_a_run_is_traced_once_on_any_devices():
    for mesh in None, "all":
        traced = []
        monte_carlo(lambda key: traced.append(key) or jax.random.normal(key), 4, KEY, mesh=mesh)  # noqa: B023
        assert len(traced) == 1


def test_a_mesh_of_explicit_axes_and_data_on_one_device():
    data = jax.device_put(jnp.arange(3.0), jax.devices()[0])
    with_data = jax.tree_util.Partial(lambda x, key: x + jax.random.normal(key), data)
    alone = monte_carlo(with_data, 3, KEY)
    for mesh in jax.make_mesh((4,), ("seeds",)), "all":
        chex.assert_trees_all_close(monte_carlo(with_data, 3, KEY, mesh=mesh), alone, atol=1e-6)


def test_all_devices_are_at_most_one_for_each_seed_of_a_batch():
    for seeds, size, expected in ((20, None, (24, 8)), (20, 3, (3, 3)), (2, 5, (6, 2))):
        batch, mesh = divided(seeds, size, "all")
        assert (batch, mesh.size) == expected
    assert divided(4, 1, "all") == (1, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_seeds": 0}, "num_seeds must be a whole number of at least 1, got 0"),
        ({"num_seeds": range(3, 3)}, r"range of seeds from 0 to .* got range\(3, 3\)"),
        ({"num_seeds": range(0, 8, 2)}, r"range of seeds from 0 to .* got range\(0, 8, 2\)"),
        ({"num_seeds": 4, "batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"run": KEY, "key": run}, "run must be a function of a key, got an array"),
        ({"run": lambda key: None}, "run must return a pytree of at least one array, got none"),
        ({"run": lambda key: jax.random.normal(key) + 1j}, "must return real numbers, got complex"),
        ({"key": 0}, "key must be a key .* got 0"),
        ({"checkpoint": 3, "tag": "a"}, "checkpoint must be a file's path, got 3"),
        ({"checkpoint": "a.npz"}, "checkpoint needs a tag, a text that says what the run is"),
        ({"tag": "a"}, "tag names the run of a checkpoint: give checkpoint as well, or no tag"),
        ({"tag": 3}, "tag must be a text, got 3"),
        ({"mesh": 2}, "mesh must be a Mesh, got 2"),
        ({"quantiles": (0.5, 1.0)}, r"must be above 0 and below 1, but quantiles\[1\] is 1.0"),
        ({"quantiles": "median"}, "quantiles must be numbers, got .*median"),
        ({"quantiles": [[0.1], [0.5, 0.9]]}, "quantiles must be one array, but has parts of uneq"),
        ({"mesh": "every"}, 'mesh must be a Mesh, got .every.: .* "all" means all devices'),
    ],
)
def test_bad_input_is_an_error(options, message):
    raises(message, monte_carlo, **{"run": run, "key": KEY, "num_seeds": 4} | options)


def parts(*ranges, **options):
    return [monte_carlo(run, range(*one), KEY, **options) for one in ranges]


def test_estimates_of_batches_merge_to_that_of_one_call_bit_for_bit():
    whole = monte_carlo(run, 20, KEY, batch_size=8, quantiles=LEVELS)
    options = {"batch_size": 8, "quantiles": LEVELS}
    middle, last, first = parts((8, 16), (16, 20), (0, 8), **options)
    chex.assert_trees_all_equal(Estimate.merge([middle, last, first]), whole)
    chex.assert_trees_all_equal(Estimate.merge([last, Estimate.merge([middle, first])]), whole)
    chex.assert_trees_all_equal(Estimate.merge(iter([whole])), whole)


def test_estimates_of_any_disjoint_ranges_merge_to_that_of_their_seeds():
    merged = Estimate.merge(parts((15, 20), (0, 3), (3, 13), quantiles=LEVELS))
    assert merged.seeds == ((0, 13), (15, 20))
    assert merged.num_seeds == 18
    kept = np.r_[:13, 15:20]
    values = jax.tree.map(lambda v: v[kept], all_values(20))
    chex.assert_trees_all_close(merged.values, values, atol=1e-6)  # in the order of the seeds
    mean = jax.tree.map(lambda v: v.mean(axis=0), values)
    chex.assert_trees_all_close(merged.mean, mean, atol=1e-6)
    np.testing.assert_allclose(
        merged.std_error["a"], values["a"].std(axis=0, ddof=1) / 18**0.5, atol=1e-6
    )
    median = np.sort(values["a"], axis=0)[8]
    np.testing.assert_allclose(merged.quantiles["a"][1], median, atol=1e-6)


def test_what_is_merged_are_estimates():
    raises("other must be an Estimate, got None", parts((0, 3))[0].plus, None)
    raises("estimates must be a list of them, got one ndarray", Estimate.merge, np.array(1.0))


@pytest.mark.parametrize(
    ("estimates", "message"),
    [
        (lambda: [], "merge needs at least one estimate, got none"),
        (lambda: parts((0, 4), (3, 6)), "seed 3 is in two of the estimates"),
        (lambda: parts((0, 4)) + parts((4, 6), quantiles=(0.5,)), "same levels of quantiles"),
        (lambda: [*parts((0, 4)), monte_carlo(lambda k: 1.0, range(4, 6), KEY)], "of one run"),
    ],
)
def test_estimates_that_do_not_fit_are_not_merged(estimates, message):
    raises(message, Estimate.merge, estimates())


def test_a_mesh_of_several_processes_is_an_error(monkeypatch):
    mesh = Mesh(np.array(jax.devices()), "seeds")
    monkeypatch.setitem(vars(mesh), "is_multi_process", True)
    raises("give each process its own range of seeds", monte_carlo, run, 8, KEY, mesh=mesh)


def test_runs_that_do_not_use_their_key_are_told():
    def from_around(key):
        return jax.random.normal(jax.random.key(1))

    with pytest.warns(UserWarning, match="the same for all 200 seeds: if it is meant to be random"):
        monte_carlo(lambda _: {"regret": 0.1, "mistakes": 3}, 200, jax.random.key(0))
    with pytest.warns(UserWarning, match="the same for all 8 seeds"):
        monte_carlo(from_around, 8, jax.random.key(0))
    for run in (lambda _: 3.0, lambda key: (0.1, jax.random.uniform(key))):  # a count; a constant
        monte_carlo(run, 200, jax.random.key(0))
    monte_carlo(from_around, 7, jax.random.key(0))
