"""The worst stream for a learner that gradient ascent finds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Stream, check_learner, check_one_prediction
from noisy_jax.noise import Noise
from noisy_jax.noise.rounds import check_noise
from noisy_jax.reports.intervals import half_width
from noisy_jax.simulated.adversaries.ascent import Kernel, ascend, clean_regret, structured_starts
from noisy_jax.simulated.rollouts import rollout
from noisy_jax.validation.arrays import check_shape
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import positive, whole
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import ArrayLike


class Worst(NamedTuple):
    """The worst stream found.

    Attributes:
        stream: T rounds.
        regret: mean regret on clean data over draws of the noise that were not used to find it.
        interval: `(low, high)`, of the expected regret, at 95% for all streams together that were
            compared on these draws.
        guarantee: the bound that was given, or its mean over the same draws; NaN if there is none.
        ratio: regret / guarantee.
        excess: `(low, high)`, as `interval`, of the expected regret minus the guarantee. If it is
            above zero, the guarantee is false. With one that is known after a run, both vary from
            draw to draw.
        start: name of the start that it was found from.
        starts: regret of each start by name, on the same draws.
    """

    stream: Stream
    regret: float
    interval: tuple[float, float]
    guarantee: float
    ratio: float
    excess: tuple[float, float]
    start: str
    starts: Mapping[str, float]


class Scores(NamedTuple):
    """Means over draws of the noise, with standard errors, of R streams, `[R]`."""

    mean: jax.Array
    std_error: jax.Array


def worst(
    learner: Learner,
    noise: Noise,
    horizon: int,
    key: jax.Array,
    *,
    radius: ArrayLike,
    dim: int = 1,
    x_norm: ArrayLike = 1.0,
    y_size: ArrayLike = 1.0,
    guarantee: Any = None,
    kernel: Kernel | None = None,
    y_noise: Noise | None = None,
    starts: Mapping[str, Stream] | None = None,
    steps: int = 100,
    draws: int = 16,
    held_out: int = 512,
) -> Worst:
    """Searches by gradient ascent for the stream with the largest expected regret of a learner.

        max_{‖x_t‖ ≤ B_x, |y_t| ≤ B_y}  E Σ_t (f_t(x_t) − y_t)² − min_{‖u‖ ≤ B} Σ_t (u(x_t) − y_t)²

    f_t is the learner's predictor in round t, u a fixed predictor, and both losses are on clean
    data. The search climbs from all `structured_starts` and further `starts` (`ascend`). New draws
    of the noise select the best of all streams, and others give the regret that is returned, which
    is never below the best start's. As the problem is not concave, it is a lower bound on the worst
    regret. It shows that a guarantee is false if the interval `excess` is above zero.

    Args:
        learner: a learner that can be differentiated in reverse mode; otherwise ValueError.
        noise: distribution of the noise in each copy of x.
        horizon: T ≥ 1, number of rounds.
        key: a key of `jax.random.key`, for the starts and the noise.
        radius: B > 0, radius of the ball of u.
        dim: d ≥ 1, number of features; 1 by default.
        x_norm: B_x > 0, the largest ‖x_t‖; 1 by default.
        y_size: B_y > 0, the largest |y_t|; 1 by default.
        guarantee: a result of `bounds`, a number, or a function of the state after a run, such as
            `functools.partial(bounds.adaptive_rate, radius=B)`; none by default. It must hold for
            all streams within the limits. The search is for a large regret, not for a large ratio
            to it.
        kernel: `(x[n, d], z[m, d]) -> [n, m]`, if u is in its space; by default u(x) = ⟨u, x⟩. For
            `learners.parallel_worlds` take E k(x + n, ·), since its ball is in the surrogate's
            space, for `learners.fourier_worlds` the inner product of clean features.
        y_noise: scalar distribution of the noise in y; none by default.
        starts: further streams to start from, by name, within the limits; none by default.
        steps: number of steps of the ascent, 100 by default.
        draws: number of draws of the noise in a step, 16 by default.
        held_out: draws of the noise for the regret that is returned, at least 2, 512 by default; as
            many select the stream.

    Returns:
        A named tuple: `stream`; `regret`, its mean regret; `interval`, `(low, high)` of the
        expected regret at 95%, for all compared streams together; `guarantee`, the bound (its mean,
        if it is a function; NaN if none); `ratio`, regret / guarantee; `excess`, the interval of
        regret minus guarantee; `start`, the name of the start it was found from; and `starts`, the
        regret of each start by name.

    Example:
        >>> import jax, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.0)
        >>> one = nj.Stream(jax.numpy.ones((16, 1)), jax.numpy.ones(16))
        >>> moments = nj.bounds.moments(one, noise)
        >>> guarantee = nj.bounds.two_copies(moments, horizon=16, radius=1.0)
        >>> learner = nj.learners.two_copies(radius=1.0, learning_rate=guarantee.learning_rate)
        >>> found = nj.adversaries.worst(learner, noise, 16, jax.random.key(0), radius=1.0,
        ...                              guarantee=guarantee, held_out=2)
        >>> random = found.starts["random"] / found.guarantee
        >>> print(f"{found.ratio:.2f} of the bound, {random:.2f} on random signs")
        0.40 of the bound, 0.09 on random signs
    """
    check_learner(learner)
    check_noise(noise, y_noise)
    key = parsed_key(key)
    horizon, dim = whole("horizon", horizon), whole("dim", dim)
    steps, draws = whole("steps", steps), whole("draws", draws)
    held_out = whole("held_out", held_out, 2, "one draw has no interval")
    limits = {"x_norm": positive("x_norm", x_norm), "y_size": positive("y_size", y_size)}
    radius = positive("radius", radius)
    check_one_prediction(learner, dim, "learner")
    structured = jax.eval_shape(lambda: structured_starts(key, horizon, dim))
    further = _checked({} if starts is None else starts, structured, horizon, dim, **limits)
    bound: Any = getattr(guarantee, "regret", guarantee)
    if not (bound is None or callable(bound)):
        bound = positive("guarantee", bound, "one of bounds, a number, or a function of the state")
    options = {"radius": radius, "kernel": kernel, "y_noise": y_noise}

    def regret(stream, key):
        return clean_regret(learner, stream, noise, key, **options)

    def bound_after(stream, key):
        state = rollout(learner, stream, noise, key, y_noise=y_noise).state
        return guarantee(state if learner.finish is None else learner.finish(state))

    def search(key, further):
        start_key, climb_key, *_ = four_keys(key)
        named = {**structured_starts(start_key, horizon, dim, **limits), **further}
        stacked = stack(named[name] for name in names)
        climbed, sound = ascend(regret, stacked, climb_key, steps=steps, draws=draws, **limits)
        return (*chosen(regret, stacked, climbed, key, held_out), sound)

    names = sorted({*structured, *further})
    _check_gradient(regret, structured["random"], key)
    if callable(bound):
        value = jax.eval_shape(bound_after, structured["random"], key)
        check_shape("guarantee(state)", value, (), "one number")
    program, settings = jax.jit(search), cast(Any, jax.config)
    if not settings.jax_disable_jit:
        program = program.lower(key, further).compile()
        check_memory(program, f"horizon = {horizon}, dim = {dim} and {draws} draws")
    streams, index, scores, sound = jax.device_get(program(key, further))
    if not sound:
        raise ValueError(
            "learner cannot be differentiated: its gradient is not finite, or it takes labels ±1 "
            "only, or the noise is not one of all x and y within the limits (as that of counts)"
        )
    best = int(np.argmax(scores.mean))
    origin = names[index] if best == len(names) else names[best]
    stream = jax.tree.map(lambda leaf: jnp.asarray(leaf[best]), streams)
    mean, compared = float(scores.mean[best]), len(scores.mean)
    error = scores.std_error[best]
    half = over = float(half_width(error, held_out - 1, comparisons=compared))
    if callable(bound):

        def pair(key):
            return bound_after(stream, key), regret(stream, key)

        values, regrets = jax.jit(jax.vmap(pair))(jax.random.split(four_keys(key)[3], held_out))
        bound, over = map(float, bound_and_half_width(values, regrets, compared))
    limit = np.nan if bound is None else float(bound)
    return Worst(
        stream=stream,
        regret=mean,
        interval=(mean - half, mean + half),
        guarantee=limit,
        ratio=mean / limit,
        excess=(mean - limit - over, mean - limit + over),
        start=origin,
        starts=dict(zip(names, map(float, scores.mean), strict=False)),
    )


def chosen(
    regret: Callable[..., Any], starts: Stream, climbed: Stream, key: jax.Array, draws: int
) -> tuple[Stream, jax.Array, Scores]:
    """Returns starts and best stream `[R + 1, ...]`, the best one's start, and held-out scores."""
    both = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), starts, climbed)
    select, hold = (jax.random.split(k, draws) for k in four_keys(key)[2:])

    def score(keys):  # of all streams; a run that ends in NaN counts as −∞
        values = jax.lax.map(lambda stream: jax.vmap(regret, (None, 0))(stream, keys), both)
        values = jnp.where(jnp.isnan(values), -jnp.inf, values)
        return Scores(values.mean(axis=1), values.std(axis=1, ddof=1) / draws**0.5)

    scores = jax.lax.map(score, jnp.stack([select, hold]))
    best, number = jnp.argmax(scores.mean[0]), len(starts.y)
    kept = jnp.append(jnp.arange(number), best)
    streams, scores = jax.tree.map(lambda a: a[kept], (both, jax.tree.map(lambda a: a[1], scores)))
    return streams, best % number, scores


def bound_and_half_width(limits: Any, regrets: Any, streams: int) -> tuple[Any, Any]:
    """Returns means of guarantees after runs, and half-widths of regret minus guarantee.

    The intervals hold for all streams together with probability 95%.
    """
    draws = np.shape(limits)[-1]
    std_error = np.std(np.asarray(regrets) - limits, axis=-1, ddof=1) / draws**0.5
    return np.mean(limits, axis=-1), half_width(std_error, draws - 1, comparisons=streams)


def stack(streams) -> Stream:
    """Stacks R streams to `[R, T, d]` and `[R, T]`."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *streams)


def four_keys(key):
    """Returns keys for the starts, the ascent, the selection and the held-out draws."""
    # One split for all: `split(key, n)[i]` is the same for all n, so that two splits share keys.
    return jax.random.split(key, 4)


def _checked(starts, structured, horizon, dim, x_norm, y_size) -> dict[str, Stream]:
    instance("starts", starts, Mapping, "streams by name")
    for name, stream in starts.items():
        if not isinstance(name, str) or name in structured:
            raise ValueError(
                f"starts must have names that structured_starts does not use, got {name!r}"
            )
        instance(f"starts[{name!r}]", stream, Stream, "streams.from_arrays(x, y) makes one")
        shapes = np.shape(stream.x), np.shape(stream.y)
        if shapes != ((horizon, dim), (horizon,)):
            raise ValueError(f"starts[{name!r}] must be [{horizon}, {dim}] and [{horizon}]: it has "
                             f"{list(shapes[0])} and {list(shapes[1])}")  # fmt: skip
        sizes = np.linalg.norm(stream.x, axis=1).max() / x_norm, np.abs(stream.y).max() / y_size
        if not max(sizes) <= 1 + 1e-5:
            raise ValueError(f"starts[{name!r}] must have ‖x_t‖ <= x_norm and |y_t| <= y_size")
    return {name: Stream(*map(jnp.asarray, stream)) for name, stream in starts.items()}


def _check_gradient(regret, stream, key) -> None:
    """Raises ValueError if JAX has no reverse-mode derivative of the regret."""
    jax.eval_shape(regret, stream, key)  # errors that have nothing to do with derivatives
    try:
        jax.eval_shape(jax.grad(regret), stream, key)
    except (ValueError, TypeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"learner cannot be differentiated in reverse mode: {reason}") from error


def check_memory(program, what: str) -> None:
    """Raises ValueError if a compiled program needs more memory than there is."""
    analysis = program.memory_analysis()
    needed, room = getattr(analysis, "temp_size_in_bytes", 0), memory()
    if needed > room:
        raise ValueError(
            f"{what} need {needed / 2**30:.1f} GiB of memory, but there are {room / 2**30:.1f}: "
            "reduce one of them"
        )


def memory() -> float:
    """Returns the bytes of memory of the device; infinite if it does not say."""
    statistics = jax.devices()[0].memory_stats()
    if statistics and "bytes_limit" in statistics:
        return statistics["bytes_limit"]
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")
