"""Every file that is written is replaced as a whole: on a full disk the old one survives."""

import contextlib
import os
import resource
import stat

import numpy as np
import pytest
from matplotlib.figure import Figure

import noisy_jax as nj
from noisy_jax.command.runner import Report
from noisy_jax.reports.saving import replace_file
from noisy_jax.reports.tables import Table
from noisy_jax.simulated.checkpoints import Checkpoint
from noisy_jax.simulated.results import Growth, Row, Study
from tests.errors import disk_full, raises

X = np.random.default_rng(0).normal(size=(600, 1))
TABLE = nj.observations.from_arrays(X, 2 * X[:, 0] + X[:, 0] ** 2, noise=0.1)
ROWS, GROWTH = (Row("a", 16, 8, *[4.0] * 10),) * 100, {"a": Growth(0.5, 0.4, 0.6)}


def picture(text):
    figure = Figure()
    figure.text(0.5, 0.5, text)
    return figure


WRITERS = {
    "bytes": lambda folder, version: replace_file(folder / "a", str(version).encode() * 2000),
    "table": lambda folder, version: Table([{"a": version}] * 2000, []).save(folder / "a.csv"),
    "study": lambda folder, version: Study(ROWS, GROWTH, {"seed": version}).save(folder),
    "fit": lambda folder, version: nj.fit(TABLE.rows(np.arange(500 + version))).save(folder / "a"),
    "report": lambda folder, version: Report(
        None, {}, {"a": lambda: picture(str(version))}, {"long": [version] * 2000}
    ).save(folder),
    "checkpoint": lambda folder, version: Checkpoint(folder / "a.npz", "a").save(
        (version, np.arange(2e3))
    ),
}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("kind", "fails"),
    [*((kind, "write") for kind in WRITERS), ("bytes", "fsync"), ("bytes", "replace")],
)
@pytest.mark.filterwarnings("ignore:cannot write the checkpoint")
def test_on_a_full_disk_the_old_file_survives(tmp_path, monkeypatch, kind, fails):
    WRITERS[kind](tmp_path, 1)
    before = contents(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    error = pytest.raises(OSError, match=rf"(File too large|No space left on device): '{tmp_path}/")
    if kind == "checkpoint":  # it warns, and the run goes on
        error = contextlib.nullcontext()
    with monkeypatch.context() as patch, error:
        if fails == "write":  # bytes beyond the first 100 are not written
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        else:
            patch.setattr(os, fails, disk_full)
        try:
            WRITERS[kind](tmp_path, 2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(tmp_path) == before
    WRITERS[kind](tmp_path, 2)
    assert contents(tmp_path) != before
    assert contents(tmp_path).keys() == before.keys()


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    replace_file(tmp_path / "a", b"old")
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(tmp_path / "a", b"new")
    assert contents(tmp_path) == {"a": b"old"}


def test_links_devices_modes_and_long_names(tmp_path):
    path, link, pipe = tmp_path / "a", tmp_path / "link", tmp_path / "pipe"
    replace_file(path, b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    replace_file(tmp_path / ("ü" * 120), b"long")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(pipe, b"through")
    assert os.read(reader, 20) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    replace_file("/dev/null", b"")
    raises("path must be a file's path, got 3", replace_file, 3, b"")
    with pytest.raises(OSError, match=str(tmp_path / "none")):
        replace_file(tmp_path / "none" / "a", b"")


def test_a_protected_file_is_not_replaced(tmp_path, monkeypatch):
    replace_file(tmp_path / "a", b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as for anybody but root
    with pytest.raises(PermissionError, match=str(tmp_path / "a")):
        replace_file(tmp_path / "a", b"new")
    assert contents(tmp_path) == {"a": b"old"}


@pytest.mark.parametrize(
    "content",
    ["[" * 200_000, '{"names": 1}', "[]", "\x00", '"' + "a" * 10_000],
)
def test_other_files_than_fits_give_one_short_line(tmp_path, content):
    path = tmp_path / "fit.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"fit\.json does not hold a fit: ") as caught:
        nj.load_fit(path)
    message = str(caught.value).replace(str(path), "")
    assert len(message) < 250
    assert "\n" not in message
