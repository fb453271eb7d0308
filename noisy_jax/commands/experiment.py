"""What the commands that run studies have in common: data, noise distributions, progress and report."""

import argparse
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh

from noisy_jax import noise, streams
from noisy_jax.base import Stream
from noisy_jax.evaluate.regrets import Growth
from noisy_jax.evaluate.results import Study
from noisy_jax.validation import check_at_least, check_horizons, check_positive

NOISES: Mapping[str, Callable[[float], noise.Noise]] = {
    "gaussian": noise.Gaussian,
    "laplace": lambda variance: noise.Laplace((variance / 2) ** 0.5),
    "uniform": lambda variance: noise.Uniform((3 * variance) ** 0.5),
}
"""Noise distributions by name, built from the variance on each feature."""


def add_options(parser: argparse.ArgumentParser, *, noises: Sequence[str]) -> None:
    """The options that mean the same for every study: target, noise, seed and out."""
    # fmt: off
    add = parser.add_argument
    add("--target", metavar="COLUMN", help="name of the target's column in the CSV file")
    add("--noise", choices=sorted(noises), default="gaussian",
        help="distribution of the noise (default: gaussian)")
    # fmt: on
    add_seed(parser)
    add_out(parser)


def add_seed(parser: argparse.ArgumentParser) -> None:
    """The option of every command that draws at random."""

    def seed(text: str) -> int:
        number = int(text)
        if not 0 <= number < 2**32:  # JAX takes the rest modulo 2³²
            raise argparse.ArgumentTypeError(f"must be at least 0 and below 2**32, got {text}")
        return number

    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="seed of all randomness (default: 0)"
    )


def check_study(options: argparse.Namespace) -> None:
    """Refuses numbers that no study takes, by the names of their options."""
    check_horizons("--horizons", options.horizons)
    check_at_least("--seeds", options.seeds, 1, "the number of independent noise draws")
    check_positive("--radius", options.radius, "the norm of the largest predictor that competes")


def add_out(parser: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    parser.add_argument(
        "--out",
        default="noisy_jax_results",
        metavar="FOLDER",
        help="folder for the results (default: noisy_jax_results)",
    )


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """The option of studies that can be interrupted."""
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="folder for what is done so far: interrupted, the same command goes on from there, "
        "also with more seeds (default: none)",
    )


def mesh() -> Mesh | None:
    """All devices, which share a study's seeds; none where there is only one."""
    devices = jax.devices()
    return Mesh(np.array(devices), "seeds") if len(devices) > 1 else None


def load(data: str, target: str | None, *, known: Sequence[str] = streams.DATASETS) -> Stream:
    """The scaled table behind `--data` and `--target`; `known` are the names to suggest."""
    if data in streams.DATASETS:
        if target is not None:
            raise ValueError(f"--target goes with a CSV file; the target of {data} is fixed")
        return streams.dataset(data)
    if not is_csv(data):
        raise ValueError(
            f"unknown data {data!r}; known are {', '.join(known)}, or a file that ends in .csv"
        )
    if not Path(data).is_file():
        raise ValueError(f"there is no file {data}")
    if target is None:
        raise ValueError(f"name the target's column of {data}: --target COLUMN")
    return streams.csv(data, target)


def is_csv(data: str) -> bool:
    """Whether `--data` is meant as a file."""
    return data.lower().endswith(".csv")


def distribution(name: str, variance: float) -> noise.Noise:
    """The noise distribution behind `--noise` and `--variance`."""
    if not variance > 0:
        raise ValueError(
            f"--variance must be positive, got {variance}; what learning from clean data costs, "
            "the learner clean of the command kernel shows"
        )
    return NOISES[name](variance)


@contextlib.contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """A bar of rounds done, as the `progress` of `study`."""
    from tqdm import tqdm

    with tqdm(total=1, unit="round", unit_scale=True, desc=description) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress


def require_plots() -> None:
    """Raises ImportError without matplotlib: a lack of it is better known before the work."""
    import matplotlib.figure  # noqa: F401


def report(heading: str, result: Study, folder: Path) -> None:
    """Prints heading, table and conclusion, and saves the study."""
    print(f"\n{heading}\n\n{result}\n\n{conclusion(result)}\n\nSaved in {result.save(folder)}/")


def conclusion(result: Study) -> str:
    """One sentence that says what the table shows, from its numbers."""
    last = {row.learner: row for row in result.rows}  # rows of a learner come by horizon
    diverged = [name for name, row in last.items() if row.diverged]
    sound = [row for row in last.values() if not row.diverged]
    growth = {row.learner: result.growth[row.learner] for row in sound}
    verdicts: dict[str, list[str]] = {}
    for name, fit in sorted(growth.items(), key=lambda item: item[1].exponent):
        if not math.isnan(fit.low):
            verdicts.setdefault(_verdict(fit), []).append(f"{name} (T^{fit.exponent:.2f})")
    if verdicts:
        parts = (f"{verdict}: {', '.join(names)}" for verdict, names in verdicts.items())
        sentence = f"Regret on clean data grows {'; '.join(parts)}"
    else:
        sentence = "Too few seeds or horizons to say how regret on clean data grows"
    if diverged:
        sentence += f"; {', '.join(diverged)} diverged"
    best = min(sound, key=lambda row: row.regret, default=None)
    worst = max(sound, key=lambda row: row.regret, default=None)
    if len(sound) > 1 and best.regret > 0:
        sentence += (
            f"; after {best.horizon:,} rounds {worst.learner} has paid "
            f"{worst.regret / best.regret:.1f} times the regret of {best.learner}"
        )
    return sentence + "."


def _verdict(fit: Growth) -> str:
    if fit.high <= 0.6:
        return "like √T or slower"
    if fit.low >= 0.8:
        return "nearly like T"
    decided = fit.low >= 0.5 and fit.high <= 1
    return "between √T and T" if decided else "at a rate that its interval leaves open"
