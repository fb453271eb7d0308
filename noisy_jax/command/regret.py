"""Parts shared by studies of regret: settings, data sets, noise, and the call of `study`."""

from __future__ import annotations

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
from noisy_jax.simulated import streams
from noisy_jax.simulated.entries import MakeLearner
from noisy_jax.simulated.results import Study
from noisy_jax.simulated.studies import study
from noisy_jax.validation.numbers import between, check_horizons, positive

NOISES: Mapping[str, Callable[[Any], Any]] = {
    "gaussian": noise.Gaussian,
    "laplace": noise.Laplace.from_variance,
    "uniform": noise.Uniform.from_variance,
}
"""Noise distributions by name, as functions of the variance on each feature."""

TABLES = ", ".join(streams.DATASETS)

# Options whose default differs between studies: functions of it.
horizons = functools.partial(
    option, help="numbers of rounds, increasing", metavar="T", check=check_horizons
)
seeds = functools.partial(option, help="independent noise draws", metavar="N", check=at_least(1))
radius = functools.partial(
    option, help="norm of the largest predictor that competes", metavar="B", check=positive
)


@dataclasses.dataclass(frozen=True)
class RegretSettings(SeededSettings):
    """Settings that all studies of regret have."""

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
    """Returns the scaled table that `--data` and `--target` name; `known` are names to suggest."""
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
    """Returns True if `--data` means a file."""
    return data.lower().endswith(".csv")


class DataSet(NamedTuple):
    """One data set under one noise distribution."""

    name: str  # of its folder
    words: str  # what it is
    stream: Stream  # clean rounds, as many as the largest horizon
    noise: noise.Noise
    key: jax.Array  # of the noise


def data_set(settings: Any, data: str, table: Stream, variance: float, keys: Any) -> DataSet:
    """Returns the data set of `--data`: rows drawn with replacement, under noise of this variance.

    The two keys are for the stream and for the noise.
    """
    hint = "the learner clean of colabs/papers/kernel.py shows what learning from clean data costs"
    distribution = NOISES[settings.noise](positive("--noise-variance", variance, hint))
    words = (
        f"{data}: {len(table.y):,} rows, {table.x.shape[1]} features; {settings.noise} noise of "
        f"variance {variance} on each feature; {settings.seeds} noise draws"
    )
    stream = streams.resampled(keys[0], table, max(settings.horizons))
    return DataSet(folder_of(data), words, stream, distribution, keys[1])


def folder_of(data: str) -> str:
    """Returns a name for the results; never "." or "..", which are other folders."""
    return (Path(data).stem.strip(".") or "data") if is_csv(data) else data


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
    """Runs the study of tuned learners on a data set, with a progress bar, on all devices.

    `part` names the file in the folder of the checkpoints; `parameters` go into `config.json`.
    """
    free = {"seeds", "checkpoint", "quantiles"}
    told = {name: value for name, value in dataclasses.asdict(settings).items() if name not in free}
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
