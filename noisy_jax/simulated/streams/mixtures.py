"""Streams of two classes in the plane that move: in small steps, or by abrupt switches.

Each class is a mixture of K round Gaussians of equal weight,

    p_y(x) = (1/K) Σ_k N(x; m_yk, σ_yk² I),   y = ±1 with probability ½,

with means uniform in the box [−3, 3]² and standard deviations uniform in a range. An example is
kept if its label agrees with the Bayes rule by more than a margin,

    y log(p₊(x)/p₋(x)) > margin,

so that some function of a Gaussian kernel's space makes no mistake while the classes do not change.
They stay as they are for a *period* of some rounds. Then all means take a normal step (`drifting`),
or everything is drawn again (`switching`).

Source: Online Learning with Kernels, Sec. VI.A. The paper gives the procedure only; the numbers of
components, scales, margin and steps are chosen here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import Stream
from noisy_jax.draws import integers, normal, uniform
from noisy_jax.validation.arrays import check_shape
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import non_negative, number, positive, whole
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import Array, ArrayLike, concrete

HALF_SIDE = 3.0
"""Half the side of the box that holds the means."""

# Of the candidates, 75 to 90% are kept on average. Where the classes nearly coincide few are kept,
# and candidates are drawn several times.
_CANDIDATES, _ATTEMPTS = 4, 64


class Difficulty(NamedTuple):
    """Parameters of `drifting` and `switching` that make the classes easier or harder to learn.

    Attributes:
        components: K ≥ 1, number of Gaussians in each class; a Python integer, never traced.
        smallest_deviation: lower end, > 0, of the range of the standard deviations σ_yk.
        largest_deviation: upper end of that range.
        margin: at least 0; an example (x, y) is kept only if y log(p₊(x)/p₋(x)), with the densities
            p₊ and p₋ of the classes, exceeds it. Larger margins are easier.
        drift: at least 0, standard deviation of the step that `drifting` adds to each coordinate of
            each mean after a period.
    """

    components: int
    smallest_deviation: ArrayLike
    largest_deviation: ArrayLike
    margin: ArrayLike
    drift: ArrayLike


DIFFICULTIES: Mapping[str, Difficulty] = MappingProxyType(
    {
        "A": Difficulty(3, 0.4, 0.9, margin=0.5, drift=0.2),
        "B": Difficulty(6, 0.2, 0.5, margin=0.2, drift=0.3),
        "C": Difficulty(3, 0.4, 0.9, margin=1.0, drift=0.05),
    }
)
"""Settings for `streams.drifting` and `streams.switching` by name, each a `Difficulty`.

"A" is medium, "B" hard (many small components that move fast), "C" easy (a large margin, and slow).
"""


class Mixtures(NamedTuple):
    """The K Gaussians of each of two classes in the plane, in one period or P periods.

    Attributes:
        means: `[2, K, 2]` or `[P, 2, K, 2]`, the class y = −1 first, then y = 1.
        deviations: `[2, K]` or `[P, 2, K]`, standard deviations.
    """

    means: jax.Array
    deviations: jax.Array

    def log_odds(self, x: jax.Array) -> Array:
        """log(p₊(x)/p₋(x)), `[]`, at a point `[2]`, in one period; its sign is the Bayes rule."""
        check_shape("x", x, (2,), "a point of the plane")
        squares = jnp.sum((x[None, None] - self.means) ** 2, axis=-1) / self.deviations**2
        negative, positive = jax.nn.logsumexp(-squares / 2 - 2 * jnp.log(self.deviations), axis=1)
        return positive - negative


def drifting_mixtures(key, periods: int, difficulty: Difficulty) -> Mixtures:
    """`drifting` in P periods `[P]`: independent steps of all means, reflected at the box."""
    first_key, step_key = jax.random.split(key)
    start = _drawn_mixtures(first_key, difficulty)
    steps = jax.vmap(lambda key: normal(key, start.means.shape))(
        _fold_in_each(step_key, periods - 1)
    )
    # A walk on the line, folded into the box, is distributed like a walk reflected at every step.
    walk = jnp.cumsum(jnp.concatenate([start.means[None], difficulty.drift * steps]), axis=0)
    means = HALF_SIDE - jnp.abs(jnp.mod(walk + HALF_SIDE, 4 * HALF_SIDE) - 2 * HALF_SIDE)
    return Mixtures(means, jnp.broadcast_to(start.deviations, means.shape[:-1]))


def switching_mixtures(key, periods: int, difficulty: Difficulty) -> Mixtures:
    """`switching` in P periods, with a leading axis `[P]`."""
    return jax.vmap(lambda key: _drawn_mixtures(key, difficulty))(_fold_in_each(key, periods))


def drifting(
    key: jax.Array, horizon: int, *, difficulty: Difficulty = DIFFICULTIES["A"], period: int = 10
) -> Stream:
    """Draws a stream of two classes in the plane that move by small random steps every few rounds.

    Each class y = ±1 is a mixture of K round Gaussians of equal weight in the box [−3, 3]², with
    density p₊ or p₋. Labels are ±1 with probability ½. An example is kept only if its label agrees
    with the Bayes rule by more than a margin, y log(p₊(x)/p₋(x)) > margin. After every `period`
    rounds the mean of each Gaussian takes a normal step, with standard deviation `difficulty.drift`
    in each coordinate, and is reflected at the box.

    With the same key, a longer stream begins with the rounds of a shorter one, up to rounding. Call
    it under `jax.jit`: without it, every call compiles again.

    Args:
        key: a key of `jax.random.key`, for classes and examples.
        horizon: T ≥ 1, number of rounds.
        difficulty: `streams.DIFFICULTIES["A"]`, the default, is medium; `DIFFICULTIES["B"]` is hard
            and `DIFFICULTIES["C"]` easy. The fields are `components` K, `smallest_deviation` and
            `largest_deviation` of the Gaussians, `margin` and `drift`; `_replace` changes them. All
            but `components` may be traced.
        period: rounds between steps, at least 1; 10 by default.

    Returns:
        A `Stream` with x `[T, 2]` and y `[T]`, ±1.

    Raises:
        ValueError: 256 draws for each round of a period keep too few examples, because the margin
            is too large. Under `jit` the last rounds of this period are NaN instead.

    Example:
        >>> import jax, noisy_jax as nj
        >>> easy = nj.streams.DIFFICULTIES["C"]
        >>> nj.streams.drifting(jax.random.key(0), 100, difficulty=easy).x.shape
        (100, 2)

    Source: Online Learning with Kernels, Sec. VI.A and Figure 2, top. The paper gives the procedure
    only; the numbers of components, scales, margin and steps are chosen here.
    """
    return _stream(key, horizon, difficulty, period, drifting_mixtures)


def switching(
    key: jax.Array,
    horizon: int,
    *,
    difficulty: Difficulty = DIFFICULTIES["A"],
    period: int = 1000,
) -> Stream:
    """Draws a stream of two classes in the plane that are replaced by new ones after every period.

    Each class y = ±1 is a mixture of K round Gaussians of equal weight, with density p₊ or p₋.
    Their means are uniform in the box [−3, 3]², their standard deviations uniform in a range.
    Labels are ±1 with probability ½. An example is kept only if its label agrees with the Bayes
    rule by more than a margin, y log(p₊(x)/p₋(x)) > margin. After every `period` rounds all means
    and deviations are drawn again. Call it under `jax.jit`: without it, every call compiles again.

    Args:
        key: a key of `jax.random.key`, for classes and examples.
        horizon: T ≥ 1, number of rounds.
        difficulty: `streams.DIFFICULTIES["A"]`, the default, is medium; `DIFFICULTIES["B"]` is hard
            and `DIFFICULTIES["C"]` easy. The fields are `components` K, `smallest_deviation` and
            `largest_deviation` of the Gaussians, `margin`, and `drift`, which has no effect here;
            `_replace` changes them. All but `components` may be traced.
        period: rounds between switches, at least 1; 1000 by default.

    Returns:
        A `Stream` with x `[T, 2]` and y `[T]`, ±1.

    Raises:
        ValueError: 256 draws for each round of a period keep too few examples, because the margin
            is too large. Under `jit` the last rounds of this period are NaN instead.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.switching(jax.random.key(0), 100, period=50)
        >>> sorted(set(stream.y.tolist()))
        [-1.0, 1.0]

    Source: Online Learning with Kernels, Sec. VI.A and Figure 2, bottom. The paper gives the
    procedure only; the numbers of components, scales and margin are chosen here.
    """
    return _stream(key, horizon, difficulty, period, switching_mixtures)


def examples(
    key: jax.Array, mixtures: Mixtures, size: int, margin: ArrayLike
) -> tuple[Stream, Array]:
    """The first n examples of one period that are kept, and how many were found, `[]`.

    4n candidates are drawn at a time, at most 64 times. Examples that were not found are NaN.
    """
    count = _CANDIDATES * size
    components = mixtures.deviations.shape[1]
    all_means, all_deviations = mixtures.means.reshape(-1, 2), mixtures.deviations.ravel()

    def draw(carry):
        attempt, found, x, y = carry
        component_key, x_key = jax.random.split(jax.random.fold_in(key, attempt))
        component = integers(component_key, (count,), 0, 2 * components)
        deviations = all_deviations[component][:, None]
        new_x = all_means[component] + deviations * normal(x_key, (count, 2))
        new_y = jnp.where(component < components, -1.0, 1.0)
        kept = new_y * jax.vmap(mixtures.log_odds)(new_x) > margin
        place = jnp.where(kept, found + jnp.cumsum(kept) - 1, size)
        x, y = (old.at[place].set(new, mode="drop") for old, new in ((x, new_x), (y, new_y)))
        return attempt + 1, jnp.minimum(found + jnp.sum(kept, dtype=jnp.int32), size), x, y

    nothing = jnp.int32(0), jnp.int32(0), jnp.full((size, 2), jnp.nan), jnp.full(size, jnp.nan)
    _, found, x, y = jax.lax.while_loop(
        lambda carry: (carry[0] < _ATTEMPTS) & (carry[1] < size), draw, nothing
    )
    return Stream(x, y), found


def _stream(key, horizon, difficulty, period, make_mixtures) -> Stream:
    horizon, period = whole("horizon", horizon), whole("period", period)
    periods = -(-horizon // period)
    key = parsed_key(key)
    difficulty = _checked(difficulty)
    mixtures_key, examples_key = jax.random.split(key)
    mixtures = make_mixtures(mixtures_key, periods, difficulty)
    keys = _fold_in_each(examples_key, periods)
    (x, y), kept = jax.vmap(lambda key, now: examples(key, now, period, difficulty.margin))(
        keys, mixtures
    )
    counts = concrete(kept)
    if counts is not None and counts.min() < period:
        worst = counts.argmin()
        kept_text = f"{counts[worst]} of {_ATTEMPTS * _CANDIDATES * period} draws of period {worst}"
        wanted = f"use smaller ones, as {period} are needed"
        raise ValueError(f"difficulty's margin or deviations keep only {kept_text}: {wanted}")
    return Stream(x.reshape(-1, 2)[:horizon], y.ravel()[:horizon])


def _drawn_mixtures(key, difficulty) -> Mixtures:
    means_key, deviations_key = jax.random.split(key)
    shape = (2, difficulty.components)
    means = uniform(means_key, (*shape, 2), minval=-HALF_SIDE, maxval=HALF_SIDE)
    low, high = difficulty.smallest_deviation, difficulty.largest_deviation
    return Mixtures(means, uniform(deviations_key, shape, minval=low, maxval=high))


def _fold_in_each(key, count):
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(count))


def _checked(difficulty) -> Difficulty:
    hint = f"streams.DIFFICULTIES[name] is one, of the names {', '.join(DIFFICULTIES)}"
    instance("difficulty", difficulty, Difficulty, hint)
    smallest = positive("smallest_deviation", difficulty.smallest_deviation)
    spread = number("largest_deviation", difficulty.largest_deviation) - smallest
    return Difficulty(
        components=whole("components", difficulty.components),
        smallest_deviation=smallest,
        largest_deviation=smallest + non_negative("largest_deviation - smallest_deviation", spread),
        margin=non_negative("margin", difficulty.margin, "a negative one allows wrong labels"),
        drift=non_negative("drift", difficulty.drift),
    )
