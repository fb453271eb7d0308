"""Studies at scale: several devices, several processes, processes killed, memory that stays."""

import functools
import os
import re
import signal
import socket
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.running import outputs

PAGE = Path(__file__).parents[2] / "colabs" / "several_hosts.md"


@pytest.mark.slow
def test_a_study_gives_the_same_numbers_on_one_device_and_on_eight():
    noise = nj.noise.Gaussian(0.1)
    stream = nj.streams.linear(jax.random.key(0), 32, 2)
    moments = nj.bounds.moments(stream, noise)
    two = nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
    blind = nj.tuned(nj.learners.uncorrected, nj.bounds.uncorrected, moments, radius=1.0)
    run = functools.partial(
        nj.study, {"two": two, "blind": blind}, stream, noise, jax.random.key(1), num_seeds=20,
        horizons=[32], comparator=nj.comparators.linear_ball(radius=1.0),
    )  # fmt: skip
    alone, spread = run(), run(mesh="all")
    assert spread.config["batch_size"] == 24
    assert len(spread.config["devices"]) == 8
    for one, eight in zip(alone.rows, spread.rows, strict=True):
        assert one.learner == eight.learner
        np.testing.assert_allclose(one[1:-1], eight[1:-1], rtol=1e-5, atol=1e-5)


def processes_of_one_study(start, script, folders):
    """What one process for each folder prints, all on the same four devices."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    count = len(folders)
    for folder in folders:
        folder.mkdir(exist_ok=True)
    return outputs(
        *(
            start(script, folder, address, count, index, devices=4 // count)
            for index, folder in enumerate(folders)
        )
    )


@pytest.mark.slow
def test_two_processes_make_the_table_of_one(tmp_path, start):
    (page,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)

    def printed(num_seeds, *folders):
        """Of each process, what it reported as done, its rows, and all else that it printed."""
        script = page.replace(
            "num_seeds=1000,",
            f"num_seeds={num_seeds}, batch_size=8, quantiles=(0.5, 0.9), "
            "progress=lambda *done: print('done', *done, file=log),",
        )
        assert script != page
        script = f"log = open('log', 'w')\n{script}\nprint('rows', result.rows, file=log)\n"
        paths = [tmp_path / name for name in folders]
        texts = processes_of_one_study(start, script, paths)
        for path, text in zip(paths, texts, strict=True):
            log = (path / "log").read_text()  # the network prints between what is printed
            done = re.findall(r"^done (\d+) \d+$", log, re.MULTILINE)
            (rows,) = re.findall(r"^rows (.*)$", log, re.MULTILINE)
            yield [int(number) for number in done], rows, text

    interrupted = list(printed(24, "first", "second"))
    resumed = list(printed(40, "first", "second"))
    ((all_done, one, table),) = printed(40, "alone")
    assert interrupted[0][:2] == interrupted[1][:2]
    for done, rows, _ in resumed:
        assert rows == one
        small, large = [64 * 32, 64 * 40], [64 * 40 + 256 * 32, 64 * 40 + 256 * 40]
        assert done == small + large  # not the 24 seeds from before
    assert len(all_done) == 10
    assert [("regret grows like" in text) for _, _, text in resumed] == [True, False]
    assert "regret grows like" in table
    names = [sorted(p.name for p in (tmp_path / f).iterdir()) for f in ("first", "second")]
    assert names == [["checkpoint", "log", "results", "script.py"], ["log", "script.py"]]


REFUSALS = """
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import noisy_jax as nj

index, log = int(sys.argv[3]), open("log", "w")
jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), index)
devices = np.array(jax.devices())
every, reverse = (jax.sharding.Mesh(order, "seeds") for order in (devices, devices[::-1]))
own = jax.sharding.Mesh(np.array(jax.local_devices()), "seeds")


def plus(shift, key):
    return shift + jax.random.normal(key)


def attempt(shift, num_seeds, folder, mesh=every):
    run, key = jax.tree_util.Partial(plus, jnp.float32(shift)), jax.random.key(0)
    try:
        mean = nj.monte_carlo(run, num_seeds, key, mesh=mesh, checkpoint=folder).mean
        print(repr(mean), file=log)
    except Exception as error:
        print(type(error).__name__, error, file=log)


if index == 0:
    Path("file").touch()
    Path("damaged").mkdir()
    Path("damaged/moments.npz").write_bytes(b"half a file")
attempt(1, 8, "folder")
attempt(2, 8, "folder")
attempt(1, 4, "folder")
attempt(1, 4, "damaged")
attempt(1, 4, "file/below")
attempt(1 + index, 4, "folder")
attempt(1, 4 + index, "folder")
attempt(np.nan, 4, "not a number")
attempt(1, 8, "reverse", reverse)
attempt(1, 8, "own", own)
attempt(1, 12, "folder")
"""


@pytest.mark.slow
def test_all_processes_raise_the_error_that_one_of_them_finds(tmp_path, start):
    folders = [tmp_path / "first", tmp_path / "second"]
    processes_of_one_study(start, REFUSALS, folders)
    first, second = ((folder / "log").read_text().splitlines() for folder in folders)
    assert first == second
    made, foreign, ahead, damaged, unwritable, shift, seeds, nan, reverse, own, more = first
    assert re.match(r"ValueError .* was made by another configuration", foreign)
    assert re.match(r"ValueError .* already holds 8 seeds, more than the 4 asked for", ahead)
    assert re.match(r"ValueError .* is not a readable checkpoint", damaged)
    assert re.match(r"ValueError cannot write to the folder file/below", unwritable)
    for different in (shift, seeds):
        assert re.match(r"ValueError the processes of the mesh must call", different)
    assert "nan" in nan
    assert made == reverse
    np.testing.assert_allclose(*(float(re.search(r"[\d.]{4,}", e)[0]) for e in (made, own)), 1e-6)
    assert made != more
    wrote = [sorted(path.parent.name for path in f.rglob("moments.npz")) for f in folders]
    assert wrote == [["damaged", "folder", "not a number", "own"], ["own", "reverse"]]


SMALL = """
import functools
import re
import sys
from pathlib import Path

import jax
import numpy as np

import noisy_jax as nj

x = np.random.default_rng(0).uniform(-0.5, 0.5, (16, 2)).astype(np.float32)
two = nj.tuned(
    nj.learners.two_copies, nj.bounds.two_copies, nj.bounds.Moments(1.0, 1.0, 1.0, 0.1), radius=1.0
)
study = functools.partial(
    nj.study, {"two": two}, nj.Stream(x, x[:, 0]), nj.noise.Gaussian(0.1), jax.random.key(1),
    comparator=nj.comparators.linear_ball(radius=1.0),
)
"""

KILLED = (
    SMALL
    + """
result = study(
    num_seeds=10_000, horizons=[8, 16], batch_size=25, checkpoint="checkpoint",
    progress=lambda done, _: print(done, flush=True),
)
print(result.rows)
"""
)


def stored(folder, name="checkpoint"):
    """Seed-rounds in the checkpoints of a study."""
    rounds = 0
    for horizon in (8, 16):
        path = folder / name / f"horizon_{horizon}" / "moments.npz"
        if path.exists():
            with open(path, "rb") as opened, np.load(opened) as file:
                rounds += horizon * int(file["arr_1"])
    return rounds


@pytest.mark.slow
def test_a_study_killed_at_random_moments_ends_with_the_same_table(tmp_path, start, rng):
    through, killed = tmp_path / "through", tmp_path / "killed"
    through.mkdir()
    killed.mkdir()
    (whole,) = outputs(start(KILLED, through))
    total = 10_000 * (8 + 16)
    assert stored(through) == total
    before = 0
    for moment in total * np.sort(rng.uniform(0, 0.9, size=4)):
        running = start(KILLED, killed)
        try:
            while stored(killed) <= max(moment, before) and running.poll() is None:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.02))  # anywhere in a batch, also while it is stored
        finally:
            running.send_signal(signal.SIGKILL)
            printed = running.communicate()[0]
        assert running.returncode == -signal.SIGKILL, printed  # it had not ended
        after = stored(killed)
        print(f"killed with {after:,} of {total:,} seed-rounds stored, {before:,} before")
        assert before < after < total
        assert before < int(printed.split()[0]) <= before + 25 * 16  # it went on from there
        before = after
    (last,) = outputs(start(KILLED, killed))
    assert last.splitlines()[-1] == whole.splitlines()[-1]
    assert last.splitlines()[-1].startswith("(Row(")


COMMAND = """
import runpy
import sys

options = "linear --horizons 8 16 --learners two_copies corrected_leader --checkpoint kept --seeds"
sys.argv[1:] = [*options.split(), sys.argv[1]]
runpy.run_module("noisy_jax", run_name="__main__")
"""
KILLS = int(os.environ.get("NOISY_JAX_KILLS", "8"))  # each costs a start of Python and JAX
SEEDS = 500 * KILLS


@pytest.mark.slow
def test_the_command_line_killed_at_random_numbers_of_seeds_writes_the_same_table(
    tmp_path, start, rng
):
    through, killed = tmp_path / "through", tmp_path / "killed"
    through.mkdir()
    killed.mkdir()
    outputs(start(COMMAND, through, SEEDS))
    total, before = SEEDS * (8 + 16), 0
    for moment in total * np.sort(rng.uniform(0, 0.9, size=KILLS)):
        running = start(COMMAND, killed, SEEDS)
        try:
            while stored(killed, "kept") <= max(moment, before):
                assert running.poll() is None, running.communicate()[0]
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.02))
        finally:
            running.kill()
            running.communicate()
        before = stored(killed, "kept")
        print(f"killed with {before:,} of {total:,} seed-rounds stored")
    outputs(start(COMMAND, killed, SEEDS))
    tables = [(folder / "noisy_jax_results" / "results.csv") for folder in (through, killed)]
    assert tables[0].read_bytes() == tables[1].read_bytes()
    assert len(tables[0].read_text().splitlines()) == 1 + 2 * 2


MEMORY = (
    SMALL
    + """
num_seeds, batch_size = map(int, sys.argv[1:])
study(num_seeds=num_seeds, horizons=[16], batch_size=batch_size)
# A study's values are few a seed. Kept, these would be 16 kB a seed, 160 MB of 10,000.
nj.monte_carlo(
    lambda key: jax.numpy.sin(jax.random.uniform(key) * np.arange(4096, dtype=np.float32)),
    jax.random.key(1), num_seeds, batch_size=batch_size,
)
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
def test_peak_memory_does_not_grow_with_the_number_of_seeds(tmp_path, start):
    few, many, at_once = (
        int(outputs(start(MEMORY, tmp_path, *arguments, shared=False))[0])
        for arguments in ((1000, 100), (10_000, 100), (10_000, 10_000))
    )
    print(f"peak memory: {few:,} kB, {many:,} kB; all seeds at once {at_once:,} kB")
    assert many < min(1.2 * few, 450_000)
    assert at_once > 1.2 * few  # what it would be if all seeds were kept
