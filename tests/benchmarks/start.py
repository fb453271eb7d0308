"""What fresh processes cost: `python tests/benchmarks/start.py`.

Of the README's study and of the main job seconds and memory, without compiled programs that were
kept, and of the main job with them. Of the study how many programs it compiles.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import limited, report

JOBS = 3
QUICK = {"JOBS": 1}
UNSET = "PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in UNSET}
"""Python keeps bytecode, as `pip install` does, and the library chooses where programs are kept."""
README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
(STUDY,) = (code for code in EXAMPLES if "nj.study(" in code)
COUNTED = """
import jax, logging
seen = []
handler = logging.Handler()
handler.emit = lambda record: seen.append(str(record.msg).startswith("Compiling "))
jax.config.update("jax_log_compiles", True)
for name in ("jax._src.interpreters.pxla", "jax._src.dispatch"):
    logging.getLogger(name).addHandler(handler)
    logging.getLogger(name).propagate = False
STUDY
print(sum(seen))
"""
MEASURED = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""
"""Runs a command and prints its peak memory, which contains that of the process that starts it."""


def run(*arguments, cache=None):
    """Seconds, seconds to the first line, and MB of a process, with a user's folder for caches."""
    kept = {"JAX_COMPILATION_CACHE_DIR": ""} if cache is None else {"XDG_CACHE_HOME": cache}
    command = [sys.executable, "-IS", "-c", MEASURED, sys.executable, *arguments]
    start = time.perf_counter()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    made = subprocess.Popen(command, env=ENVIRONMENT | kept, text=True, **pipes)
    made.stdout.readline()
    first = time.perf_counter() - start
    *_, peak = made.stdout.read().split()
    assert made.wait() == 0
    return time.perf_counter() - start, first, int(peak) / 1024


def main_job():
    """`python -m noisy_jax`, without kept programs and with them."""
    runs = []
    for _ in range(JOBS):
        with tempfile.TemporaryDirectory() as folder:
            job = "-m", "noisy_jax", "--out", f"{folder}/out"
            runs.append((run(*job, cache=f"{folder}/cache"), run(*job, cache=f"{folder}/cache")))
    fresh, again = np.median(runs, axis=0)
    study = statistics.median(run("-c", STUDY)[0] for _ in range(JOBS))
    return [
        limited("README's study", study, "s", 8),
        limited("main job", fresh[0], "s", 10),
        limited("main job again", again[0], "s", 7),
        limited("main job, to the first line", again[1], "s", 0.6),
        limited("memory of a first main job", fresh[2], "MB", 650),
    ]


def compiled():
    """How many programs the README's study compiles."""
    environment = ENVIRONMENT | {"JAX_COMPILATION_CACHE_DIR": ""}
    command = [sys.executable, "-c", COUNTED.replace("STUDY", STUDY)]
    printed = subprocess.check_output(command, env=environment, text=True)
    return limited("README's study, programs compiled", int(printed.split()[-1]), "programs", 5)


def rows():
    return [compiled(), *main_job()]


if __name__ == "__main__":
    report(f"{JOBS} jobs", rows)
