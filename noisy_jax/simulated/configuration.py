"""Entries of `config.json`: arguments as texts and numbers, and versions of libraries."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import chex
import jax
import jaxlib
import numpy as np
import optax

from noisy_jax.reports.saving import replace_file
from noisy_jax.version import __version__


def save_config(config: Mapping[str, Any], folder: Path) -> None:
    """Writes `config.json`."""
    content = json.dumps(config, indent=2, ensure_ascii=False)
    replace_file(folder / "config.json", f"{content}\n".encode())


def versions() -> dict[str, str]:
    """Returns versions of Python, of this library, and of the libraries that it uses."""
    libraries = {module.__name__: module.__version__ for module in (jax, jaxlib, optax, chex, np)}
    return {"python": platform.python_version(), "noisy_jax": __version__, **libraries}


def text(made_by) -> str:
    """Returns the `repr` of an object without memory addresses, which differ between runs."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(made_by))


def description(tree) -> Any:
    """Describes a stream or noise for JSON: arrays above 100 numbers by shape and digest."""
    if tree is None:
        return None
    leaves = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.asarray(leaf)
        name = jax.tree_util.keystr(path).lstrip(".")
        if array.size <= 100:
            leaves[name] = array.tolist()
        else:
            digest = hashlib.sha256(array.tobytes()).hexdigest()
            leaves[name] = {"shape": array.shape, "dtype": str(array.dtype), "sha256": digest}
    kind = type(tree).__name__
    if kind == "PerRound":
        kind += f" {type(tree.distribution).__name__}"
    return {"kind": kind, **leaves}
