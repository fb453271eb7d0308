"""Files that are written as a whole or not at all: results, pictures, fits, checkpoints."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import uuid
from pathlib import Path
from typing import Any

from noisy_jax.validation.messages import given


def path_of(name: str, path: Any, kind: str = "a file's path") -> Path:
    """Returns the path, if it is a text or a path; raises ValueError otherwise."""
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"{name} must be {kind}, got {given(path)}")
    return Path(path)


def writable_folder(folder: str | Path) -> Path:
    """Returns the folder's path, created if needed; raises ValueError if it is not writable."""
    folder = path_of("folder", folder, "a folder's path")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as trial:
            trial.write(b"trial")
            trial.flush()
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"cannot write to the folder {folder}: {reason}") from error
    return folder


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes a file beside `path` and then renames it, so that `path` always has one whole content.

    If the disk is full, or the program is interrupted, the old file stays, and nothing is left
    beside it. The file that a symbolic link names is replaced, and the link stays. A device or a
    pipe, such as /dev/stdout, is written as it is.
    """
    path = path_of("path", path)
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no folder", str(path.parent))
    mode = path.stat().st_mode if path.exists() else None
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    unfinished = path.with_name(f"{path.stem[:40]}.{uuid.uuid4().hex}{UNFINISHED}")
    try:
        with open(unfinished, "xb") as file:  # "x": never through a link that is there already
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(unfinished, stat.S_IMODE(mode))
        os.replace(unfinished, path)
    except BaseException as error:
        if isinstance(error, OSError):  # it names the unfinished file, or none if a disk is full
            error.filename, error.filename2 = str(path), None
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


UNFINISHED = ".unfinished"
"""Ending of the names of files that a process leaves if it is killed while it writes."""
