"""Time, memory and regret of kernel learners over long streams, in constant memory."""

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import kernels, learners, losses, moments, noise, unbiased, worlds
from noisy_jax.base import Learner, Stream
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, picture, progress_bar, script
from noisy_jax.command.settings import INTERVALS, at_least, option
from noisy_jax.engine import ring
from noisy_jax.plots.style import curve, label, legend_above, look, panels, plain, tick_at
from noisy_jax.reports.intervals import half_width
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.simulated import comparators
from noisy_jax.simulated.rollouts import rollout
from noisy_jax.validation.numbers import positive

_PART = 8192  # rounds that are drawn and played at once
_STORED = 16384  # most rounds for a learner that keeps all of them


@dataclasses.dataclass(frozen=True)
class Settings(regret.SeededSettings):
    """Which kernel learner for how long a stream: processor time, memory and regret.

    Rows of a table are drawn with replacement, part by part, so that a stream of any length takes
    constant memory. The noise is Gaussian. Learners of three kinds are compared: those that know
    its distribution, one that knows that it is Gaussian, and those that know nothing. The leaders
    are `corrected_ftrl`, solved about √T times, without a ball, so that their regret against the
    best function in a ball may be below zero. Memory counts the state and the compiled
    program of a part; time is of the fastest draw. On a machine that does other work, use one
    core: `taskset -c 0 python …`. Writes scale.csv, best.csv, config.json and scale.png.

    Examples:
      python colabs/papers/scale.py
      python colabs/papers/scale.py --horizons 1024 16384 --seeds 8
    """

    data: str = option("diabetes", f"{regret.TABLES}, or a numeric CSV file", "NAME|FILE.csv")
    target: str | None = option(None, "name of the target's column in the CSV file", "COLUMN")
    noise_variance: float = option(
        0.1, "variance of the noise on each feature; rows have norm at most 1", "V", positive
    )
    length_scale: float = option(1.0, "ℓ of the kernel exp(−r²/2ℓ²), ℓ² above 2V", "L", positive)
    radius: float = regret.radius(1.2)
    features: int = option(512, "D of descent on Fourier features", "D", at_least(2), fast=16)
    leader_features: int = option(128, "D of the leaders", "D", at_least(2), fast=8)
    buffer: int = option(512, "τ, rounds that NORMA keeps", "N", at_least(4), fast=128)
    regularization: float = option(0.1, "λ of NORMA", "L", positive)
    horizons: tuple[int, ...] = regret.horizons((1024, 16384, 131072, 1048576), fast=(64,))
    seeds: int = option(2, "independent draws of rows and noise", "N", INTERVALS)


class Contender(NamedTuple):
    """A learner of the comparison: what it must know of the noise, and `horizon -> Learner`."""

    knows: str
    copies: str
    make: Callable[[int], Learner]
    longest: float = math.inf


def contenders(settings: Settings, dim: int, lifted_norm: float) -> dict[str, Contender]:
    """All learners by name."""
    distribution = noise.Gaussian(settings.noise_variance)
    keys = jax.random.split(jax.random.key(settings.seed), 3)
    scale = {"length_scale": settings.length_scale}
    world = worlds.gaussian(dim=dim, noise=distribution, **scale)
    kernel, squared = kernels.gaussian(**scale), losses.squared()
    features = kernels.fourier_features(kernel, keys[0], settings.features)
    waves = moments.gaussian_frequencies(
        keys[1], settings.leader_features, dim=dim, characteristic=distribution, **scale
    )
    own = kernels.fourier_features(kernel, keys[1], settings.leader_features)

    def leader(made):
        return lambda rounds: learners.corrected_ftrl(made, solve_every=solve_every(rounds))

    def estimated(how):
        return leader(moments.unbiased(own, how))

    def always(learner):
        return lambda rounds: learner

    descent = learners.model(
        lambda w, x: features(x) @ w, jnp.zeros(settings.features), squared,
        radius=settings.radius, estimate=partial(unbiased.multilevel, levels=5),
    )  # fmt: skip
    of_world = learners.fourier_worlds(
        worlds.fourier(keys[2], world, settings.features), radius=lifted_norm
    )
    lam, tau = settings.regularization, settings.buffer
    norma = learners.norma(  # of a term 5% are left when it is dropped
        world, squared, regularization=lam, learning_rate=3 / (lam * tau), buffer=ring(tau)
    )
    stored = partial(learners.parallel_worlds, world, radius=lifted_norm)
    law, gaussian, nothing = "distribution", "that it is Gaussian", "nothing"
    return {
        "parallel_worlds": Contender(law, "2", lambda t: stored(horizon=t), _STORED),
        "norma, ring": Contender(law, "2", always(norma)),
        "fourier_worlds": Contender(law, "2", always(of_world)),
        "leader": Contender(law, "1", leader(moments.fourier(waves))),
        "leader, pair": Contender(gaussian, "2", estimated(unbiased.pair)),
        "leader, replicates": Contender(nothing, "2", estimated(unbiased.replicates)),
        "leader, multilevel": Contender(nothing, "2.4", estimated(unbiased.multilevel)),
        "descent, multilevel": Contender(nothing, "2.4", always(descent)),
    }


def solve_every(horizon: int) -> int:
    """The power of two next to √T: rounds between two solutions of a leader."""
    return 2 ** round(math.log2(horizon) / 2)


class Run(NamedTuple):
    """What one run of T rounds costs: regret, seconds of the processor, and bytes of memory."""

    regret: float
    seconds: float
    memory: int


def play(
    make: Callable[[int], Learner],
    table: Stream,
    best: jax.Array,
    distribution: noise.Noise,
    horizon: int,
    keys: Any,
    progress: Callable[[int], None] = lambda rounds: None,
) -> list[Run]:
    """A run of T rounds for each key; `best` are the comparator's predictions of the rows."""
    learner, rounds = make(horizon), min(horizon, _PART)

    def part(state, key):
        row_key, noise_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (rounds,), 0, len(best))
        stream = Stream(table.x[rows], table.y[rows])
        run = rollout(learner, stream, distribution, noise_key, state=state)
        return run.state, jnp.sum((run.predictions - stream.y) ** 2 - (best[rows] - stream.y) ** 2)

    start = learner.init(table.x.shape[1])
    compiled = jax.jit(part).lower(start, keys[0]).compile()
    used: Any = compiled.memory_analysis()
    held = used.temp_size_in_bytes + sum(leaf.nbytes for leaf in jax.tree.leaves(start))
    runs = []
    for key in keys:
        state, total, began = start, 0.0, time.process_time()
        for number in range(horizon // rounds):
            state, excess = compiled(state, jax.random.fold_in(key, number))
            total += float(excess)
            progress(rounds)
        runs.append(Run(total, time.process_time() - began, held))
    return runs


def run(settings: Settings) -> Iterator[Report]:
    """All learners at all horizons, and which of them is best at each."""
    for horizon in settings.horizons:
        if horizon > _PART and horizon % _PART:
            raise ValueError(f"--horizons above {_PART} must be multiples of it, got {horizon}")
    table = regret.load(settings.data, settings.target)
    dim, distribution = table.x.shape[1], noise.Gaussian(settings.noise_variance)
    world = worlds.gaussian(dim=dim, length_scale=settings.length_scale, noise=distribution)
    ball = comparators.world_ball(table, world, radius=settings.radius)
    keys = jax.random.split(jax.random.key(settings.seed + 1), settings.seeds)
    compared = contenders(settings, dim, float(ball.lifted_norm))
    plan = [
        (name, each, horizon)
        for horizon in settings.horizons
        for name, each in compared.items()
        if horizon <= each.longest
    ]
    rows, done, total = [], 0, settings.seeds * sum(horizon for *_, horizon in plan)
    with progress_bar("rounds") as bar:

        def progress(rounds):
            nonlocal done
            done += rounds
            bar(done, total)

        for name, each, horizon in plan:
            runs = play(each.make, table, ball.predictions, distribution, horizon, keys, progress)
            regrets = [one.regret for one in runs]
            rows.append(
                {
                    "horizon": horizon,
                    "knows": each.knows,
                    "copies": each.copies,
                    "learner": name,
                    "num_seeds": settings.seeds,
                    "regret": float(np.mean(regrets)),
                    "std_error": float(np.std(regrets, ddof=1) / math.sqrt(settings.seeds)),
                    "microseconds": 1e6 * min(one.seconds for one in runs) / horizon,
                    "megabytes": runs[0].memory / 1e6,
                }
            )
    tables = {"scale": Table(rows, _COLUMNS), "best": best_of(rows)}
    words = (
        f"{settings.data}: {len(table.y):,} rows, {dim} features; Gaussian noise of variance "
        f"{settings.noise_variance:g} on each; the best function of norm {settings.radius:g} "
        f"loses {float(ball.loss) / len(table.y):.4f} a round"
    )
    text = "\n\n".join([words, *map(str, tables.values())])
    yield Report(text, tables, {"scale": picture(draw_scale, rows)})


_COLUMNS = (
    ("T", "{horizon:,}"),
    ("it knows", "{knows}"),
    ("copies", "{copies}"),
    ("learner", "{learner}"),
    ("regret", "{regret:,.0f}"),
    ("± 95%", plus_minus("std_error", ",.0f")),
    ("µs a round", "{microseconds:.1f}"),
    ("MB", "{megabytes:.1f}"),
)


def best_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """For each knowledge of the noise, the learners of least regret, and from which T on.

    Where the best learner changes between two horizons, T is interpolated: there the ratio of the
    two regrets is 1, its logarithm taken as linear in log T.
    """
    found = []
    for knows in dict.fromkeys(row["knows"] for row in rows):
        own = {(row["learner"], row["horizon"]): row["regret"] for row in rows}
        names = dict.fromkeys(row["learner"] for row in rows if row["knows"] == knows)
        before = None
        for horizon in dict.fromkeys(row["horizon"] for row in rows if row["knows"] == knows):
            there = [name for name in names if (name, horizon) in own]
            best = min(there, key=lambda name: own[name, horizon])
            if before is None or best != before[0]:
                start = horizon if before is None else _crossing(own, *before, best, horizon)
                found.append({"knows": knows, "learner": best, "horizon": start})
            before = best, horizon
    cells = (("it knows", "{knows}"), ("least regret", "{learner}"), ("from T", "{horizon:,}"))
    return Table(found, cells)


def _crossing(regrets, old: str, before: int, new: str, after: int) -> int:
    """Where the regret of `new` falls below the regret of `old`, between two horizons."""
    pairs = [(regrets.get((old, t)), regrets.get((new, t))) for t in (before, after)]
    if not all(one and two and one > 0 and two > 0 for one, two in pairs):
        return after  # one of them did not run, or the comparator was beaten
    left, right = (math.log(two / one) for one, two in pairs)
    share = left / (left - right)
    return round(before * (after / before) ** share)


def draw_scale(rows: Sequence[Mapping[str, Any]], *, axes=None):
    """Regret against T, and against processor time a round at the largest T.

    Args:
        rows: one for each learner and T, as the script saves them.
        axes: two matplotlib axes; new ones by default.

    Returns:
        A sequence of the two axes.
    """
    left, right = axes = panels(axes, 2, width=11, height=5.2)
    last = max(row["horizon"] for row in rows)
    for index, name in enumerate(dict.fromkeys(row["learner"] for row in rows)):
        own, style = [row for row in rows if row["learner"] == name], look(index)
        rounds = np.array([row["horizon"] for row in own])
        means = np.array([row["regret"] for row in own])
        half = np.array([half_width(row["std_error"], row["num_seeds"] - 1) for row in own])
        curve(left, rounds, means, (means - half, means + half), label=plain(name), **style)
        at_last = [row for row in own if row["horizon"] == last]
        right.plot(
            [row["microseconds"] for row in at_last], [row["regret"] for row in at_last],
            label=plain(name), **{**style, "linestyle": "none"},
        )  # fmt: skip
    label(left, "T, rounds", "regret on clean data", log="xy")
    label(right, "microseconds of the processor a round", f"regret at T = {last:,}", log="xy")
    tick_at(left.xaxis, sorted({row["horizon"] for row in rows}))
    for ax in axes:
        legend_above(ax, fontsize=8)
    return axes


if __name__ == "__main__":
    sys.exit(script(Settings, run))
