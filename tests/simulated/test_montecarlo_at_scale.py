"""Studies at scale: several machines, processes killed, memory that stays."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

from tests.running import outputs

PAGE = Path(__file__).parents[2] / "docs" / "researcher.md"

LEARNERS = """
import os
import signal
import threading
import time

import jax
import noisy_jax as nj

noise = nj.noise.Gaussian(0.1)
stream = nj.streams.linear(jax.random.key(0), horizon=256, dim=5)
moments = nj.bounds.moments(stream, noise)
learners = {
    "two copies": nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0),
    "uncorrected": nj.learners.uncorrected(radius=1.0),
}
"""
KILL = """
pids = client.run(os.getpid)


def kill_after_the_first_part():
    while not any(part.done() for part in parts):
        time.sleep(0.01)
    killed.append(sum(part.done() for part in parts))
    os.kill(min(pids.values()), signal.SIGKILL)


killed = []
threading.Thread(target=kill_after_the_first_part).start()
"""
CHECK = """
    whole = part(1024)
    assert repr(study.rows) == repr(whole.rows), (study, whole)  # there is no bound: NaN
    assert study.config == whole.config
    assert str(study) == str(whole)
    assert killed[0] < 16
    print(len(study.rows), killed[0])
"""


@pytest.mark.long
def test_ranges_of_seeds_on_a_cluster_of_which_a_worker_is_killed_are_the_study(tmp_path, start):
    """The recipe of docs/researcher.md, bit for bit the study on one machine."""
    page = PAGE.read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```python\n(from dask\.distributed.*?)```", page, re.DOTALL)
    before, after = recipe.split("        study = nj.Study.merge")
    kill = KILL.replace("\n", "\n        ")
    script = f"{LEARNERS}{before}{kill}study = nj.Study.merge{after}{CHECK}"
    (printed,) = outputs(start(script, tmp_path))
    rows, done = map(int, printed.split()[-2:])
    print(f"{done} of 16 parts were done when a worker was killed")
    assert rows == 4


def played(file):
    """Seed-rounds in the checkpoint of a study of two learners at 8 and 16 rounds."""
    if not file.exists():
        return 0
    with open(file, "rb") as opened, np.load(opened) as leaves:
        # The counts of seeds are the only whole numbers.
        short, long = (int(leaf) for leaf in leaves.values() if leaf.dtype.kind == "i")
    return 8 * short + 16 * long


COMMAND = """
import runpy
import sys

options = "linear --horizons 8 16 --learners two_copies corrected_leader --checkpoint kept --seeds"
sys.argv[1:] = [*options.split(), sys.argv[1]]
runpy.run_module("noisy_jax", run_name="__main__")
"""
KILLS = int(os.environ.get("NOISY_JAX_KILLS", "4"))  # each costs a start of Python and JAX
SEEDS = 500 * KILLS


@pytest.mark.long
def test_a_command_killed_at_random_numbers_of_seeds_writes_the_same_table(tmp_path, start, rng):
    through, killed = tmp_path / "through", tmp_path / "killed"
    through.mkdir()
    killed.mkdir()
    outputs(start(COMMAND, through, SEEDS))
    total, before = SEEDS * (8 + 16), 0
    for moment in total * np.sort(rng.uniform(0, 0.9, size=KILLS)):
        running = start(COMMAND, killed, SEEDS)
        try:
            while (now := played(killed / "kept" / "study.npz")) <= max(moment, before):
                assert now >= before  # it goes on from there
                assert running.poll() is None, running.communicate()[0]
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.02))
        finally:
            running.kill()
            running.communicate()
        before = played(killed / "kept" / "study.npz")
        print(f"killed with {before:,} of {total:,} seed-rounds stored")
    outputs(start(COMMAND, killed, SEEDS))
    tables = [(folder / "noisy_jax_results" / "results.csv") for folder in (through, killed)]
    assert tables[0].read_bytes() == tables[1].read_bytes()
    assert len(tables[0].read_text().splitlines()) == 1 + 2 * 2


MEMORY = """
import re
import sys
from pathlib import Path

import jax
import numpy as np

import noisy_jax as nj

x = np.random.default_rng(0).uniform(-0.5, 0.5, (16, 2)).astype(np.float32)
moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, 0.1)
two = nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
num_seeds, batch_size = map(int, sys.argv[1:])
nj.study(
    {"two": two}, nj.Stream(x, x[:, 0]), nj.noise.Gaussian(0.1), jax.random.key(1), horizons=[16],
    comparator=nj.comparators.linear_ball(radius=1.0), num_seeds=num_seeds, batch_size=batch_size,
)
# A study's values are few a seed. Kept, these would be 16 kB a seed, 160 MB of 10,000.
nj.monte_carlo(
    lambda key: jax.numpy.sin(jax.random.uniform(key) * np.arange(4096, dtype=np.float32)),
    num_seeds, jax.random.key(1), batch_size=batch_size,
)
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
def test_peak_memory_does_not_grow_with_the_number_of_seeds(tmp_path, start):
    few, many, at_once = (
        int(outputs(start(MEMORY, tmp_path, *arguments, shared=False))[0])
        for arguments in ((1000, 100), (10_000, 100), (10_000, 10_000))
    )
    print(f"peak memory: {few:,} kB, {many:,} kB; all seeds at once {at_once:,} kB")
    assert many < min(1.2 * few, 450_000)
    assert at_once > 1.2 * few  # what it would be if all seeds were kept
