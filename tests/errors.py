"""Errors that a user reads."""

import contextlib

import pytest


@contextlib.contextmanager
def one_line_error(message):
    """What stands below raises a ValueError of one line, in which the pattern is found."""
    with pytest.raises(ValueError, match=message) as caught:
        yield
    assert "\n" not in str(caught.value)
