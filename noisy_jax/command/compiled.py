"""Settings for the command line: to keep compiled programs, to use all cores, and to lose no time.

Importing the library changes none of them.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import hashlib
import os
import platform
import sys
import time
import warnings
from pathlib import Path

import jax
import jaxlib.version

from noisy_jax.reports.saving import writable_folder

DAYS = 30
"""Days for which a program is kept; then it is compiled again."""


LOGGED, FATAL = "TF_CPP_MIN_LOG_LEVEL", "3"
"""The variable that says what jaxlib logs, and its value for fatal errors only.

When jaxlib before 0.10.2 loads a kept program, it may log, wrongly, that the program is for
another processor: https://github.com/openxla/xla/issues/44565. The command therefore sets this
value, unless the user has set another one. jaxlib reads it when it is imported.
"""


def user_cache() -> Path:
    """Returns the user's folder for caches: `$XDG_CACHE_HOME`, or the system's default."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # others must be ignored, says the XDG Base Directory Specification
        return named
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def prepare(*, fast: bool = False) -> None:
    """All that this module does for a command, before JAX first makes a device.

    `fast` makes JAX compile without optimizations: small problems take most of their time there.
    """
    collect_seldom()
    keep_compiled()
    use_all_cores()
    inline_loops()
    if fast:
        cheap = "--xla_backend_optimization_level=0"
        if jax.__version_info__ < (0, 11):  # a later XLA stops at a flag that it does not know
            cheap += " --xla_cpu_use_fusion_emitters=false"
        os.environ["XLA_FLAGS"] = f"{cheap} {os.environ['XLA_FLAGS']}"  # of two the last counts


def keep_compiled() -> None:
    """Makes JAX keep compiled programs in the user's cache folder, and use them again.

    It does nothing if `JAX_COMPILATION_CACHE_DIR` is set, which names another folder, or none if it
    is empty. If the folder cannot be used, it prints one line, and no programs are kept.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    if jaxlib.version.__version_info__ < (0, 10, 2) and os.environ.get(LOGGED) != FATAL:
        return  # it prints an error for each program that it takes
    try:
        folder = user_cache() / "noisy_jax" / f"compiled-{processor()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable_folder(folder)
        if hasattr(os, "getuid") and _of_others(folder.stat()):  # programs in it would be run
            raise ValueError(f"others may write to the folder {folder}")
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: there is no home
        print(f"compiled programs are not kept: {error}", file=sys.stderr)
        return
    for file in folder.glob("*-cache"):
        with contextlib.suppress(OSError):  # another process removed it
            if file.stat().st_mtime < time.time() - DAYS * 86400:
                file.unlink()
    # A full disk, or a file that another process has not written yet, costs time and nothing else.
    warnings.filterwarnings("ignore", "Error (read|writ)ing persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def use_all_cores() -> None:
    """Makes a JAX device of each core, unless the user's environment sets their number.

    XLA goes through the rounds of a scan on one core. Seeds are divided over devices
    (`monte_carlo(mesh="all")`).
    """
    allowed = getattr(os, "sched_getaffinity", None)  # of Linux
    cores = len(allowed(0)) if allowed else os.cpu_count() or 1
    named = "JAX_NUM_CPU_DEVICES" in os.environ
    if not (named or "host_platform_device_count" in os.environ.get("XLA_FLAGS", "")):
        jax.config.update("jax_num_cpu_devices", cores)


def inline_loops() -> None:
    """Makes XLA compile loops over up to 20 kB into one kernel, unless the user sets its options.

    By default XLA does so for loops over up to 1 kB; it dispatches the operations of longer loops
    one by one.
    """
    flags, name = os.environ.get("XLA_FLAGS", ""), "xla_backend_extra_options"
    if name not in flags:  # read when JAX first makes a device
        option = f"--{name}=xla_cpu_small_while_loop_byte_threshold=20000"
        os.environ["XLA_FLAGS"] = f"{flags} {option}".strip()


def collect_seldom() -> None:
    """Makes Python seldom look for garbage: JAX's many objects stay. It takes a second of a run."""
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)  # or it looks through all of them in the end


def processor() -> str:
    """Returns a word for the kind of processor, since programs may not run on other kinds.

    A home folder may be shared by machines with different processors.
    """
    info, kind = Path("/proc/cpuinfo"), platform.machine() + platform.processor()
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    kind += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(kind.encode()).hexdigest()[:8]


def _of_others(status: os.stat_result) -> bool:
    """Returns True if another user owns the folder, or may write to it."""
    return status.st_uid != os.getuid() or bool(status.st_mode & 0o022)
