"""CSV files: which cells are numbers, and what is wrong with a header."""

import time

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.columns import in_order
from noisy_jax.csv_files import csv_parts
from noisy_jax.observed.observations import csv
from tests.errors import raises


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table.csv"


@pytest.mark.parametrize("cell", ["1_0", "１２", "٣", "1,5", "0x10", "1 2", "inf", "1e999", "5%"])
def test_other_writings_are_no_numbers(path, cell):
    path.write_text(f'a,y\n"{cell}",2\n', encoding="utf-8")
    hint = "; are these decimal" if cell == "1,5" else r"; write one, .* missing=\['.'\]; else"
    raises(f"column 'a': '{cell}' is not a finite number{hint}", csv, path, target="y", noise=0.1)
    raises(f"column 'a': '{cell}' is not a finite number", nj.streams.csv, path, "y")


@pytest.mark.parametrize("cell", ["5", " 5.0 ", "+5", "\xa05", "5e0", ".5e1", "5."])
def test_usual_writings_are_numbers(path, cell):
    path.write_text(f"a,y\n{cell},2\n", encoding="utf-8")
    assert csv(path, target="y", noise=0.1).x.tolist() == [[[5.0]]]


def test_messages_do_not_repeat_long_cells_and_headers(path):
    path.write_text(f"a,y\n{'long ' * 10_000},2\n")
    with pytest.raises(ValueError, match="'long long") as caught:
        csv(path, target="y", noise=0.1)
    assert len(str(caught.value)) < 330 + len(str(path))
    names = [f"x{i}" for i in range(5000)]
    path.write_text(",".join(names) + "\n")
    with pytest.raises(ValueError, match=r"named 'y'; it has 'x0', .*\(5,000 in all\)") as caught:
        csv(path, target="y", noise=0.1)
    assert len(str(caught.value)) < 250 + len(str(path))


def test_a_nul_in_a_name_is_an_error(path):
    path.write_bytes("a,y\n1,2\n".encode("utf-16-le"))  # as spreadsheets write Unicode text
    raises(r"has a NUL|has no column named", csv, path, target="y", noise=0.1)
    path.write_text("a\x00,y\n1,2\n")
    raises("has a NUL in the name of column 1", csv, path, target="y", noise=0.1)


def test_the_time_for_a_header_grows_like_its_length(path):
    """With a loop over all names for each name this would take minutes."""
    count = 60_000
    names = [f"x{i}" for i in range(count)]
    path.write_text(",".join([*names, "y"]) + "\n" + ",".join(["1"] * (count + 1)) + "\n")
    start = time.monotonic()
    next(csv_parts(path, "y"))
    some = names[::2]
    found = csv(path, target="y", noise={"x1": 0.1}, features=names[:3], drop=())
    assert found.names == tuple(names[:3])
    assert in_order("x", names[::-1], some) == [*range(count - 1, 0, -2)]
    assert time.monotonic() - start < 5


def test_columns_of_labels_are_numbered(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("id,x,y\nb,1,2\n a ,3,4\nNA,5,6\nb,7,8\n")
    labels = {"id": {}}
    parts = list(csv_parts(path, "y", rows=2, labels=labels))
    found = np.concatenate([part for _, part in parts])
    np.testing.assert_array_equal(found[:, 0], [0, 1, np.nan, 0])
    np.testing.assert_array_equal(found[:, 1:], [[1, 2], [3, 4], [5, 6], [7, 8]])
    assert labels == {"id": {"b": 0, "a": 1}}
