"""What imports cost: `python tests/benchmarks/start.py`.

CPU seconds of fresh processes, in turns, against `import jax, optax` alone. `import noisy_jax`
leaves its rooms for later, and JAX with them: so JAX and optax are imported in each process.
"""

import os
import resource
import statistics
import subprocess
import sys

from timing import Row, at_most, machine, print_table

REPEATS = 15
QUICK = {"REPEATS": 3}
BASE = "import jax, optax"
IMPORTS = "import noisy_jax", "from noisy_jax import fit", "from noisy_jax import *"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Python keeps bytecode, as `pip install` does."""


def processor_time(code):
    """CPU seconds, of user and system, of a fresh process that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows():
    """All rows."""
    codes = [BASE, *(f"{BASE}; {ours}" for ours in IMPORTS)]
    runs = [[*map(processor_time, codes)] for _ in range(REPEATS + 1)]
    base, alone, *used = map(statistics.median, zip(*runs[1:], strict=True))  # 0 wrote the bytecode
    found = [at_most(f"{IMPORTS[0]} / {BASE}", alone, base, 1.15)]
    for what, ours in zip(IMPORTS[1:], used, strict=True):
        parts = {"ours": f"{ours:.3g} s", "peer": f"{base:.3g} s"}
        found.append(Row(f"{what} / {BASE}", ours / base, "ratio", **parts))
    return found


if __name__ == "__main__":
    print(machine())
    print_table(rows())
