"""Studies: the regret of several learners over a grid of horizons, as a table."""

import hashlib
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import (
    Learner,
    Stream,
    check_one_prediction,
    check_targets_of,
    sound_stream,
    warn_of_sizes,
)
from noisy_jax.checkpoints import Checkpoint
from noisy_jax.losses import Loss, squared
from noisy_jax.losses.loss import check_loss
from noisy_jax.noise import Noise, PerRound
from noisy_jax.noise.rounds import check_noise
from noisy_jax.simulated.configuration import description, text, versions
from noisy_jax.simulated.estimates import Sums, estimated
from noisy_jax.simulated.montecarlo import (
    Batches,
    check_tag,
    checked_levels,
    digest,
    divided,
    resumed,
    seed_range,
)
from noisy_jax.simulated.programs import Always, MakeLearner, first, made, runs, takes_room
from noisy_jax.simulated.results import Study, study_of_estimates
from noisy_jax.simulated.rollouts import warn_of_other_flips, warn_of_other_noise
from noisy_jax.validation import check_horizons, check_labels, collected_map, given, parsed_key


def study(
    learners: Mapping[str, Learner | MakeLearner],
    stream: Stream,
    noise: Noise | PerRound,
    key: chex.PRNGKey,
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
    """The expected regret on clean data of several learners, over a grid of horizons.

    Horizon T uses the first T rounds of the stream, learners tuned for T, and the best comparator
    on these rounds. All learners see the same noise, and differences are paired. Different horizons
    use independent noise, so that the interval for the exponent of growth is valid.

    Args:
        learners: names with learners, or with functions `horizon -> (learner, guarantee)` such as
            `tuned` returns (`simulated.MakeLearner`). The guarantee may be `None`, and its columns
            are then NaN. Paired differences are taken from the first learner. Pass settings of
            plain learners as `parameters`: `config.json` does not record them. Another study with
            the same learners and functions compiles nothing again.
        stream: T clean rounds, at least the largest horizon; labels −1 or +1 for a loss of the
            margin.
        noise: distribution of the noise in each copy of x, as in `rollout`.
        key: a key of `jax.random.key`.
        num_seeds: S independent draws of the noise for each horizon, or a range of seeds, as in
            `monte_carlo`: several machines can run disjoint ranges, which `Study.merge` puts
            together.
        horizons: increasing numbers of rounds.
        comparator: from a stream of T rounds to anything with `predictions` of shape `[T]`, such
            as `comparators.linear_ball(radius=1.0)`.
        loss: squared by default.
        y_noise: scalar distribution of the noise in y, as in `rollout`; none by default.
        batch_size: as in `monte_carlo`.
        mesh: as in `monte_carlo`.
        progress: called with (done, total), numbers of rounds summed over seeds.
        checkpoint: file in which the sums are stored after each batch. The same call resumes from
            it, also with more seeds, other levels of quantiles or batches of another size; a call
            that differs in anything else that `config` tells is an error.
        tag: a text that says how the learners are set. `checkpoint` needs it where `config` does
            not tell: for plain learners, kernels and worlds, and functions of your own.
        quantiles: levels of quantiles of the regret, as in `monte_carlo`.
        parameters: further entries for `config.json`.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=64, dim=3)
        >>> noise = nj.noise.Gaussian(0.1)
        >>> moments = nj.bounds.moments(stream, noise)
        >>> two_copies = nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> result = study({"two copies": two_copies}, stream, noise, jax.random.key(1),
        ...                num_seeds=4, horizons=[32, 64],
        ...                comparator=nj.comparators.linear_ball(radius=1.0))
        >>> [(row.learner, row.horizon, row.regret < row.bound) for row in result.rows]
        [('two copies', 32, True), ('two copies', 64, True)]
    """
    loss = squared() if loss is None else loss
    learners = collected_map(learners)
    _check_learners(learners)
    stream = sound_stream(stream)
    key = parsed_key(key)
    check_loss(loss, flips=False)
    if loss.kind == "margin":
        check_labels("y", stream.y)
    if not callable(comparator):
        raise ValueError(
            "comparator must be a function of a stream, such as "
            f"comparators.linear_ball(radius=1.0), got {given(comparator)}"
        )
    if not _takes_one(comparator):
        _, given_maker = _maker(comparator)
        raise ValueError(f"comparator must be a function of a stream, got {given_maker}")
    horizons = check_horizons("horizons", horizons)
    rounds, dim = np.shape(stream.x)
    if horizons[-1] > rounds:
        raise ValueError(
            f"the largest horizon, {horizons[-1]}, exceeds the {rounds} rounds of the "
            "stream; streams.resampled draws longer ones"
        )
    seeds = seed_range(num_seeds)
    batch_size, mesh = divided(len(seeds), batch_size, mesh)
    check_noise(noise, y_noise, rounds)
    makers = tuple(
        Always(each) if isinstance(each, Learner) else each for each in learners.values()
    )
    for name, (learner, _) in zip(learners, made(makers, horizons[-1]), strict=True):
        warn_of_other_noise(learner, noise, f"learners[{name!r}]")
        warn_of_other_flips(learner, y_noise, f"learners[{name!r}]")
        warn_of_sizes(learner, stream.x)
        check_targets_of(learner, "stream.y", stream.y)
        check_one_prediction(learner, dim, f"learners[{name!r}]")
    horizon_runs = runs(makers, horizons, loss, (stream, noise, y_noise))
    bests = [_predictions(comparator, first(horizon, stream)) for horizon in horizons]
    batches = []
    for horizon, best in zip(horizons, bests, strict=True):
        own_key = jax.random.fold_in(key, np.uint32(horizon))
        batches.append(Batches(horizon_runs(horizon, best), own_key, seeds, batch_size, mesh))
    levels = checked_levels(quantiles)
    guarantees = {
        (name, horizon): _bound(guarantee)
        for horizon in horizons
        for name, (_, guarantee) in zip(learners, made(makers, horizon), strict=True)
    }
    devices = jax.devices()[:1] if mesh is None else list(mesh.devices.flat)
    config = {
        "learners": {name: text(make) for name, make in zip(learners, makers, strict=True)},
        "horizons": horizons,
        "num_seeds": len(seeds),
        "first_seed": seeds.start,
        "batch_size": batch_size,
        "quantiles": levels,
        "noise": description(noise),
        "y_noise": description(y_noise),
        "stream": description(stream),
        "loss": text(loss),
        "comparator": text(comparator),
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "key_implementation": str(jax.random.key_impl(key)),
        "x64": jnp.result_type(float) == jnp.float64,
        "devices": [device.device_kind for device in devices],
        "versions": versions(),
        **(parameters or {}),
    }
    sums, store = [each.nothing(bool(levels)) for each in batches], None
    check_tag(tag, checkpoint)
    if checkpoint is not None:
        store = Checkpoint(checkpoint, _tag(learners, config, bests, tag))
        sums = resumed(store, sums, seeds)
    total = len(seeds) * sum(horizons)
    for i, each in enumerate(batches):
        for after in each.after(sums[i]):
            sums[i] = after
            if store is not None:
                store.save(sums)
            if progress:
                progress(sum(_rounds(sums, horizons)), total)
    ranges = ((seeds.start, seeds.stop),)
    estimates = [estimated(one, ranges, levels) for one in sums]
    return study_of_estimates(list(learners), estimates, guarantees, config)


def _rounds(sums: Sequence[Sums], horizons: Sequence[int]) -> list[int]:
    """Rounds that have been played at each horizon, summed over seeds."""
    return [int(one.moments.count) * T for one, T in zip(sums, horizons, strict=True)]


def _bound(guarantee: Any) -> tuple[float, float]:
    """The bound on the regret and the learning rate; NaN without a guarantee."""
    if guarantee is None:
        return math.nan, math.nan
    return float(guarantee.regret), float(guarantee.learning_rate)


def _tag(learners: Mapping[str, Any], config: Mapping[str, Any], bests: Any, tag: str) -> str:
    """The tag of a study's checkpoint: a digest of all that its configuration tells."""
    for name, text_of_it in config["learners"].items():
        hidden = isinstance(learners[name], Learner) or re.search("<locals>|<lambda>", text_of_it)
        if hidden and not tag:
            raise ValueError(
                f"checkpoint needs a tag that says how learners[{name!r}] is set, such as "
                "tag='radius 1': its functions hold numbers that the file cannot see, and results "
                "of other settings would be taken for its own"
            )
    same = {name: config[name] for name in config if name not in _FREE}
    told = json.dumps(same, default=str, ensure_ascii=False) + tag + str(bool(config["quantiles"]))
    return f"{hashlib.sha256(told.encode()).hexdigest()} {digest(bests)}"


_FREE = ("num_seeds", "batch_size", "devices", "quantiles", "versions", "comparator")
"""Entries of a study's configuration in which a call may differ from the one that it resumes.

The comparator counts by its predictions.
"""


def _check_learners(learners) -> None:
    """Raises ValueError if `learners` does not map names to functions."""
    if not isinstance(learners, Mapping):
        raise ValueError(
            "learners must map names to learners, or to functions horizon -> (learner, guarantee), "
            f"got {given(learners)}"
        )
    if not learners:
        raise ValueError("study needs at least one learner, got none")
    for name, make in learners.items():
        if not isinstance(make, Learner) and not callable(make):
            raise ValueError(
                f"learners[{name!r}] must be a Learner, or a function horizon -> (learner, "
                f"guarantee) such as tuned returns, got {given(make)}"
            )
        if not isinstance(make, Learner) and not _takes_one(make):
            maker, given_maker = _maker(make)
            raise ValueError(
                f"learners[{name!r}] must be a Learner, got {given_maker}, or use tuned({maker}, …)"
            )


def _maker(function) -> tuple[str, str]:
    """The name of a function that makes what is wanted, and what to do with it."""
    name = getattr(function, "__name__", "it")
    return name, f"the function {name}, which makes one: call it, as {name}(radius=…)"


def _takes_one(function) -> bool:
    """Whether the function can be called with one positional argument, the horizon."""
    try:
        inspect.signature(function).bind(1, **{"room": 1} if takes_room(function) else {})
    except TypeError:
        return False
    except ValueError:  # a built-in function without a signature
        return True
    return True


def _predictions(comparator, past: Stream) -> chex.Array:
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
