"""Rounds as a learner sees them: noisy copies of clean examples."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Sample
from noisy_jax.noise.base import Noise, covariance_times
from noisy_jax.noise.gaussian import Gaussian
from noisy_jax.noise.rounds import PerRound, by_round, check_noise
from noisy_jax.noise.targets import Correlated
from noisy_jax.validation import check_axes, check_dimension, check_key, whole
from noisy_jax.varying import of_this_device

BLOCK = 128
"""Rounds whose noise is drawn by one key."""


def observe(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    noise: Noise,
    *,
    copies: int,
    y_noise: Noise | None = None,
) -> Sample:
    """One round as a learner sees it: independent noisy copies, minus the mean of the noise.

    Copy v depends on the key and on v only: a learner that reads two copies and one that reads
    three see the same first two.

    Args:
        key: the randomness of this round's noise.
        x: `[d]` clean instance.
        y: `[]` clean target.
        noise: distribution of the noise in each copy of `x`.
        copies: V ≥ 1, how many noisy copies to draw.
        y_noise: scalar distribution of the noise in `y`, or `noise.Correlated`; none by default.

    Example:
        >>> import noisy_jax as nj
        >>> key, x = jax.random.key(0), jnp.zeros(2)
        >>> sample = observe(key, x, 1.0, nj.noise.Rademacher(0.5), copies=3)
        >>> print(abs(sample.x), sample.cov)
        [[0.5 0.5]
         [0.5 0.5]
         [0.5 0.5]] 0.25
    """
    check_key(key)
    check_axes("x", x, "[d]", "; batch rounds with jax.vmap")
    check_axes("y", y, "[]", "; batch rounds with jax.vmap")
    check_noise(noise, y_noise)
    copies = whole("copies", copies)
    x, y = jnp.asarray(x), jnp.asarray(y)
    x_key, y_key = jax.random.split(key)
    return _sample(y_key, _copies(x_key, x, noise, copies), x, y, noise, y_noise)


def observe_block(
    key: chex.PRNGKey,
    rounds: jax.Array,
    offset: Any,
    x: jax.Array,
    y: jax.Array,
    noise: Noise | PerRound,
    y_noise: Noise | PerRound | None,
    *,
    copies: int,
) -> tuple[Sample, chex.PRNGKey]:
    """Successive rounds as a learner sees them, and a key for its own randomness in each.

    Round t depends on the key and on t only, not on where the block starts. One key draws the noise
    of x for B = `BLOCK` rounds, several times faster than a key for each: round t has row t mod B
    of block t // B. Each round has its own key for noise of y, for a custom distribution, whose
    `centred` may not draw independent rows, and for noise that changes by round, unless Gaussian.

    The m ≤ B rounds have numbers `[m]`, instances `[m, d]` and targets `[m]`. `offset` is the first
    number mod B; if it is the int 0, one block is drawn instead of two.
    """
    block_key, round_key = jax.random.split(key)
    keys = jax.vmap(lambda t: jax.random.split(jax.random.fold_in(round_key, t), 3))(rounds)
    (x_noise, x_axis), (y_noise, y_axis) = by_round(noise), by_round(y_noise)

    def drawn(distribution, rows):
        rows = jnp.roll(jnp.pad(rows, ((0, BLOCK - len(x)), (0, 0))), offset, axis=0)
        block_keys = [jax.random.fold_in(block_key, rounds[0] // BLOCK + i) for i in range(2)]
        shown = _copies(block_keys[0], rows, distribution, copies)
        if not (isinstance(offset, int) and offset == 0):
            next_block = jnp.arange(BLOCK)[:, None] < offset
            shown = jnp.where(next_block, _copies(block_keys[1], rows, distribution, copies), shown)
        return jnp.roll(shown, -offset, axis=1)[:, : len(x)].swapaxes(0, 1)

    if x_axis is None and type(x_noise).centred is Noise.centred:
        shown = drawn(x_noise, x)
    elif type(x_noise) is Gaussian:
        draws = drawn(Gaussian(1.0), jnp.zeros_like(x))
        shown = x[:, None] + jax.vmap(Gaussian._scaled)(x_noise, draws)
    else:
        shown = jax.vmap(_copies, (0, 0, x_axis, None))(keys[:, 0], x, x_noise, copies)
    sampled = jax.vmap(_sample, (0, 0, 0, 0, x_axis, y_axis))
    return sampled(keys[:, 1], shown, x, y, x_noise, y_noise), keys[:, 2]


def _copies(key, x, noise, copies) -> jax.Array:
    """`[V, ...]` noisy copies of x, each with a key of its own."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(copies))
    return jax.vmap(noise.centred, (0, None))(keys, x)


def _sample(y_key, shown, x, y, noise, y_noise) -> Sample:
    """What a learner sees of a round, whose copies `[V, d]` are shown."""
    cov, cross = noise.estimated_cov(shown[0]), None
    if isinstance(y_noise, Correlated):
        check_dimension("y_noise.slopes", y_noise.slopes, x.shape)
        y = y + jnp.vdot(y_noise.slopes, shown[0] - x)
        cross = covariance_times(cov, y_noise.slopes)
        y_noise = y_noise.rest
    if y_noise is not None:
        y = y_noise.centred(y_key, y)
    return Sample(shown, y, cov, cross)


def scan_in_blocks(block, state, inputs, size: int = BLOCK):
    """`jax.lax.scan` over blocks of `size` rounds, the leading axis of the inputs' leaves.

    Returns the last state and outputs with an axis of blocks: of the full blocks, and of the rest.
    """
    state, rounds = of_this_device(state), len(jax.tree.leaves(inputs)[0])
    whole, outputs = rounds - rounds % size, []
    if whole:
        blocks = jax.tree.map(lambda a: a[:whole].reshape(-1, size, *a.shape[1:]), inputs)
        state, output = jax.lax.scan(block, state, blocks)
        outputs.append(output)
    if whole < rounds:
        state, output = block(state, jax.tree.map(lambda a: a[whole:], inputs))
        outputs.append(jax.tree.map(lambda leaf: leaf[None], output))
    return state, outputs
