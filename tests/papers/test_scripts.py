"""What all scripts in colabs/papers/ have."""

import importlib

import pytest

from noisy_jax.__main__ import PAPERS
from tests.papers import FOLDER, main

SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if "__main__" in path.read_text("utf-8"))
NAMES = [path.stem for path in SCRIPTS]


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_each_script_runs_its_study_and_has_a_fast_mode(path):
    last = '\n\n\nif __name__ == "__main__":\n    sys.exit(script(Settings, run))\n'
    assert path.read_text("utf-8").endswith(last)
    assert importlib.import_module(path.stem).Settings.fast()


def test_the_command_line_knows_the_scripts():
    assert list(PAPERS) == NAMES


def test_a_module_without_a_command_line_belongs_to_a_script():
    parts = {path.stem for path in FOLDER.glob("*.py")} - {*NAMES}
    assert [part for part in parts if not part.startswith(tuple(f"{n}_" for n in NAMES))] == []


@pytest.mark.parametrize("name", NAMES)
def test_help_has_valid_examples_and_the_defaults(name, capsys, monkeypatch):
    """Each example is parsed; the study itself is not run."""
    module = importlib.import_module(name)
    with pytest.raises(SystemExit) as stopped:
        main(name, "--help")
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    examples = module.Settings.examples()
    assert examples
    assert all(example in printed for example in examples)
    assert "--out FOLDER" in printed
    assert "(default: " in printed
    seen = []
    monkeypatch.setattr("noisy_jax.command.runner.run", lambda *given: seen.append(given[0]) or 0)
    for example in examples:
        python, script, *arguments = example.split()
        assert (python, script) == ("python", f"colabs/papers/{name}.py")
        assert main(name, *arguments) == 0
    assert {*seen} == {name}


# Each script's own messages.
BAD = {
    "contamination": [
        ("--shares 0.2 0.1", "--shares must increase within [0, 0.5), got [0.2, 0.1]"),
        ("--rows 5", "--rows must be a whole number of at least 10, got 5"),
        ("--noise-variance 0.25", "--noise-variance must be below 0.25, got 0.25"),
    ],
    "drift": [
        ("--horizon 0", "--horizon must be a whole number of at least 1, got 0"),
        ("--seeds 1", "--seeds must be a whole number of at least 2, got 1"),
    ],
    "kernel": [
        ("--data boston", "unknown data 'boston'; known are teacher, diabetes,"),
        ("--data teacher teacher", "--data must differ in name, got teacher teacher"),
        ("--target y", "--target goes with a CSV file; the target of diabetes is fixed"),
        ("--noise-variance 1", "no surrogate exists"),
        ("--noise-variance 0.6", "--learners parallel_worlds uncorrected_kernel clean"),
        ("--noise laplace --learners cloned", "cloned needs --noise gaussian"),
        ("--noise laplace --kernel rational", "noise"),
        ("--kernel rational --cutoff 5", "cutoff"),
        ("--horizons 0 64", "each of --horizons must be a whole number of at least 1, got 0"),
    ],
    "novelty": [
        ("--nu 1", "--nu must be above 0 and below 1, got 1.0"),
        ("--train 1797", "--train must be below 1797, got 1797: some digits must be unseen"),
        ("--rounds 99", "--rounds must be a whole number of at least 500, got 99"),
    ],
    "one_copy": [("--horizons 64 32", "--horizons must be at least one and increasing")],
    "scale": [
        ("--seeds 1", "--seeds must be a whole number of at least 2, got 1"),
        ("--horizons 64 9000", "--horizons above 8192 must be multiples of it, got 9000"),
    ],
    "unknown_noise": [
        ("--data teacher --noise-variance 0.5", "contains 2 times the variance of the noise"),
        ("--data teacher --offset 1.2", "--offset must be above the largest E‖x̃‖² = 1.3"),
    ],
    "worlds": [
        ("--cutoffs 2 10", "--cutoffs must be below d/(2σ²) = 10, got 10"),
    ],
    "tightness": [
        ("--variances -1", "--variances must be finite and >= 0, but --variances[0] is -1.0"),
        ("--learners nobody", "each of --learners must be 'two_copies', "),
    ],
}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [(name, *pair) for name, pairs in BAD.items() for pair in pairs],
)
def test_bad_input_is_one_clear_line(tmp_path, capsys, name, arguments, message):
    assert main(name, "--fast", *arguments.split(), "--out", str(tmp_path)) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert message in error


def test_a_folder_that_cannot_be_written_is_named_before_the_work(capsys):
    assert main("kernel", "--out", f"{__file__}/below") == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: cannot write to the folder {__file__}/below")
