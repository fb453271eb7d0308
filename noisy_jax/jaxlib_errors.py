"""Wrong numbers of a jaxlib, which `import noisy_jax` avoids."""

import os
import sys
import warnings

import jaxlib.version

_WRONG_SUMS = ("0.10.2",)
_FLAG = "--xla_cpu_experimental_ynn_fusion_type"


def avoid_wrong_sums() -> None:
    """Switches off the code for sums of jaxlib 0.10.2 on CPUs, by `XLA_FLAGS`.

    Where a compiled program has a matrix product of 16,385 to 65,536 rows and sums over a short
    axis, of 3 or 5 numbers, some rows have the sums of others. It does nothing with other versions,
    or if `XLA_FLAGS` names the flag. It warns if it comes too late: JAX reads `XLA_FLAGS` once.

    Source: https://github.com/jax-ml/jax/issues/39103
    """
    flags = os.environ.get("XLA_FLAGS", "")
    version = jaxlib.version.__version__
    if version not in _WRONG_SUMS or _FLAG in flags:
        return
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        warnings.warn(
            f"jaxlib {version} computes wrong sums on CPUs (jax-ml/jax#39103): import noisy_jax "
            f"before JAX makes its first array, set XLA_FLAGS={_FLAG}=-reduce, or install another "
            "jaxlib",
            stacklevel=3,
        )
    else:
        os.environ["XLA_FLAGS"] = f"{flags} {_FLAG}=-reduce".strip()
