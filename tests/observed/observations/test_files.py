"""CSV files as people have them are read rightly, or refused with one clear line."""

import gzip
import io
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import csv
from tests.errors import raises

# What a file of one cell in this writing, among other numbers, is read as.
NUMBERS = {
    "plain": "5",
    "with spaces": " 5.0 ",
    "quoted with a line break": '"5\n"',
}
# Cells that pandas takes for text, or for a missing value, and words of the message.
NO_NUMBERS = {
    "underscore": ("1_0", "a plain number"),
    "decimal comma": ('"1,5"', "decimal=','"),
    "hexadecimal": ("0x10", "a plain number"),
    "unit": ("5 kg", "encode text first"),
    "date": ("2020-01-31", "pass days, or years"),
    "hyphen": ("-", r"missing=\[…\]"),
    "infinite": ("inf", "is inf"),
    "empty": ("", r"missing=\[\]"),
    "spreadsheet's #N/A": ("#N/A", r"missing=\[\]"),
}
ROWS = 12  # with a cell in row 7


def lines_of(cell, column):
    """A header and rows, of which row 7 has this cell among the features or as the target."""
    x, y = (np.arange(ROWS) * 7 % 5 + 0.5).tolist(), (np.arange(ROWS) * 5 % 7 + 0.25).tolist()
    rows = [[str(one), str(other)] for one, other in zip(x, y, strict=True)]
    rows[7][column] = cell
    return "a,y\n" + "".join(",".join(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("mark", "end"),
    [("", "\n"), ("\ufeff", "\r\n"), ("", "\r")],
    ids=["unix", "windows", "old mac"],
)
@pytest.mark.parametrize("cell", NUMBERS.values(), ids=NUMBERS)
def test_numbers_are_read(tmp_path, cell, mark, end):
    path, text = tmp_path / "table.csv", mark + lines_of(cell, 0)
    path.write_bytes(text.replace("\n", end).encode())
    table = csv(path, target="y", noise=0.1)
    assert table.names == ("a",)
    np.testing.assert_array_equal(
        table.x[:, 0, 0], [5 if k == 7 else k * 7 % 5 + 0.5 for k in range(12)]
    )
    np.testing.assert_array_equal(table.y, np.arange(ROWS) * 5 % 7 + 0.25)


@pytest.mark.parametrize("column", [0, 1], ids=["feature", "target"])
@pytest.mark.parametrize(("cell", "words"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_a_cell_that_is_no_number_is_named_with_what_helps(tmp_path, cell, words, column):
    """In an exact column, the cell must not make categories of the numbers."""
    path = tmp_path / "table.csv"
    path.write_text(lines_of(cell, column), encoding="utf-8")
    with pytest.raises(ValueError, match=words) as caught:
        csv(path, target="y", noise={})
    message = str(caught.value)
    assert f"'{'ay'[column]}'" in message
    assert "row 7" in message or "[7]" in message
    assert cell.strip('"') in message or "lacks values" in message or "is inf" in message
    assert "\n" not in message


X = "a,b,y\n1,5,2\n3,6,4\n7,8,9\n"
EURO, NAMED = X.replace(",", ";"), X.replace("\n", "\nr,", 3)
LABELLED = "id,a,y\n" + "".join(f"{k},{k * 7 % 12},1\n" for k in range(12))
TABLE = [[1, 5], [3, 6], [7, 8]], [2, 4, 9]
READ = {
    "commas": (X, {}, TABLE),
    "semicolons": (X.replace(",", ";"), {"sep": ";"}, TABLE),
    "spaces in the header": (X.replace("a,b,y", " a, b ,y "), {}, TABLE),
    "decimal commas": (EURO.replace("1;", "1,0;"), {"sep": ";", "decimal": ","}, TABLE),
    "dot thousands": (
        EURO.replace("7;8", "1.007,5;8"),
        {"sep": ";", "decimal": ",", "thousands": "."},
        ([[1, 5], [3, 6], [1007.5, 8]], [2, 4, 9]),
    ),
    "names of rows without a name": (NAMED, {"index_col": 0}, TABLE),
    "true and false": (
        X.replace(",5", ",True").replace(",6", ",False").replace(",8", ",True"),
        {},
        ([[1, 1], [3, 0], [7, 1]], [2, 4, 9]),
    ),
    }  # fmt: skip


@pytest.mark.parametrize(("text", "options", "wanted"), READ.values(), ids=READ)
def test_files_are_read(tmp_path, text, options, wanted):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    table = csv(path, **{"target": "y", "noise": 0.1} | options)
    np.testing.assert_array_equal(table.x[:, 0], wanted[0])
    np.testing.assert_array_equal(table.y, wanted[1])


REFUSED = {
    "empty": ("", {}, "is empty"),
    "only a header": ("a,b,y\n", {}, "has a header but no rows"),
    "no such column": (X, {"target": "z"}, "has no column named 'z'; it has 'a', 'b', 'y'$"),
    "another separator": (X.replace(",", ";"), {}, r"named 'y'; .* by ';' \(the option sep\)"),
    "no header": ("0.5,2.5\n3,4\n", {}, "has numbers in its first line, which must name"),
    "two targets": (X.replace("a", "y"), {}, "has more than one column named 'y'"),
    "separators behind lines": (X.replace("\n", ",\n"), {}, "column 'Unnamed: 3'|lacks values"),
    "more cells than names": (X.replace("a,b,y", "a,y"), {}, "has more cells in a line than names"),
    "names of rows without a name": (NAMED, {}, "give index_col=0"),
    "columns by usecols": (X, {"usecols": ["a", "y"]}, "leave out usecols"),
    "a long line": (X.replace("3,6", "3,6,6"), {}, "is no table .*Expected 3 fields in line 3"),
    "a short line": (X.replace("7,8,9", "7"), {}, r"lacks values of 'b', 'y' in 1 of 3 rows"),
    "latin-1": (X.replace("a", "ä").encode("latin-1"), {}, "name its encoding, as encoding='latin"),
    "utf-16 without a mark": (X.encode("utf-16-le"), {}, "named 'y'|has a NUL"),
    "a NUL in a name": (X.replace("a", "a\0"), {}, "has a NUL in the name"),
    "numbers of children": ("k,a,y\n0,1,2\n1,2,2\n3+,5,1\n", {"noise": {"a": 0.1}},
                            r"'k' is text because of '3\+' in row 2 .*pandas Categorical"),
    "names of people": (LABELLED.replace("\n", "\np", 12), {"noise": {"a": 1}},
                        "another text in each row, which labels the rows"),
    "codes by missing and by na_values": (X, {"missing": [], "na_values": ["-"]}, "not by both"),
    "codes of no cell": (X, {"missing": [None]}, "missing must be a text or a number, got"),
    "every row lacks a value": (X.replace(",5", ",").replace(",6", ",").replace(",8", ","),
                                {"missing": []}, "in each row a value is missing, of 'b'"),
    "features and drop": (X, {"features": ["a"], "drop": ["b"]}, "by features or by drop, not"),
    "parts": (X, {"chunksize": 2}, r"for parts of a file write nj\.observations\.chunks"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_files_are_refused_clearly(tmp_path, content, options, message):
    path = tmp_path / "table.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    raises(message, csv, path, **{"target": "y", "noise": 0.1} | options)


def test_encodings_compression_and_open_files(tmp_path):
    text = "größe,y\n1,2\n3,5\n"
    (tmp_path / "latin.csv").write_text(text, encoding="latin-1")
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(text.encode()))
    latin, packed = tmp_path / "latin.csv", str(tmp_path / "table.csv.gz")
    for path, options in ((latin, {"encoding": "latin-1"}), (packed, {}), (io.StringIO(text), {})):
        table = csv(path, target="y", noise=0.1, **options)
        assert table.names == ("größe",)
        assert table.y.tolist() == [2, 5]
    raises("the file has more than one column", csv, io.StringIO("y,y\n1,2\n"), target="y", noise=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nois'"):
        csv(io.StringIO(text), target="y", nois=0.1)
    with pytest.raises(
        TypeError, match=r"std_error is now noise=\{'x1': nj.sd\(column='x1_sd'\)\}"
    ):
        csv(io.StringIO(text), target="y", std_error={"größe": "sd"})


def test_without_pandas_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"read by pandas: pip install pandas$"):
        csv("table.csv", target="y", noise=0.1)


def test_a_file_is_its_frame(tmp_path, rng):
    """Long format, standard deviations by row, indicators, reliability, unequal replicates."""
    n = 40
    who = np.repeat([f"p{k}" for k in range(n // 2)], 2)
    frame = pd.DataFrame(
        {"who": who, "a": rng.normal(size=n), "b": rng.normal(size=n), "y": np.arange(n) // 2 % 7}
    )
    wide = pd.DataFrame(rng.normal(size=(n, 4)), columns=["a", "a2", "a3", "y"])
    wide.loc[3, "a3"] = np.nan
    wide["sex"], wide["sd"] = np.where(wide["a"] > 0, "m", "f"), np.abs(wide["a2"]) + 0.1
    cases = [
        (frame, {"subject": "who", "replicates": ["a", "b"]}),
        (wide, {"replicates": {"a": ["a2", "a3"]}, "drop": ["sd"]}),
        (wide, {"noise": {"a": nj.sd(column="sd")}, "drop": ["a2", "a3"]}),
        (wide, {"noise": {"a": nj.reliability(0.9)}, "features": ["sex", "a"]}),
        (wide, {"noise": {"a": 0.1, "a2": nj.sd(0.2)}, "features": ["a", "a2"],
                "products": [("a", "a2")]}),
    ]  # fmt: skip
    for number, (rows, options) in enumerate(cases):
        rows.to_csv(tmp_path / "rows.csv", index=False)
        found = csv(tmp_path / "rows.csv", target="y", **options)
        wanted = nj.table(rows, target="y", **options)
        assert (found.names, found.references) == (wanted.names, wanted.references), number
        assert found.index.equals(wanted.index)
        for name in ("x", "y") if wanted.cov is None else ("x", "y", "cov"):
            one, other = getattr(found, name), getattr(wanted, name)
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


def test_messages_do_not_repeat_long_cells_and_headers(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"a,y\n{'long ' * 10_000},2\n")
    with pytest.raises(ValueError, match="'long long") as caught:
        csv(path, target="y", noise=0.1)
    assert len(str(caught.value)) < 330 + len(str(path))
    names = [f"x{i}" for i in range(5000)]
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * 5000) + "\n")
    with pytest.raises(ValueError, match=r"named 'y'; it has 'x0', .*\(5,000 in all\)") as caught:
        csv(path, target="y", noise=0.1)
    assert len(str(caught.value)) < 250 + len(str(path))


def test_a_missing_replicate_is_no_missing_value(tmp_path):
    (tmp_path / "rows.csv").write_text("a,a2,y\n1,2,3\n2,NA,3\nNA,3,1\nNA,-,2\n")
    options = {"target": "y", "replicates": {"a": "a2"}, "noise": {"a": 0.1}}
    with pytest.warns(UserWarning, match="1 of 4 rows are left out"):
        table = csv(tmp_path / "rows.csv", missing="-", **options)
    assert table.x.ravel().tolist() == [1.5, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (tmp_path / "rows.csv").write_text("a,a2,y\n1,2,3\n2,NA,3\nNA,3,1\n")
        assert csv(tmp_path / "rows.csv", **options).x.ravel().tolist() == [1.5, 2, 3]
