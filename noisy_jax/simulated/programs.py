"""The compiled programs of a study: one for all horizons where its learners allow it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Stream
from noisy_jax.learners.wrappers.paired import paired
from noisy_jax.losses import Loss
from noisy_jax.noise import Noise
from noisy_jax.noise.observation import BLOCK
from noisy_jax.simulated.entries import Entry
from noisy_jax.simulated.rollouts import checked_regret
from noisy_jax.validation.values import Array


def rooms_for(entries: Sequence[Entry], horizons: Sequence[int]) -> list[int]:
    """Returns each horizon's room: the number of rounds that its learners' states have space for.

    If all entries serve any horizon, they share one program. Its room is of whole blocks, so that
    other horizons of as many blocks share it too.
    """
    if not all(entry.any_horizon for entry in entries):
        return list(horizons)
    return [-(-horizons[-1] // BLOCK) * BLOCK] * len(horizons)


class Regrets(NamedTuple):
    """Results of one seed of a study, one for each of its L learners.

    Attributes:
        regret: `[L]`, NaN where the run diverged.
        difference: `[L]`, the regret less the first learner's.
        diverged: `[L]`, whether the regret is not finite.
    """

    regret: jax.Array
    difference: jax.Array
    diverged: jax.Array


@dataclasses.dataclass(frozen=True)
class _Program:
    """The run of one seed: `(stream, noise, y_noise, best, rounds, key)` to `Regrets`.

    Programs of equal entries are equal, so that JAX compiles one of them for several studies.

    Attributes:
        entries: entries of the study.
        horizon: horizon of the learners; `None` if the program makes them, for its `rounds`.
        room: number of rounds that the learners' states have space for.
        loss: loss of the regret.
        learners: the learners, if there is a horizon.
    """

    entries: tuple[Entry, ...]
    horizon: int | None
    room: int
    loss: Loss
    learners: tuple[Learner, ...] = dataclasses.field(compare=False, default=())

    def __call__(self, stream, noise, y_noise, best, rounds, key) -> Regrets:
        """Returns each learner's results."""
        learners = self.learners
        if self.horizon is None:
            horizon = jnp.asarray(rounds, float)
            learners = [entry.at(horizon, self.room)[0] for entry in self.entries]
        else:
            rounds = self.horizon
        regret: Any = checked_regret(
            paired(*learners), stream, noise, y_noise, best, rounds, key, loss=self.loss
        )
        diverged = ~jnp.isfinite(regret)
        regret = jnp.where(diverged, jnp.nan, regret)
        return Regrets(regret, regret - regret[0], diverged)


def programs(
    entries: tuple[Entry, ...],
    learners: Sequence[Sequence[Learner]],
    bests: Sequence[Array],
    horizons: Sequence[int],
    loss: Loss,
    data: tuple[Stream, Any, Any],
) -> list[jax.tree_util.Partial]:
    """Returns the run of one seed, `key -> Regrets`, for each horizon.

    If all entries serve any horizon, they share one compiled program, which runs on the longest
    stream and stops after its number of rounds.

    Args:
        entries: of the study.
        learners: of the entries for each horizon, with room for the rounds of `rooms_for`.
        bests: predictions of the comparator for each horizon.
        horizons: of the study.
        loss: of the regret.
        data: stream, noise and noise of the targets.
    """
    if not all(entry.any_horizon for entry in entries):
        return [
            jax.tree_util.Partial(
                _Program(entries, horizon, horizon, loss, tuple(of_horizon)),
                *_first_of(horizon, data), best, None,
            )
            for horizon, of_horizon, best in zip(horizons, learners, bests, strict=True)
        ]  # fmt: skip
    last, room = horizons[-1], rooms_for(entries, horizons)[-1]
    # Some have fewer rounds, such as `noiseless`, which knows the rows of one stream.
    limits = [learner.needs.horizon for learner in learners[-1]]
    room = max(last, min(room if limit is None else min(room, int(limit)) for limit in limits))
    program, longest = _Program(entries, None, room, loss), _first_of(last, data, room)
    return [
        jax.tree_util.Partial(program, *longest, first(horizon, best, room), np.int32(horizon))
        for horizon, best in zip(horizons, bests, strict=True)
    ]


def first(rounds: int, tree, size: int | None = None):
    """Returns the first rounds of a stream or of noise; the last is repeated up to `size`."""
    kept = np.minimum(np.arange(size or rounds), rounds - 1)
    # On the host, where nothing is compiled for each number of rounds.
    return jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf)[kept], tree))


def _first_of(rounds, data, size=None):
    return [part if isinstance(part, Noise | None) else first(rounds, part, size) for part in data]
