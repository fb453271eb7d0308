"""Rows that share statistics, results that are a new state, checks, and inputs that are pytrees."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import Mesh, PartitionSpec

import noisy_jax as nj
from tests.keys import key
from tests.unbiased.test_transformed import EVERY, KEY, calls, copies_of

X = np.array([0.7, -0.4])
REAL_AND_COMPLEX = pytest.mark.parametrize("name", ["replicates", "gaussian"])
"""One that evaluates f at real points, and one at complex points."""


def of_row(x):
    """A loss that is quadratic in all rows together."""
    centred = x - jax.lax.pmean(x, "rows")
    return jnp.sum(centred**2) + (1 + jax.lax.axis_index("rows")) * jnp.sum(x)


def of_batch(x):
    """The same of all rows `[n, …]`: `[n]`."""
    centred = (x - x.mean(axis=0, keepdims=True)).reshape(len(x), -1)
    return jnp.sum(centred**2, axis=1) + jnp.arange(1.0, 1 + len(x)) * x.reshape(len(x), -1).sum(1)


def by_rows(g, copies):
    """g of each row, for copies `[V, n]` of the batch."""
    return jax.vmap(g, in_axes=1, axis_name="rows")(copies)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["replicates", "pair", "multilevel"])
def test_rows_that_share_statistics_are_the_function_of_the_batch(name):
    g, count = calls(name, of_row)
    batch, _ = calls(name, of_batch)
    copies = copies_of(count, 3, 2)

    def value_and_slope(g):
        weighted = lambda copies: jnp.arange(3.0) @ g(copies)  # noqa: E731
        return jax.jit(jax.value_and_grad(weighted))(copies)

    found, expected = map(value_and_slope, (functools.partial(by_rows, g), batch))
    chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@EVERY
def test_devices_that_share_statistics_are_the_function_of_the_batch(name):
    """Inside `jax.shard_map`, where the rows are divided over two devices."""

    def of_part(x):
        return jnp.sum((x - jax.lax.pmean(x.mean(axis=0), "rows")[None]) ** 2)

    def of_all(x):
        return jnp.sum((x - x.mean(axis=0)[None]) ** 2)

    (g, count), (whole, _) = calls(name, of_part), calls(name, of_all)
    mesh, spec = Mesh(np.array(jax.devices()[:2]), "rows"), PartitionSpec(None, "rows")
    divided = jax.shard_map(
        lambda copies: g(copies)[None], mesh=mesh, in_specs=spec, out_specs=PartitionSpec("rows")
    )
    copies = copies_of(count, 4, 3)
    total = jax.jit(lambda copies: divided(copies).sum())
    if name == "gaussian":  # whose draws are other ones on each device
        assert np.isfinite(total(copies))
        return
    for found, right in zip(
        *(jax.jit(jax.value_and_grad(f))(copies) for f in (total, whole)), strict=True
    ):
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-4)


@REAL_AND_COMPLEX
def test_numbers_inside_f_may_be_printed(name, capfd):
    def f(x):
        jax.debug.print("sum {total}", total=jnp.sum(x), ordered=False)
        return jnp.sum(x**2)

    g, count = calls(name, f)
    jax.block_until_ready(jax.jit(jax.vmap(g))(jnp.ones((2, count, 3))))
    jax.effects_barrier()
    assert capfd.readouterr().out.count("sum 3.0") >= 2


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("shared", [True, False])
def test_imaginary_parts_of_rows_are_independent_also_with_the_same_key(shared):
    """(x̃_i − mean)² less σ²(1 − 1/n): with the same draws in all rows nothing is taken off."""
    g, copies = nj.unbiased.gaussian(of_row, 0.3), jnp.asarray(X, float)[None]

    def one(own):
        keys = own if shared else jax.random.split(own)
        run = jax.vmap(lambda x, own: g(x, key=own), (1, None if shared else 0), axis_name="rows")
        return run(copies, keys)

    found = jax.jit(jax.vmap(one))(jax.random.split(key(), 8_000))
    error = found.std(axis=0) / 8_000**0.5
    assert (np.abs(found.mean(axis=0) - (of_batch(copies[0]) - 0.3 / 2)) < 5 * error).all()


@pytest.mark.slow
def test_rows_of_one_function_need_the_same_number_of_copies():
    g = nj.unbiased.multilevel(of_row, levels=2)
    keys = jax.random.split(KEY, 8)
    copies = copies_of(g.copies, 8)
    assert len(set(jax.vmap(g.copies_needed)(keys).tolist())) > 1
    run = jax.jit(jax.vmap(lambda x, own: g(x, key=own), (1, 0), axis_name="rows"))
    assert np.isnan(run(copies, keys)).all()
    assert np.isfinite(run(copies, jnp.stack(8 * [KEY]))).all()


@pytest.mark.slow
def test_rows_that_only_know_their_number_have_keys_of_their_own():
    g = nj.unbiased.multilevel(lambda x: x * jax.lax.axis_index("rows"), levels=2)
    keys, copies = jax.random.split(KEY, 8), copies_of(g.copies, 8)
    run = jax.jit(jax.vmap(lambda x, own: g(x, key=own), (1, 0), axis_name="rows"))
    plain = nj.unbiased.multilevel(lambda x, i: x * i, levels=2)
    each = jax.vmap(lambda x, own, i: plain(x, i, key=own), (1, 0, 0))
    np.testing.assert_allclose(run(copies, keys), each(copies, keys, jnp.arange(8.0)), rtol=1e-5)


@pytest.mark.slow
@EVERY
def test_a_new_state_is_a_second_result(name):
    """Floating point is estimated as the loss is; counters, flags and keys stay what they are."""

    @jax.jit
    def f(w, x, state):
        value = jnp.sum(w * x**2)
        mean = 0.9 * state["mean"] + 0.1 * x**2
        own, _ = jax.random.split(state["key"])
        return value, {"mean": mean, "count": state["count"] + 1, "first": False, "key": own}

    state = {"mean": jnp.ones(2), "count": jnp.int32(3), "first": True, "key": KEY}
    g, count = calls(name, f, 1)
    copies, w = copies_of(3 * count, 2).reshape(3, count, 2), jnp.array([1.0, 2.0])
    slope, new = jax.jit(jax.vmap(jax.grad(g, has_aux=True), (None, 0, None)))(w, copies, state)
    assert new["count"].tolist() == [4, 4, 4]
    assert not new["first"].any()
    expected = jax.random.key_data(jax.random.split(KEY)[0])
    np.testing.assert_array_equal(jax.random.key_data(new["key"]), jnp.stack(3 * [expected]))
    np.testing.assert_allclose(new["mean"], 0.9 + 0.1 * slope, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@REAL_AND_COMPLEX
def test_checks_inside_f(name):
    def f(x):
        checkify.check(jnp.all(jnp.isfinite(x)), "x is {first}", first=x[0])
        return jnp.sum(x**2)

    g, count = calls(name, f)
    plain, _ = calls(name, lambda x: jnp.sum(x**2))
    rows = copies_of(3 * count, 2).reshape(3, count, 2)
    checked = jax.jit(checkify.checkify(jax.vmap(g)))
    error, found = checked(rows)
    assert error.get() is None
    np.testing.assert_allclose(found, jax.vmap(plain)(rows), rtol=1e-5)
    error, _ = checked(rows.at[1].set(jnp.nan))
    assert "x is nan" in error.get()


@pytest.mark.slow
@REAL_AND_COMPLEX
def test_inputs_that_are_pytrees(name):
    """They are the array of their leaves, one after another."""

    def f(x, y):
        return jnp.sum(x["a"] ** 2) * y + x["b"][0] * jnp.sum(x["b"][1])

    def flat(x, y):
        return jnp.sum(x[:3] ** 2) * y + x[3] * jnp.sum(x[4:])

    g, count = calls(name, f)
    by_array, _ = calls(name, flat)
    rows = copies_of(5 * count, 8).reshape(5, count, 8)
    trees = {"a": rows[..., :3], "b": (rows[..., 3], rows[..., 4:].reshape(5, count, 2, 2))}
    y = jnp.arange(5.0)

    def value_and_slope(g, rows):
        return jax.jit(jax.value_and_grad(lambda rows: jax.vmap(g)(rows, y).sum()))(rows)

    value, slope = value_and_slope(g, trees)
    total, expected = value_and_slope(by_array, rows)
    np.testing.assert_allclose(value, total, rtol=1e-4)
    chex.assert_trees_all_close(slope["a"], expected[..., :3], rtol=1e-4, atol=1e-5)
    chex.assert_trees_all_close(slope["b"][0], expected[..., 3], rtol=1e-4, atol=1e-5)

    def message(x):
        with pytest.raises(ValueError, match=r"must be noisy copies") as found:
            g(x, 1.0)
        return str(found.value)

    assert "of int32 at ['n']" in message({"n": jnp.zeros((count, 2), int)})
    unequal = {"a": jnp.zeros((count, 2)), "b": jnp.zeros((count + 1, 2))}
    assert "different numbers of copies" in message(unequal)
    assert "got [] of float32 at ['b']" in message({"a": jnp.zeros((count, 2)), "b": 1.0})


def test_lists_and_tuples_of_numbers_are_arrays():
    g = nj.unbiased.replicates(jnp.sum)
    for copies in ([1.0, 2.0], (1.0, 2.0), [[1.0], [2.0]]):
        np.testing.assert_allclose(g(copies), 1.5)


def test_types_of_leaves_are_kept():
    def f(x):
        assert [x["a"].dtype, x["b"].dtype] == [jnp.bfloat16, jnp.float32]
        return jnp.sum(x["b"]) + jnp.sum(x["a"].astype(jnp.float32))

    x = {"a": jnp.ones((2, 3), jnp.bfloat16), "b": jnp.ones(2)}
    np.testing.assert_allclose(nj.unbiased.replicates(f)(x), 4.0)
