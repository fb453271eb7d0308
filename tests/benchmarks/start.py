"""What fresh processes cost: `python tests/benchmarks/start.py`.

Of imports CPU seconds, in turns, against `import jax, optax` alone. `import noisy_jax` leaves its
rooms for later, and JAX with them: so JAX and optax are imported in each process. Of the main job
seconds and memory without compiled programs that were kept, and with them. Of calls how many
programs they compile, and CPU seconds with that.
"""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import Row, at_most, limited, report

REPEATS, JOBS = 15, 3
QUICK = {"REPEATS": 3, "JOBS": 1}
BASE = "import jax, optax"
IMPORTS = "import noisy_jax", "from noisy_jax import fit", "from noisy_jax import *"
UNSET = "PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in UNSET}
"""Python keeps bytecode, as `pip install` does, and the library chooses where programs are kept."""
README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
(STUDY,) = (code for code in EXAMPLES if "nj.study(" in code)
COUNTED = """
import jax, logging, time, numpy as np, noisy_jax as nj
key, rng = jax.random.key(0), np.random.default_rng(0)
x = rng.normal(size=(4000, 4))
noisy, noise = x + 0.3 * rng.normal(size=x.shape), nj.noise.Gaussian(0.09)
table = nj.observations.from_arrays(noisy, x.sum(axis=1), noise=noise)
learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
method, seen = nj.methods.Fourier(length_scale=2.0), []
handler = logging.Handler()
handler.emit = lambda record: seen.append(str(record.msg).startswith("Compiling "))
jax.config.update("jax_log_compiles", True)
for name in ("jax._src.interpreters.pxla", "jax._src.dispatch"):
    logging.getLogger(name).addHandler(handler)
    logging.getLogger(name).propagate = False
start = time.process_time()
CALL
print(sum(seen), time.process_time() - start)
"""
MEASURED = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""
"""Runs a command and prints its peak memory, which contains that of the process that starts it."""
COMPILED = {
    "README's study": (STUDY, 5, 9.0),
    "fit": ("nj.fit(table)", 0, 0.2),
    "kernel fit": ("nj.fit(table, method)", 18, 15.0),
    "learn": ("nj.learn(learner, table, key)", 4, 3.0),
    "select": ("nj.select({'leader': learner}, table, key)", 10, 4.0),
    "unbiased": ("nj.unbiased.gaussian(lambda x: x @ x, 0.09)(noisy[:1], key=key)", 20, 1.0),
}
"""Calls, and the most programs and CPU seconds in a process that has imported JAX."""


def processor_time(code):
    """CPU seconds, of user and system, of a fresh process that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
    """Programs that calls compile in a fresh process, and seconds with that."""
    found = []
    for name, (code, programs, seconds) in COMPILED.items():
        done = subprocess.run(
            [sys.executable, "-c", COUNTED.replace("CALL", code)],
            env=ENVIRONMENT | {"JAX_COMPILATION_CACHE_DIR": ""},
            stdout=subprocess.PIPE, check=True, text=True,
        )  # fmt: skip
        count, took = done.stdout.split()[-2:]
        found.append(limited(f"{name}, first call", float(took), "CPU s", seconds))
        found.append(limited(f"{name}, programs compiled", int(count), "programs", programs))
    return found


def imports():
    codes = [BASE, *(f"{BASE}; {ours}" for ours in IMPORTS)]
    runs = [[*map(processor_time, codes)] for _ in range(REPEATS + 1)]
    base, alone, *used = map(statistics.median, zip(*runs[1:], strict=True))  # 0 wrote the bytecode
    found = [at_most(f"{IMPORTS[0]} / {BASE}", alone, base, 1.3)]
    for what, ours in zip(IMPORTS[1:], used, strict=True):
        parts = {"ours": f"{ours:.3g} s", "peer": f"{base:.3g} s"}
        found.append(Row(f"{what} / {BASE}", ours / base, "ratio", **parts))
    return found


def rows():
    return [*imports(), *compiled(), *main_job()]


if __name__ == "__main__":
    report(f"{REPEATS} imports, {JOBS} jobs", rows)
