"""A million rows in files: passes that are killed, and memory that does not grow."""

import time
from pathlib import Path

import numpy as np
import pytest

from noisy_jax.checkpoints import Checkpoint
from tests.running import outputs

STREAM = """
import hashlib
import re
import sys
from pathlib import Path

import jax
import numpy as np

import noisy_jax as nj

kind, form, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {"noise": 0.25, "rows": rows}
if form == "csv":
    table = nj.observations.chunks("table.csv", target="y", **options)
else:
    table = nj.observations.chunks("x.npy", "y.npy", **options)
if kind == "fit":
    result = nj.fit(table, checkpoint=kind)
    kept = vars(result) | {"uncorrected": vars(result.uncorrected), "risk": vars(result.risk)}
else:
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    result = nj.learn(learner, table, jax.random.key(0), checkpoint=kind)
    kept = [result.state, result.risk, result.risk_std_error, result.variance, result.scale]
digest = hashlib.sha256()
for leaf in jax.tree.leaves(kept):
    leaf = np.asarray(leaf)
    digest.update(leaf.tobytes() if leaf.dtype.kind in "fi" else str(leaf).encode())
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(digest.hexdigest())
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc"),
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1_000_000, 5))
    y = x @ [1.0, -2.0, 0.5, 0.0, 3.0] + 0.1 * rng.normal(size=len(x))
    return x + 0.5 * rng.normal(size=x.shape), y


def written(folder, x, y, form):
    folder.mkdir()
    if form == "csv":
        np.savetxt(
            folder / "table.csv", np.column_stack([x, y]), delimiter=",", comments="",
            header="a,b,c,d,e,y", fmt="%.9g",
        )  # fmt: skip
    else:
        np.save(folder / "x.npy", x)
        np.save(folder / "y.npy", y)
    return folder


def stored(folder):
    """Rows in the checkpoint."""
    path = folder / "moments.npz"
    if not path.exists():
        return 0
    with open(path, "rb") as opened, np.load(opened) as file:
        return int(file["arr_1"])


@pytest.mark.parametrize("kind", ["fit", "learn"])
@pytest.mark.parametrize(
    ("form", "total", "kills"), [("npy", 1_000_000, 4), ("csv", 200_000, 2)], ids=["npy", "csv"]
)
def test_a_pass_killed_at_random_moments_ends_with_the_same_numbers(
    tmp_path, start, rows, rng, kind, form, total, kills
):
    x, y = rows
    folder = written(tmp_path / "rows", x[:total], y[:total], form)
    arguments = kind, form, total // 100
    begin = time.perf_counter()
    (whole,) = outputs(start(STREAM, folder, *arguments))
    print(f"{total:,} rows in {time.perf_counter() - begin:.1f} s, with the start of JAX")
    assert stored(folder / kind) == total
    (folder / kind / "moments.npz").unlink()
    before = 0
    for moment in total * np.sort(rng.uniform(0, 0.9, size=kills)):
        running = start(STREAM, folder, *arguments)
        try:
            while stored(folder / kind) <= max(moment, before):
                assert running.poll() is None, running.communicate()[0]
                time.sleep(0.001)
            with pytest.raises(ValueError, match="is in use by another run"):
                Checkpoint(folder / kind, "").load(0)
            time.sleep(rng.uniform(0, 0.02))  # anywhere in a chunk, also while it is stored
        finally:
            running.kill()
            running.communicate()
        assert before < stored(folder / kind) < total
        before = stored(folder / kind)
        print(f"killed with {before:,} of {total:,} rows stored")
    (last,) = outputs(start(STREAM, folder, *arguments))
    assert last.splitlines()[-1] == whole.splitlines()[-1]
    assert len(whole.splitlines()[-1]) == 64


@pytest.mark.parametrize("form", ["npy", "csv"])
def test_peak_memory_does_not_grow_with_the_number_of_rows(tmp_path, start, rows, form):
    x, y = rows
    few = written(tmp_path / "few", x[:50_000], y[:50_000], form)
    count = {"npy": 1_000_000, "csv": 250_000}[form]
    many = written(tmp_path / "many", x[:count], y[:count], form)
    for kind in ("fit", "learn"):
        running = (
            start(STREAM, folder, kind, form, 10_000, shared=False) for folder in (few, many)
        )
        peaks = [int(outputs(process)[0].splitlines()[-2]) for process in running]
        print(f"{kind}, {form}: {peaks[0]:,} kB for 50,000 rows, {peaks[1]:,} kB for {count:,}")
        assert peaks[1] < 1.1 * peaks[0] + 5_000
