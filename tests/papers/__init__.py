"""Tests of the scripts in colabs/papers/, which are imported from there by their names."""

import contextlib
import importlib
import io
import sys
from pathlib import Path

from noisy_jax.command import runner

FOLDER = Path(__file__).parents[2] / "colabs" / "papers"
sys.path.insert(0, str(FOLDER))


def printed_by(name, *arguments):
    """What a script prints that ends well."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        assert main(name, *arguments) == 0
    return text.getvalue()


def main(name, *arguments):
    """The exit status of a script with these arguments, run in this process."""
    module = importlib.import_module(name)
    return runner.script(module.Settings, module.run, arguments)
