"""Checkpoints: one file of sums, with a tag that identifies their run.

The file is a NumPy archive, which `np.load` reads: the tag first, then a digest of the sums, then
the sums.
"""

from __future__ import annotations

import hashlib
import io
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.reports.saving import UNFINISHED, path_of, replace_file, writable_folder
from noisy_jax.validation.messages import given
from noisy_jax.version import __version__
from noisy_jax.warning import warn


def checkpoint_of(path: Any, tag: str, parts: Any) -> Checkpoint | None:
    """Returns the checkpoint of a run with this tag, or `None` if no file is named.

    The file is also known by a digest of `parts`, a pytree of numbers, texts, keys and functions;
    functions do not count.
    """
    if not isinstance(tag, str):
        raise ValueError(f"tag must be a text, got {given(tag)}")
    if path is None:
        if tag:
            raise ValueError(
                "tag names the run of a checkpoint: give checkpoint as well, or no tag"
            )
        return None
    if not tag:
        raise ValueError(
            "checkpoint needs a tag, a text that says what the run is and with which settings, "
            "such as tag='two copies, radius 1': the file cannot tell functions apart"
        )
    return Checkpoint(path, f"{tag} {_digest(parts)}")


def _digest(parts: Any) -> str:
    """Returns a digest of the numbers, texts and keys in a pytree."""
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(parts):
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            total.update(str(jax.random.key_impl(leaf)).encode())
            leaf = jax.random.key_data(leaf)
        if not callable(leaf):
            array = np.asarray(leaf)
            total.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return total.hexdigest()


class Checkpoint:
    """A file of sums, which is replaced as a whole after each batch.

    Args:
        path: path of the file; its folder is created if needed.
        tag: a text that identifies the run; a file with another tag, or of another version of this
            library or of JAX, is an error.
    """

    def __init__(self, path: str | os.PathLike[str], tag: str):
        self.path = path_of("checkpoint", path)
        if self.path.is_dir():
            raise ValueError(
                f"checkpoint must be a file, got the folder {self.path}: name a file in it, such "
                f"as {self.path / 'study.npz'}"
            )
        self._tag = f"{tag} noisy_jax {__version__} jax {jax.__version__}"
        self._failed = False

    def load(self, empty: Any) -> Any:
        """Returns the stored sums, in the structure of `empty`, or `empty` if there is no file.

        Leaves of `empty` without rows, `[0, ...]`, may have any number of rows in the file.
        """
        folder = writable_folder(self.path.parent)
        for left in folder.glob(f"{self.path.stem[:40]}.*{UNFINISHED}"):  # by a killed process
            left.unlink(missing_ok=True)
        try:
            if self.path.exists() and not self.path.is_file():  # to read a pipe, we would wait
                raise OSError("it is not a regular file")
            content = self.path.read_bytes()
        except FileNotFoundError:
            return empty
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(f"cannot read the checkpoint {self.path}: {reason}") from error
        try:
            with np.load(io.BytesIO(content)) as file:
                tag, digest, *leaves = file.values()
        except Exception as error:  # NumPy, zipfile and zlib raise many kinds for damaged bytes
            raise ValueError(self.damaged()) from error
        if str(tag) != self._tag:
            raise ValueError(
                f"{self.path} was made by another run (other arguments, key, tag, kept quantiles "
                "or not, or version of JAX or noisy_jax): delete it, or name another file"
            )
        wanted = [np.shape(leaf) for leaf in jax.tree.leaves(empty)]
        complete = len(leaves) == len(wanted) and all(map(_fits, leaves, wanted))
        if not complete or str(digest) != _digest(leaves):
            raise ValueError(self.damaged())
        return jax.tree.unflatten(jax.tree.structure(empty), leaves)

    def save(self, sums: Any) -> None:
        """Replaces the stored sums; warns, once, if they cannot be written."""
        archive, leaves = io.BytesIO(), jax.tree.leaves(sums)
        # An archive checks the bytes of its arrays, but not their names.
        np.savez(archive, np.array(self._tag), np.array(_digest(leaves)), *leaves)
        try:
            replace_file(self.path, archive.getvalue())
        except OSError as error:
            if not self._failed:
                warn(
                    f"cannot write the checkpoint {self.path}: {error.strerror or error}; the run "
                    "goes on, and if it is interrupted, resumes from the last one that was written",
                )
            self._failed = True

    def damaged(self) -> str:
        """Returns the text of the error that the file cannot be read."""
        return (
            f"{self.path} is not a readable checkpoint (damaged, or of another program): delete "
            "it, or name another file"
        )


def _fits(leaf: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Returns True if an array has this shape, or any number of rows if the shape has none."""
    return leaf.shape == (leaf.shape[:1] + shape[1:] if shape[:1] == (0,) else shape)
