"""A mesh that spans several processes (`jax.distributed`): what they must share.

Every process runs the same program and holds its own copy of the numbers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def is_first(mesh: Mesh | None) -> bool:
    """Whether this process has the mesh's first device, and so reads and writes for all."""
    return mesh is None or mesh.devices.flat[0].process_index == jax.process_index()


def replicated(tree: Any, mesh: Mesh) -> Any:
    """The pytree on every device of the mesh; each process starts from its own copy."""
    shared = NamedSharding(mesh, PartitionSpec())
    if not mesh.is_multi_process:
        return jax.device_put(tree, shared)
    devices = list(mesh.local_devices)

    def place(leaf):  # `device_put` onto other processes' devices takes no keys, and no NaN
        copies = jax.device_put([leaf] * len(devices), devices)
        return jax.make_array_from_single_device_arrays(np.shape(leaf), shared, copies)

    return jax.tree.map(place, tree)


def from_first(mesh: Mesh | None, read: Callable[[], bytes]) -> bytes:
    """What `read` returns on the first process, on all of them.

    Raises:
        ValueError: `read` raised on the first process, which raises its own error.
    """
    if mesh is None or not mesh.is_multi_process:
        return read()
    content, failure = b"", None
    if is_first(mesh):
        try:
            content = read()
        except Exception as error:  # any: the others would wait for ever
            content, failure = str(error).encode(), error
    failed, size = _total(mesh, np.array([failure is not None, len(content)], np.uint32))
    content = _total(mesh, np.frombuffer(content.ljust(size, b"\0"), np.uint8)).tobytes()
    if failed:
        raise failure or ValueError(content.decode())
    return content


def check_same(mesh: Mesh, digest: str) -> None:
    """Raises ValueError on every process if the digest is not the same on all of them."""
    expected = from_first(mesh, digest.encode)
    if _total(mesh, np.array([expected != digest.encode()], np.uint32))[0]:
        raise ValueError(
            "the processes of the mesh must call monte_carlo with the same run (and numbers in "
            "it), key, num_seeds and batch_size, and all with a checkpoint or none, but they "
            "differ: give every process the same data and options"
        )


def _total(mesh, part: np.ndarray) -> np.ndarray:
    """The sum of all processes' parts, on every process."""
    # Not multihost_utils.broadcast_one_to_all, which waits for processes outside the mesh too.
    parts = np.zeros((len(mesh.local_devices), *part.shape), part.dtype)
    parts[0] = part
    split = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
    rows = jax.make_array_from_process_local_data(split, parts, (mesh.size, *part.shape))
    return np.asarray(_sum(rows, mesh))


@partial(jax.jit, static_argnames="mesh")
def _sum(rows, mesh):
    total = rows.sum(axis=0, dtype=rows.dtype)
    return jax.lax.with_sharding_constraint(total, NamedSharding(mesh, PartitionSpec()))
