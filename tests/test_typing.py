"""The programs of tests/typing, which pyright checks, run."""

import runpy
from pathlib import Path

import pytest

PATHS = sorted(Path(__file__).parent.glob("typing/*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_program_runs(path, capsys):
    runpy.run_path(str(path))
    assert capsys.readouterr().out
