"""Monte Carlo over seeds: mean and standard error of anything a run returns, in bounded memory."""

import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from noisy_jax.evaluate import processes
from noisy_jax.evaluate.checkpoints import Checkpoint, fingerprint
from noisy_jax.validation import check_at_least, check_key, given

DEFAULT_BATCH = 128
"""Seeds simulated at once, where the caller does not say."""


class Estimate(NamedTuple):
    """Mean over seeds, with its uncertainty.

    Attributes:
        mean: the run's pytree, each leaf the float64 mean over seeds.
        std_error: the same shapes, standard error of the mean; NaN with one seed.
        num_seeds: S.
    """

    mean: chex.ArrayTree
    std_error: chex.ArrayTree
    num_seeds: int


class Sums(NamedTuple):
    """Moments of the seeds seen so far, on the host in float64.

    Attributes:
        count: number of seeds.
        mean: the run's pytree, mean over seeds.
        squares: the run's pytree, Σ (value − mean)² over seeds.
    """

    count: chex.Numeric
    mean: chex.ArrayTree
    squares: chex.ArrayTree


def monte_carlo(
    run: Callable[[chex.PRNGKey], chex.ArrayTree],
    key: chex.PRNGKey,
    num_seeds: int,
    *,
    batch_size: int | None = None,
    mesh: Mesh | None = None,
    progress: Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike | None = None,
) -> Estimate:
    """The mean of `run` over seeds, with standard errors.

    Seed s runs under the key `fold_in(key, s)`, so that its result depends on neither the batch nor
    the number of seeds. Seeds run `batch_size` at a time under `vmap`; of each batch the count,
    mean and Σ(value − mean)² are merged on the host in float64 (Chan, Golub and LeVeque), and
    nothing else is kept.

    A second call with the same function `run` and the same shapes compiles nothing. To change
    numbers without compiling, hand them in as leaves: `jax.tree_util.Partial(function, numbers)`.

    Args:
        run: from a key to a pytree of arrays (float, integer or bool), without Python side effects.
        key: a key of `jax.random.key`.
        num_seeds: S ≥ 1.
        batch_size: seeds at once, rounded up to a multiple of the mesh; 128 by default, or fewer
            where they fill the same number of batches. Memory grows with it, not with S.
        mesh: devices over which each batch of seeds is divided. They may belong to several
            processes (`jax.distributed`), which all make this call and all get the same estimate.
        progress: called on the host, that is in every process, after each batch with
            (seeds done, S).
        checkpoint: folder in which the moments are stored after each batch. A call with the same
            run and key resumes from it, also with more seeds than before; one with another run,
            key or version of JAX is refused. Of several processes only the one with the mesh's
            first device needs the folder.

    Returns:
        An `Estimate`.

    Raises:
        ValueError: no function, key, seeds or batches; a run that returns nothing, or complex
            numbers; a checkpoint folder that cannot be written, or whose file is damaged, foreign,
            or ahead of S, which every process raises; processes whose arguments differ.

    Example:
        >>> import jax
        >>> estimate = monte_carlo(lambda key: jax.random.normal(key), jax.random.key(0), 1000)
        >>> bool(abs(estimate.mean) < 5 * estimate.std_error)
        True
    """
    if not callable(run):
        raise ValueError(f"run must be a function of a key, got {given(run)}")
    check_key(key)
    if not isinstance(checkpoint, str | os.PathLike | None):
        raise ValueError(f"checkpoint must be a folder's path, got {given(checkpoint)}")
    batch_size = seeds_at_once(num_seeds, batch_size, mesh)
    run = run if isinstance(run, jax.tree_util.Partial) else jax.tree_util.Partial(run)
    if mesh is not None:
        mesh = Mesh(mesh.devices, mesh.axis_names)  # all axes automatic, whatever they were
    several = mesh is not None and mesh.is_multi_process
    digest = fingerprint(run, key) if several or checkpoint is not None else ""
    if several:
        processes.check_same(mesh, f"{digest} {num_seeds} {batch_size} {checkpoint is None}")
    store = None if checkpoint is None else Checkpoint(checkpoint, digest, mesh)
    if mesh is not None:
        run, key = processes.replicated((run, key), mesh)
    batch = partial(_batch_moments, run, key, num_seeds, batch_size=batch_size, mesh=mesh)
    shapes = _batch_moments.eval_shape(run, key, num_seeds, 0, batch_size=batch_size, mesh=mesh)
    sums = jax.tree.map(lambda leaf: np.zeros(leaf.shape[1:]), shapes[0])._replace(count=0)
    if store:
        sums = store.load(sums)
        sums = sums._replace(count=int(sums.count))
    if sums.count > num_seeds:
        raise ValueError(
            f"the checkpoint in {checkpoint} already holds {sums.count} seeds, more than the "
            f"{num_seeds} asked for: ask for at least as many, or name another folder"
        )
    for start in range(sums.count, num_seeds, batch_size):
        for part in _parts(*jax.device_get(batch(start))):
            sums = _merged(sums, part)
        if store:
            store.save(sums)
        if progress:
            progress(sums.count, num_seeds)

    with np.errstate(invalid="ignore", divide="ignore"):  # one seed has no standard error
        error = jax.tree.map(
            lambda squares: np.sqrt(squares / np.float64(sums.count - 1) / sums.count), sums.squares
        )
    return Estimate(sums.mean, error, sums.count)


def seeds_at_once(num_seeds: int, batch_size: int | None, mesh: Mesh | None) -> int:
    """The batch that `monte_carlo` uses.

    Raises:
        ValueError: no seeds or batches, or what is no mesh.
    """
    if not isinstance(mesh, Mesh | None):
        raise ValueError(f"mesh must be a jax.sharding.Mesh of devices, got {given(mesh)}")
    check_at_least("num_seeds", num_seeds, 1, "the number of independent noise draws")
    if batch_size is None:
        batch_size = math.ceil(num_seeds / math.ceil(num_seeds / DEFAULT_BATCH))
    check_at_least("batch_size", batch_size, 1, "the number of seeds simulated at once")
    shards = 1 if mesh is None else mesh.size
    return int(shards * math.ceil(batch_size / shards))


def _check_results(values: chex.ArrayTree) -> None:
    """Refuses runs that return nothing to take the mean of, or complex numbers."""
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(values)]
    if not dtypes:
        raise ValueError("run must return a pytree of at least one array, got none")
    if any(jnp.issubdtype(dtype, jnp.complexfloating) for dtype in dtypes):
        raise ValueError("run must return real numbers, got complex ones: return both their parts")


@partial(jax.jit, static_argnames=("batch_size", "mesh"))
def _batch_moments(run, key, num_seeds, start, *, batch_size, mesh) -> tuple[Sums, chex.ArrayTree]:
    """`Sums` of each shard of a batch, along a leading axis of shards, and an origin for each.

    The means are of (value − origin), the origin the shard's first value: so float32 holds them
    where the spread is far below the mean.
    """

    def one_shard(run, key, seeds):
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, seeds)
        counted = seeds < num_seeds
        count = counted.sum()

        def moments(values):
            values = values.astype(jnp.promote_types(values.dtype, jnp.float32))
            weight = counted.reshape(-1, *[1] * (values.ndim - 1))
            # `where`, not a product: a seed that only pads the batch may have diverged.
            offsets = jnp.where(weight, values - values[:1], 0)
            mean = offsets.sum(axis=0) / jnp.maximum(count, 1)
            squares = (jnp.where(weight, offsets - mean[None], 0) ** 2).sum(axis=0)
            return mean[None], squares[None], values[:1]

        values = jax.vmap(run)(keys)
        _check_results(values)
        mean, squares, origin = jax.tree.transpose(
            jax.tree.structure(values), None, jax.tree.map(moments, values)
        )
        return Sums(count[None], mean, squares), origin

    seeds = start + jnp.arange(batch_size)
    if mesh is None:
        return one_shard(run, key, seeds)
    shared, split = PartitionSpec(), PartitionSpec(mesh.axis_names)
    divided = jax.shard_map(
        one_shard, mesh=mesh, in_specs=(shared, shared, split), out_specs=split, check_vma=False
    )
    # Replicated, so that every host of several can read it.
    return jax.lax.with_sharding_constraint(divided(run, key, seeds), NamedSharding(mesh, shared))


def _parts(sums: Sums, origin: chex.ArrayTree) -> Iterator[Sums]:
    """The moments of each shard, in float64."""
    mean = jax.tree.map(lambda o, offset: o.astype(np.float64) + offset, origin, sums.mean)
    for shard, count in enumerate(sums.count):
        yield Sums(int(count), *jax.tree.map(lambda a: a[shard], (mean, sums.squares)))  # noqa: B023


def _merged(a: Sums, b: Sums) -> Sums:
    """Moments of the union of two sets of seeds (Chan, Golub and LeVeque)."""
    if b.count == 0:
        return a
    count = a.count + b.count
    difference = jax.tree.map(lambda x, y: y - x, a.mean, b.mean)
    share, weight = b.count / count, a.count * b.count / count
    return Sums(
        count,
        jax.tree.map(lambda x, d: x + d * share, a.mean, difference),
        jax.tree.map(lambda x, y, d: x + y + d**2 * weight, a.squares, b.squares, difference),
    )
