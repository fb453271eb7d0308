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
    """Computes the regret of one run on a stream, in a form whose gradient can be taken.

        R = Σ_t (f_t(x_t) − y_t)² − min_{‖u‖ ≤ B} Σ_t (u(x_t) − y_t)²

    f_t is the learner's predictor in round t, after noisy copies of rounds before t, and u the best
    fixed predictor in a ball. Both losses are on clean data. For the gradient in the stream, u* is
    a constant: by the envelope theorem the derivative of the minimum is the derivative of Σ_t
    (u*(x_t) − y_t)² at fixed u*. `ascend` climbs along it.

    Args:
        learner: any learner; for a gradient, one that can be differentiated in reverse mode.
        stream: T clean rounds, `[T, d]` and `[T]`.
        noise: distribution of the noise in each copy of x.
        key: a key of `jax.random.key`, for the noise and for the learner's own randomness.
        radius: B > 0, radius of the ball of u.
        kernel: `(x[n, d], z[m, d]) -> [n, m]`, if u is in its space; by default u(x) = ⟨u, x⟩.
        y_noise: scalar distribution of the noise in y; none by default.
        rounds: number of rounds to run, from 1 to T; T by default. In rounds after these, x and y
            must be zero.

    Returns:
        R, `[]`, of this draw of the noise.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0], [1.0]], [1.0, -1.0])
        >>> learner = nj.learners.two_copies(radius=1.0, learning_rate=0.25)
        >>> def of(stream):
        ...     return nj.adversaries.clean_regret(
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
    """Moves streams by gradient ascent to a larger expected regret, within limits.

    The limits are ‖x_t‖ ≤ B_x and |y_t| ≤ B_y in every round. Each step estimates the gradient of
    the mean regret over new draws of the noise, which all streams share. It moves by optax's Adam,
    whose rate falls to zero by a cosine, and projects each x_t and y_t into its limits. It works
    under `jit`, and under `vmap` over arrays that `regret` closes over. `worst` calls it from many
    starts.

    Args:
        regret: `(stream, key) -> []`, a differentiable function, such as `clean_regret` of a
            learner.
        starts: R streams to start from, stacked in one `Stream` of `[R, T, d]` and `[R, T]`.
        key: a key of `jax.random.key`, for the noise.
        x_norm: B_x > 0, the largest ‖x_t‖; 1 by default.
        y_size: B_y > 0, the largest |y_t|; 1 by default.
        steps: number of steps, 100 by default.
        draws: number of draws of the noise in a step, 16 by default.
        learning_rate: first learning rate of Adam, in units of B_x and B_y; 0.1 by default.
        used: `[T]`, one for rounds that count; in rounds with zero, x and y are set to zero. All
            ones by default.

    Returns:
        `(streams, sound)`: R streams, stacked as `starts`, and `[]`, true if all gradients were
        finite. Numbers in a gradient that are not finite count as zero.

    Source: the gradient of the minimum by the envelope theorem (`clean_regret`); Adam is Kingma and
    Ba (2015).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> starts = nj.Stream(jnp.full((1, 2, 1), 0.5), jnp.full((1, 2), 0.5))
        >>> def regret(stream, key):
        ...     return jnp.sum(stream.x) - jnp.sum(stream.y)
        >>> found, _ = nj.adversaries.ascend(regret, starts, jax.random.key(0), x_norm=2.0)
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
    """Makes streams of known kinds, by name, from which `worst` starts its search.

    All have T rounds with ‖x_t‖ ≤ B_x and |y_t| ≤ B_y. Except in "random" and "one copy", all x_t
    are the same; e_1 is the first unit vector.

    - "random": x_t uniform on the sphere of radius B_x, y_t = ±B_y at random.
    - "constant": x_t = B_x e_1, as in the next four, and y_t = B_y.
    - "alternating": y_t = ±B_y in turn.
    - "reversal": the sign of y_t changes once, at T/2.
    - "sawtooth": the sign of y_t changes every √T rounds. This is the time in which gradient
      descent at the rate of `bounds.two_copies` gets from the centre of its ball to the boundary,
      so that targets of the other sign then make its gradients as large as possible.
    - "late": y_t = ±B_y in turn, and constant for the last √T rounds. For linear losses this
      attains the bound of gradient descent, `regret` of a `bounds.Guarantee`.
    - "one copy": x_t = B_x e_1 or −B_x e_1/3 at random, y_t = B_y: the stream of the noiseless
      adversary of `streams.one_copy_adversaries`.
    - "small": x_t = B_x e_1/3, y_t = B_y: the stream of the noisy one.

    Args:
        key: a key of `jax.random.key`, for "random" and "one copy".
        horizon: T ≥ 1, number of rounds.
        dim: d ≥ 1, number of features.
        x_norm: B_x > 0, the largest ‖x_t‖; 1 by default.
        y_size: B_y > 0, the largest |y_t|; 1 by default.

    Returns:
        A dict from each of the names above to a `Stream` of `[T, d]` and `[T]`.

    Example:
        >>> import jax, noisy_jax as nj
        >>> starts = nj.adversaries.structured_starts(jax.random.key(0), horizon=6, dim=2)
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
