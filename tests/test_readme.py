"""The examples of the README, of the guides and of CONTRIBUTING.md run as they stand."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```\n(.*?)```)?", re.DOTALL)
GUIDES = ["practitioner", "recipes", "engineer", "researcher"]
PAGES = ["README.md", *(f"docs/{page}.md" for page in GUIDES)]


def same(word, shown):
    """Whether two words are equal, or numbers that differ by rounding or by the processor."""
    number = re.compile(r"([^\d+−-]*)([+-]?[\d,]*\.?\d+)(.*)")
    one, two = number.fullmatch(word), number.fullmatch(shown)
    if not (one and two and one[1] == two[1] and one[3] == two[3]):
        return word == shown
    one, two = (float(each[2].replace(",", "")) for each in (one, two))
    return one == pytest.approx(two, rel=0.02, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_examples_run_and_print_what_is_shown(page, capsys):
    examples = EXAMPLE.findall((ROOT / page).read_text("utf-8"))
    assert len(examples) >= 2
    names = {}
    for code, shown in examples:
        names = {} if page == "README.md" else names  # each block of the README stands alone
        exec(code, names)
        printed = capsys.readouterr().out.split()
        assert len(printed) == len(shown.split()), code
        assert all(map(same, printed, shown.split())), f"{code}\nprints {' '.join(printed)}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["learner", "noise distribution", "loss", "kernel", "world", "figure"]
)
def test_worked_examples_of_contributing_run(name):
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split(f"\n## Add a {name}\n")[1]
    code = EXAMPLE.findall(text)[0][0]
    assert code.count("\n") <= 60
    exec(code, {"__name__": "example"})


def test_the_first_screen():
    assert len(TEXT.splitlines()) <= 220
    first = EXAMPLE.findall(TEXT.split("## Which method?")[0])
    assert len(first) == 4
    assert all(shown for _, shown in first)
    assert max(len(code.splitlines()) for code, _ in first) <= 35


def test_set_up_commands_are_one_line_each():
    assert 'pip install -e ".[demo]" && python -m noisy_jax\n' in TEXT
    assert 'pip install -e ".[test]" && pytest -n auto\n' in TEXT


def test_files_that_are_linked_exist():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#\s:]+)[^):]*\)", page.read_text("utf-8")):
            assert (page.parent / link).exists() or link.startswith(("api/", "colabs/")), link


def test_the_chooser_fits_a_phone():
    rows = re.findall(r"^\|.*\|$", TEXT.split("## Which method?")[1].split("## Speed")[0], re.M)
    assert len(rows) > 5
    assert {row.count("|") for row in rows} == {5}  # four columns
