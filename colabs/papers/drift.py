"""Mistakes of NORMA and other classifiers on classes that drift, or switch.

All learners have a Gaussian kernel, keep all terms, and see each stream without noise. Grid search
chooses the parameters with the smallest mean number of mistakes on separate streams.
"""

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drift_picture import draw_mistakes
from noisy_jax import kernels, learners, losses, noise
from noisy_jax.base import Learner, Stream
from noisy_jax.command.runner import Report, over_seeds, picture, script
from noisy_jax.command.settings import INTERVALS, SeededSettings, at_least, option
from noisy_jax.engine import everything
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.simulated import streams
from noisy_jax.simulated.comparators import convex_ball
from noisy_jax.simulated.rollouts import rollout

SCHEDULES: Mapping[str, Callable[..., Stream]] = {
    "drift": streams.drifting,
    "switch": streams.switching,
}
"""How the classes move."""

GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""γ of the kernel exp(−γ‖x − z‖²), values that are tried."""

FIXED_ROUNDS = 2_000
"""At the start of a stream, on which the best single function is found."""


class Family(NamedTuple):
    """Learners that differ in two numbers, beside the kernel."""

    make: Callable[..., Learner]  # (kernel, first, second, buffer) -> Learner
    grid: Mapping[str, Sequence[float]]  # names of both numbers, and the values that are tried

    def settings(self) -> np.ndarray:
        """All settings, `[G, M, 3]`: γ, then both numbers."""
        axes = np.meshgrid(GAMMAS, *self.grid.values(), indexing="ij")
        return np.stack(axes, axis=-1).reshape(len(GAMMAS), -1, 3)


def _norma(kernel, decay, margin, buffer) -> Learner:
    loss = losses.hinge(margin=margin)
    return learners.norma(kernel, loss, learning_rate=1.0, regularization=decay, buffer=buffer)


def _alma(kernel, threshold, scale, buffer) -> Learner:
    return learners.alma(kernel, threshold=threshold, scale=scale, buffer=buffer)


# fmt: off
FAMILIES = {
    # NORMA's scale invariance leaves two numbers to tune: ηλ and ρ/η.
    "norma": Family(_norma, {
        "decay": (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2),
        "margin": (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    }),
    "alma": Family(_alma, {
        "threshold": (0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2),
        "scale": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    }),
}
# fmt: on
"""Families by name."""

RIVALS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "Perceptron": ("norma", {"decay": 0.0, "margin": 0.0}),
    "ALMA0": ("alma", {"threshold": 0.0}),
    "NORMA0": ("norma", {"margin": 0.0}),
    "ALMA": ("alma", {}),
    "NORMA": ("norma", {}),
}
"""The learners by name: a family, and the numbers that are not tuned. A 0 in the name means that
no margin is asked for."""


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """Mistakes of NORMA and other classifiers on classes that drift.

    Which kernel classifier follows classes that move, and what do a margin and decay contribute?

    Tunes each learner by grid search on a few streams, then counts its mistakes on many others: on
    classes that drift, and on classes that switch. On the first rounds of one stream of each kind,
    compares NORMA with the best single function. No learner drops terms. Writes mistakes.csv,
    differences.csv, regret.csv, config.json and mistakes.png.

    Examples:
      python colabs/papers/drift.py
      python colabs/papers/drift.py --difficulty C --horizon 2000
    """

    difficulty: str = option(
        "A", "of the streams: A medium, B hard, C easy", choices=sorted(streams.DIFFICULTIES)
    )
    horizon: int = option(10_000, "rounds", "T", at_least(1), fast=60)
    seeds: int = option(100, "independent streams", "N", INTERVALS, fast=2)
    tuning_seeds: int = option(
        4, "further streams, by which parameters are chosen", "N", at_least(1), fast=1
    )


def run(settings: Settings) -> Iterator[Report]:
    """Tunes the rivals for each schedule, and counts their mistakes on other streams."""
    difficulty = streams.DIFFICULTIES[settings.difficulty]
    rounds = np.unique(np.linspace(1, settings.horizon, 101).astype(int))
    tuning_key, key = jax.random.split(jax.random.key(settings.seed))
    tuned = _tuned(tuning_key, settings.tuning_seeds, difficulty, rounds[-1:])
    run_one = functools.partial(_paired, _chosen(tuned), difficulty, rounds)
    found = over_seeds(run_one, key, settings.seeds, "streams", batch_size=10)
    (means, differences), (halves, their_halves) = found.mean, found.half_width
    tables = {
        "mistakes": _mistakes_table(settings, means, found.std_error[0], tuned, rounds),
        "differences": _differences_table(means[..., -1], differences, their_halves),
        "regret": _regret_table(tuned, difficulty, min(settings.horizon, FIXED_ROUNDS), key),
    }
    config = {
        "difficulty": difficulty._asdict(),
        "gammas": GAMMAS,
        "grids": {name: family.grid for name, family in FAMILIES.items()},
        "tuned": tuned,
    }
    curves = np.stack([means, means - halves, means + halves], axis=2)
    panels = {
        f"classes {schedule}": dict(zip(RIVALS, by_learner, strict=True))
        for schedule, by_learner in zip(SCHEDULES, curves, strict=True)
    }
    yield Report(None, tables, {"mistakes": picture(draw_mistakes, rounds, panels)}, config)


def mistakes(predictions: jax.Array, y: jax.Array) -> jax.Array:
    """How many mistakes were made up to each round, `[T]`: y p ≤ 0, or p is NaN."""
    return jnp.cumsum(~(y * predictions > 0))


def _tuned(key, num_seeds, difficulty, last_round) -> dict[str, dict[str, dict[str, float]]]:
    """The parameters with the fewest mistakes up to the last round, by schedule and rival."""
    grids = {name: np.stack([f.settings()] * len(SCHEDULES)) for name, f in FAMILIES.items()}
    run_one = functools.partial(_counted, grids, difficulty, last_round)
    counts = over_seeds(run_one, key, num_seeds, "tuning", batch_size=1).mean
    return {
        schedule: {
            name: best(name, counts[family][s, ..., 0]) for name, (family, _) in RIVALS.items()
        }
        for s, schedule in enumerate(SCHEDULES)
    }


def _paired(chosen, difficulty, rounds, key) -> tuple[jax.Array, jax.Array]:
    """Curves `[2, L, R]` of the rivals, and their differences `[2, L, L]` in the end."""
    counted = _counted(chosen, difficulty, rounds, key)
    rest = {family: iter(jnp.moveaxis(a[:, :, 0], 1, 0)) for family, a in counted.items()}
    curves = jnp.stack([next(rest[family]) for family, _ in RIVALS.values()], axis=1)
    final = curves[..., -1]
    return curves, final[:, :, None] - final[:, None]


def _counted(settings, difficulty, rounds, key) -> dict[str, jax.Array]:
    """Mistakes `[2, G, M, R]` with the settings `[2, G, M, 3]` of each family and schedule.

    All M settings of a group have the γ of its first: one Gram matrix serves them.
    """
    horizon = int(rounds[-1])
    made = [stream(key, horizon, difficulty=difficulty) for stream in SCHEDULES.values()]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *made)

    def buffer(space):
        memory = everything(horizon)(space)

        def values(atoms, weights, t, queries, points):
            # Samples show the clean x, so that steps and predictions read f at the same points.
            del queries
            found = memory.evaluate(atoms, weights, t, points)
            return found, found

        return memory._replace(values=values)

    def of_one(make, stream, gamma, numbers):
        learner = make(_kernel(gamma), *numbers, buffer)
        played = rollout(learner, stream, noise.Gaussian(0.0), jax.random.key(0))
        return mistakes(played.predictions, stream.y)[rounds - 1]

    def of_family(make, settings):
        of_group = jax.vmap(functools.partial(of_one, make), in_axes=(None, None, 0))
        of_schedule = jax.vmap(of_group, in_axes=(None, 0, 0))
        return jax.vmap(of_schedule)(both, settings[:, :, 0, 0], settings[..., 1:])

    return {name: of_family(FAMILIES[name].make, array) for name, array in settings.items()}


def _kernel(gamma) -> kernels.Kernel:
    return kernels.gaussian(length_scale=(2 * gamma) ** -0.5)


def best(rival: str, counts: np.ndarray) -> dict[str, float]:
    """The parameters of a rival with the fewest of its family's mistakes `[G, M]`."""
    name, fixed = RIVALS[rival]
    names, settings = ("gamma", *FAMILIES[name].grid), FAMILIES[name].settings()
    for number, value in fixed.items():
        counts = np.where(settings[..., names.index(number)] == value, counts, np.inf)
    fewest = settings.reshape(-1, 3)[counts.argmin()]
    return dict(zip(names, fewest.tolist(), strict=True))


def _chosen(tuned) -> dict[str, np.ndarray]:
    """The tuned settings of each family, `[2, G, 1, 3]`, its rivals in order along G."""

    def of(family):
        rivals = [name for name, (own, _) in RIVALS.items() if own == family]
        return [[[list(by_name[name].values())] for name in rivals] for by_name in tuned.values()]

    return {family: np.array(of(family)) for family in FAMILIES}


def _mistakes_table(settings, means, errors, tuned, rounds) -> Table:
    rows, shown = [], []
    for (s, schedule), (k, name) in itertools.product(enumerate(SCHEDULES), enumerate(RIVALS)):
        for at, mean, error in zip(rounds.tolist(), means[s, k], errors[s, k], strict=True):
            row = {"schedule": schedule, "learner": name, "round": at, "mistakes": float(mean)}
            rows.append(row | {"std_error": float(error), "num_seeds": settings.seeds})
        numbers = ", ".join(f"{n} {v:g}" for n, v in tuned[schedule][name].items())
        share = rows[-1]["mistakes"] / means[s, 0, -1]
        shown.append(rows[-1] | {"tuned": numbers, "share": share})
    columns = [
        ("classes", "{schedule}"),
        ("learner", "{learner}"),
        ("mistakes", "{mistakes:.1f}"),
        ("± 95%", plus_minus("std_error", ".1f")),
        ("of first", "{share:.0%}"),
        ("tuned to", "{tuned}"),
    ]
    title = (
        f"difficulty {settings.difficulty}: mistakes in {settings.horizon:,} rounds, mean of "
        f"{settings.seeds} streams; tuned on {settings.tuning_seeds} others"
    )
    return Table(rows, columns, title, shown)


def _differences_table(last, means, halves) -> Table:
    """Differences after the last round, one for each pair, the best learners first."""
    names, rows = list(RIVALS), []
    for s, schedule in enumerate(SCHEDULES):
        for i, j in itertools.combinations(np.argsort(last[s], kind="stable"), 2):
            mean, half = float(means[s, i, j]), float(halves[s, i, j])
            row = {"schedule": schedule, "fewer": names[i], "more": names[j], "mean": mean}
            rows.append(row | {"half_width": half, "significant": abs(mean) > half})
    columns = [
        ("classes", "{schedule}"),
        ("pair", "{fewer} − {more}"),
        ("difference", "{mean:.1f}"),
        ("± 95%", "{half_width:.1f}"),
        ("", lambda row: "significant" if row["significant"] else "open"),
    ]
    return Table(rows, columns, "differences of mistakes, paired by stream")


def _regret_table(tuned, difficulty, rounds, key) -> Table:
    """NORMA against the best single function that it might have learned, on one stream each."""
    rows = []
    for schedule, make in SCHEDULES.items():
        gamma, decay, margin = tuned[schedule]["NORMA"].values()
        kernel, loss = _kernel(gamma), losses.hinge(margin=margin)
        stream = make(jax.random.fold_in(key, 0), rounds, difficulty=difficulty)
        learner = _norma(kernel, decay, margin, rounds)
        clean, unused = noise.Gaussian(0.0), jax.random.key(0)
        played = rollout(learner, stream, clean, unused).predictions
        # ‖f_t‖ ≤ Σ_s (1 − λ)^s ≤ 1/λ in t rounds at η = 1, as the slopes are at most 1.
        radius = min(1 / decay, rounds) if decay else rounds
        best = convex_ball(stream, loss, radius, kernel=kernel, tolerance=1e-3)
        row = {"schedule": schedule, "rounds": rounds, "radius": radius, "margin": margin}
        row |= {"norma": float(np.sum(loss(played, stream.y))), "best": float(best.loss)}
        for name, predictions in {"norma": played, "best": best.predictions}.items():
            row[f"{name}_mistakes"] = int(mistakes(predictions, stream.y)[-1])
        rows.append(row | {"gap": float(best.gap), "regret": row["norma"] - row["best"]})
    columns = [
        ("classes", "{schedule}"),
        ("T", "{rounds:,}"),
        ("largest norm", "{radius:.3g}"),
        ("NORMA", "{norma:.1f}"),
        ("best function", "{best:.1f}"),
        ("± at most", "{gap:.1f}"),
        ("regret", "{regret:.1f}"),
        ("mistakes of NORMA", "{norma_mistakes}"),
        ("of the best", "{best_mistakes}"),
    ]
    title = "soft-margin loss of NORMA, and of the best single function of NORMA's largest norm"
    return Table(rows, columns, title)


if __name__ == "__main__":
    sys.exit(script(Settings, run))
