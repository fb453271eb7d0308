import csv
import sys

import pandas as pd
import pytest

from noisy_jax.reports.tables import Table
from tests.files import rows_of


def test_a_table_writes_no_formulas(tmp_path):
    names = ["=1+1", "+a", "-a", "@a", "a=1", "plain"]
    table = Table([{"name": name, "number": -1.5} for name in names], [("name", "{name}")])
    table.save(tmp_path / "names.csv")
    rows = rows_of(tmp_path / "names.csv")
    assert [row["name"] for row in rows] == ["'=1+1", "'+a", "'-a", "'@a", "a=1", "plain"]
    assert [float(row["number"]) for row in rows] == [-1.5] * 6
    Table([dict.fromkeys(names, 1.0)], []).save(tmp_path / "headers.csv")
    assert [*rows_of(tmp_path / "headers.csv")[0]] == [row["name"] for row in rows]


@pytest.mark.parametrize("columns", [[("name", "{a}"), ("b", "{b:.2f}")], []])
def test_a_table_without_rows_is_printed_saved_and_a_frame(tmp_path, columns):
    table, headings = Table([], columns), [heading for heading, _ in columns]
    assert str(table).split() == headings
    assert table._repr_html_().count("<th ") == len(headings)
    assert len(table.to_frame()) == 0
    table.save(tmp_path / "empty.csv")
    with open(tmp_path / "empty.csv", newline="", encoding="utf-8") as file:
        assert [*csv.reader(file)] == [headings]


def test_a_table_aligns_numbers_to_the_right_and_leaves_out_empty_columns():
    rows = [{"a": "x", "b": 1.0, "c": ""}, {"a": "long", "b": float("nan"), "c": ""}]
    columns = [("name", "{a}"), ("b", "{b:.2f}"), ("", "{c}"), ("b", lambda row: "± 5%")]
    lines = str(Table(rows, columns, "title", below="one\ntwo")).splitlines()
    assert lines[:3] == ["title", "", "name     b     b"]
    assert lines[3:] == ["x     1.00  ± 5%", "long   nan  ± 5%", "one", "two"]


def test_html_has_what_is_printed_and_escapes_it():
    rows = [{"a": "<script>alert(1)</script>", "b": 1.0}, {"a": "&", "b": -2.5}, {"a": "", "b": 0}]
    columns = [("<b>", "{a}"), ("n", "{b:.1f}"), ("", "")]
    page = Table(rows, columns, "<i>title", rows[:2], "a < b")._repr_html_()
    left, right = 'style="text-align: left"', 'style="text-align: right"'
    assert page == (
        "<p>&lt;i&gt;title</p><table>"
        f"<thead><tr><th {left}>&lt;b&gt;</th><th {right}>n</th></tr></thead><tbody>"
        f"<tr><td {left}>&lt;script&gt;alert(1)&lt;/script&gt;</td><td {right}>1.0</td></tr>"
        f"<tr><td {left}>&amp;</td><td {right}>-2.5</td></tr>"
        "</tbody></table><pre>a &lt; b</pre>"
    )


def test_a_frame_has_all_columns_of_all_rows(monkeypatch):
    rows = [{"a": "x", "b": 1.0}, {"a": "y", "b": 2.0}]
    table = Table(rows, [("a", "{a}")], shown=rows[:1])
    pd.testing.assert_frame_equal(table.to_frame(), pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2]}))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas \(pip install pandas\); the same values"):
        table.to_frame()
