"""The version of the package, and checks of the JAX that is installed."""

from __future__ import annotations

import os
import warnings

import jaxlib.version

__version__ = "0.4.0"

LOWEST_JAX = (0, 8)


def check_jax() -> None:
    """Raises ImportError if JAX is too old, as in a notebook that installed without dependencies.

    It looks at jaxlib, which is at most as new as jax, and takes no time to import.
    """
    version = jaxlib.version.__version__
    if tuple(map(int, version.split(".")[:2])) < LOWEST_JAX:
        lowest = ".".join(map(str, LOWEST_JAX))
        raise ImportError(
            f"noisy_jax needs JAX {lowest} or newer, but {version} is installed: run "
            f'pip install --upgrade "jax>={lowest}", and restart Python'
        )


WRONG_SUMS = ("0.10.2",)  # as in pyproject.toml
_FLAG = "--xla_cpu_experimental_ynn_fusion_type"


def warn_of_wrong_sums() -> None:
    """Warns of a jaxlib that computes wrong sums on CPUs, unless `XLA_FLAGS` avoids them.

    Where a compiled program of jaxlib 0.10.2 has a matrix product of 16,385 to 65,536 rows and sums
    over a short axis, of 3 or 5 numbers, some rows have the sums of other rows. A flag makes XLA
    use its own code; an older or newer XLA stops at this flag, so no import sets it.

    Source: https://github.com/jax-ml/jax/issues/39103
    """
    version, wanted = jaxlib.version.__version__, f"{_FLAG}=-reduce"
    if version in WRONG_SUMS and wanted not in os.environ.get("XLA_FLAGS", ""):
        warnings.warn(
            f"jaxlib {version} computes wrong sums on CPUs (jax-ml/jax#39103): install another "
            f"version, or set XLA_FLAGS={wanted} before Python starts",
            stacklevel=3,
        )
