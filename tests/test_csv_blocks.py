"""Large CSV files by pyarrow: the same numbers and messages as cell by cell."""

import numpy as np
import pytest

from noisy_jax import csv_blocks
from noisy_jax.csv_files import Layout, csv_parts

ROWS, WIDTH = 1200, 3


def written(path, change=None, sep=","):
    """A file of numbers, in which `change` maps (row, column) to other cells."""
    numbers = np.random.default_rng(0).normal(size=(ROWS, WIDTH)) * [1, 1e300, 1e-300]
    numbers[:, 1] /= 1e300
    cells = [[repr(float(one)) for one in row] for row in numbers]
    for (row, column), cell in (change or {}).items():
        cells[row][column] = cell
    path.write_text("\n".join(map(sep.join, [["a", "b", "y"], *cells, []])), encoding="utf-8")
    return numbers


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(csv_blocks, "_BYTES", 2**13)
    monkeypatch.setattr(csv_blocks, "LEAST_BYTES", 1)


def both(path, monkeypatch, **options):
    """What is read by pyarrow and cell by cell: the parts, or the message."""
    found = []
    for least in (1, 10**9):
        monkeypatch.setattr(csv_blocks, "LEAST_BYTES", least)
        try:
            found.append([part for _, part in csv_parts(path, "y", **options)])
        except ValueError as error:
            found.append(str(error))
    return found


def no_cells(monkeypatch):
    """Reading cell by cell fails."""

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr("noisy_jax.csv_files._Numbers.of", fail)


@pytest.mark.parametrize("options", [{}, {"rows": 280}, {"rows": 280, "after": 760}])
def test_all_numbers_are_read_by_pyarrow(tmp_path, monkeypatch, options):
    numbers = written(path := tmp_path / "table.csv")
    no_cells(monkeypatch)
    parts = [part for _, part in csv_parts(path, "y", **options)]
    np.testing.assert_array_equal(np.concatenate(parts), numbers[options.get("after", 0) :])
    rows = options.get("rows", ROWS)
    assert all(len(part) == rows for part in parts[:-1])


def test_columns_and_missing_values_are_read_by_pyarrow(tmp_path, monkeypatch):
    numbers = written(path := tmp_path / "table.csv", {(5, 1): "NA", (7, 1): "-9", (9, 1): ""})
    no_cells(monkeypatch)
    ((names, part),) = csv_parts(path, "y", layout=Layout(features=["b"], missing=["-9"]))
    numbers[[5, 7, 9], 1] = np.nan
    assert names == ["b", "y"]
    np.testing.assert_array_equal(part, numbers[:, 1:])


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        *((cell, {}) for cell in ("text", "1_0", "inf", "nan", "", "1e999", "5,6")),
        *((cell, {}) for cell in (" 7.5 ", "\xa05", '"7.5"', '"7.5\n"')),
        ("1,5", {"sep": ";"}),
        ("0x10", {"missing": True}),
        ("n/a", {"layout": Layout(missing=["N/A"])}),
        ("nA", {"missing": True}),
        ("-nan", {"missing": True}),
        ("nan(3)", {"layout": Layout(missing=["-9"])}),
    ],
)
@pytest.mark.parametrize("place", [(1000, 0), (1000, 2)], ids=["feature", "target"])
def test_what_is_no_number_is_read_cell_by_cell(tmp_path, monkeypatch, cell, options, place):
    """The parts before are the same, and so is the message with the line."""
    options = dict(options)
    sep = options.pop("sep", ",")
    if sep != ",":
        options["layout"] = Layout(sep=sep)
    written(path := tmp_path / "table.csv", {place: cell}, sep)
    fast, slow = both(path, monkeypatch, rows=400, **options)
    if isinstance(slow, str):
        assert fast == slow
        assert "line 1002" in slow
    else:
        np.testing.assert_array_equal(np.concatenate(fast), np.concatenate(slow))


def test_files_with_too_few_rows_are_named(tmp_path, monkeypatch):
    written(path := tmp_path / "table.csv")
    fast, slow = both(path, monkeypatch, after=ROWS + 1)
    assert fast == slow
    assert "but 1201 were read before" in slow
    path.write_text("a,y\n" + "\n" * 9)
    fast, slow = both(path, monkeypatch)
    assert fast == slow == f"{path} has a header but no rows"


def test_without_pyarrow_files_are_read_cell_by_cell(tmp_path, monkeypatch):
    numbers = written(path := tmp_path / "table.csv")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.csv", None)
    ((_, part),) = csv_parts(path, "y")
    np.testing.assert_array_equal(part, numbers)


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_lines_may_have_other_ends(tmp_path, monkeypatch, end):
    path = tmp_path / "table.csv"
    path.write_bytes(f"a,y{end}1,2{end}3,4\n5,6".encode())
    for parts in both(path, monkeypatch):
        np.testing.assert_array_equal(np.concatenate(parts), [[1, 2], [3, 4], [5, 6]])


def test_a_header_may_have_several_lines(tmp_path, monkeypatch):
    (path := tmp_path / "table.csv").write_text('"a\n(m)",y\n1,2\n3,4\n')
    no_cells(monkeypatch)
    ((names, part),) = csv_parts(path, "y")
    assert names == ["a\n(m)", "y"]
    np.testing.assert_array_equal(part, [[1, 2], [3, 4]])
