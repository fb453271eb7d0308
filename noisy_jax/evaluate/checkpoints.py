"""Checkpoints of Monte Carlo runs: a file of moments, and a digest of what they are moments of."""

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jax.sharding import Mesh

from noisy_jax.evaluate import processes
from noisy_jax.validation import writable_folder

# What reading a file and looking up a name raise on files that are damaged or another program's.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)


class Checkpoint:
    """A folder with one file of moments, replaced as a whole after each batch.

    Where a mesh spans several processes, the one with its first device reads and writes for all.
    """

    def __init__(self, folder: str | os.PathLike, fingerprint: str, mesh: Mesh | None = None):
        self.path = Path(folder) / "moments.npz"
        self.fingerprint = fingerprint
        self.mesh = mesh

    def load(self, empty: chex.ArrayTree) -> chex.ArrayTree:
        """The stored moments, in the structure of `empty`, which stands where nothing is stored.

        Raises:
            ValueError: the folder cannot be written; its file is damaged or foreign. Every process
                raises what the first one found.
        """
        content = processes.from_first(self.mesh, self._checked)
        if not content:
            return empty
        stored = _arrays(content)
        leaves, treedef = jax.tree.flatten(empty)
        return jax.tree.unflatten(treedef, [stored[f"leaf_{i}"] for i in range(len(leaves))])

    def _checked(self) -> bytes:
        """The file's content if it belongs to this run; nothing where there is no file."""
        writable_folder(self.path.parent)
        if not self.path.exists():
            return b""
        try:
            content = self.path.read_bytes()
            fingerprint = str(_arrays(content)["fingerprint"])
        except _UNREADABLE as error:
            raise ValueError(
                f"{self.path} is not a readable checkpoint (truncated, or not of this library): "
                "delete it, or name another folder"
            ) from error
        if fingerprint != self.fingerprint:
            raise ValueError(
                f"{self.path} was made by another configuration (run, key or version of JAX): "
                "delete it, or name another folder"
            )
        return content

    def save(self, sums: chex.ArrayTree) -> None:
        """Replaces the stored moments as a whole.

        Raises:
            OSError: the file cannot be written; ValueError in the other processes.
        """
        processes.from_first(self.mesh, lambda: self._written(sums))

    def _written(self, sums: chex.ArrayTree) -> bytes:
        arrays = {f"leaf_{i}": leaf for i, leaf in enumerate(jax.tree.leaves(sums))}
        arrays["fingerprint"] = np.array(self.fingerprint)
        unfinished = self.path.with_suffix(".unfinished")
        with open(unfinished, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, self.path)
        return b""


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content)) as file:
        return dict(file)


def fingerprint(run: jax.tree_util.Partial, key: chex.PRNGKey) -> str:
    """A digest of the traced run, every number in it, the key, and the version of JAX.

    What a callback to Python computes is not seen.
    """
    closed = jax.make_jaxpr(run)(key)
    text = re.sub(r"0x[0-9a-f]+", "", str(closed.jaxpr))  # addresses differ between processes
    digest = hashlib.sha256(f"{jax.__version__}\n{text}".encode())
    for number in (*_constants(closed), *jax.tree.leaves(run), key):
        if jax.dtypes.issubdtype(jnp.result_type(number), jax.dtypes.prng_key):
            digest.update(str(jax.random.key_impl(number)).encode())
            number = jax.random.key_data(number)
        array = np.asarray(number)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _constants(jaxpr) -> Iterator[Any]:
    """Every array that a traced function closed over, also inside the functions it calls."""
    if isinstance(jaxpr, ClosedJaxpr):
        yield from jaxpr.consts
        jaxpr = jaxpr.jaxpr
    for equation in jaxpr.eqns:
        yield from (var.val for var in equation.invars if isinstance(var, Literal))
        inner = jax.tree.leaves(list(equation.params.values()), is_leaf=_is_jaxpr)
        for function in filter(_is_jaxpr, inner):
            yield from _constants(function)


def _is_jaxpr(value) -> bool:
    return isinstance(value, (ClosedJaxpr, Jaxpr))
