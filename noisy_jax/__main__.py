"""The command line: `python -m noisy_jax` measures regret on clean data, on real data.

It runs the linear learners on one data set under one noise law and saves table, configuration and
picture.
"""

import argparse
import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax

from noisy_jax import bounds, comparators, learners, noise, streams
from noisy_jax.regret import Growth
from noisy_jax.results import Study
from noisy_jax.studies import MakeLearner, study, tuned
from noisy_jax.validation import writable_folder

NOISES: Mapping[str, Callable[[float], noise.Noise]] = {
    "gaussian": noise.Gaussian,
    "laplace": lambda variance: noise.Laplace((variance / 2) ** 0.5),
    "uniform": lambda variance: noise.Uniform((3 * variance) ** 0.5),
}
"""Noise laws by name, built from the variance on each feature."""

EXAMPLE = """\
examples:
  python -m noisy_jax
  python -m noisy_jax --data breast_cancer --noise laplace --variance 0.02
  python -m noisy_jax --data houses.csv --target price --horizons 1024 4096 16384 --seeds 64
"""


LEARNERS: Mapping[str, Callable[..., MakeLearner]] = {
    "known_covariance": functools.partial(
        tuned, learners.known_covariance, bounds.known_covariance
    ),
    "two_copies": functools.partial(tuned, learners.two_copies, bounds.two_copies),
    "as_printed": functools.partial(
        tuned, learners.known_covariance, bounds.known_covariance, as_printed=True
    ),
    "noise_blind": functools.partial(tuned, learners.noise_blind, bounds.noise_blind),
}
"""Learners by name, `(moments, radius=…) -> (horizon -> (learner, guarantee))`."""


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    options = argparse.ArgumentParser(
        prog="python -m noisy_jax",
        description=(
            "How much regret, on clean data, does a linear learner pay that only sees noisy "
            "copies? Runs each learner on a data set drawn with replacement, under many draws of "
            "the noise, and writes results.csv, config.json and regret.png."
        ),
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = options.add_argument
    # fmt: off
    add("--data", default="diabetes", metavar="NAME|FILE.csv",
        help=f"{', '.join(streams.DATASETS)}, or a numeric CSV file (default: diabetes)")
    add("--target", metavar="COLUMN", help="name of the target's column in the CSV file")
    add("--noise", choices=sorted(NOISES), default="gaussian",
        help="law of the noise (default: gaussian)")
    add("--variance", type=float, default=0.1, metavar="V",
        help="noise variance on each feature; rows have norm at most 1 (default: 0.1)")
    add("--horizons", type=int, nargs="+", default=[1024, 4096, 16384, 65536, 262144], metavar="T",
        help="numbers of rounds, increasing (default: 1024 to 262144 by factors of 4)")
    add("--seeds", type=int, default=32, metavar="N", help="independent noise draws (default: 32)")
    add("--learners", nargs="+", choices=list(LEARNERS), default=list(LEARNERS), metavar="NAME",
        help="known_covariance (one copy; 2Σw taken away), two_copies, as_printed (one copy; Σw "
        "taken away, as the paper prints it), noise_blind (one copy, trusted) (default: all)")
    add("--radius", type=float, default=1.0, metavar="B",
        help="norm of the largest weights that compete (default: 1)")
    add("--seed", type=int, default=0, help="seed of all randomness (default: 0)")
    add("--out", default="noisy_jax_results", metavar="FOLDER",
        help="folder for the results (default: noisy_jax_results)")
    # fmt: on
    return options


def load(data: str, target: str | None) -> streams.Stream:
    """The scaled table behind `--data` and `--target`."""
    if data in streams.DATASETS:
        if target is not None:
            raise ValueError(f"--target goes with a CSV file; the target of {data} is fixed")
        return streams.dataset(data)
    if not data.lower().endswith(".csv"):
        raise ValueError(
            f"unknown data {data!r}; known are {', '.join(streams.DATASETS)}, or a file that ends "
            "in .csv"
        )
    if not Path(data).is_file():
        raise ValueError(f"there is no file {data}")
    if target is None:
        raise ValueError(f"name the target's column of {data}: --target COLUMN")
    return streams.csv(data, target)


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


def run(options: argparse.Namespace) -> Study:
    """Runs the study that the options ask for, prints it, and saves it."""
    import matplotlib.figure  # noqa: F401  a lack of it is better known before the work
    from tqdm import tqdm

    if not options.variance > 0:
        raise ValueError(f"--variance must be positive, got {options.variance}")
    folder = writable_folder(options.out)
    table = load(options.data, options.target)
    stream_key, noise_key = jax.random.split(jax.random.key(options.seed))
    stream = streams.resampled(stream_key, table, max(options.horizons))
    law = NOISES[options.noise](options.variance)
    moments = bounds.moments(stream, law)
    with tqdm(total=1, unit="round", unit_scale=True, desc="noisy rounds") as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        result = study(
            {name: LEARNERS[name](moments, radius=options.radius) for name in options.learners},
            stream,
            law,
            noise_key,
            num_seeds=options.seeds,
            horizons=options.horizons,
            comparator=functools.partial(comparators.linear_ball, radius=options.radius),
            progress=progress,
            parameters={"command": vars(options)},
        )
    print(
        f"\n{options.data}: {len(table.y):,} rows, {table.x.shape[1]} features; {options.noise} "
        f"noise of variance {options.variance} on each feature; {options.seeds} noise draws\n"
    )
    print(result)
    print(f"\n{conclusion(result)}\n\nSaved in {result.save(folder)}/")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status, 2 for bad input."""
    options = parser().parse_args(arguments)
    try:
        run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"error: {error}; the command needs: pip install 'noisy_jax[demo]'", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
