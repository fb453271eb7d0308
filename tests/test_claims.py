"""CLAIMS.md and the tests agree: each row has tests that carry its mark, each mark has its row.

A test shows a claim by `@pytest.mark.claim("DA-Lemma1", …)`. `python -m tests.test_claims` writes
the last column of CLAIMS.md (the files of these tests) again. tests/conftest.py makes a claim's
test fail where it is skipped; that no such test is deselected for good is tested here.
"""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CLAIMS.md"
NOT_COMPUTABLE = {"SQ-Thm13", "SQ-Thm6"}
"""Claims without a test."""


@functools.cache
def rows():
    """The cells of each claim's row, by identifier."""
    lines = re.findall(r"^\| `.*$", PAGE.read_text("utf-8"), re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {row[0].strip("`"): row for row in cells}


def is_claim(node):
    """Whether a node of a syntax tree is `pytest.mark.claim(…)`."""
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return call and node.func.attr == "claim"


@functools.cache
def marked_tests(folder=ROOT / "tests"):
    """(file in `folder`, test, claims) of each test with the mark, slow ones last.

    Raises:
        ValueError: a mark that is not on a test, or on one that pytest never runs.
    """
    found = []
    for path in sorted(folder.rglob("*.py")):
        name, tree = path.relative_to(folder).as_posix(), ast.parse(path.read_text("utf-8"))
        marks = 0
        file_marks = [node for node in tree.body if ast.unparse(node).startswith("pytestmark")]
        for test in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            own = [mark for mark in test.decorator_list if is_claim(mark)]
            if not own:
                continue
            other = " ".join(map(ast.unparse, [*test.decorator_list, *file_marks]))
            collected = path.name.startswith("test_") and test.name.startswith("test_")
            skipped = re.search(r"\.(skip|skipif|xfail)\b", other)
            if not collected or "benchmarks" in name or skipped:
                raise ValueError(f"{name}::{test.name} shows a claim, but pytest does not run it")
            marks += len(own)
            claims = [claim.value for mark in own for claim in mark.args]
            found.append((bool(re.search(r"\.(slow|long)\b", other)), name, test.name, claims))
        if marks != sum(map(is_claim, ast.walk(tree))):
            raise ValueError(f"{name}: pytest.mark.claim must stand above a test function")
    return [tuple(row[1:]) for row in sorted(found, key=lambda row: row[0])]


def last_column():
    """What the last cell of each row should be: files of its tests, then sections of notebooks."""
    files = {}
    for file, _, claims in marked_tests():
        for claim in claims:
            files.setdefault(claim, {})[file] = None
    sections = {name: re.findall(r"\w+\.ipynb \d+", row[-1]) for name, row in rows().items()}
    return {name: ", ".join([*sorted(files.get(name, ())), *sections[name]]) for name in sections}


@pytest.mark.slow
def test_each_mark_has_a_row_whose_last_column_names_the_file_and_each_row_a_test():
    marked = {claim for _, _, claims in marked_tests() for claim in claims}
    assert marked - set(rows()) == set(), "these marks have no row in CLAIMS.md"
    assert set(rows()) - marked == NOT_COMPUTABLE, "these rows of CLAIMS.md have no test"
    written = {name: row[-1] for name, row in rows().items()}
    assert written == last_column(), "`python -m tests.test_claims` repairs the column"


def test_rows_are_complete():
    text = PAGE.read_text("utf-8")
    assert len(rows()) == len(re.findall(r"^\| `", text, re.MULTILINE))  # each claim once
    statuses = re.findall(r"^\| ([a-z ]+) \|", text, re.MULTILINE)
    for name, (_, where, status, claim, note, _) in rows().items():
        assert where, name
        assert status in statuses, name
        assert claim.endswith("."), name
        assert note.endswith(".") or (not note and status == "reproduced"), name
        assert (status == "not in the five papers") == name.startswith("EXT-"), name
    assert {rows()[name][2] for name in NOT_COMPUTABLE} == {"not computable"}


def test_notebooks_have_the_sections_that_rows_name():
    for name, row in rows().items():
        for book, section in re.findall(r"(\w+\.ipynb) (\d+)", row[-1]):
            text = (ROOT / "colabs" / book).read_text("utf-8")
            assert f'"## {section}. ' in text, f"{name}: {book} has no section {section}"


def test_earlier_work_is_listed():
    text, listed = PAGE.read_text("utf-8").split("## Earlier work")
    for name, year in re.findall(r"([\w-]+)(?: et al\.)? \((\d{4})\)", text):
        assert re.search(rf"^- .*{name}.*\({year}\)", listed, re.MULTILINE), (name, year)


def test_ci_runs_what_the_default_options_deselect():
    options = (ROOT / "pyproject.toml").read_text("utf-8")
    deselected = "not slow and not long and not notebook and not site"
    assert f"--ignore=tests/benchmarks -m '{deselected}'\"" in options
    assert options.count("--ignore") == 1
    assert "--deselect" not in options
    commands = (ROOT / ".ci" / "run").read_text("utf-8")
    for marked in ("", ' -m "slow and not long"', " -m long", " --dist load -m notebook"):
        assert re.search(rf"^stage .* pytest -n auto{marked} --durations=10$", commands, re.M)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@pytest.mark.claim('A')\n@pytest.mark.skipif(x)\ndef test_a(): ...", "does not run"),
        ("@pytest.mark.claim('A')\ndef a_test(): ...", "does not run"),
        ("pytestmark = pytest.mark.skip\n@pytest.mark.claim('A')\ndef test_a(): ...", "not run"),
        ("pytestmark = pytest.mark.claim('A')\ndef test_a(): ...", "must stand above a test"),
    ],
)
def test_marks_that_show_nothing_are_found(tmp_path, text, message):
    (tmp_path / "test_x.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        marked_tests(tmp_path)


if __name__ == "__main__":
    text, cells = PAGE.read_text("utf-8"), last_column()
    for line in re.findall(r"^\| `.*$", text, re.MULTILINE):
        cell = cells[line.split("`")[1]]
        row = line.removesuffix("|").rstrip().rsplit(" |", 1)[0]
        text = text.replace(line, f"{row} | {cell} |" if cell else f"{row} | |")
    PAGE.write_text(text, "utf-8")
