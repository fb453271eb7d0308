import subprocess
import sys

import pytest

from noisy_jax.__main__ import COMMANDS, main


def test_help_lists_the_commands_with_examples():
    done = subprocess.run(
        [sys.executable, "-m", "noisy_jax", "--help"], capture_output=True, text=True, check=True
    )
    assert "--data houses.csv --target price" in done.stdout
    for name, command in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert command.SUMMARY in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert COMMANDS[name].EXAMPLES in printed
    assert COMMANDS[name].DESCRIPTION.strip() in printed
    assert "--out FOLDER" in printed


def test_without_a_name_the_linear_command_runs(capsys):
    for arguments in (["--variance", "-1"], ["linear", "--variance", "-1"]):
        assert main(arguments) == 2
        assert "--variance must be positive, got -1.0" in capsys.readouterr().err


def test_unknown_command_lists_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["kernal"])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert "kernal" in error
    assert all(name in error for name in COMMANDS)


def test_a_missing_library_is_named_with_the_extra_that_brings_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["worlds"]) == 2
    assert "pip install 'noisy_jax[demo]'" in capsys.readouterr().err
