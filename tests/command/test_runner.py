import dataclasses
import sys

import pytest

from noisy_jax.command.runner import Report, script
from noisy_jax.command.settings import BaseSettings, option
from noisy_jax.plots.style import panels
from noisy_jax.reports.tables import Table
from tests.errors import disk_full
from tests.files import names_in


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """One number."""

    number: float = option(0.135, "that is printed", fast=0.5)


def run(settings):
    table = Table([{"number": settings.number}], [("number", "{number:g}")])
    yield Report(
        None, {"one": table}, {"one": lambda: panels(None, 1, width=1, height=1)[0].figure}
    )


@pytest.fixture
def status(tmp_path):
    return lambda *arguments: script(Settings, run, [*arguments, "--out", str(tmp_path)])


def test_a_script_prints_and_saves(status, tmp_path, capsys):
    assert status() == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Study test_runner; results go to {tmp_path}/",
        *("", "number", " 0.135", ""),
        f"Saved in {tmp_path}/",
    ]
    assert names_in(tmp_path) == {"one.csv", "one.png", "config.json"}
    assert status("--fast") == 0
    assert "0.5" in capsys.readouterr().out


def test_a_missing_library_is_named_with_its_extra(status, capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert status() == 2
    printed, error = capsys.readouterr()
    assert "pip install 'noisy_jax[demo]'" in error
    assert printed == f"Study test_runner; results go to {tmp_path}/\n"  # before it is imported


def test_a_full_disk_is_one_line_after_the_table(status, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Table, "save", disk_full)
    assert status() == 1
    printed, error = capsys.readouterr()
    assert "0.135" in printed
    assert "Saved" not in printed
    (line,) = error.splitlines()
    assert line.startswith(f"error: cannot save the results in {tmp_path}: ")
    assert "No space left on device" in line


def test_a_picture_that_cannot_be_written_leaves_table_and_data(status, tmp_path, capsys):
    (tmp_path / "one.png").mkdir()
    assert status() == 1
    assert "0.135" in capsys.readouterr().out
    assert names_in(tmp_path) == {"one.csv", "config.json", "one.png"}
