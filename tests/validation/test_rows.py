"""Rows of data: x with y, and the copies of one x."""

import numpy as np
import pytest

from noisy_jax.validation import rows
from tests.errors import raises

X, Y = np.ones((3, 2)), np.ones(3)


@pytest.mark.parametrize(("x", "y"), [(X, Y[:2]), (X[0], Y), (X[:0], Y[:0]), (X[:, :0], Y)])
def test_x_is_a_table_and_y_has_one_number_a_row(x, y):
    raises(r"^x must be \[T, d\] and y \[T\] with the same T", rows.check_stream, x, y)


def test_numbers_of_rows_are_finite():
    rows.check_stream(X, Y)
    raises(r"y must be finite, but y\[0\] is nan", rows.check_stream, X, np.nan * Y)
    raises(r"y must be finite, but y\[0\] is nan", rows.check_targets, np.nan * Y)
    raises("one target a row", rows.check_targets, X)


def test_a_sample_has_all_copies_that_a_learner_reads():
    rows.check_copies_given(2, 2)
    raises(
        "reads 2 independent noisy copies of x, but the sample has 1", rows.check_copies_given, 2, 1
    )
