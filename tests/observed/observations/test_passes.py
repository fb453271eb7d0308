"""`fit` and `learn` over chunks: interrupted, damaged, on a full disk, twice at once."""

import errno
import os
import shutil
import warnings
from pathlib import Path

import chex
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import disk_full, raises
from tests.observed.rows import LEARNER, NOISE, X, Y, run, written


def test_checkpoints_are_folders_of_chunks(table):
    raises("checkpoint must be a folder's path, got 3", nj.fit, table, checkpoint=3)
    with pytest.raises(ValueError, match=r"checkpoint is for chunks, as nj\.obs"):
        nj.fit(from_arrays(X, Y, noise=NOISE), checkpoint="folder")


KINDS = pytest.mark.parametrize("kind", ["fit", "learn"])


class InterruptedRunError(Exception):
    pass


def interrupted(parts, after):
    for number, chunk in enumerate(parts):
        if number == after:
            raise InterruptedRunError
        yield chunk


@KINDS
def test_an_interrupted_pass_resumes_exactly(tmp_path, table, kind):
    parts, folder = list(table), tmp_path / "c"
    whole = run(kind, table)
    with pytest.raises(InterruptedRunError):
        run(kind, interrupted(parts, 2), folder)
    shutil.copytree(folder, tmp_path / "copy")
    chex.assert_trees_all_equal(run(kind, iter(parts), tmp_path / "copy"), whole)
    written(tmp_path, X, np.where((np.arange(800) >= 200) & (np.arange(800) < 400), np.nan, Y))
    chex.assert_trees_all_equal(run(kind, table, folder), whole)  # rows seen before are not read
    chex.assert_trees_all_equal(run(kind, table, folder), whole)  # nothing is left to do


@pytest.mark.slow
@KINDS
def test_rows_may_be_added_to_the_files(tmp_path, table, kind):
    run(kind, written(tmp_path, X[:550], Y[:550]), tmp_path / "c")  # the last chunk has 150 rows
    found = run(kind, written(tmp_path, X, Y), tmp_path / "c")
    chex.assert_trees_all_close(found, run(kind, table), rtol=1e-4, atol=1e-5)


def other_rows(table):
    first, *rest = table
    return [from_arrays(first.x[:, 0] + 1e-9, first.y, noise=NOISE), *rest]


def stated(**known):
    """The same rows, of which something else is known."""
    return lambda table: [from_arrays(p.x[:, 0], p.y, **{"noise": NOISE} | known) for p in table]


OTHER_RUNS = {
    "key": ("learn", {"key": 1}),
    "learner": ("learn", {"learner": nj.learners.known_covariance(radius=2.0)}),
    "standardize": ("learn", {"standardize": False, "learner": LEARNER}),
    "rows": ("learn", {"table": other_rows}),
    "fit": ("learn", {"kind": "fit"}),
    "rows of fit": ("fit", {"table": other_rows}),
    "noise": ("fit", {"table": stated(noise=NOISE + 1)}),
    "name": ("fit", {"table": stated(target="z")}),
    "cross_cov": ("fit", {"table": stated(cross_cov=[0.1, 0.0])}),
}


@pytest.mark.parametrize("name", OTHER_RUNS)
def test_a_checkpoint_of_another_run_is_an_error(tmp_path, table, name):
    kind, change = OTHER_RUNS[name]
    run(kind, table, tmp_path / "c")
    changed = change.get("table", lambda rows: rows)(table)
    options = {"kind": kind, "folder": tmp_path / "c"} | change | {"table": changed}
    raises(r"another configuration \(table or its noise.*: delete", run, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts[:2], "has seen 400 rows more than there are"),
        (lambda parts: [*parts[:3], from_arrays(X, Y, noise=NOISE)], "chunks with other numbers"),
        (lambda parts: [parts[0], 3, *parts[1:]], "must be an Observations, got 3"),
    ],
)
def test_other_chunks_than_before_are_an_error(tmp_path, table, change, message):
    run("fit", table, tmp_path / "c")
    raises(message, run, "fit", change(list(table)), tmp_path / "c")


@KINDS
def test_a_damaged_checkpoint_is_one_clear_error_and_is_left_to_the_user(tmp_path, table, kind):
    """tests/test_checkpoints.py has files whose digest is right."""
    right, path = run(kind, table, tmp_path), tmp_path / "moments.npz"
    whole = path.read_bytes()
    half = len(whole) // 2
    with np.load(path) as file:
        np.savez(path, *file.values())  # without a digest
    damaged = [path.read_bytes(), b"", b"hello", whole[:half], whole[1:], whole + b"\0"]
    for content in (*damaged, whole[half:] + whole[:half]):
        path.write_bytes(content)
        raises("not a readable .* delete it, or name", run, kind, table, tmp_path)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    chex.assert_trees_all_equal(run(kind, table, tmp_path), right)


@KINDS
def test_on_a_full_disk_the_run_goes_on_with_one_warning(tmp_path, table, kind, monkeypatch):
    with pytest.raises(InterruptedRunError):
        run(kind, interrupted(table, 1), tmp_path / "c")
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patch.setattr(os, "fsync", disk_full)
        found = run(kind, table, tmp_path / "c")
    (warning,) = caught
    assert "No space left on device; the run goes on, and if it is int" in str(warning.message)
    assert Path(warning.filename).name == "rows.py"  # where `fit` and `learn` are called
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["moments.npz"]
    chex.assert_trees_all_equal(run(kind, table, tmp_path / "c"), found)  # from the first chunk


@KINDS
def test_a_folder_without_permission_is_one_clear_error(tmp_path, table, kind, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot write to the folder .*: Not a directory"):
        run(kind, table, tmp_path / "file" / "below")

    def forbidden(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", forbidden)
    raises(r"cannot read .*moments\.npz: Permission denied$", run, kind, table, tmp_path / "c")


@KINDS
def test_a_second_run_on_a_folder_is_an_error_and_the_first_goes_on(tmp_path, table, kind):
    def parts():
        first, *rest = table
        yield first
        raises("is in use by another run", run, kind, table, tmp_path / "c")
        yield from rest

    found = run(kind, parts(), tmp_path / "c")
    chex.assert_trees_all_equal(run(kind, table, tmp_path / "c"), found)
