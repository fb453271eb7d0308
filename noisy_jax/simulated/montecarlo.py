"""Monte Carlo over seeds: mean, standard error and quantiles of the results of a run."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from noisy_jax.simulated.checkpoints import Checkpoint, checkpoint_of
from noisy_jax.simulated.estimates import Estimate
from noisy_jax.validation.keys import is_typed_key, parsed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import between, whole
from noisy_jax.validation.objects import function, instance
from noisy_jax.validation.values import ArrayLike, check_concrete
from noisy_jax.warning import warn

DEFAULT_BATCH = 128
"""Seeds simulated at once if the caller gives no `batch_size`."""
SUMMED_ON_HOST = "results are summed on the host, outside jit, vmap and grad"
_ROUNDED = 1e-12  # share of a mean of equal numbers that is rounding


def monte_carlo(
    run: Callable[[jax.Array], Any],
    num_seeds: int | range,
    key: jax.Array,
    *,
    batch_size: int | None = None,
    mesh: Mesh | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    tag: str = "",
    quantiles: Sequence[float] = (),
) -> Estimate:
    """Estimates the mean of `run` over seeds, with standard errors, and quantiles on request.

    Seed s runs under the key `fold_in(key, s)`, so that its result does not depend on the batch or
    the number of seeds. Seeds run `batch_size` at a time under `vmap`. Their results are copied to
    the host. Of each batch only the count, the mean and Σ(value − mean)² are kept, and merged in
    float64 (Chan, Golub and LeVeque).

    A second call with the same function `run` and the same shapes compiles nothing. To change
    numbers without compiling, pass them as leaves: `jax.tree_util.Partial(function, numbers)`.

    Where at least 8 seeds all return the same, and not only whole numbers, a warning says so: the
    run probably does not use its key.

    Args:
        run: a function of a key that returns a pytree of arrays (float, integer or bool), without
            Python side effects. It is traced under `jit` and `vmap`.
        num_seeds: S ≥ 1, for the seeds 0 to S − 1, or a range of seeds such as `range(64, 128)`:
            several machines can run disjoint ranges, which `Estimate.merge` puts together.
        key: a key of `jax.random.key`.
        batch_size: number of seeds that run at once, rounded up to a multiple of the mesh's number
            of devices; by default all seeds in equal batches of at most 128. Memory grows with it,
            not with S.
        mesh: a `jax.sharding.Mesh` of devices that share each batch, or "all" for all devices of
            this process, at most one for each seed of a batch. By default one device. CPUs are one
            device, unless `jax_num_cpu_devices` is set before JAX starts.
        progress: a function that is called after each batch with (seeds done, S).
        checkpoint: path of a file for the sums, written after each batch. A call with the same
            `tag`, key, first seed and numbers in the leaves of `run`, and the same versions of JAX
            and of this library, resumes from it, also with more seeds than before. It may ask for
            other `quantiles`, if both calls ask for some or neither does. Any other call is an
            error. If a later write fails, for example on a full disk, the run goes on with a
            warning.
        tag: needed with `checkpoint`: a text that identifies the run, with the settings that its
            function closes over, since the file cannot tell two functions apart.
        quantiles: levels q, 0 < q < 1; none by default. The quantile is the smallest value that at
            least a share q of the seeds do not exceed; NaN counts as the largest. It is exact, as
            the result of each seed is then kept, in memory and in the checkpoint.

    Returns:
        An `Estimate`, whose `mean`, `std_error` and `half_width` (of 95% intervals) have the
        structure and shapes of the run's result; `quantiles` has a leading axis of levels.

    Raises:
        ValueError: the run returns no array or a complex one, `checkpoint` comes without `tag`, or
            the file is of another run or damaged.

    Example:
        >>> import jax, noisy_jax as nj
        >>> key = jax.random.key(0)
        >>> estimate = nj.monte_carlo(jax.random.normal, 1000, key)
        >>> bool(abs(estimate.mean) < 5 * estimate.std_error)
        True
        >>> uniform = nj.monte_carlo(jax.random.uniform, 1000, key, quantiles=(0.1, 0.9))
        >>> print(uniform.quantiles.round(1))
        [0.1 0.9]
    """
    if not callable(run):
        raise ValueError(f"run must be a function of a key, got {given(run)}")
    check_concrete("key", key, SUMMED_ON_HOST)
    key, seeds = parsed_key(key), seed_range(num_seeds)
    run = run if isinstance(run, jax.tree_util.Partial) else jax.tree_util.Partial(run)
    levels = checked_levels(quantiles)
    check_progress(progress)
    store = checkpoint_of(checkpoint, tag, (run, key, seeds.start, bool(levels)))
    sizes = divided(len(seeds), batch_size, mesh)
    (estimate,) = estimates_of([(run, key)], seeds, sizes, levels, store, progress)
    if _all_alike(estimate):
        warn(
            f"run returned the same for all {estimate.num_seeds} seeds: if it is meant to be "
            "random, draw from the key that it is called with, not from a key outside of it",
        )
    return estimate


Run = tuple[jax.tree_util.Partial, jax.Array]
"""A function of a key, and the key from which those of its seeds follow."""


def estimates_of(
    runs: Sequence[Run],
    seeds: range,
    sizes: tuple[int, Mesh | None],
    levels: tuple[float, ...],
    store: Checkpoint | None,
    progress: Callable[[int, int], None] | None,
    weights: Sequence[int] = (1,),
) -> list[Estimate]:
    """Runs all seeds of several runs, and returns the estimate of each; arguments are checked.

    Args:
        runs: functions of a key; all return the same shapes.
        seeds: range of seeds of each run.
        sizes: batch size, and the mesh (`divided`).
        levels: levels of quantiles.
        store: checkpoint to resume from; sums are stored in it after each batch.
        progress: called after each batch with (done, total) numbers of seeds, summed over runs.
        weights: of each run in these numbers.
    """
    estimates: list[Any] = [None] * len(runs)
    if store is not None:
        shapes = jax.eval_shape(*runs[0])
        nothing = jax.tree.map(lambda leaf: np.zeros((0, *leaf.shape)), shapes)
        estimates = _resumed(store, [Estimate.of(nothing, seeds.start, levels)] * len(runs), seeds)
    for i, run in enumerate(runs):
        left = seeds[0 if estimates[i] is None else estimates[i].num_seeds :]
        for start, values in _batches(*run, left, *sizes):
            batch = Estimate.of(values, start, levels)
            estimates[i] = batch if estimates[i] is None else estimates[i].plus(batch)
            if store is not None:
                store.save([(estimate.sums, estimate.values) for estimate in estimates])
            if progress:
                done = [0 if estimate is None else estimate.num_seeds for estimate in estimates]
                progress(int(np.dot(done, weights)), len(seeds) * sum(weights))
    return estimates


def _batches(
    run: jax.tree_util.Partial, key: jax.Array, seeds: range, batch_size: int, mesh: Mesh | None
) -> Iterator[tuple[int, Any]]:
    """Yields the first seed of each batch, and the results of its seeds in float64."""
    if mesh is not None:
        mesh = Mesh(mesh.devices, mesh.axis_names)  # all axes automatic, whatever they were
        run, key = jax.device_put((run, key), NamedSharding(mesh, PartitionSpec()))
    for start in seeds[::batch_size]:
        # The context's mesh is this one, as `shard_map` asks where the caller has set another one.
        with contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh):
            batch = jax.device_get(_batch(run, key, start, batch_size=batch_size, mesh=mesh))
        rows = slice(seeds.stop - start)  # other seeds only fill up the batch
        yield start, jax.tree.map(lambda leaf, rows=rows: np.asarray(leaf[rows], np.float64), batch)


def _resumed(store: Checkpoint, empty: list[Estimate], seeds: range) -> list[Estimate]:
    """Returns the estimates that a checkpoint holds of these seeds, in place of empty ones."""
    estimates = []
    for (sums, values), none in zip(
        store.load([(estimate.sums, estimate.values) for estimate in empty]), empty, strict=True
    ):
        count, rows = int(sums.count), map(len, jax.tree.leaves(values))
        if count < 0 or any(length != count for length in rows):
            raise ValueError(store.damaged())
        if count > len(seeds):
            raise ValueError(
                f"the checkpoint {store.path} already holds {count} seeds, more than the "
                f"{len(seeds)} from seed {seeds.start} to seed {seeds.stop - 1}: ask for at least "
                "as many, or name another file"
            )
        ranges = ((seeds.start, seeds.start + count),)
        estimates.append(
            none._replace(sums=sums._replace(count=count), seeds=ranges, values=values)
        )
    return estimates


def seed_range(num_seeds: int | range) -> range:
    """Returns the seeds that a caller asks for by a number or by a range."""
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
    """Returns the batch size and the mesh that `monte_carlo` uses."""
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
            "seeds, such as num_seeds=range(64, 128), and merge their results"
        )
    return mesh.size * math.ceil(batch_size / mesh.size), mesh


def check_progress(progress: Any) -> None:
    """Raises ValueError if `progress` is given, and cannot be called."""
    if progress is not None:
        function("progress", progress, "of (done, total), called after each batch")


def checked_levels(quantiles: Sequence[float]) -> tuple[float, ...]:
    """Checks levels of quantiles and returns them."""
    hint = "shares of the seeds, such as (0.5, 0.95)"
    check_concrete("quantiles", quantiles, SUMMED_ON_HOST)
    levels = between("quantiles", quantiles, 0, 1, hint, shape=None)
    return tuple(np.ravel(np.asarray(levels, float)).tolist())


def _all_alike(estimate: Estimate) -> bool:
    """Returns True if 8 or more seeds all returned the same, unless these are whole numbers."""
    trees = estimate.mean, estimate.std_error
    means, errors = (np.concatenate([*map(np.ravel, jax.tree.leaves(tree))]) for tree in trees)
    same = np.all(errors <= _ROUNDED * np.abs(means))
    return bool(estimate.num_seeds >= 8 and same and np.any(means % 1 != 0))


def _check_results(values: Any) -> None:
    """Raises ValueError if a run returns no arrays, or complex numbers."""
    leaves = jax.tree.leaves(values)
    if not leaves:
        raise ValueError("run must return a pytree of at least one array, got none")
    for leaf in leaves:
        if not isinstance(leaf, ArrayLike | complex) or is_typed_key(leaf):
            raise ValueError(f"run must return arrays of numbers, got {given(leaf)}")
    dtypes = [jnp.result_type(leaf) for leaf in leaves]
    if any(jnp.issubdtype(dtype, jnp.complexfloating) for dtype in dtypes):
        raise ValueError("run must return real numbers, got complex ones: return both their parts")


@functools.partial(jax.jit, static_argnames=("batch_size", "mesh"))
def _batch(run, key, start, *, batch_size: int, mesh: Mesh | None) -> Any:
    """Returns the results of the run for each seed of a batch, along a leading axis."""

    def every(run, key, seeds):
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, seeds)

        def checked(key):
            values = run(key)
            _check_results(values)
            return values

        return jax.vmap(checked)(keys)

    seeds = start + jnp.arange(batch_size)
    if mesh is None:
        return every(run, key, seeds)
    shared, split = PartitionSpec(), PartitionSpec(mesh.axis_names)
    over_shards = jax.shard_map(
        every, mesh=mesh, in_specs=(shared, shared, split), out_specs=split, check_vma=False
    )
    return over_shards(run, key, seeds)
