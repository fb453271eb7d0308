"""What the processes of a mesh must share, where it spans several (`jax.distributed`).

Every process runs the same program and holds its own copy of the numbers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def is_first(mesh: Mesh | None) -> bool:
    """Whether this process has the mesh's first device, and so speaks for all of them."""
    return mesh is None or mesh.devices.flat[0].process_index == jax.process_index()


def replicated(tree: Any, mesh: Mesh) -> Any:
    """The pytree on every device of the mesh, from the copy that each process holds."""
    shared = NamedSharding(mesh, PartitionSpec())
    if not mesh.is_multi_process:
        return jax.device_put(tree, shared)
    devices = list(mesh.local_devices)

    def place(leaf):  # `device_put` onto other processes' devices takes no keys, and no NaN
        copies = jax.device_put([leaf] * len(devices), devices)
        return jax.make_array_from_single_device_arrays(np.shape(leaf), shared, copies)

    return jax.tree.map(place, tree)


def from_first(mesh: Mesh | None, read: Callable[[], bytes]) -> bytes:
    """What `read` returns on the first process, on all; what it refuses, all refuse.

    Raises:
        ValueError: `read` raised on the first process, where its own error is raised.
    """
    if mesh is None or not mesh.is_multi_process:
        return read()
    content, refusal = b"", None
    if is_first(mesh):
        try:
            content = read()
        except Exception as error:  # whatever it is: the others would wait for ever
            content, refusal = str(error).encode(), error
    refused, size = _total(mesh, np.array([refusal is not None, len(content)], np.uint32))
    content = _total(mesh, np.frombuffer(content.ljust(size, b"\0"), np.uint8)).tobytes()
    if refused:
        raise refusal or ValueError(content.decode())
    return content


def check_same(mesh: Mesh, digest: str) -> None:
    """Refuses, on every process of several, a digest that is not the same on all."""
    expected = from_first(mesh, digest.encode)
    if _total(mesh, np.array([expected != digest.encode()], np.uint32))[0]:
        raise ValueError(
            "the processes of the mesh must call monte_carlo with the same run, numbers in it, "
            "key, num_seeds, batch_size and choice of a checkpoint, but they differ: give every "
            "process the same data and options"
        )


def _total(mesh, part: np.ndarray) -> np.ndarray:
    """The sum over processes of each one's part, on every one."""
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
