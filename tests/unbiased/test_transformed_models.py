"""The transformations inside equinox and flax models, and in 16 bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.unbiased.test_transformed import EVERY, KEY, calls, copies_of

W = np.array([[0.5, -0.3], [0.2, 0.8]]), np.array([0.7, -0.4])


def by_hand(first, last, x, y):
    return (jnp.sin(x @ first) @ last - y) ** 2


def check(name, loss, model, gradient_of, leaves):
    """The gradient in the model is that in its two weights, under jit, over a batch of rows."""
    g, count = calls(name, loss, 1)
    h, _ = calls(name, by_hand, 2)
    rows, y = copies_of(3 * count, 2).reshape(3, count, 2), jnp.arange(3.0)

    def risk(model, rows, y):
        return jax.vmap(lambda row, y: g(model, row, y))(rows, y).mean()

    def expected(weights, rows, y):
        return jax.vmap(lambda row, y: h(*weights, row, y))(rows, y).mean()

    found = leaves(gradient_of(risk)(model, rows, y))
    weights = tuple(jnp.asarray(each, float) for each in W)
    for a, b in zip(found, jax.jit(jax.grad(expected))(weights, rows, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


@EVERY
def test_equinox_models_are_differentiated_as_they_are(name):
    eqx = pytest.importorskip("equinox")

    class Model(eqx.Module):
        first: eqx.nn.Linear
        last: jax.Array

        def __call__(self, x):
            return jnp.sin(self.first(x)) @ self.last

    layer = eqx.nn.Linear(2, 2, use_bias=False, key=KEY)
    layer = eqx.tree_at(lambda layer: layer.weight, layer, jnp.asarray(W[0].T, float))
    model = Model(layer, jnp.asarray(W[1], float))

    def loss(model, x, y):
        return (model(x) - y) ** 2

    def gradient(risk):
        return eqx.filter_jit(eqx.filter_grad(risk))

    check(name, loss, model, gradient, lambda slope: (slope.first.weight.T, slope.last))


@EVERY
def test_flax_models_are_differentiated_as_they_are(name):
    nnx = pytest.importorskip("flax.nnx")

    class Model(nnx.Module):
        def __init__(self):
            self.first = nnx.Linear(2, 2, use_bias=False, rngs=nnx.Rngs(0))
            self.first.kernel = nnx.Param(jnp.asarray(W[0], float))
            self.last = nnx.Param(jnp.asarray(W[1], float))

        def __call__(self, x):
            return jnp.sin(self.first(x)) @ self.last[...]

    graph, state = nnx.split(Model())

    def loss(state, x, y):
        return (nnx.merge(graph, state)(x) - y) ** 2

    def leaves(slope):
        return jax.tree.leaves(nnx.to_pure_dict(slope))

    check(name, loss, state, lambda risk: jax.jit(jax.grad(risk)), leaves)


@EVERY
def test_in_bfloat16_the_rounding_is_that_of_f_times_the_weights(name):
    """Means of copies and sums are taken in float32; f itself is computed in its 8 bits."""
    weights = {"multilevel": 2 + 2 / 0.18, "pair": 2.0, "gaussian": 2.0, "replicates": 3.0}[name]
    g, count = calls(name, by_hand, 2)
    first, last = (jnp.asarray(each, jnp.bfloat16) for each in W)
    copies = copies_of(count, 2).astype(jnp.bfloat16)
    found = g(first, last, copies, jnp.bfloat16(0.5))
    wide = g(*(jnp.asarray(each, jnp.float32) for each in (first, last, copies, 0.5)))
    assert found.dtype == jnp.bfloat16
    assert abs(float(found) - float(wide)) < 10 * 2**-8 * weights


@pytest.mark.slow
@EVERY
def test_maps_of_gradients_and_two_maps(name):
    """vmap of grad, vmap in vmap, and the Hessian agree with loops."""
    g, count = calls(name, by_hand, 2)
    first, last = (jnp.asarray(each, float) for each in W)
    rows = copies_of(4 * count, 2).reshape(2, 2, count, 2)
    slopes = jax.vmap(jax.grad(g), (None, None, 0, None))(first, last, rows[0], 0.5)
    loop = [jax.grad(g)(first, last, row, 0.5) for row in rows[0]]
    np.testing.assert_allclose(slopes, jnp.stack(loop), rtol=1e-3, atol=1e-5)
    twice = jax.vmap(jax.vmap(lambda row: g(first, last, row, 0.5)))(rows)
    loop = [[g(first, last, row, 0.5) for row in part] for part in rows]
    np.testing.assert_allclose(twice, np.array(loop), rtol=1e-3, atol=1e-5)
    curved = jax.jacfwd(jax.grad(lambda last: g(first, last, rows[0, 0], 0.5)))(last)
    np.testing.assert_allclose(curved, curved.T, rtol=1e-3, atol=1e-4)
