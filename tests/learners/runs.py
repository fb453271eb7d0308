"""Runs of a learner on samples, by `unroll` and by steps, and checks of its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import base


def inputs(x, y, copies=None, cov=None):
    """Samples, of the clean x where no copies are given, x and keys: what `unroll` takes."""
    x, y = jnp.asarray(x), jnp.asarray(y)
    copies = x[:, None] if copies is None else jnp.asarray(copies)
    return base.Sample(copies, y, cov), x, jax.random.split(jax.random.key(0), len(y))


def unrolled(learner, x, y, **shown):
    """(state, predictions) of rounds at x `[T, d]`, of which `copies` and `cov` are shown."""
    return jax.jit(base.unrolled(learner))(learner.init(x.shape[1]), *inputs(x, y, **shown))[:2]


def both_ways(learner, x, y, **shown):
    """The same by `unroll` and by a scan over `step`."""
    return [unrolled(way, x, y, **shown) for way in (learner, learner._replace(unroll=None))]


def gradient(loss, given, rng, step, rtol):
    """The gradient by reverse mode, compared with forward mode and finite differences."""
    direction = jax.tree.map(lambda leaf: rng.normal(size=np.shape(leaf)), given)
    reverse = jax.jit(jax.grad(loss, range(len(given))))(*given)
    along = sum(jax.tree.leaves(jax.tree.map(lambda g, v: jnp.sum(g * v), reverse, direction)))
    forward = jax.jit(lambda *direction: jax.jvp(loss, given, direction)[1])
    np.testing.assert_allclose(along, forward(*direction), rtol=1e-10)

    plain = jax.jit(loss)  # the derivative's rule has another loop, with values of its own
    ahead, back = (
        plain(*jax.tree.map(lambda a, v, s=s: a + s * v, given, direction)) for s in (step, -step)
    )
    np.testing.assert_allclose(along, (ahead - back) / (2 * step), rtol=rtol)
    return reverse
