"""Studies at scale: several hosts, processes killed, memory that stays."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

from tests.running import outputs, stored

PAGE = Path(__file__).parents[2] / "colabs" / "several_hosts.md"


@pytest.mark.long
def test_three_hosts_of_which_one_is_killed_make_the_table_of_one(tmp_path, start):
    """The script of the page on several hosts, with fewer seeds in small batches."""
    page, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    script = page.replace("num_seeds = 1000", "num_seeds = 60")
    script = script.replace("num_seeds=seeds,", "num_seeds=seeds, batch_size=4,")
    assert script.count("60") == script.count("batch_size=4") == 1
    shared, alone = tmp_path / "shared", tmp_path / "alone"
    shared.mkdir()
    alone.mkdir()
    killed = start(f"{script}\nimport time\ntime.sleep(600)", shared, 2, 3)
    file = shared / "checkpoint" / "horizon_256" / "from_seed_40" / "moments.npz"
    while not file.exists():
        assert killed.poll() is None, killed.communicate()[0]
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    outputs(start(script, shared, 0, 3), start(script, shared, 1, 3))
    (merged,) = outputs(start(script, shared))
    (whole,) = outputs(start(script, alone))
    assert "regret grows like" in merged
    assert merged == whole


def played(folder):
    """Seed-rounds in the checkpoints of a study."""
    return sum(horizon * stored(folder / "kept" / f"horizon_{horizon}") for horizon in (8, 16))


COMMAND = """
import runpy
import sys

options = "linear --horizons 8 16 --learners two_copies corrected_leader --checkpoint kept --seeds"
sys.argv[1:] = [*options.split(), sys.argv[1]]
runpy.run_module("noisy_jax", run_name="__main__")
"""
KILLS = int(os.environ.get("NOISY_JAX_KILLS", "8"))  # each costs a start of Python and JAX
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
            while (now := played(killed)) <= max(moment, before):
                assert now >= before  # it goes on from there
                assert running.poll() is None, running.communicate()[0]
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.02))
        finally:
            running.kill()
            running.communicate()
        before = played(killed)
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
    jax.random.key(1), num_seeds, batch_size=batch_size,
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
