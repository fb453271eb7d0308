import numpy as np
import pytest

from noisy_jax.tabular.texts import advice, is_number, stray

OTHER = [
    "1,5",
    "1.234,5",
    "1_0",
    "１２",
    "٣",
    "0x10",
    "1 2",
    "5%",
    "$5",
    "2020-01-31",
    "12:30",
    "−5",
]


@pytest.mark.parametrize("cell", ["5", " 5.0 ", "+5", "5e0", ".5e1", "5.", 5, 1.5, True])
def test_numbers(cell):
    assert is_number(cell)


@pytest.mark.parametrize("cell", [*OTHER, "a", "", "-", "5 kg", "18-25", "inf", "1e999", "nan"])
def test_no_numbers(cell):
    assert not is_number(cell)


@pytest.mark.parametrize("cell", [*OTHER, "-", "n.a.", "tall", "?"])
@pytest.mark.parametrize("others", [["1.5", "2", "3"], [1.5, 2, 3]], ids=["texts", "numbers"])
def test_the_cell_that_makes_a_column_text_is_found(cell, others):
    cells = np.array([*others, cell, "later"], object)
    assert stray(cells) == 3


@pytest.mark.parametrize("cell", OTHER)
def test_no_column_with_a_number_in_another_writing_is_categories(cell):
    assert stray(["high", cell, "low"]) == 1
    assert stray([cell, cell]) == 0


@pytest.mark.parametrize("cells", [["m", "f", "m"], ["18-25", "26-40", "over 40"], ["1st", "2nd"]])
def test_categories(cells):
    assert stray(cells) is None


def test_texts_of_numbers_are_no_categories():
    assert stray(["1", "2", "1"]) == 0


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("1,5", "decimal=','"),
        ("1,234", "thousands=',', else decimal=','"),
        ("1.234.567", "thousands='.', decimal=','"),
        ("1.234,5", "thousands='.', decimal=','"),
        ("2020-01-31", "pass days, or years"),
        ("5%", "write it as a plain number"),
        ("-", r"missing=[…]"),
        ("1.5", "astype(float)"),
    ],
)
def test_what_helps(cell, words):
    assert words in advice(cell)
