"""Adaptive rates and mixtures beside fixed rates, on three kinds of data."""

import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import learners, losses, moments, worlds
from noisy_jax.base import Learner, Stream
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, over_seeds, picture, script
from noisy_jax.command.settings import SeededSettings, option
from noisy_jax.learners.wrappers import cloned, mixture, paired, swept
from noisy_jax.plots.style import COLOURS, curve, label, look, panels, plain, tick_at
from noisy_jax.reports.intervals import half_width
from noisy_jax.reports.tables import Table
from noisy_jax.simulated import bounds, comparators, streams
from noisy_jax.simulated.programs import first
from noisy_jax.simulated.rollouts import final_regret
from noisy_jax.validation.numbers import positive

DATA = ("diabetes", "houses", "drifting")
LINEAR = ("two_copies", "known_covariance")
KERNEL = ("parallel_worlds", "cloned")
RADII = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Radii among which a mixture chooses, in units of the radius that competes."""


_ROWS = 500  # of synthetic tables, which are drawn with replacement


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """Regret without tuning: adaptive rates and mixtures, beside fixed learning rates.

    What does it cost not to know the best learning rate, or the radius?

    Each learner runs at multiples of the theorem's learning rate, at the adaptive rate (the
    default), as a mixture of the fixed rates, and as a mixture of radii at adaptive rates; the
    corrected leader needs neither. Data: the diabetes table; synthetic houses, with skewed features
    and a curved target; and a linear target that turns during the run. Writes results.csv,
    config.json and rates.png.

    Examples:
      python colabs/papers/tuning.py
      python colabs/papers/tuning.py --data diabetes --learners two_copies --horizons 1024 4096
    """

    data: tuple[str, ...] = option(DATA, "data to run on", "NAME", choices=DATA, fast=("diabetes",))
    learners: tuple[str, ...] = option(
        (*LINEAR, *KERNEL), "learners", "NAME", choices=(*LINEAR, *KERNEL),
        fast=("two_copies", "parallel_worlds"),
    )  # fmt: skip
    factors: tuple[float, ...] = option(
        (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
        "multiples of the theorem's learning rate",
        "M",
        functools.partial(positive, shape=None),
        fast=(1.0, 10.0),
    )
    horizons: tuple[int, ...] = regret.horizons((1024, 4096, 16384), fast=(64,))
    seeds: int = regret.seeds(8, fast=2)
    noise_variance: float = option(
        0.1, "variance of the Gaussian noise on each feature; rows have norm at most 1", "V"
    )
    radius: float = regret.radius(1.0)
    kernel_radius: float = option(1.2, "norm of the largest function that competes", "B", positive)
    length_scale: float = option(
        1.0, "ℓ of the kernel exp(−r²/2ℓ²), ℓ² above 2V for cloned", "L", positive
    )


def run(settings: Settings) -> Iterator[Report]:
    """One report of all data, learners and horizons."""
    stream_key, noise_key = jax.random.split(jax.random.key(settings.seed))
    rows = []
    for name in settings.data:
        stream = _stream(name, stream_key, max(settings.horizons))
        for horizon in settings.horizons:
            past = first(horizon, stream)
            for family, ball in ((LINEAR, _linear), (KERNEL, _kernel)):
                chosen = [learner for learner in family if learner in settings.learners]
                if chosen:
                    rows += _rows(settings, name, past, noise_key, *ball(settings, past, chosen))
    title = f"regret on clean data, mean of {settings.seeds} noise draws:"
    summary = Table(_summary(rows), _SUMMARY, title)
    tables = {"results": Table(rows, _RESULTS), "summary": summary}
    yield Report(str(summary), tables, {"rates": picture(draw_rates, rows)})


_SETTING = (("data", "{data}"), ("learner", "{learner}"), ("T", "{horizon:,}"))
_RESULTS = (*_SETTING, ("rate", "{rate}"), ("regret", "{regret:.1f}"))
_SUMMARY = (
    *_SETTING,
    ("theorem's rate", "{theorem:.1f}"),
    ("best rate", "{best:.1f}"),
    ("at", "× {factor:g}"),
    ("adaptive", "{adaptive:.1f}"),
    ("/ best", "{ratio:.2f}"),
    ("mixture of rates", "{mixture of rates:.1f}"),
    ("of radii", "{mixture of radii:.1f}"),
    ("leader", "{corrected leader:.1f}"),
)
CHOSEN = ("adaptive", "mixture of rates", "mixture of radii", "corrected leader")
"""Ways to run without a rate that is chosen by hand."""


def _stream(name: str, key, rounds: int) -> Stream:
    if name == "diabetes":
        return streams.resampled(key, streams.dataset("diabetes"), rounds)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    if name == "houses":  # as many features as the California houses, as skewed, and a capped price
        x = np.exp(0.6 * rng.normal(size=(_ROWS, 8)) @ (np.eye(8) + 0.3))
        price = np.tanh(np.log(x) @ rng.normal(size=8) / 2) + 0.2 * rng.normal(size=_ROWS)
        return streams.resampled(key, streams.scaled(np.minimum(x, 10), price), rounds)
    rows = rng.normal(size=(_ROWS, 4)) / 4
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    x, turn = rows[rng.integers(_ROWS, size=rounds)], np.pi * np.arange(rounds) / rounds
    y = np.cos(turn) * x[:, 0] + np.sin(turn) * x[:, 1] + 0.05 * rng.normal(size=rounds)
    return streams.from_arrays(x, y)


_Makers = dict[str, tuple[Callable[[Any, Any], Learner], Any, Any]]
"""By name: `(rate, radius) -> Learner`, the theorem's rate, and the radius."""


def _linear(settings, past: Stream, names) -> tuple[_Makers, Learner, Any]:
    """Of each learner `(make, theorem's rate, radius)`; the leader; the best predictions."""
    known = bounds.moments(past, _noise(settings))
    makers: _Makers = {}
    for name in names:
        theory = getattr(bounds, name)(known, horizon=len(past.y), radius=settings.radius)
        factory = getattr(learners, name)
        makers[name] = (
            lambda rate, radius, factory=factory: factory(learning_rate=rate, radius=radius),
            theory.learning_rate,
            settings.radius,
        )
    leader = learners.corrected_ftrl(moments.known_covariance())
    return makers, leader, comparators.linear_ball(past, radius=settings.radius).predictions


def _kernel(settings, past: Stream, names) -> tuple[_Makers, Learner, Any]:
    """The same for kernel learners; the leader has Fourier features."""
    rounds, dim = past.x.shape
    distribution = _noise(settings)
    makers: _Makers = {}
    for name in names:
        noise = distribution.cloned(2) if name == "cloned" else distribution
        world = worlds.gaussian(dim=dim, length_scale=settings.length_scale, noise=noise)
        ball = comparators.world_ball(past, world=world, radius=settings.kernel_radius)
        radius = float(ball.lifted_norm)
        theory = bounds.parallel_worlds(
            world.diagonal,
            horizon=rounds,
            radius=radius,
            y_second_moment=float(np.max(past.y**2)),
        )

        def make(rate, radius, world=world, name=name):
            learner = learners.parallel_worlds(
                world, horizon=rounds, radius=radius, learning_rate=rate
            )
            return cloned(learner, distribution) if name == "cloned" else learner

        makers[name] = make, theory.learning_rate, radius
    frequencies = moments.gaussian_frequencies(
        jax.random.key(settings.seed), 128, dim=dim, length_scale=settings.length_scale,
        characteristic=distribution,
    )  # fmt: skip
    leader = learners.corrected_ftrl(moments.fourier(frequencies), solve_every=128)
    return makers, leader, ball.predictions


def _noise(settings):
    return regret.NOISES["gaussian"](positive("--noise-variance", settings.noise_variance))


def _columns_of(make, rate, radius, factors) -> list[Learner]:
    """Fixed rates, the adaptive one, a mixture of the rates, and a mixture of radii."""
    fixed = swept(lambda rate: make(rate, radius), rate * jnp.asarray(factors))
    radii = swept(lambda radius: make(None, radius), radius * jnp.asarray(RADII))
    return [fixed, make(None, radius), mixture(fixed), mixture(radii)]


def _rows(settings, name, past, key, makers: _Makers, leader, best) -> list[dict]:
    """A row for each learner and rate; the leader is the same for all of a family."""
    factors, rounds = settings.factors, len(past.y)
    every = [column for make in makers.values() for column in _columns_of(*make, factors)]
    run_one = functools.partial(_regrets, paired(*every, leader), past, _noise(settings), best)
    words = f"{name}, {' and '.join(makers)}, {rounds:,} rounds"
    found = over_seeds(run_one, jax.random.fold_in(key, rounds), settings.seeds, words)
    one = len(factors) + len(CHOSEN) - 1  # columns of a learner; the leader's is the last of all
    rows = []
    for k, learner in enumerate(makers):
        places = [*range(k * one, (k + 1) * one), -1]
        for rate, place in zip((*factors, *CHOSEN), places, strict=True):
            row = {"data": name, "learner": learner, "horizon": rounds, "rate": rate}
            row |= {"regret": float(found.mean[place])}
            row |= {"std_error": float(found.std_error[place]), "num_seeds": found.num_seeds}
            rows.append(row)
    return rows


def _regrets(learner, past, distribution, best, key):
    return final_regret(learner, past, distribution, key, loss=losses.squared(), comparator=best)


def _summary(rows) -> list[dict]:
    """A row for each setting and learner: the best of the fixed rates beside the others."""
    summary = []
    for setting in dict.fromkeys((row["data"], row["learner"], row["horizon"]) for row in rows):
        own = {
            row["rate"]: row["regret"]
            for row in rows
            if (row["data"], row["learner"], row["horizon"]) == setting
        }
        best, factor = min((own[rate], rate) for rate in own if rate not in CHOSEN)
        names = dict(zip(("data", "learner", "horizon"), setting, strict=True))
        chosen = {way: own[way] for way in CHOSEN}
        numbers = {"theorem": own.get(1.0, math.nan), "best": best, "factor": factor, **chosen}
        summary.append({**names, **numbers, "ratio": own["adaptive"] / best})
    return summary


def draw_rates(rows: Sequence[Mapping[str, Any]], *, axes=None):
    """Regret at fixed learning rates, and without tuning, at the last horizon.

    Fixed rates are a curve over multiples of the theorem's rate, with 95% intervals; the others are
    horizontal lines.

    Args:
        rows: with `data`, `learner`, `horizon`, `rate` (a multiple of the theorem's, or the name of
            a way to choose), `regret`, `std_error` and `num_seeds`, as in results.csv.
        axes: matplotlib axes, a panel for each pair of data and learner; new ones by default.

    Returns:
        A sequence of the axes.

    Example:
        >>> row = {"data": "table", "learner": "two_copies", "horizon": 64, "std_error": 0.1,
        ...        "num_seeds": 8}
        >>> regrets = {0.3: 9.0, 1.0: 5.0, 3.0: 7.0, "adaptive": 5.5}
        >>> (axes,) = draw_rates([{**row, "rate": r, "regret": v} for r, v in regrets.items()])
        >>> axes.get_title()
        'table, two_copies'
    """
    horizon = max(row["horizon"] for row in rows)
    rows = [row for row in rows if row["horizon"] == horizon]
    pairs = dict.fromkeys((row["data"], row["learner"]) for row in rows)
    columns = len(dict.fromkeys(learner for _, learner in pairs))
    height = 0.9 + 2.6 * -(-len(pairs) // columns)
    axes = panels(axes, len(pairs), width=0.5 + 3.4 * columns, height=height, columns=columns)
    for ax, pair in zip(axes, pairs, strict=True):
        own = [row for row in rows if (row["data"], row["learner"]) == pair]
        fixed = [row for row in own if not isinstance(row["rate"], str)]
        means = np.array([row["regret"] for row in fixed])
        half = np.array([half_width(row["std_error"], row["num_seeds"] - 1) for row in fixed])
        ends = means - half, means + half
        curve(ax, [row["rate"] for row in fixed], means, ends, label="fixed rate", **look(0))
        for index, row in enumerate(row for row in own if isinstance(row["rate"], str)):
            style = {"color": COLOURS[1 + index], "linestyle": ("-", "--", "-.", ":")[index % 4]}
            ax.axhline(row["regret"], label=plain(row["rate"]), **style)
        negative = min(row["regret"] for row in own) <= 0  # a comparator in a ball can be beaten
        label(ax, "multiple of the theorem's rate", log="x")
        if negative:
            ax.set_yscale("asinh", linear_width=30)
        else:
            ax.set_yscale("log")
        tick_at(ax.xaxis, [row["rate"] for row in fixed])
        ax.set_title(plain(", ".join(pair)), fontsize=10)
    axes[0].set_ylabel(f"regret in {horizon:,} rounds")
    handles, names = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, names, loc="outside upper center", ncols=5, frameon=False)
    return axes


if __name__ == "__main__":
    sys.exit(script(Settings, run))
