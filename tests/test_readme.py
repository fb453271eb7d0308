"""The README's examples run as they stand."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_examples_run(capsys):
    examples = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert max(len(example.splitlines()) for example in examples[:3]) <= 16
    names = {}
    exec(examples[0], names)
    printed = re.search(r"```\n(y on 2 features.*?)```", TEXT, re.DOTALL)
    shown = [line.split() for line in printed.group(1).splitlines()]
    found = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert found[:7] == shown[:7]
    for example in examples[1:4]:
        exec(example, names)
    table = capsys.readouterr().out
    assert len(examples[4].splitlines()) <= 12
    exec(examples[4], names)
    printed = re.search(r"```\n(\[.*?)```", TEXT, re.DOTALL)
    assert capsys.readouterr().out.split() == printed.group(1).split()
    for example in examples[5:]:
        exec(example, names)
    for name in ("two copies", "corrected leader", "uncorrected"):
        assert name in table
    assert names["sweep"].shape == (8, 16_384)


def test_set_up_commands_are_one_line_each():
    assert 'pip install -e ".[demo]" && python -m noisy_jax\n' in TEXT
    assert 'pip install -e ".[test]" && pytest -n auto\n' in TEXT


def test_pictures_exist():
    for path in re.findall(r"!\[.*?\]\((.*?)\)", TEXT):
        assert (Path(__file__).parent.parent / path).is_file()
