"""The README's examples run as they stand."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_examples_run(capsys):
    first, *others = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len([line for line in first.splitlines() if line.strip()]) <= 15
    names = {}
    for example in (first, *others):
        exec(example, names)
    table = capsys.readouterr().out
    assert "two copies" in table
    assert "uncorrected" in table
    assert names["sweep"].shape == (8, 16_384)


def test_set_up_commands_are_one_line_each():
    assert 'pip install -e ".[demo]" && python -m noisy_jax\n' in TEXT
    assert 'pip install -e ".[test]" && pytest\n' in TEXT


def test_pictures_exist():
    for path in re.findall(r"!\[.*?\]\((.*?)\)", TEXT):
        assert (Path(__file__).parent.parent / path).is_file()
