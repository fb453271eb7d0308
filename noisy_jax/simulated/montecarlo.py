"""Monte Carlo over seeds: mean, standard error and quantiles of what a run returns."""

import contextlib
import dataclasses
import functools
import math
import os
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, cast

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from noisy_jax.checkpoints import Checkpoint, fingerprint, folder_path
from noisy_jax.intervals import half_width
from noisy_jax.running import Running
from noisy_jax.validation import between, given, instance, is_key, parsed_key, whole

DEFAULT_BATCH = 128
"""Seeds simulated at once if the caller gives no `batch_size`."""
_ROUNDED = 1e-12  # share of a mean of equal numbers that is rounding


class Estimate(NamedTuple):
    """Mean over seeds, with its uncertainty.

    Attributes:
        mean: the run's pytree, each leaf the float64 mean over seeds.
        std_error: the same shapes, standard error of the mean; NaN with one seed.
        num_seeds: S.
        quantiles: the same shapes with a leading axis, one entry for each of the given levels;
            `None` if no levels were given.
    """

    mean: Any
    std_error: Any
    num_seeds: int
    quantiles: Any = None

    @property
    def half_width(self) -> Any:
        """The shapes of `mean`, half the widths of 95% intervals; NaN with one seed."""
        return jax.tree.map(lambda error: half_width(error, self.num_seeds - 1), self.std_error)


def monte_carlo(
    run: Callable[[chex.PRNGKey], Any],
    num_seeds: int | range,
    key: chex.PRNGKey,
    *,
    batch_size: int | None = None,
    mesh: Mesh | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    quantiles: Sequence[float] = (),
) -> Estimate:
    """The mean of `run` over seeds, with standard errors, and quantiles on request.

    Seed s runs under the key `fold_in(key, s)`, so that its result does not depend on the batch or
    the number of seeds. Seeds run `batch_size` at a time under `vmap`. What they return is copied
    to the host. Of each batch only the count, the mean and Σ(value − mean)² are kept, and merged in
    float64 (Chan, Golub and LeVeque).

    A second call with the same function `run` and the same shapes compiles nothing. To change
    numbers without compiling, pass them as leaves: `jax.tree_util.Partial(function, numbers)`.

    Where at least 8 seeds all return the same, and not only whole numbers, a warning says so: the
    run probably does not use its key.

    Args:
        run: from a key to a pytree of arrays (float, integer or bool), without Python side effects.
        num_seeds: S ≥ 1, for the seeds 0 to S − 1, or a range of seeds such as `range(64, 128)`.
            Several hosts can run disjoint ranges with the same checkpoint folder; a call with all
            seeds then merges what they stored, and runs what is missing.
        key: a key of `jax.random.key`. One of another kind than JAX's default, such as "rbg", gives
            way to a threefry key that follows from it: runs get threefry keys.
        batch_size: seeds at once, rounded up to a multiple of the mesh's size. By default at most
            128. Memory grows with it, not with S.
        mesh: devices over which each batch is divided; "all" for all devices, at most one for each
            seed of a batch (CPUs are one device, unless `jax_num_cpu_devices` is set before JAX
            starts). All devices must belong to this process.
        progress: called after each batch with (seeds done, S).
        checkpoint: folder in which the moments are stored after each batch. A call with the same
            run and key, and the same versions of JAX and of this library, resumes from it, also
            with more seeds than before. A range that begins at seed a > 0 is stored in the
            subfolder `from_seed_a`. If a later write fails, for example on a full disk, the run
            goes on with a warning.
        quantiles: levels q, 0 < q < 1. The quantile is the smallest value that at least a share q
            of the seeds do not exceed; NaN counts as the largest. It is exact, as what the run
            returns is then kept of each seed, in memory and in the checkpoint.

    Example:
        >>> import jax
        >>> estimate = monte_carlo(jax.random.normal, 1000, jax.random.key(0))
        >>> bool(abs(estimate.mean) < 5 * estimate.std_error)
        True
        >>> uniform = monte_carlo(jax.random.uniform, 1000, jax.random.key(0), quantiles=(0.1, 0.9))
        >>> print(uniform.quantiles.round(1))
        [0.1 0.9]
    """
    if not callable(run):
        raise ValueError(f"run must be a function of a key, got {given(run)}")
    if is_key(num_seeds):  # the order of version 0.2
        num_seeds, key = cast(Any, (key, num_seeds))
    key = parsed_key(key)
    seeds = seed_range(num_seeds)
    batch_size, mesh = divided(len(seeds), batch_size, mesh)
    simulation = Simulation(run, key, seeds, batch_size, mesh, checkpoint, quantiles)
    with closing(simulation):
        found = simulation.estimate(progress)
    if _all_alike(found):
        warnings.warn(
            f"run returned the same for all {found.num_seeds} seeds: if it is meant to be random, "
            "draw from the key that it is called with, not from a key outside of it",
            stacklevel=2,
        )
    return found


class Simulation:
    """A Monte Carlo run with its checkpoints, which are opened before any seed runs.

    It takes the arguments of `monte_carlo`, with `seeds` from `seed_range`, and `batch_size` and
    `mesh` from `divided`.
    """

    def __init__(
        self, run, key, seeds: range, batch_size: int, mesh: Mesh | None, checkpoint, quantiles,
        failures: list[OSError] | None = None,
    ):  # fmt: skip
        self._levels = levels(quantiles)
        run = run if isinstance(run, jax.tree_util.Partial) else jax.tree_util.Partial(run)
        if mesh is not None:
            mesh = Mesh(mesh.devices, mesh.axis_names)  # all axes automatic, whatever they were
        self._arguments = run, key
        self._seeds = seeds
        self._options = {"batch_size": batch_size, "mesh": mesh}
        arguments = run, key
        if mesh is not None:  # placed as `estimate` places them: JAX then traces the run once
            shared = NamedSharding(mesh, PartitionSpec())
            arguments = jax.tree.map(
                lambda leaf: leaf.update(sharding=shared),
                jax.eval_shape(lambda *leaves: leaves, *arguments),
            )
        with _context(mesh):
            values = _batch.eval_shape(*arguments, 0, **self._options)
        values = jax.tree.map(lambda leaf: np.zeros((0, *leaf.shape[1:])), values)
        nothing = Running.of(values), values if self._levels else None
        self._parts: list[_Part] = []
        if checkpoint is None:
            self._parts.append(_Part(seeds, *nothing, None))
            return
        digest = fingerprint(run, key) + (" values" if self._levels else "")
        folder = folder_path(checkpoint)
        starts = [seeds.start, *_stored_starts(folder, seeds)]
        try:
            for start, stop in zip(starts, [*starts[1:], seeds.stop], strict=True):
                own = folder / f"from_seed_{start}" if start else folder
                store = Checkpoint(own, digest, failures=failures)
                self._parts.append(_Part(range(start, stop), *nothing, store))
                self._parts[-1].load(store)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Unlocks the checkpoints."""
        for part in self._parts:
            if part.store:
                part.store.close()

    def estimate(self, progress: Callable[[int, int], None] | None) -> Estimate:
        """Runs the seeds that are not done yet."""
        (run, key), mesh = self._arguments, self._options["mesh"]
        if mesh is not None:
            run, key = jax.device_put((run, key), NamedSharding(mesh, PartitionSpec()))
        done = sum(part.seen.count for part in self._parts)
        for part in self._parts:
            for start in range(part.next, part.seeds.stop, self._options["batch_size"]):
                before = part.seen.count
                with _context(mesh):
                    batch = _batch(run, key, start, **self._options)
                part.add(batch)
                done += part.seen.count - before
                if progress:
                    progress(done, len(self._seeds))
        seen = functools.reduce(Running.plus, (part.seen for part in self._parts))
        values = jax.tree.map(lambda *own: np.concatenate(own), *(p.values for p in self._parts))
        quantiles = jax.tree.map(lambda leaf: _quantiles(leaf, self._levels), values)
        return Estimate(seen.mean, seen.std_error, seen.count, quantiles)


@dataclasses.dataclass
class _Part:
    """Consecutive seeds with one checkpoint, or none: what is known of the first of them."""

    seeds: range  # all that belong to it
    seen: Running  # moments of the first seeds
    values: Any  # what the run returned for each of them, or `None`
    store: Checkpoint | None

    @property
    def next(self) -> int:
        """The first seed that has not run."""
        return self.seeds.start + int(self.seen.count)

    def load(self, store: Checkpoint) -> None:
        """Takes what the checkpoint holds."""
        seen, self.values = store.load((self.seen, self.values))
        self.seen = seen._replace(count=int(seen.count))
        if self.seen.count > len(self.seeds):
            raise ValueError(
                f"the checkpoint in {store.path.parent} already holds {self.seen.count} seeds, "
                f"more than the {len(self.seeds)} from seed {self.seeds.start} to seed "
                f"{self.seeds.stop - 1}: ask for at least as many, name another folder, or delete "
                "what overlaps with it (folders from_seed_…)"
            )

    def add(self, batch: Any) -> None:
        """Adds the results of a batch, and stores all."""
        left = self.seeds.stop - self.next  # other seeds only fill up the batch
        own = jax.tree.map(lambda leaf: np.asarray(leaf[:left], np.float64), jax.device_get(batch))
        self.seen = self.seen.plus(Running.of(own))
        if self.values is not None:
            self.values = jax.tree.map(lambda *both: np.concatenate(both), self.values, own)
        if self.store:
            self.store.save((self.seen, self.values))


def _stored_starts(folder: Path, seeds: range) -> list[int]:
    """The first seeds of other ranges that are stored below the folder, increasing."""
    names = [
        re.fullmatch(r"from_seed_([1-9]\d*)", path.name) for path in folder.glob("from_seed_*")
    ]
    return sorted(int(name[1]) for name in names if name and int(name[1]) in seeds[1:])


def seed_range(num_seeds: int | range) -> range:
    """The seeds that a caller asks for by a number or by a range."""
    if not isinstance(num_seeds, range):
        return range(whole("num_seeds", num_seeds, hint="or a range of seeds"))
    if num_seeds.step != 1 or num_seeds.start < 0 or not num_seeds or num_seeds.stop > 2**30:
        raise ValueError(
            "num_seeds must be a whole number or a range of seeds from 0 to 2**30, such as "
            f"range(64, 128), got {num_seeds}"
        )
    return num_seeds


def divided(
    num_seeds: int, batch_size: int | None, mesh: Mesh | str | None
) -> tuple[int, Mesh | None]:
    """The batch size and the mesh that `monte_carlo` uses."""
    if batch_size is None:
        batch_size = math.ceil(num_seeds / math.ceil(num_seeds / DEFAULT_BATCH))
    batch_size = whole("batch_size", batch_size)
    if isinstance(mesh, str) and mesh == "all":
        devices = jax.local_devices()[: min(batch_size, num_seeds)]
        mesh = Mesh(np.array(devices), "seeds") if len(devices) > 1 else None
    if mesh is None:
        return batch_size, None
    mesh = instance("mesh", mesh, Mesh, 'jax.make_mesh makes one, and "all" means all devices')
    if mesh.is_multi_process:
        raise ValueError(
            "mesh must have devices of this process only: give each process its own range of "
            "seeds, such as num_seeds=range(64, 128), and merge their checkpoints"
        )
    return mesh.size * math.ceil(batch_size / mesh.size), mesh


def levels(quantiles: Sequence[float]) -> tuple[float, ...]:
    """The levels of quantiles, checked."""
    hint = "shares of the seeds, such as (0.5, 0.95)"
    return tuple(float(between("quantiles", q, 0, 1, hint)) for q in np.ravel(quantiles).tolist())


def _all_alike(found: Estimate) -> bool:
    """Whether at least 8 seeds all returned the same, and not only whole numbers, as counts are."""
    means, errors = (np.concatenate([*map(np.ravel, jax.tree.leaves(tree))]) for tree in found[:2])
    same = np.all(errors <= _ROUNDED * np.abs(means))
    return bool(found.num_seeds >= 8 and same and np.any(means % 1 != 0))


def _quantiles(values: np.ndarray, levels: tuple[float, ...]) -> np.ndarray:
    """The smallest values that at least a share q of the seeds do not exceed, `[Q, ...]`."""
    # q S may be a whole number but for rounding. Sorting puts NaN last.
    ranks = [max(math.ceil(q * len(values) * (1 - 1e-12)), 1) for q in levels]
    return np.sort(values, axis=0)[np.array(ranks) - 1]


def _check_results(values: Any) -> None:
    """Raises ValueError if a run returns no arrays, or complex numbers."""
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(values)]
    if not dtypes:
        raise ValueError("run must return a pytree of at least one array, got none")
    if any(jnp.issubdtype(dtype, jnp.complexfloating) for dtype in dtypes):
        raise ValueError("run must return real numbers, got complex ones: return both their parts")


def _context(mesh: Mesh | None) -> contextlib.AbstractContextManager[Any]:
    """The mesh as that of the context, as `shard_map` asks where the caller has set another one."""
    return contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh)


@functools.partial(jax.jit, static_argnames=("batch_size", "mesh"))
def _batch(run, key, start, *, batch_size: int, mesh: Mesh | None) -> Any:
    """What the run returns for each seed of a batch, along a leading axis."""

    def every(run, key, seeds):
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, seeds)
        values = jax.vmap(run)(keys)
        _check_results(values)
        return values

    seeds = start + jnp.arange(batch_size)
    if mesh is None:
        return every(run, key, seeds)
    shared, split = PartitionSpec(), PartitionSpec(mesh.axis_names)
    over_shards = jax.shard_map(
        every, mesh=mesh, in_specs=(shared, shared, split), out_specs=split, check_vma=False
    )
    return over_shards(run, key, seeds)
