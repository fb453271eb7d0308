"""The programs of tests/typing, which pyright checks, run."""

import runpy
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", sorted(Path(__file__).parent.glob("typing/*.py")), ids=lambda p: p.stem
)
def test_the_program_runs(path, capsys):
    runpy.run_path(str(path))
    assert capsys.readouterr().out
