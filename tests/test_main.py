import pytest

from noisy_jax.__main__ import STUDIES, main, study
from tests.running import printed

NAMES = list(STUDIES)


def helped(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_lists_the_studies_with_examples(capsys):
    text = helped(capsys)
    assert "--data houses.csv --target price" in text
    assert "  python colabs/papers/NAME.py\n" in text
    for name in STUDIES:
        assert f"  {name} " in text
        assert study(name).Settings.summary() in text


@pytest.mark.parametrize("name", NAMES)
def test_each_study_has_help_with_an_example_and_its_defaults(name, capsys):
    text, examples = helped(capsys, name), study(name).Settings.examples()
    assert examples
    assert all(example in text for example in [*examples, "--out FOLDER", "(default: "])


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_in_the_help_are_valid(name, monkeypatch):
    """Each example is parsed; the study itself is not run."""
    seen = []
    monkeypatch.setattr("noisy_jax.command.runner.run", lambda *given: seen.append(given[0]) or 0)
    for example in study(name).Settings.examples():
        assert main(example.split()[3:]) == 0
    assert {*seen} == {name}


def test_without_a_name_the_linear_study_runs(capsys, tmp_path):
    assert main(["--noise-variance", "-1", "--out", str(tmp_path)]) == 2
    assert "--noise-variance must be positive and finite, got -1.0" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["kernel", "drift"])
def test_the_name_of_a_script_says_what_to_write(name, capsys):
    assert main([name, "--fast"]) == 2
    says = f"error: {name} is a script of the repository: python colabs/papers/{name}.py\n"
    assert capsys.readouterr().err == says


def test_an_unknown_study_lists_the_known_ones_and_the_scripts(capsys):
    name = "kernal"
    assert main([name]) == 2
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == f"error: unknown study {name!r}; known are {', '.join(NAMES)}"
    assert "  python colabs/papers/NAME.py" in rest
    assert "drift" in "\n".join(rest)


@pytest.mark.slow
def test_nothing_that_a_study_may_not_need_is_imported_before_the_first_line():
    late = ["matplotlib", "sklearn", "scipy.special", "tqdm", "pandas"]
    code = (
        "import sys; from noisy_jax.__main__ import parser; assert 'jax' not in sys.modules; "
        f"parser(); print({{*{late}}} & {{*sys.modules}})"
    )
    assert printed("-c", code) == "set()\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--data boston", "unknown data 'boston'; known are diabetes, breast_cancer, digits"),
        ("--data missing.csv --target y", "there is no file missing.csv"),
        ("--data table.csv", "name the target's column of table.csv: --target COLUMN"),
        ("--noise-variance -1", "got -1.0: the learner clean of colabs/papers/kernel.py shows"),
        ("--seed -1", "--seed must be a whole number from 0 to 2**32 − 1, got -1"),
        ("--horizons 64 32", "--horizons must be at least one and increasing, got [64, 32]"),
        ("--radius 0", "--radius must be positive and finite, got 0.0"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert main(["linear", "--horizons", "32", *arguments.split()]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert message in error


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_cannot_be_written_is_named_before_the_work(name, capsys, monkeypatch):
    monkeypatch.setattr(study(name), "run", None)  # is not reached
    assert main([name, "--out", f"{__file__}/below"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: cannot write to the folder {__file__}/below")
