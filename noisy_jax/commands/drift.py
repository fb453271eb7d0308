"""The command `drift`: mistakes of NORMA and its rivals on classes that drift, or switch."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np

from noisy_jax import plots, streams
from noisy_jax.commands import experiment, rivals
from noisy_jax.commands.records import save_command, save_table
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.validation import check_at_least, writable_folder

SUMMARY = "mistakes of NORMA and its rivals on classes that drift"

DESCRIPTION = """\
Which kernel classifier follows classes that move, and what do a margin and decay bring?

Tunes each learner by a grid on streams of their own, then counts its mistakes on many others,
where the classes drift or switch, and writes mistakes.csv, differences.csv, config.json and
mistakes.png. Nothing is truncated.
"""

EXAMPLES = """\
  python -m noisy_jax drift
  python -m noisy_jax drift --difficulty C --horizon 2000
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--difficulty", choices=sorted(streams.DIFFICULTIES), default="A",
        help="of the streams: A medium, B hard, C easy (default: A)")
    add("--horizon", type=int, default=10_000, metavar="T", help="rounds (default: 10000)")
    add("--seeds", type=int, default=100, metavar="N",
        help="independent streams (default: 100)")
    add("--tuning-seeds", type=int, default=4, metavar="N",
        help="further streams, by which parameters are chosen (default: 4)")
    # fmt: on
    experiment.add_seed(parser)
    experiment.add_out(parser)


def run(options: argparse.Namespace) -> dict[str, rivals.Comparison]:
    """Tunes and compares the learners under both schedules, prints and saves what came of it."""
    experiment.require_plots()
    check_at_least("--horizon", options.horizon, 1, "the number of rounds")
    check_at_least("--seeds", options.seeds, 2, "the number of streams, of which intervals come")
    check_at_least("--tuning-seeds", options.tuning_seeds, 1, "the number of streams to tune by")
    folder = writable_folder(options.out)
    rounds = np.unique(np.linspace(1, options.horizon, 101).astype(int))
    with experiment.progress_bar("streams") as progress:
        results = rivals.compare(
            jax.random.key(options.seed),
            streams.DIFFICULTIES[options.difficulty],
            rounds,
            num_seeds=options.seeds,
            num_tuning_seeds=options.tuning_seeds,
            progress=progress,
        )
    print(
        f"\ndifficulty {options.difficulty}: mistakes in {options.horizon:,} rounds, mean of "
        f"{options.seeds} streams; tuned on {options.tuning_seeds} others\n\n{table(results)}\n\n"
        f"{conclusion(results)}"
    )
    save(options, results, rounds, folder)
    print(f"\nSaved in {folder}/")
    return results


def table(results: Mapping[str, rivals.Comparison]) -> str:
    """Mistakes and tuned parameters of each learner, then the differences of all pairs."""
    lines = []
    for schedule, result in results.items():
        first = next(iter(result.curves.values()))[0][-1]
        lines.append(f"{schedule:<11} {'mistakes':>8} {'± 95%':>6} {'of first':>8}  tuned to")
        for name, (means, errors) in result.curves.items():
            tuned = ", ".join(f"{n} {value:g}" for n, value in result.tuned[name].items())
            lines.append(
                f"{name:<11} {means[-1]:>8.1f} {NORMAL_95 * errors[-1]:>6.1f} "
                f"{means[-1] / first:>8.0%}  {tuned}"
            )
        lines += ["", f"{schedule + ': differences, paired':<28} {'mean':>7} {'± 95%':>6}"]
        for pair in result.differences:
            lines.append(
                f"{pair.fewer + ' − ' + pair.more:<28} {pair.mean:>7.1f} {pair.half_width:>6.1f}  "
                + ("significant" if pair.significant else "open")
            )
        lines.append("")
    return "\n".join(lines[:-1])


def conclusion(results: Mapping[str, rivals.Comparison]) -> str:
    """One sentence for each schedule that says what the table shows, from its numbers."""
    return "\n".join(_sentence(schedule, result) for schedule, result in results.items())


def _sentence(schedule, result) -> str:
    last = {name: means[-1] for name, (means, _) in result.curves.items()}
    first, best = next(iter(last)), result.differences[0].fewer
    beaten = [d.more for d in result.differences if d.fewer == best and d.significant]
    undecided = [f"{d.fewer} and {d.more}" for d in result.differences if not d.significant]
    sentence = f"Where classes {schedule}, {best} makes the fewest mistakes, {last[best]:.0f}"
    if last[first] > last[best]:
        sentence += f", {1 - last[best] / last[first]:.0%} fewer than {first}"
    if beaten:
        sentence += f", and significantly fewer than {', '.join(beaten)}"
    order = f"open between {'; '.join(undecided)}" if undecided else "every order is significant"
    return f"{sentence}; {order}."


def save(
    options: argparse.Namespace,
    results: Mapping[str, rivals.Comparison],
    rounds: np.ndarray,
    folder: Path,
) -> None:
    """Writes mistakes.csv, differences.csv, config.json and mistakes.png."""
    mistakes = [
        [schedule, name, *row]
        for schedule, result in results.items()
        for name, curve in result.curves.items()
        for row in zip(rounds, *curve, strict=True)
    ]
    header = ["schedule", "learner", "round", "mistakes", "std_error"]
    save_table(folder / "mistakes.csv", header, mistakes)
    differences = [
        [schedule, *pair, pair.significant]
        for schedule, result in results.items()
        for pair in result.differences
    ]
    header = ["schedule", *rivals.Difference._fields, "significant"]
    save_table(folder / "differences.csv", header, differences)
    save_command(
        options,
        folder,
        difficulty=streams.DIFFICULTIES[options.difficulty]._asdict(),
        gammas=rivals.GAMMAS,
        grids={name: family.grid for name, family in rivals.FAMILIES.items()},
        tuned={schedule: result.tuned for schedule, result in results.items()},
    )
    panels = {f"classes {schedule}": result.curves for schedule, result in results.items()}
    plots.mistakes(rounds, panels)[0].figure.savefig(folder / "mistakes.png", dpi=150)
