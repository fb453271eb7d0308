import pytest

from tests.observed.rows import X, Y, written


@pytest.fixture
def table(tmp_path):
    """Four chunks of 200 rows from NumPy files."""
    return written(tmp_path, X, Y)
