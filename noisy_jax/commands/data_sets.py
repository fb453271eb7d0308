"""The data sets of the commands on kernel learners: tables and a teacher, drawn, under noise."""

import argparse
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from noisy_jax import streams
from noisy_jax.base import Stream
from noisy_jax.commands import experiment
from noisy_jax.comparators import KernelBall
from noisy_jax.evaluate.results import Study
from noisy_jax.evaluate.studies import study
from noisy_jax.evaluate.tuning import MakeLearner
from noisy_jax.noise import Noise
from noisy_jax.validation import check_positive, writable_folder

NAMES = ("teacher", *streams.DATASETS)
"""Names that `--data` knows; the teacher is synthetic."""

Comparator = Callable[[Stream], KernelBall]
"""`stream -> KernelBall`, such as `comparators.world_ball` but for its first argument."""


class DataSet(NamedTuple):
    """One data set under one noise distribution.

    Attributes:
        name: of its folder.
        words: what it is.
        folder: for its results.
        stream: clean rounds, as many as the largest horizon.
        distribution: of the noise.
        key: of the noise.
    """

    name: str
    words: str
    folder: Path
    stream: Stream
    distribution: Noise
    key: jax.Array


def add_options(
    parser: argparse.ArgumentParser,
    *,
    data: Sequence[str],
    radius: float,
    rate_factor: float,
    horizons: Sequence[int],
    seeds: int,
) -> None:
    """The options that mean the same for these commands, with a command's defaults."""
    add = parser.add_argument
    rounds = " ".join(map(str, horizons))
    # fmt: off
    add("--data", nargs="+", default=list(data), metavar="NAME|FILE.csv",
        help=f"{', '.join(NAMES)}, or numeric CSV files (default: {' '.join(data)})")
    add("--radius", type=float, default=radius, metavar="B",
        help=f"norm of the largest functions that compete (default: {radius:g})")
    add("--rate-factor", type=float, default=rate_factor, metavar="M",
        help="times the theory's learning rate, which is far on the safe side; multiplies the "
        f"bounds by (M + 1/M)/2 (default: {rate_factor:g})")
    add("--horizons", type=int, nargs="+", default=list(horizons), metavar="T",
        help=f"numbers of rounds, increasing (default: {rounds})")
    add("--seeds", type=int, default=seeds, metavar="N",
        help=f"independent noise draws (default: {seeds})")
    # fmt: on
    experiment.add_options(parser, noises=["gaussian", "laplace"])
    experiment.add_checkpoint(parser)


def load(
    options: argparse.Namespace,
    teacher: Callable[[jax.Array], Stream],
    *,
    variance: float,
    teacher_variance: float,
) -> list[DataSet]:
    """The data sets that the options ask for; what they cannot ask for is refused here.

    Args:
        options: of the command.
        teacher: `key -> ` the teacher's rows.
        variance: of the noise where the options name none.
        teacher_variance: the same for the teacher.
    """
    check_positive("--rate-factor", options.rate_factor, "the learning rate over the theory's")
    experiment.check_study(options)
    names = [Path(data).stem if experiment.is_csv(data) else data for data in options.data]
    if len(set(names)) < len(names):
        raise ValueError(f"--data must differ in name, got {' '.join(names)}: each names a folder")
    folders = [writable_folder(Path(options.out) / name) for name in names]
    teacher_key, stream_key, noise_key = jax.random.split(jax.random.key(options.seed), 3)
    loaded = []
    for data, name, folder in zip(options.data, names, folders, strict=True):
        taught = data == "teacher"
        table = teacher(teacher_key) if taught else _table(options, data)
        usual = teacher_variance if taught else variance
        chosen = usual if options.variance is None else options.variance
        words = (
            f"{data}: {len(table.y):,} rows, {table.x.shape[1]} features; {options.noise} noise of "
            f"variance {chosen} on each feature; {options.seeds} noise draws"
        )
        stream = streams.resampled(stream_key, table, max(options.horizons))
        distribution = experiment.distribution(options.noise, chosen)
        loaded.append(DataSet(name, words, folder, stream, distribution, noise_key))
    return loaded


def _table(options, data) -> Stream:
    files = any(experiment.is_csv(other) for other in options.data)
    target = None if files and not experiment.is_csv(data) else options.target
    return experiment.load(data, target, known=NAMES)


@dataclasses.dataclass(frozen=True, eq=False)
class Remembered:
    """A comparator for the pasts of one stream, told apart by their rounds: each is found once."""

    comparator: Comparator
    _found: dict[int, KernelBall] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def __call__(self, past: Stream) -> KernelBall:
        """The comparator's answer for the first rounds of the stream."""
        rounds = len(past.y)
        if rounds not in self._found:
            self._found[rounds] = self.comparator(past)
        return self._found[rounds]

    def __repr__(self) -> str:
        """That of the comparator, which `config.json` names."""
        return repr(self.comparator)


def lifted_norms(
    comparator: Comparator, stream: Stream, horizons: Sequence[int]
) -> dict[int, float]:
    """The comparator's norm in the surrogate's space for each horizon: what W must reach."""
    pasts = {rounds: Stream(stream.x[:rounds], stream.y[:rounds]) for rounds in horizons}
    return {rounds: float(comparator(past).lifted_norm) for rounds, past in pasts.items()}


def regret(
    options: argparse.Namespace,
    data: DataSet,
    learners: Mapping[str, MakeLearner],
    comparator: Comparator,
    *,
    part: str = ".",
    **parameters: Any,
) -> Study:
    """The study of some learners on a data set.

    Args:
        options: of the command.
        data: the data set.
        learners: by name, tuned.
        comparator: `stream -> KernelBall`.
        part: folder below the data set's checkpoint, where it has several studies.
        **parameters: further entries for `config.json`.
    """
    store = options.checkpoint and Path(options.checkpoint) / data.name / part
    with experiment.progress_bar("rounds") as progress:
        return study(
            learners,
            data.stream,
            data.distribution,
            data.key,
            num_seeds=options.seeds,
            horizons=options.horizons,
            comparator=comparator,
            mesh=experiment.mesh(),
            progress=progress,
            checkpoint=store,
            parameters={"command": vars(options), **parameters},
        )
