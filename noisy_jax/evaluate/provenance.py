"""What the configuration of a result says of how it was made: versions, distributions, data, functions."""

import hashlib
import platform
import re
from typing import Any

import chex
import jax
import jaxlib
import numpy as np
import optax

_LIBRARIES = (jax, jaxlib, optax, chex, np)


def versions() -> dict[str, str]:
    """Versions of Python, this library, and those it rests on."""
    import noisy_jax

    versions = {module.__name__: module.__version__ for module in (noisy_jax, *_LIBRARIES)}
    return {"python": platform.python_version(), **versions}


def text(made_by) -> str:
    """What a function or object is, without addresses in memory, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(made_by))


def description(tree) -> Any:
    """A stream or noise distribution for JSON: small parameters as they are, arrays by shape and digest."""
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
    return {
        "kind": f"{kind} {type(tree.distribution).__name__}" if kind == "PerRound" else kind,
        **leaves,
    }
