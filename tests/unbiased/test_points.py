"""Points of an estimate are merged with the rows of a batch, and nothing else changes."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax.unbiased.points import at_points
from noisy_jax.unbiased.transformed import Traced

W = jnp.array([[0.5, -0.3], [0.2, 0.8], [0.1, 0.4]])
ROWS = jnp.asarray(np.random.default_rng(0).normal(size=(5, 4, 3)), float)
LABELS = jnp.arange(5)


@jax.custom_vjp
def halved(x):
    return 2 * x


halved.defvjp(lambda x: (2 * x, None), lambda _, slope: (slope / 2,))


def f(w, x, label):
    """A pytree, of a whole number, with a derivative of its own and a loop."""
    value = halved(jnp.sum(jnp.sin(x @ w)))
    looped = jax.lax.fori_loop(0, 2, lambda i, c: c * x[0] + label, value)
    return {"a": looped, "b": x * value}


def merged(f, points):
    traced = Traced.of(f, points[0])
    return jax.tree.unflatten(traced.structure, at_points(traced.jaxpr, points))


def by_points(w, points, label):
    return merged(lambda x: f(w, x, label), points)


def by_vmap(w, points, label):
    return jax.vmap(lambda x: f(w, x, label))(points)


def total(g):
    def risk(w, rows, labels):
        found = jax.vmap(g, (None, 0, 0))(w, rows, labels)
        return jnp.mean(found["a"] ** 2) + jnp.mean(found["b"])

    return risk


USES = {
    "alone": lambda g: g(W, ROWS[0], 2),
    "jit": lambda g: jax.jit(g)(W, ROWS[0], 2),
    "rows": lambda g: jax.vmap(g, (None, 0, 0))(W, ROWS, LABELS),
    "other axes": lambda g: jax.vmap(g, (0, 1, None))(jnp.stack(4 * [W]), ROWS, 2),
    "parameters only": lambda g: jax.vmap(g, (0, None, None))(jnp.stack([W, 2 * W]), ROWS[0], 1),
    "gradient of rows": lambda g: jax.grad(total(g), (0, 1))(W, ROWS, LABELS),
    "rows of jit": lambda g: jax.grad(total(jax.jit(g)))(W, ROWS, LABELS),
    "derivative": lambda g: jax.jvp(lambda w: by_square(g, w), (W,), (W,)),
    "jacobian": lambda g: jax.vmap(jax.jacrev(g), (None, 0, 0))(W, ROWS, LABELS),
    "two maps": lambda g: jax.vmap(jax.vmap(g, (None, 0, None)), (None, 0, 0))(
        W, jnp.stack([ROWS, -ROWS]), LABELS[:2]
    ),
}


def by_square(g, w):
    """Of a function without a derivative of its own, which has no forward mode."""
    rows = jax.vmap(lambda row: merged(lambda x: (x @ w) ** 2, row))(ROWS)
    return rows if g is by_points else (ROWS @ w) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_it_is_vmap(use):
    found, expected = USES[use](by_points), USES[use](by_vmap)
    chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=1e-5)


def test_points_and_rows_become_one_axis():
    def total_of_rows(w):
        return jax.vmap(lambda row: merged(lambda x: jnp.sin(x @ w), row))(ROWS).sum()

    program = jax.make_jaxpr(jax.grad(total_of_rows))(W)
    products = [eqn for eqn in program.eqns if eqn.primitive.name == "dot_general"]
    assert products
    assert all(each.aval.ndim == 2 for eqn in products for each in eqn.outvars)
