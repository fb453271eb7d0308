"""Checkpoints: one file of running sums, with a digest of the run and of itself.

The file is a NumPy archive (`np.load` reads it) whose ZIP comment is the SHA-256 digest of all
bytes before it, so that damage of any kind is found before anything is parsed.
"""

import hashlib
import io
import os
import re
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from noisy_jax.saving import UNFINISHED, replace_file
from noisy_jax.validation import given, writable_folder
from noisy_jax.version import __version__

try:
    import fcntl
except ImportError:  # Windows: two runs on one folder are not noticed, but do not crash
    fcntl = None


def folder_path(checkpoint: str | os.PathLike[str]) -> Path:
    """The path of the folder that a caller names as `checkpoint`."""
    if not isinstance(checkpoint, str | os.PathLike):
        raise ValueError(f"checkpoint must be a folder's path, got {given(checkpoint)}")
    return Path(checkpoint)


class Checkpoint:
    """A folder with one file of running sums, which is replaced as a whole after each batch.

    The folder stays locked until `close`.

    Args:
        folder: created if needed.
        fingerprint: of the run; another run, or another version of this library, which may keep
            other sums, cannot use the folder.
        parts: what the fingerprint depends on, for a message.
        failures: writes that failed, of all checkpoints that share this list; only the first warns.

    Attributes:
        path: of the file.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        fingerprint: str,
        parts: str = "run, key, quantiles or none, version of JAX",
        failures: list[OSError] | None = None,
    ):
        self.path = folder_path(folder) / "moments.npz"
        self._failures = [] if failures is None else failures
        self._fingerprint = f"{fingerprint} noisy_jax {__version__}"
        self._parts = parts
        self._lock: int | None = None

    def load(self, empty: Any) -> Any:
        """The stored sums, in the structure of `empty`, or `empty` if nothing is stored.

        The first leaf of `empty` is a count.
        """
        content = self._opened()
        if not content:
            return empty
        leaves = list(_arrays(content).values())[1:]
        wanted = [np.shape(leaf) for leaf in jax.tree.leaves(empty)]
        # What is kept of each seed has an axis of seeds, of which `empty` has none.
        shapes = [(int(leaves[0]), *s[1:]) if s[:1] == (0,) else s for s in wanted]
        if leaves[0] < 0 or [leaf.shape for leaf in leaves] not in (shapes, wanted):
            raise ValueError(self._damaged())
        return jax.tree.unflatten(jax.tree.structure(empty), leaves)

    def save(self, sums: Any) -> None:
        """Replaces the stored sums; warns, once, if they cannot be written."""
        archive = io.BytesIO()
        np.savez(archive, np.array(self._fingerprint), *jax.tree.leaves(sums))
        try:
            replace_file(self.path, _with_digest(archive.getvalue()))
        except OSError as error:
            self._failures.append(error)
            if len(self._failures) == 1:
                warnings.warn(
                    f"cannot write the checkpoint {self.path}: {error.strerror or error}; the run "
                    "goes on, and if it is interrupted, resumes from the last one that was written",
                    stacklevel=_calls_inside() + 1,
                )

    def close(self) -> None:
        """Unlocks the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _opened(self) -> bytes:
        """Locks the folder; the content of its file, empty if there is none."""
        self._lock_folder(writable_folder(self.path.parent))
        try:
            if self.path.exists() and not self.path.is_file():  # to read a pipe, we would wait
                raise OSError("it is not a regular file")
            content = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(f"cannot read the checkpoint {self.path}: {reason}") from error
        try:
            made_by = str(_arrays(content)["arr_0"]) if _is_sound(content) else None
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile):  # such as pickled objects
            made_by = None
        if made_by is None:
            raise ValueError(self._damaged())
        if made_by != self._fingerprint:
            raise ValueError(
                f"{self.path} was made by another configuration ({self._parts}, or version "
                "of noisy_jax): delete it, or name another folder"
            )
        return content

    def _lock_folder(self, folder: Path) -> None:
        if fcntl is None:
            return
        try:
            self._lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in folder.glob(f"moments.*{UNFINISHED}"):  # by a process that was killed
                left.unlink(missing_ok=True)
        except BlockingIOError:
            self.close()
            raise ValueError(
                f"the checkpoint folder {folder} is in use by another run: wait until that ends, "
                "or name another folder"
            ) from None
        except OSError:  # some network file systems have no locks
            pass

    def _damaged(self) -> str:
        return (
            f"{self.path} is not a readable checkpoint (damaged, or of another program): delete "
            "it, or name another folder"
        )


def _calls_inside() -> int:
    """How many calls lead from a call of the library to here, for `warnings.warn`."""
    frame, count = sys._getframe(1), 0
    while frame and str(frame.f_globals.get("__name__")).startswith(f"{__package__}."):
        frame, count = frame.f_back, count + 1
    return count


_DIGEST = 64  # hexadecimal digits of SHA-256


def _with_digest(archive: bytes) -> bytes:
    """The ZIP archive with a comment: the digest of all bytes before it."""
    body = archive[:-2] + _DIGEST.to_bytes(2, "little")  # an archive ends with its comment's length
    return body + hashlib.sha256(body).hexdigest().encode()


def _is_sound(content: bytes) -> bool:
    """Whether the content ends with the digest of all bytes before it."""
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    return digest == hashlib.sha256(body).hexdigest().encode()


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content)) as file:
        return dict(file)


def fingerprint(run: jax.tree_util.Partial, key: chex.PRNGKey) -> str:
    """A digest of the traced run, every number in it, the key, and the version of JAX.

    What a Python callback computes is not part of it.
    """
    closed = jax.make_jaxpr(run)(key)
    text = re.sub(r"0x[0-9a-f]+", "", str(closed.jaxpr))  # addresses differ between processes
    digest = hashlib.sha256(f"{jax.__version__}\n{text}".encode())
    for number in (*_constants(closed), *jax.tree.leaves(run), key):
        if jnp.issubdtype(jnp.result_type(number), jax.dtypes.prng_key):
            digest.update(str(jax.random.key_impl(number)).encode())
            number = jax.random.key_data(number)
        array = np.asarray(number)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _constants(jaxpr) -> Iterator[Any]:
    """Every array that a traced function, or a function it calls, closed over."""
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
