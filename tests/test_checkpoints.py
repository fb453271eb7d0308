import contextlib
import io
import os
import warnings

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import checkpoints
from noisy_jax.checkpoints import Checkpoint, _with_digest
from noisy_jax.simulated.montecarlo import monte_carlo
from tests.errors import disk_full, raises
from tests.running import printed
from tests.simulated.test_montecarlo import run

KEY = jax.random.key(7)


def simulated(count, folder=None, **options):
    """Moments of so many runs, four at a time."""
    return monte_carlo(run, count, KEY, batch_size=4, checkpoint=folder, **options)


class InterruptedRunError(Exception):
    pass


def test_resumes_exactly_and_loses_at_most_a_batch(tmp_path):
    def interrupt(done, total):
        if done == 8:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        simulated(22, tmp_path / "c", progress=interrupt)
    batches = []
    resumed = simulated(22, tmp_path / "c", progress=lambda done, _: batches.append(done))
    assert batches == [12, 16, 20, 22]
    chex.assert_trees_all_equal(resumed, simulated(22))


def test_disjoint_ranges_of_seeds_are_merged(tmp_path):
    """Of two hosts, the first of which stopped early; the call with all seeds runs the rest."""
    levels = {"quantiles": (0.5, 0.9)}
    whole, own = simulated(30, **levels), simulated(range(12, 30), **levels)
    first = simulated(range(6), tmp_path, **levels)
    second = simulated(range(12, 22), tmp_path, **levels)
    assert (first.num_seeds, second.num_seeds) == (6, 10)
    done = []
    merged = simulated(30, tmp_path, **levels, progress=lambda *own: done.append(own))
    assert done == [(20, 30), (22, 30), (26, 30), (30, 30)]
    chex.assert_trees_all_close(merged, whole, rtol=1e-6)
    again = simulated(30, tmp_path, **levels, progress=done.append)
    chex.assert_trees_all_equal(again, merged)
    assert len(done) == 4
    chex.assert_trees_all_close(own, simulated(range(12, 30), tmp_path, **levels), rtol=1e-6)


def test_ranges_of_seeds_that_overlap_are_an_error_and_lock_nothing(tmp_path):
    simulated(10, tmp_path)
    simulated(range(8, 16), tmp_path)
    message = "already holds 10 seeds, more than the 8 from seed 0 to seed 7"
    for _ in range(2):
        raises(message, simulated, 16, tmp_path)
    other = jax.random.key(1)
    raises("another configuration", monte_carlo, run, range(8, 16), other, checkpoint=tmp_path)


def test_quantiles_resume_exactly_with_other_levels_too(tmp_path):
    simulated(10, tmp_path / "c", quantiles=(0.5,))
    resumed = simulated(22, tmp_path / "c", quantiles=(0.1, 0.9))
    chex.assert_trees_all_close(resumed, simulated(22, quantiles=(0.1, 0.9)), atol=1e-6)
    message = r"another configuration .*quantiles or none"
    raises(message, simulated, 22, tmp_path / "c")  # what was kept would be lost
    simulated(4, tmp_path / "none")
    raises(message, simulated, 22, tmp_path / "none", quantiles=(0.5,))


def shifted(shift):
    return lambda key: shift + jax.random.normal(key, (3,))


def jitted(shift):
    constant = jnp.full(3, shift)  # closed over inside an inner jit, inside a scan

    @jax.jit
    def inner(total, key):
        return total + constant + jax.random.normal(key, (3,)), None

    return lambda key: jax.lax.scan(inner, jnp.zeros(3), jax.random.split(key, 2))[0]


@pytest.mark.parametrize(
    ("make", "other", "key"),
    [
        (shifted, shifted(np.float32(0.5)), KEY),  # another number in the run
        (shifted, lambda key: jax.random.uniform(key, (3,)), KEY),  # another run of the same shapes
        (shifted, shifted(np.float32(1.0)), jax.random.key(8)),  # another key
        (shifted, jax.tree_util.Partial(lambda s, key: s + jax.random.normal(key, (3,)), 1.5), KEY),
        (shifted, run, KEY),  # another structure
        (jitted, jitted(2.0), KEY),
    ],
    ids=["number", "run", "key", "leaf", "structure", "inner constant"],
)
def test_a_checkpoint_of_another_configuration_is_an_error(tmp_path, make, other, key):
    monte_carlo(make(np.float32(1.0)), 4, KEY, checkpoint=tmp_path)
    raises("made by another configuration", monte_carlo, other, 8, key, checkpoint=tmp_path)
    monte_carlo(make(np.float32(1.0)), 8, KEY, checkpoint=tmp_path)  # a new closure, same run


def test_a_checkpoint_of_another_version_is_an_error(tmp_path, monkeypatch):
    """Another version may keep other sums in the same shapes."""
    path = saved(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "__version__", "0.0.1")
        raises(r"another configuration .*version of noisy_jax", loaded, tmp_path)
    assert path.exists()
    chex.assert_trees_all_equal(loaded(tmp_path), (4, SUMS))


SUMS = {"a": np.arange(3.0), "b": np.float64(2.0)}


def saved(folder, sums=(4, SUMS)):
    """The path of a checkpoint with these moments."""
    with contextlib.closing(Checkpoint(folder, "run")) as store:
        store.load(sums)
        store.save(sums)
        return store.path


def loaded(folder, like=(0, SUMS)):
    with contextlib.closing(Checkpoint(folder, "run")) as store:
        return store.load(like)


def test_what_is_saved_is_loaded_also_by_numpy(tmp_path):
    with np.load(saved(tmp_path)) as file:
        np.testing.assert_array_equal(file["arr_2"], SUMS["a"])
    chex.assert_trees_all_equal(loaded(tmp_path), (4, SUMS))
    assert [path.name for path in tmp_path.iterdir()] == ["moments.npz"]


@pytest.mark.slow
def test_every_flipped_bit_is_one_clear_error(tmp_path, rng):
    path = saved(tmp_path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        raises("not a readable checkpoint", loaded, tmp_path)
    path.write_bytes(whole)
    chex.assert_trees_all_equal(loaded(tmp_path), (4, SUMS))


@pytest.mark.parametrize(
    "stored",
    [(4, SUMS | {"a": np.arange(5.0)}), (4, {"a": SUMS["a"]}), (-4, SUMS)],
    ids=["shape", "missing leaf", "negative count"],
)
def test_moments_that_do_not_fit_are_an_error(tmp_path, stored):
    saved(tmp_path, stored)
    raises("not a readable checkpoint", loaded, tmp_path)


def test_on_a_full_disk_the_run_goes_on_with_one_warning(tmp_path, monkeypatch):
    simulated(4, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_full)
        with pytest.warns(UserWarning, match=r"cannot write .*: No space left on device; the run"):
            estimate = simulated(16, tmp_path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulated(16, tmp_path)
    assert len(caught) == 1
    chex.assert_trees_all_equal(estimate, simulated(16))
    assert [path.name for path in tmp_path.iterdir()] == ["moments.npz"]
    batches = []
    simulated(16, tmp_path, progress=lambda n, _: batches.append(n))
    assert batches == [8, 12, 16]  # the checkpoint from before the disk was full


def test_a_second_run_on_a_folder_is_an_error_and_the_first_goes_on(tmp_path):
    def second(done, total):
        raises("is in use by another run", simulated, 8, tmp_path)

    chex.assert_trees_all_equal(simulated(8, tmp_path, progress=second), simulated(8, tmp_path))


SECOND = """
import sys
from noisy_jax.checkpoints import Checkpoint
try:
    Checkpoint(sys.argv[1], "run").load((0, 0.0))
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_second_process_on_a_folder_is_one_clear_error(tmp_path):
    with contextlib.closing(Checkpoint(tmp_path, "run")) as store:
        store.load((0, 0.0))
        store.save((4, 2.0))
        assert "is in use by another run" in printed("-c", SECOND, tmp_path)
        store.save((8, 3.0))
    assert printed("-c", SECOND, tmp_path) == ""
    assert loaded(tmp_path, (0, 0.0)) == (8, 3.0)


def test_nothing_is_written_through_a_symbolic_link(tmp_path):
    target = tmp_path / "target"
    target.write_text("precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "moments.unfinished").symlink_to(target)
    saved(folder)
    assert target.read_text() == "precious"


@pytest.mark.parametrize("made", [os.mkfifo, os.mkdir])
def test_a_pipe_in_place_of_a_checkpoint_is_one_clear_error(tmp_path, made):
    """To open a pipe would wait until another program writes to it."""
    made(tmp_path / "moments.npz")
    raises(r"cannot read .*moments\.npz: it is not a regular file", loaded, tmp_path)


@pytest.mark.parametrize("content", ["pickled", "no fingerprint", "no archive"])
def test_a_sound_file_of_another_program_is_one_clear_error(tmp_path, content):
    archive = io.BytesIO()
    arrays = {"arr_0": np.array([{}], object)} if content == "pickled" else {"a": np.zeros(2)}
    np.savez(archive, **arrays)
    body = b"hello" if content == "no archive" else archive.getvalue()
    (tmp_path / "moments.npz").write_bytes(_with_digest(body))
    raises(r"moments\.npz is not a readable checkpoint", loaded, tmp_path)
