"""Works around wrong sums of jaxlib 0.10.2."""

import os
import sys
import warnings

import jaxlib.version

_WRONG_SUMS = ("0.10.2",)
_FLAG = "--xla_cpu_experimental_ynn_fusion_type"


def avoid_wrong_sums() -> None:
    """Makes jaxlib 0.10.2 compute sums on CPUs by XLA's own code, by a flag in `XLA_FLAGS`.

    Where a compiled program has a matrix product of 16,385 to 65,536 rows and sums over a short
    axis, of 3 or 5 numbers, some rows have the sums of others. It does nothing with other versions.
    It warns where the flag has no effect: if JAX has already started, if `XLA_FLAGS` is the name of
    a file, or gives the flag another value. Child processes inherit `XLA_FLAGS`; an older XLA in
    them stops at an unknown flag.

    Source: https://github.com/jax-ml/jax/issues/39103
    """
    flags, wanted = os.environ.get("XLA_FLAGS", "").strip(), f"{_FLAG}=-reduce"
    version = jaxlib.version.__version__
    if version not in _WRONG_SUMS or wanted in flags:
        return
    bridge = sys.modules.get("jax._src.xla_bridge")
    started = bridge is not None and bridge.backends_are_initialized()
    of_file = flags[:1] not in ("", "-")
    if started or of_file or _FLAG in flags:
        warnings.warn(
            f"jaxlib {version} computes wrong sums on CPUs (jax-ml/jax#39103): import noisy_jax "
            f"before JAX starts, or add {wanted} to XLA_FLAGS, or install another jaxlib",
            stacklevel=3,
        )
    else:
        os.environ["XLA_FLAGS"] = f"{wanted} {flags}".strip()
