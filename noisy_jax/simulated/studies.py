"""Studies: the regret of several learners over a grid of horizons, as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Stream, check_one_prediction, sound_stream
from noisy_jax.losses import Loss, squared
from noisy_jax.losses.loss import check_clean_targets, check_loss
from noisy_jax.noise import Noise, PerRound
from noisy_jax.noise.rounds import check_noise
from noisy_jax.simulated.checkpoints import checkpoint_of
from noisy_jax.simulated.configuration import description, text, versions
from noisy_jax.simulated.entries import Entry, MakeLearner
from noisy_jax.simulated.montecarlo import (
    SUMMED_ON_HOST,
    check_progress,
    checked_levels,
    divided,
    estimates_of,
    seed_range,
)
from noisy_jax.simulated.programs import first, programs, rooms_for
from noisy_jax.simulated.results import Study, study_of_estimates
from noisy_jax.simulated.rollouts import check_run
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import check_horizons
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import Array, check_concrete, collected_map


def study(
    learners: Mapping[str, Learner | MakeLearner],
    stream: Stream,
    noise: Noise | PerRound,
    key: jax.Array,
    *,
    num_seeds: int | range,
    horizons: Sequence[int],
    comparator: Callable[[Stream], Any],
    loss: Loss | None = None,
    y_noise: Noise | PerRound | None = None,
    batch_size: int | None = None,
    mesh: jax.sharding.Mesh | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    checkpoint: str | Path | None = None,
    tag: str = "",
    quantiles: Sequence[float] = (),
    parameters: Mapping[str, Any] | None = None,
) -> Study:
    """Estimates the expected regret on clean data of several learners, over a grid of horizons.

    The regret after T rounds is, with the loss ℓ and the learner's prediction p_t on the clean x_t,

        R_T = Σ_{t ≤ T} (ℓ(p_t, y_t) − ℓ(q_t, y_t)),

    where q_t are the predictions of a comparator, the best fixed predictor of a class. Learners
    see noisy copies of x_t; the expectation is over this noise, and the stream is fixed.

    Horizon T uses the first T rounds of the stream, learners tuned for T, and the best comparator
    on these rounds. All learners see the same noise, and their differences are paired by seed.
    Different horizons use independent noise, so that the interval for the exponent a of the growth,
    regret ~ T^a, is valid.

    Args:
        learners: a mapping from names to learners, to results of `tuned`, or to functions
            `horizon -> (learner, guarantee)`, where a guarantee, such as `bounds.two_copies`
            returns, has a bound on the regret, and may be `None` (its columns are then NaN). JAX
            compiles a program for each horizon of such a function; `simulated.AnyHorizon` makes
            one for all. Paired differences are taken from the first learner. `config.json` does not
            record settings of plain learners: pass them as `parameters`.
        stream: clean rounds, at least as many as the largest horizon; for a loss of the margin with
            labels −1 or +1.
        noise: distribution of the noise in each copy of x, such as `noise.Gaussian(0.1)`, or
            `noise.PerRound` with one for each round.
        key: a key of `jax.random.key`.
        num_seeds: S ≥ 1, independent draws of the noise for each horizon; or a range of seeds such
            as `range(64, 128)`: several machines can run disjoint ranges, which `Study.merge` puts
            together.
        horizons: increasing numbers of rounds.
        comparator: a function from a stream of T rounds to an object with `predictions` of shape
            `[T]`, such as `comparators.linear_ball(radius=1.0)`.
        loss: any of `losses` but a `flipped` one, and an adaptive loss as `.at(scale)`;
            `losses.squared()` by default.
        y_noise: scalar distribution of the noise in y, or `noise.PerRound`; none by default.
        batch_size: number of seeds that run at once; at most 128 by default.
        mesh: a `jax.sharding.Mesh` of devices that share each batch, or "all"; one device by
            default.
        progress: a function that is called after each batch with (done, total), numbers of rounds
            summed over seeds and horizons.
        checkpoint: path of a file for the sums, written after each batch. The same call resumes
            from it, also with more seeds, batches of another size, or other levels of quantiles if
            both calls have some. A call that differs in anything else that `config` tells is an
            error, but for the devices and a comparator of the same predictions.
        tag: needed with `checkpoint`: a text that identifies the settings of plain learners,
            kernels and worlds, and of functions of your own, since `config` does not tell them.
        quantiles: levels q, 0 < q < 1, of quantiles of the regret over seeds; none by default.
        parameters: further entries for `config.json`, by name.

    Returns:
        A `Study`: print it; `rows` has the numbers, and `save(folder)` writes them.

    Raises:
        ValueError: the stream is shorter than the largest horizon, a learner cannot learn from it
            or has no room for its rounds, `checkpoint` comes without `tag`, or the file is of
            another study.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=64, dim=3)
        >>> noise = nj.noise.Gaussian(0.1)
        >>> moments = nj.bounds.moments(stream, noise)
        >>> two_copies = nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> best = nj.comparators.linear_ball(radius=1.0)
        >>> result = nj.study({"two copies": two_copies}, stream, noise, jax.random.key(1),
        ...                   num_seeds=4, horizons=[32, 64], comparator=best)
        >>> [(row.learner, row.horizon, row.regret < row.bound) for row in result.rows]
        [('two copies', 32, True), ('two copies', 64, True)]
    """
    loss = squared() if loss is None else loss
    entries = _entries(collected_map(learners))
    for name, value in {"stream": stream, "key": key}.items():
        check_concrete(name, value, SUMMED_ON_HOST)
    stream, key = sound_stream(stream), parsed_key(key)
    check_loss(loss, flips=False)
    check_clean_targets(loss, stream.y)
    if not callable(comparator):
        raise ValueError(
            "comparator must be a function of a stream, such as "
            f"comparators.linear_ball(radius=1.0), got {given(comparator)}"
        )
    check_progress(progress)
    if parameters is not None:
        instance("parameters", parameters, Mapping, "further entries of config.json, by name")
    horizons = check_horizons("horizons", horizons)
    rounds, dim = np.shape(stream.x)
    if horizons[-1] > rounds:
        raise ValueError(
            f"the largest horizon, {horizons[-1]}, exceeds the {rounds} rounds of the "
            "stream; streams.resampled draws longer ones"
        )
    seeds, levels = seed_range(num_seeds), checked_levels(quantiles)
    batch_size, mesh = divided(len(seeds), batch_size, mesh)
    check_noise(noise, y_noise, rounds)

    # Learners, their guarantees and the comparator, for each horizon.
    # They are checked here; a program for all horizons makes its learners again, for a traced one.
    rooms = zip(horizons, rooms_for(entries, horizons), strict=True)
    pairs = [[entry.at(horizon, room) for entry in entries] for horizon, room in rooms]
    for entry, (learner, _) in zip(entries, pairs[-1], strict=True):
        check_run(learner, stream, noise, y_noise, f"learners[{entry.name!r}]")
        check_one_prediction(learner, dim, f"learners[{entry.name!r}]")
    bounds = {
        (entry.name, horizon): _bound(guarantee)
        for horizon, of_horizon in zip(horizons, pairs, strict=True)
        for entry, (_, guarantee) in zip(entries, of_horizon, strict=True)
    }
    bests = [_predictions(comparator, first(horizon, stream)) for horizon in horizons]

    # What the study is, for `config.json` and to know its checkpoint again.
    same = {
        "learners": {entry.name: text(entry) for entry in entries},
        "horizons": horizons,
        "first_seed": seeds.start,
        "noise": description(noise),
        "y_noise": description(y_noise),
        "stream": description(stream),
        "loss": text(loss),
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "key_implementation": str(jax.random.key_impl(key)),
        "x64": jnp.result_type(float) == jnp.float64,
        **(parameters or {}),
    }
    parts = json.dumps(same, default=str), bests, bool(levels)
    store = checkpoint_of(checkpoint, tag, parts)

    # Monte Carlo, and the table.
    by_horizon = [[learner for learner, _ in of_horizon] for of_horizon in pairs]
    data = stream, noise, y_noise
    runs = programs(entries, by_horizon, bests, horizons, loss, data)
    keys = [jax.random.fold_in(key, np.uint32(horizon)) for horizon in horizons]
    keyed = list(zip(runs, keys, strict=True))
    sizes = batch_size, mesh
    estimates = estimates_of(
        keyed, seeds, sizes, levels, store=store, progress=progress, weights=horizons
    )
    devices = jax.devices()[:1] if mesh is None else list(mesh.devices.flat)
    config = same | {
        "num_seeds": len(seeds),
        "batch_size": batch_size,
        "quantiles": levels,
        "comparator": text(comparator),
        "devices": [device.device_kind for device in devices],
        "versions": versions(),
    }
    return study_of_estimates([entry.name for entry in entries], estimates, bounds, config)


def _bound(guarantee: Any) -> tuple[float, float]:
    """Returns the bound on the regret and the learning rate; NaN without a guarantee."""
    if guarantee is None:
        return math.nan, math.nan
    return float(guarantee.regret), float(guarantee.learning_rate)


def _entries(learners: Any) -> tuple[Entry, ...]:
    if not isinstance(learners, Mapping):
        raise ValueError(
            "learners must map names to learners, or to functions horizon -> (learner, guarantee), "
            f"got {given(learners)}"
        )
    if not learners:
        raise ValueError("study needs at least one learner, got none")
    return tuple(Entry(name, entered) for name, entered in learners.items())


def _predictions(comparator, past: Stream) -> Array:
    best = comparator(past)
    if not hasattr(best, "predictions"):
        raise ValueError(
            "comparator must return something with predictions, such as comparators.linear_ball "
            f"does, but it returned {given(best)}"
        )
    (rounds,) = np.shape(past.y)
    if np.shape(best.predictions) != (rounds,):
        raise ValueError(
            f"comparator must return predictions of shape [{rounds}] for a stream of "
            f"{rounds} rounds, got {list(np.shape(best.predictions))}: it must use the stream "
            "that it is called with"
        )
    return best.predictions
