"""What studies of regret share: settings, data sets, noise, and the call of `study`."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from noisy_jax import noise
from noisy_jax.base import Learner, Stream
from noisy_jax.command.runner import progress_bar
from noisy_jax.command.settings import SeededSettings, at_least, option
from noisy_jax.losses import Loss
from noisy_jax.observed.observations.files import check_named, read_frame
from noisy_jax.simulated import comparators, streams
from noisy_jax.simulated.programs import MakeLearner, first
from noisy_jax.simulated.results import Study
from noisy_jax.simulated.studies import study
from noisy_jax.validation import between, check_horizons, positive
from noisy_jax.worlds import World

NOISES: Mapping[str, Callable[[Any], Any]] = {
    "gaussian": noise.Gaussian,
    "laplace": lambda variance: noise.Laplace((variance / 2) ** 0.5),
    "uniform": lambda variance: noise.Uniform((3 * variance) ** 0.5),
}
"""Noise distributions by name, as functions of the variance on each feature."""

TABLES = ", ".join(streams.DATASETS)

# Options whose default differs between studies: functions of it.
data = functools.partial(
    option, help=f"teacher (synthetic), {TABLES}, or numeric CSV files", metavar="NAME|FILE.csv"
)
kernel_noise = functools.partial(
    option, help="distribution of the noise", choices=("gaussian", "laplace")
)
horizons = functools.partial(
    option, help="numbers of rounds, increasing", metavar="T", check=check_horizons
)
seeds = functools.partial(option, help="independent noise draws", metavar="N", check=at_least(1))
radius = functools.partial(
    option, help="norm of the largest predictor that competes", metavar="B", check=positive
)
rate_factor = functools.partial(
    option,
    help="learn at M times the theorem's rate, which multiplies the bounds by (M + 1/M)/2 "
    "(default: adaptive rates, which multiply them by 2√2)",
    metavar="M",
    check=positive,
)


@dataclasses.dataclass(frozen=True)
class RegretSettings(SeededSettings):
    """What all studies of regret have."""

    quantiles: tuple[float, ...] = option(
        (), "levels of quantiles of the regret over seeds, such as 0.5 0.95 (default: none)", "Q",
        check=lambda name, levels: [between(name, q, 0, 1) for q in levels],
    )  # fmt: skip
    target: str | None = option(None, "name of the target's column in the CSV file", "COLUMN")
    checkpoint: str | None = option(
        None,
        "folder for what is done so far: after an interruption the same command continues from "
        "there, also with more seeds (default: none)",
        "FOLDER",
    )


def load(data: str, target: str | None, *, known: Sequence[str] = streams.DATASETS) -> Stream:
    """The scaled table that `--data` and `--target` name; `known` are the names to suggest."""
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
    frame = read_frame(data, target)
    features = [name for name in frame.columns if name != target]
    if not features:
        raise ValueError(f"{data} has no column beside the target {target!r}")
    check_named(data, features)
    return streams.scaled(frame[features], frame[target])


def is_csv(data: str) -> bool:
    """Whether `--data` means a file."""
    return data.lower().endswith(".csv")


class DataSet(NamedTuple):
    """One data set under one noise distribution."""

    name: str  # of its folder
    words: str  # what it is
    stream: Stream  # clean rounds, as many as the largest horizon
    noise: noise.Noise
    key: jax.Array  # of the noise


def data_set(settings: Any, data: str, table: Stream, variance: float, keys: Any) -> DataSet:
    """What `--data` names: its table drawn with replacement, under noise of this variance.

    The keys are those of the stream and of the noise.
    """
    hint = "the learner clean of the study kernel shows what learning from clean data costs"
    distribution = NOISES[settings.noise](positive("--noise-variance", variance, hint))
    words = (
        f"{data}: {len(table.y):,} rows, {table.x.shape[1]} features; {settings.noise} noise of "
        f"variance {variance} on each feature; {settings.seeds} noise draws"
    )
    stream = streams.resampled(keys[0], table, max(settings.horizons))
    return DataSet(_folder(data), words, stream, distribution, keys[1])


def load_all(
    settings: Any, teacher: Callable[[jax.Array], Stream], *, variance: float, of_teacher: float
) -> list[DataSet]:
    """The data sets of a study on several.

    The teacher's rows are `teacher(key)`. If the settings name no variance of the noise, it is
    `variance`, and `of_teacher` for the teacher.
    """
    names = [_folder(data) for data in settings.data]
    if len(set(names)) < len(names):
        raise ValueError(f"--data must differ in name, got {' '.join(names)}: each names a folder")
    files = any(map(is_csv, settings.data))
    teacher_key, *keys = jax.random.split(jax.random.key(settings.seed), 3)
    loaded = []
    for data in settings.data:
        if data == "teacher":
            table, usual = teacher(teacher_key), of_teacher
        else:
            target = None if files and not is_csv(data) else settings.target
            known = ("teacher", *streams.DATASETS)
            table, usual = load(data, target, known=known), variance
        chosen = usual if settings.noise_variance is None else settings.noise_variance
        loaded.append(data_set(settings, data, table, chosen, keys))
    return loaded


def _folder(data: str) -> str:
    """A name for the results; never "." or "..", which are other folders."""
    return (Path(data).stem.strip(".") or "data") if is_csv(data) else data


class Best:
    """A comparator of one stream that computes each answer once."""

    def __init__(self, comparator: Callable[[Stream], Any], stream: Stream):
        self._comparator = comparator
        self._best = functools.cache(lambda rounds: comparator(first(rounds, stream)))

    def __call__(self, past: Stream) -> Any:
        """The best function for the first rounds of the stream."""
        return self._best(len(past.y))

    def __repr__(self) -> str:
        """That of the comparator, for `config.json`."""
        return repr(self._comparator)


class WorldBall(Best):
    """The comparator `comparators.world_ball` of one stream."""

    def __init__(self, world: World, radius: float, stream: Stream):
        ball = functools.partial(comparators.world_ball, world=world, radius=radius)
        super().__init__(ball, stream)

    def lifted_norms(self, horizons: Sequence[int]) -> dict[int, float]:
        """Its norm in the surrogate's space for each horizon: what W must reach."""
        return {rounds: float(self._best(rounds).lifted_norm) for rounds in horizons}


def study_of(
    settings: Any,
    data: DataSet,
    learners: Mapping[str, Learner | MakeLearner],
    comparator: Callable[[Stream], Any],
    *,
    loss: Loss | None = None,
    part: str = "study",
    **parameters: Any,
) -> Study:
    """The study of tuned learners on a data set, with a progress bar, on all devices.

    `part` names the file in the folder of the checkpoints; `parameters` go into `config.json`.
    """
    free = {"seeds", "checkpoint", "quantiles"}
    told = {name: one for name, one in dataclasses.asdict(settings).items() if name not in free}
    checkpoint = settings.checkpoint and Path(settings.checkpoint) / f"{part}.npz"
    with progress_bar("rounds") as progress:
        return study(
            learners,
            data.stream,
            data.noise,
            data.key,
            num_seeds=settings.seeds,
            horizons=settings.horizons,
            comparator=comparator,
            loss=loss,
            mesh="all",
            progress=progress,
            quantiles=settings.quantiles,
            checkpoint=checkpoint,
            tag=f"{part} {told}" if checkpoint else "",
            parameters=parameters,
        )
