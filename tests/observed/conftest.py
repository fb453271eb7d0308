import pytest

from tests.observed.rows import X, Y, parts


@pytest.fixture
def table():
    """Four chunks of 200 rows."""
    return parts(X, Y)
