import os
import re
import warnings

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax.simulated import checkpoints
from noisy_jax.simulated.checkpoints import Checkpoint
from noisy_jax.simulated.montecarlo import monte_carlo
from tests.errors import disk_full, raises
from tests.simulated.test_montecarlo import run

KEY = jax.random.key(7)


def simulated(count, file=None, **options):
    """Moments of so many runs, four at a time."""
    if file:
        options = {"checkpoint": file, "tag": "run"} | options
    return monte_carlo(run, count, KEY, batch_size=4, **options)


class InterruptedRunError(Exception):
    pass


@pytest.fixture
def file(tmp_path):
    return tmp_path / "a.npz"


def test_resumes_exactly_and_loses_at_most_a_batch(file):
    def interrupt(done, total):
        if done == 8:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        simulated(22, file, progress=interrupt)
    batches = []
    resumed = simulated(22, file, progress=lambda done, _: batches.append(done))
    assert batches == [12, 16, 20, 22]
    chex.assert_trees_all_equal(resumed, simulated(22))
    chex.assert_trees_all_equal(simulated(22, file, progress=batches.append), resumed)


def test_fewer_seeds_than_are_stored_are_an_error(file):
    simulated(range(2, 12), file)
    message = "already holds 10 seeds, more than the 8 from seed 2 to seed 9"
    raises(message, simulated, range(2, 10), file)
    raises("was made by another run", simulated, range(8, 16), file)


def test_quantiles_resume_exactly_with_other_levels_too(file):
    simulated(10, file, quantiles=(0.5,))
    resumed = simulated(22, file, quantiles=(0.1, 0.9))
    chex.assert_trees_all_close(resumed, simulated(22, quantiles=(0.1, 0.9)), atol=1e-6)
    message = r"made by another run .*kept quantiles or not"
    raises(message, simulated, 22, file)  # what was kept would be lost
    simulated(4, file.with_name("none"))
    raises(message, simulated, 22, file.with_name("none"), quantiles=(0.5,))


def shifted(shift, key):
    return shift + jax.random.normal(key, (3,))


ONE = jax.tree_util.Partial(shifted, jnp.float32(1.0))


@pytest.mark.parametrize(
    ("other", "key", "tag"),
    [
        (jax.tree_util.Partial(shifted, jnp.float32(0.5)), KEY, "run"),
        (ONE, jax.random.key(8), "run"),
        (ONE, jax.random.key(7, impl="rbg"), "run"),
        (ONE, KEY, "another run"),
    ],
    ids=["number in a leaf", "key", "kind of key", "tag"],
)
def test_a_checkpoint_of_another_run_is_an_error(file, other, key, tag):
    monte_carlo(ONE, 4, KEY, checkpoint=file, tag="run")
    raises("was made by another run", monte_carlo, other, 8, key, checkpoint=file, tag=tag)


SUMS = {"a": np.arange(3.0), "b": np.float64(2.0)}


def saved(file, sums=(4, SUMS)):
    Checkpoint(file, "run").save(sums)


def loaded(file, like=(0, SUMS)):
    return Checkpoint(file, "run").load(like)


@pytest.mark.parametrize("package", [checkpoints, jax], ids=["noisy_jax", "jax"])
def test_a_checkpoint_of_another_version_is_an_error(file, monkeypatch, package):
    """Another version may keep other sums in the same shapes, or draw other numbers."""
    saved(file)
    with monkeypatch.context() as patch:
        patch.setattr(package, "__version__", "0.0.1")
        raises(r"another run .*version of JAX or noisy_jax", loaded, file)
    chex.assert_trees_all_equal(loaded(file), (4, SUMS))


def test_what_is_saved_is_loaded_also_by_numpy(file):
    saved(file)
    with np.load(file) as opened:
        np.testing.assert_array_equal(opened["arr_3"], SUMS["a"])
    chex.assert_trees_all_equal(loaded(file), (4, SUMS))
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.slow
def test_every_flipped_bit_is_one_clear_error_or_has_no_effect(file, rng):
    saved(file)
    whole, errors, harmless = file.read_bytes(), 0, 0
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        try:
            found = loaded(file)
        except ValueError as error:
            errors += bool(re.search("not a readable checkpoint|another run", str(error)))
            continue
        chex.assert_trees_all_equal(found, (4, SUMS))
        harmless += 1
    assert errors + harmless == len(whole)
    assert errors > harmless


def test_names_of_arrays_that_were_damaged_are_an_error(file):
    """An archive checks the bytes of its arrays alone: one array in two places reads well."""
    sums = np.arange(6.0)
    saved(file, (*sums,))
    content = file.read_bytes()
    place = content.rindex(b"arr_4.npy")
    file.write_bytes(content[:place] + b"arr_5.npy" + content[place + 9 :])
    with np.load(file) as opened:
        assert len(list(opened.values())) >= len(sums)
    raises("not a readable checkpoint", loaded, file, (*sums,))


def test_on_a_full_disk_the_run_goes_on_with_one_warning(file, monkeypatch):
    simulated(4, file)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_full)
        with pytest.warns(UserWarning, match=r"cannot write .*: No space left on device; the run"):
            estimate = simulated(16, file)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulated(16, file)
    assert [warning.filename for warning in caught] == [__file__]
    chex.assert_trees_all_equal(estimate, simulated(16))
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    batches = []
    simulated(16, file, progress=lambda n, _: batches.append(n))
    assert batches == [8, 12, 16]  # the checkpoint from before the disk was full


def test_what_a_killed_process_left_is_removed_and_nothing_else(file):
    for name in ("a.0123.unfinished", "b.0123.unfinished", "b.npz"):
        file.with_name(name).touch()
    saved(file)
    loaded(file)
    assert {path.name for path in file.parent.iterdir()} == {"a.npz", "b.0123.unfinished", "b.npz"}


@pytest.mark.parametrize("made", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_place_of_a_file_is_one_clear_error(file, made):
    """To open a pipe would wait until another program writes to it."""
    made(file)
    messages = {os.mkfifo: "it is not a regular file", os.mkdir: r"a file, got the folder .*a\.npz"}
    raises(messages[made], loaded, file)


@pytest.mark.parametrize(
    "write",
    {
        "shape": lambda file: saved(file, (4, SUMS | {"a": np.arange(5.0)})),
        "missing leaf": lambda file: saved(file, (4, {"a": SUMS["a"]})),
        "another leaf": lambda file: saved(file, (4, SUMS, 1)),
        "pickled": lambda file: np.savez(file, arr_0=np.array([{}], object)),
        "empty": np.savez,
    }.items(),
    ids=lambda pair: pair[0],
)
def test_what_does_not_fit_is_one_clear_error(file, write):
    write[1](file)
    raises(r"a\.npz is not a readable checkpoint", loaded, file)


def test_counts_that_cannot_be_are_an_error(file):
    """A file that was made by hand: of a negative count, or of other seeds than the quantiles."""
    levels = {"quantiles": (0.5,)}
    simulated(8, file, **levels)
    with np.load(file) as opened:
        tag, count, *leaves = opened.values()
    for wrong in (-8, 4):
        np.savez(file, tag, np.full_like(count, wrong), *leaves)
        raises("not a readable checkpoint", simulated, 8, file, **levels)
