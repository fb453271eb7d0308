"""Tables of results: how they are printed and saved."""

from noisy_jax.tables import Table
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


def test_a_table_aligns_numbers_to_the_right_and_leaves_out_empty_columns():
    rows = [{"a": "x", "b": 1.0, "c": ""}, {"a": "long", "b": float("nan"), "c": ""}]
    columns = [("name", "{a}"), ("b", "{b:.2f}"), ("", "{c}"), ("b", lambda row: "± 5%")]
    lines = str(Table(rows, columns, "title")).splitlines()
    assert lines == ["title", "", "name     b     b", "x     1.00  ± 5%", "long   nan  ± 5%"]
