"""The transformations inside equinox and flax models, and in 16 bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.unbiased.test_transformed import EVERY, KEY, calls, copies_of

WEIGHTS = jnp.array([[0.5, -0.3], [0.2, 0.8]]), jnp.array([0.7, -0.4])


def by_hand(first, last, x, y):
    return (jnp.sin(x @ first) @ last - y) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multilevel", "pair"])
def test_equinox_models_are_differentiated_as_they_are(name):
    """The gradient in the model is that in its two weights, under jit, over a batch of rows."""
    eqx = pytest.importorskip("equinox")

    class Model(eqx.Module):
        first: eqx.nn.Linear
        last: jax.Array

        def __call__(self, x):
            return jnp.sin(self.first(x)) @ self.last

    layer = eqx.nn.Linear(2, 2, use_bias=False, key=KEY)
    layer = eqx.tree_at(lambda layer: layer.weight, layer, WEIGHTS[0].T)
    g, count = calls(name, lambda model, x, y: (model(x) - y) ** 2, 1)
    h, _ = calls(name, by_hand, 2)
    rows, y = copies_of(3 * count, 2).reshape(3, count, 2), jnp.arange(3.0)

    def risk(model):
        return jax.vmap(lambda row, y: g(model, row, y))(rows, y).mean()

    def expected(weights):
        return jax.vmap(lambda row, y: h(*weights, row, y))(rows, y).mean()

    slope = eqx.filter_jit(eqx.filter_grad(risk))(Model(layer, WEIGHTS[1]))
    first, last = jax.jit(jax.grad(expected))(WEIGHTS)
    np.testing.assert_allclose(slope.first.weight, first.T, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(slope.last, last, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@EVERY
def test_in_bfloat16_the_rounding_is_that_of_f_times_the_weights(name):
    """Means of copies and sums are taken in float32; f itself is computed in its 8 bits."""
    weights = {"multilevel": 2 + 2 / 0.18, "pair": 2.0, "gaussian": 2.0, "replicates": 3.0}[name]
    g, count = calls(name, by_hand, 2)
    first, last = (each.astype(jnp.bfloat16) for each in WEIGHTS)
    copies = copies_of(count, 2).astype(jnp.bfloat16)
    found = jax.jit(g)(first, last, copies, jnp.bfloat16(0.5))
    wide = jax.jit(g)(*(jnp.asarray(each, jnp.float32) for each in (first, last, copies, 0.5)))
    assert found.dtype == jnp.bfloat16
    assert abs(float(found) - float(wide)) < 10 * 2**-8 * weights


def batch_of(count):
    """Copies `[V, n, d]` of a batch of five rows, and targets."""
    return copies_of(count, 5, 2), jnp.arange(5.0)


def normalized(weights, x, y, mask=1.0):
    """Batch normalization by hand, of a whole batch; also the mean and the variance."""
    hidden = x @ weights[0]
    mean, var = hidden.mean(axis=0), hidden.var(axis=0)
    hidden = jnp.sin((hidden - mean[None]) / jnp.sqrt(var + 1e-5)[None]) * mask
    return ((hidden @ weights[1] - y) ** 2).mean(), (mean, var)


@pytest.mark.slow
def test_batch_normalization_of_equinox():
    """Rows under `vmap` with a name are the function of the whole batch, and so is the state."""
    eqx = pytest.importorskip("equinox")
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(
        2, "batch", momentum=0.9, channelwise_affine=False, mode="batch"
    )

    def loss(weights, state, x, y):
        hidden, state = norm(x @ weights[0], state)
        return (jnp.sin(hidden) @ weights[1] - y) ** 2, state

    g, count = calls("multilevel", loss, 2)
    copies, y = batch_of(count)

    def risk(weights, state):
        rows = jax.vmap(g, (None, None, 1, 0), (0, None), axis_name="batch")
        values, state = rows(weights, state, copies, y)
        return values.mean(), state

    by_hand, _ = calls("multilevel", normalized, 1)
    slope, state = jax.jit(jax.grad(risk, has_aux=True))(WEIGHTS, state)
    expected, moments = jax.jit(jax.grad(by_hand, has_aux=True))(WEIGHTS, copies, y)
    for found, right in zip(slope, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-4)
    for start, found, right in zip((0, 1), state.get(norm.batch_state_index), moments, strict=True):
        np.testing.assert_allclose(found, 0.9 * start + 0.1 * right, rtol=1e-3, atol=1e-5)
    assert state.get(norm.batch_counter) == 1


@pytest.mark.slow
def test_batch_statistics_and_dropout_of_flax():
    """A function of the whole batch, whose new state is a second result."""
    nnx = pytest.importorskip("flax.nnx")

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = map(nnx.Param, WEIGHTS)
            self.norm = nnx.BatchNorm(2, momentum=0.9, use_bias=False, use_scale=False, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            hidden = self.dropout(jnp.sin(self.norm(x @ self.first[...])))
            return hidden @ self.last[...]

    def in_place(model, x, y):
        return ((model(x) - y) ** 2).mean()

    def loss(model, x, y):
        model = nnx.clone(model)
        return in_place(model, x, y), nnx.state(model, nnx.Not(nnx.Param))

    model = Model(nnx.Rngs(0))
    g, count = calls("replicates", loss, 1)
    copies, y = batch_of(count)
    with pytest.raises(Exception, match="Cannot mutate") as caught:
        calls("replicates", in_place, 1)[0](model, copies, y)
    notes = "".join(caught.value.__notes__)
    assert "begin f with net = nnx.clone(net)" in notes
    assert "jax.vmap" not in notes

    (value, state), slope = nnx.value_and_grad(g, has_aux=True)(model, copies, y)
    mask = nnx.clone(model.dropout)(jnp.ones((5, 2)))
    by_hand, _ = calls("replicates", normalized, 1)
    found = jax.jit(jax.value_and_grad(by_hand, has_aux=True))(WEIGHTS, copies, y, mask)
    (expected, (mean, var)), (first, _) = found
    np.testing.assert_allclose(value, expected, rtol=1e-3)
    np.testing.assert_allclose(slope.first[...], first, rtol=1e-3, atol=1e-4)
    nnx.update(model, state)
    np.testing.assert_allclose(model.norm.mean[...], 0.1 * mean, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(model.norm.var[...], 0.9 + 0.1 * var, rtol=1e-3)
    assert model.dropout.rngs.count[...] == 1


@EVERY
def test_statistics_over_rows_without_a_named_axis_say_where_it_is_named(name):
    g, count = calls(name, lambda x: x - jax.lax.pmean(x, "batch"))
    with pytest.raises(NameError) as found:
        jax.eval_shape(g, copies_of(count, 2))
    assert "axis_name=" in found.value.__notes__[0]
