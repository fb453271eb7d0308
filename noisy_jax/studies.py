"""Studies: how the regret of several learners grows with the horizon, as a table to keep."""

import csv
import dataclasses
import functools
import hashlib
import itertools
import json
import math
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Stream
from noisy_jax.bounds import Guarantee, Moments
from noisy_jax.learners.paired import paired
from noisy_jax.losses import Loss, squared
from noisy_jax.montecarlo import monte_carlo
from noisy_jax.noise import Noise, PerRound
from noisy_jax.regret import NORMAL_95, Growth, growth
from noisy_jax.rollouts import final_regret
from noisy_jax.validation import check_at_least, check_stream

MakeLearner = Callable[[int], tuple[Learner, Guarantee]]
"""`horizon -> (learner, guarantee)`: a learner tuned for a horizon, and what is promised of it."""


class Row(NamedTuple):
    """One learner at one horizon.

    Attributes:
        learner: its name.
        horizon: T.
        regret: mean over seeds of the regret on clean data after T rounds.
        std_error: of the mean.
        low: lower end of its 95% interval.
        high: upper end.
        bound: the guarantee's bound on the expected regret.
        bound_over_regret: how loose it is; below 1 the bound fails.
        difference: mean of (regret − regret of the study's first learner), paired by seed.
        difference_std_error: of that mean.
        learning_rate: the guarantee's η.
        diverged: fraction of seeds in which the learner overflowed.
    """

    learner: str
    horizon: int
    regret: float
    std_error: float
    low: float
    high: float
    bound: float
    bound_over_regret: float
    difference: float
    difference_std_error: float
    learning_rate: float
    diverged: float


@dataclasses.dataclass(frozen=True)
class Study:
    """Results of `study`: print it, read its rows, or save it.

    Attributes:
        rows: one `Row` for each learner and horizon, horizons inside learners.
        growth: exponent of the growth of regret for each learner, over the upper half of horizons.
        config: all that made the results, as JSON holds it.
    """

    rows: tuple[Row, ...]
    growth: Mapping[str, Growth]
    config: Mapping[str, Any]

    def __str__(self) -> str:
        """The table, and the exponents below it."""
        width = max(len(name) for name in self.growth)
        lines = [
            f"{'learner':<{width}} {'T':>9} {'regret':>9} {'± 95%':>7} {'bound':>9} "
            f"{'bound/regret':>12} {'vs first':>9} {'± 95%':>7}"
        ]
        lines += [
            f"{row.learner:<{width}} {row.horizon:>9,} {row.regret:>9.1f} "
            f"{NORMAL_95 * row.std_error:>7.1f} {row.bound:>9.1f} "
            f"{row.bound_over_regret:>12.2f} {row.difference:>+9.1f} "
            f"{NORMAL_95 * row.difference_std_error:>7.1f}"
            + (f"  diverged in {row.diverged:.0%} of seeds" if row.diverged else "")
            for row in self.rows
        ]
        lines += ["", "regret grows like T^a over the upper half of horizons, a with 95% interval:"]
        lines += [
            f"{name:<{width}} {fit.exponent:6.3f}  [{fit.low:.3f}, {fit.high:.3f}]"
            for name, fit in self.growth.items()
        ]
        return "\n".join(lines)

    def save(self, folder: str | Path) -> Path:
        """Writes `results.csv`, `config.json` and `regret.png` (needs matplotlib).

        Args:
            folder: where to; made if it does not exist.

        Returns:
            The folder's path.

        Raises:
            ValueError: the folder cannot be written.
        """
        from noisy_jax import plots

        folder = writable_folder(folder)
        with open(folder / "results.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow([*Row._fields, *(f"growth_{name}" for name in Growth._fields)])
            table.writerows([*row, *self.growth[row.learner]] for row in self.rows)
        config = json.dumps(self.config, indent=2, ensure_ascii=False)
        (folder / "config.json").write_text(config + "\n", encoding="utf-8")
        plots.regret(self).figure.savefig(folder / "regret.png", dpi=150)
        return folder


def writable_folder(folder: str | Path) -> Path:
    """The folder's path, made if need be, after a trial of writing in it.

    Raises:
        ValueError: it cannot be made or written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / ".writable"
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise ValueError(f"cannot write to the output folder {folder}: {error}") from error
    return folder


def study(
    learners: Mapping[str, MakeLearner],
    stream: Stream,
    noise: Noise | PerRound,
    key: chex.PRNGKey,
    *,
    num_seeds: int,
    horizons: Sequence[int],
    comparator: Callable[[Stream], Any],
    loss: Loss | None = None,
    y_noise: Noise | None = None,
    batch_size: int | None = None,
    mesh: jax.sharding.Mesh | None = None,
    progress: Callable[[int, int], None] | None = None,
    checkpoint: str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Study:
    """The expected regret on clean data of several learners, over a grid of horizons.

    The horizon T uses the first T rounds of the stream, learners tuned for T, and the comparator
    that is best for these T rounds. Within a horizon all learners see the same noise, so that
    differences between them are paired; different horizons use independent noise, so that the
    exponent of growth has a valid interval.

    Args:
        learners: names with `horizon -> (learner, guarantee)`. The first one is the reference for
            paired differences. Where the same functions come again, nothing is compiled again.
        stream: T clean rounds, at least the largest horizon.
        noise: law of the noise in each copy of x.
        key: a key of `jax.random.key`.
        num_seeds: S, independent noise draws for each horizon.
        horizons: increasing numbers of rounds.
        comparator: `stream -> ` anything with `predictions` of shape `[T]`, such as
            `functools.partial(comparators.linear_ball, radius=1.0)`.
        loss: squared by default.
        y_noise: scalar law of the noise in y; none by default.
        batch_size: see `monte_carlo`.
        mesh: see `monte_carlo`.
        progress: called on the host with (seed-rounds done, seed-rounds in all).
        checkpoint: folder for `monte_carlo`'s checkpoints, one inside it for each horizon.
        parameters: further entries for `config.json`.

    Returns:
        A `Study`.

    Raises:
        ValueError: no learners, horizons that do not increase or exceed the stream, no seeds.

    Example:
        >>> import functools, jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=64, dim=3)
        >>> noise = nj.noise.Gaussian(0.1)
        >>> moments = nj.bounds.moments(stream, noise)
        >>> two_copies = tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> result = study({"two copies": two_copies}, stream, noise, jax.random.key(1),
        ...                num_seeds=4, horizons=[32, 64],
        ...                comparator=functools.partial(nj.comparators.linear_ball, radius=1.0))
        >>> len(result.rows)
        2
    """
    check_stream(*stream)
    if not learners:
        raise ValueError("study needs at least one learner, got none")
    for horizon in horizons:
        check_at_least("each horizon", horizon, 1, "a number of rounds")
    if not horizons or any(b <= a for a, b in itertools.pairwise(horizons)):
        raise ValueError(f"horizons must be at least one and increasing, got {list(horizons)}")
    if horizons[-1] > stream.x.shape[0]:
        raise ValueError(
            f"the largest horizon, {horizons[-1]}, exceeds the {stream.x.shape[0]} rounds of the "
            "stream; streams.resampled draws longer ones"
        )
    check_at_least("num_seeds", num_seeds, 1, "the number of independent noise draws")
    makers, loss = tuple(learners.values()), squared() if loss is None else loss
    rows: list[Row] = []
    done, total = 0, num_seeds * sum(horizons)
    for horizon in horizons:
        past = _first(horizon, stream)
        laws = _first(horizon, noise) if isinstance(noise, PerRound) else noise
        run = jax.tree_util.Partial(
            _run(makers, horizon, loss), past, laws, y_noise, comparator(past).predictions
        )
        estimate = monte_carlo(
            run,
            jax.random.fold_in(key, horizon),
            num_seeds,
            batch_size=batch_size,
            mesh=mesh,
            progress=progress and functools.partial(_report, progress, done, horizon, total),
            checkpoint=None if checkpoint is None else Path(checkpoint) / f"horizon_{horizon}",
        )
        done += num_seeds * horizon
        guarantees = [make(horizon)[1] for make in makers]
        rows += _rows(list(learners), horizon, estimate, guarantees)

    rows.sort(key=lambda row: list(learners).index(row.learner))
    exponents = {}
    for name in learners:
        own = [row for row in rows if row.learner == name]
        exponents[name] = growth(horizons, [r.regret for r in own], [r.std_error for r in own])
    config = {
        "learners": {name: _text(make) for name, make in learners.items()},
        "horizons": list(map(int, horizons)),
        "num_seeds": num_seeds,
        "batch_size": batch_size,
        "noise": _text(noise),
        "y_noise": _text(y_noise),
        "stream": _description(stream),
        "comparator": _text(comparator),
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "key_implementation": str(jax.random.key_impl(key)),
        "device": jax.devices()[0].device_kind,
        "num_devices": 1 if mesh is None else mesh.size,
        "versions": _versions(),
        **(parameters or {}),
    }
    return Study(tuple(rows), exponents, config)


def tuned(
    factory: Callable[..., Learner],
    bound: Callable[..., Guarantee],
    moments: Moments,
    *,
    radius: chex.Numeric,
    **options: Any,
) -> MakeLearner:
    """For `study`: a linear learner whose learning rate is the theorem's for each horizon.

    Args:
        factory: such as `learners.two_copies`.
        bound: the guarantee that goes with it, such as `bounds.two_copies`.
        moments: of the noisy data, by `bounds.moments`.
        radius: B_w > 0.
        **options: handed to both, such as `as_printed=True`.

    Returns:
        `horizon -> (learner, guarantee)`.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.Moments(1.0, 1.0, 1.0, 0.1)
        >>> make = tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> print(make(100)[1].learning_rate)
        0.025
    """
    return functools.partial(_tuned, factory, bound, moments, radius, options)


def _tuned(factory, bound, moments, radius, options, horizon):
    guarantee = bound(moments, horizon=horizon, radius=radius, **options)
    learner = factory(radius=radius, learning_rate=guarantee.learning_rate, **options)
    return learner, guarantee


def _first(rounds: int, tree):
    return jax.tree.map(lambda leaf: leaf[:rounds], tree)


def _report(progress, done, horizon, total, seeds, _):
    progress(done + seeds * horizon, total)


@functools.lru_cache(maxsize=64)
def _run(makers: tuple[MakeLearner, ...], horizon: int, loss: Loss):
    """The run of one seed; cached, so that JAX recognises it when a study comes again."""

    def run(stream, noise, y_noise, comparator, key):
        learner = paired(*(make(horizon)[0] for make in makers))
        regret = final_regret(
            learner, stream, noise, key, loss=loss, comparator=comparator, y_noise=y_noise
        )
        return regret, regret - regret[0], ~jnp.isfinite(regret)

    return run


def _rows(names, horizon, estimate, guarantees) -> list[Row]:
    (regret, difference, diverged), errors = estimate.mean, estimate.std_error
    return [
        Row(
            learner=name,
            horizon=int(horizon),
            regret=float(regret[i]),
            std_error=float(errors[0][i]),
            low=float(regret[i] - NORMAL_95 * errors[0][i]),
            high=float(regret[i] + NORMAL_95 * errors[0][i]),
            bound=float(guarantee.regret),
            bound_over_regret=float(guarantee.regret) / float(regret[i]) if regret[i] else math.inf,
            difference=float(difference[i]),
            difference_std_error=float(errors[1][i]),
            learning_rate=float(guarantee.learning_rate),
            diverged=float(diverged[i]),
        )
        for i, (name, guarantee) in enumerate(zip(names, guarantees, strict=True))
    ]


def _text(made_by) -> str:
    """What it is, without addresses in memory, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(made_by))


def _description(stream: Stream) -> dict[str, Any]:
    digest = hashlib.sha256()
    for array in map(np.asarray, stream):
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return {
        "rounds": int(stream.x.shape[0]),
        "dimension": int(stream.x.shape[1]),
        "sha256": digest.hexdigest(),
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    names = ("noisy_jax", "jax", "jaxlib", "optax", "chex", "numpy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
