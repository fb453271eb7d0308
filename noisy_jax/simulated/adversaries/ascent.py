"""Projected gradient ascent on the clean regret of streams, and streams where it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Stream
from noisy_jax.draws import normal, rademacher
from noisy_jax.losses import squared
from noisy_jax.noise import Noise
from noisy_jax.simulated.comparators import kernel_ball, linear_ball
from noisy_jax.simulated.rollouts import final_regret
from noisy_jax.simulated.streams import one_copy_adversaries
from noisy_jax.validation.arrays import check_axes, check_shape
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import check_finite, positive, whole
from noisy_jax.validation.objects import function, instance
from noisy_jax.validation.values import Array, ArrayLike

Kernel = Callable[[jax.Array, jax.Array], jax.Array]
"""`(x[n, d], z[m, d]) -> [n, m]`, such as one of `kernels`."""


def clean_regret(
    learner: Learner,
    stream: Stream,
    noise: Noise,
    key: jax.Array,
    *,
    radius: ArrayLike,
    kernel: Kernel | None = None,
    y_noise: Noise | None = None,
    rounds: ArrayLike | None = None,
) -> jax.Array:
    """Returns the regret `[]` of one run on clean data, squared loss, against the best in a ball.

        R = Σ_t (f_t(x_t) − y_t)² − min_{‖u‖ ≤ B} Σ_t (u(x_t) − y_t)²

    Its gradient in the stream takes the minimizer u* as a constant: by the envelope theorem the
    derivative of the minimum is the derivative of Σ_t (u*(x_t) − y_t)² at fixed u*.

    It takes the arguments of `simulated.final_regret`; x and y must be zero after the `rounds`
    that count. The learner must allow reverse mode only if you take a gradient. Comparators are
    weights in the ball of radius B by default, and with a `kernel` the functions of its space.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0], [1.0]], [1.0, -1.0])
        >>> learner = nj.learners.two_copies(radius=1.0, learning_rate=0.25)
        >>> def of(stream):
        ...     return clean_regret(
        ...         learner, stream, nj.noise.Gaussian(0.0), jax.random.key(0), radius=1.0)
        >>> print(of(stream), jax.grad(of)(stream).y)  # 1 + 1.5² − 2, with u* = 0
        1.25 [ 1.5 -1. ]
    """
    if kernel is not None and not callable(kernel):
        raise ValueError(f"kernel must be a function (x, z) -> [n, m], got {given(kernel)}")
    fixed = jax.lax.stop_gradient(instance("stream", stream, Stream))
    if kernel is None:
        comparator = stream.x @ linear_ball(fixed, radius).weights
    else:
        horizon, gram = len(stream.y), kernel(fixed.x, fixed.x)
        check_shape("kernel(x, z)", gram, (horizon, horizon), "for x and z of [T, d]")
        used = jnp.arange(horizon) < (horizon if rounds is None else rounds)
        gram = jnp.where(used[:, None] & used[None], gram, 0)
        best = kernel_ball(gram, fixed.y, radius)
        # The values come from `best.predictions`, as float32 coefficients may cancel.
        values = jnp.matmul(kernel(stream.x, fixed.x), best.coefficients, precision="highest")
        comparator = best.predictions + values - jax.lax.stop_gradient(values)
    return final_regret(
        learner, stream, noise, key,
        loss=squared(), comparator=comparator, y_noise=y_noise, rounds=rounds,
    )  # fmt: skip


def ascend(
    regret: Callable[[Stream, jax.Array], jax.Array],
    starts: Stream,
    key: jax.Array,
    *,
    x_norm: Any = 1.0,
    y_size: Any = 1.0,
    steps: int = 100,
    draws: int = 16,
    learning_rate: Any = 0.1,
    used: Array | None = None,
) -> tuple[Stream, jax.Array]:
    """Increases the expected regret of streams, within ‖x_t‖ ≤ B_x and |y_t| ≤ B_y.

    Each step estimates the gradient of the mean regret over new draws of the noise, which all
    streams share. It moves by optax's Adam, whose rate falls to zero by a cosine, and projects each
    x_t and y_t. It works under `jit`, and under `vmap` over arrays that `regret` closes over.

    Args:
        regret: `(stream, key) -> []`, such as `clean_regret` of a learner.
        starts: R streams, `[R, T, d]` and `[R, T]`.
        key: randomness of the noise.
        x_norm: B_x > 0, the largest ‖x_t‖.
        y_size: B_y > 0, the largest |y_t|.
        steps: number of steps.
        draws: draws of the noise in a step.
        learning_rate: first learning rate of Adam, in units of B_x and B_y.
        used: `[T]`, one for rounds that may change, zero for fixed rounds; all ones by default.

    Returns:
        R streams, and `[]`, true if all gradients were finite (other gradients count as zero).

    Source: the gradient of the minimum by the envelope theorem (`clean_regret`); Adam is Kingma and
    Ba (2015).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> starts = nj.Stream(jnp.full((1, 2, 1), 0.5), jnp.full((1, 2), 0.5))
        >>> def regret(stream, key):
        ...     return jnp.sum(stream.x) - jnp.sum(stream.y)
        >>> found, _ = ascend(regret, starts, jax.random.key(0), x_norm=2.0)
        >>> print(found.x.ravel(), found.y.ravel())
        [2. 2.] [-1. -1.]
    """
    key = parsed_key(key)
    function("regret", regret, "(stream, key) -> []")
    instance("starts", starts, Stream, "R streams, stacked")
    check_axes("starts.x", starts.x, "[R, T, d]")
    check_axes("starts.y", starts.y, "[R, T]")
    for name, values in zip(("starts.x", "starts.y"), starts, strict=True):
        check_finite(name, values)
    learning_rate = positive("learning_rate", learning_rate)
    x_norm, y_size = positive("x_norm", x_norm), positive("y_size", y_size)
    steps, draws = whole("steps", steps), whole("draws", draws)
    optimizer = optax.adam(optax.cosine_decay_schedule(learning_rate, steps))
    mask = jnp.ones(starts.y.shape[1]) if used is None else used

    def loss(units, keys):
        stream = Stream(x_norm * units.x, y_size * units.y)
        shape = jax.eval_shape(regret, stream, keys[0]).shape
        if shape:
            raise ValueError(f"regret(stream, key) must be one number, got {list(shape)}")
        return -jnp.mean(jax.vmap(regret, (None, 0))(stream, keys))

    def step(carry, key):
        units, state, sound = carry
        gradients = jax.vmap(jax.grad(loss), (0, None))(units, jax.random.split(key, draws))
        finite = jax.tree.map(jnp.isfinite, gradients)
        sound &= finite.x.all() & finite.y.all()
        gradients = jax.tree.map(lambda g, f: jnp.where(f, g, 0), gradients, finite)
        with jax.numpy_dtype_promotion("standard"):  # which optax needs
            updates, state = optimizer.update(gradients, state)
        return (_projected(optax.apply_updates(units, updates), mask), state, sound), None

    units = Stream(starts.x / x_norm, starts.y / y_size)
    carry = units, optimizer.init(units), jnp.array(True)
    (units, _, sound), _ = jax.lax.scan(step, carry, jax.random.split(key, steps))
    return Stream(x_norm * units.x, y_size * units.y), sound


def _projected(units, mask) -> Stream:
    norms = jnp.sqrt(jnp.sum(units.x**2, axis=-1, keepdims=True))
    x = units.x / jnp.maximum(norms, 1) * mask[None, :, None]
    return Stream(x, jnp.clip(units.y, -1, 1) * mask[None])


def structured_starts(
    key: jax.Array,
    horizon: int,
    dim: int,
    *,
    x_norm: ArrayLike = 1.0,
    y_size: ArrayLike = 1.0,
) -> Mapping[str, Stream]:
    """Returns streams of known kinds, by name, from which `worst` starts its search.

    All have ‖x_t‖ ≤ B_x and |y_t| ≤ B_y:

    - "random": x_t uniform on the sphere, y_t = ±B_y at random.
    - "constant": y_t = B_y; this stream and all below have x_t = B_x e_1, unless they name another.
    - "alternating": y_t = ±B_y in turn.
    - "reversal": the sign of y_t changes once, at T/2.
    - "sawtooth": the sign changes every √T rounds, the time that gradient descent at the rate of
      `bounds.two_copies` takes from the centre of its ball of radius B_w to the boundary. Weights
      near the boundary then meet the targets that make the second moment of the gradient largest
      (y = −B_y at w = B_w e_1).
    - "late": y_t = ±B_y in turn, and constant for the last √T rounds. For linear losses this
      attains the bound B_w √(GT) of gradient descent (G as in `bounds.Guarantee`).
    - "one copy": the noiseless adversary of `streams.one_copy_adversaries`, x_t = B_x e_1 or
      −B_x e_1/3 at random, y_t = B_y.
    - "small": the clean data of the noisy adversary, x_t = B_x e_1/3, y_t = B_y.

    Args:
        key: randomness of "random" and "one copy".
        horizon: T ≥ 1 rounds.
        dim: d ≥ 1 features.
        x_norm: B_x > 0, the largest ‖x_t‖.
        y_size: B_y > 0, the largest |y_t|.

    Example:
        >>> import jax
        >>> starts = structured_starts(jax.random.key(0), horizon=6, dim=2)
        >>> print(starts["alternating"].y, starts["sawtooth"].y)
        [ 1. -1.  1. -1.  1. -1.] [ 1.  1. -1. -1.  1.  1.]
    """
    key = parsed_key(key)
    horizon, dim = whole("horizon", horizon), whole("dim", dim)
    x_norm, y_size = positive("x_norm", x_norm), positive("y_size", y_size)
    x_key, y_key, copy_key = jax.random.split(key, 3)
    rounds = jnp.arange(horizon)
    directions = normal(x_key, (horizon, dim))
    directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
    first = jnp.zeros((horizon, dim)).at[:, 0].set(1.0)
    one_copy = one_copy_adversaries(copy_key, horizon).noiseless.stream.x / 3
    ones, root = jnp.ones(horizon), round(horizon**0.5)

    def signs(half_period):
        return jnp.where(rounds // half_period % 2, -ones, ones)

    units = {
        "random": (directions, rademacher(y_key, (horizon,))),
        "constant": (first, ones),
        "alternating": (first, signs(1)),
        "reversal": (first, signs((horizon + 1) // 2)),
        "sawtooth": (first, signs(root)),
        "late": (first, jnp.where(rounds < horizon - root, signs(1), 1.0)),
        "one copy": (first * one_copy, ones),
        "small": (first / 3, ones),
    }
    return {name: Stream(x_norm * x, y_size * y) for name, (x, y) in units.items()}
