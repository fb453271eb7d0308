import contextlib
import errno

import pytest


def disk_full(*arguments, **options):
    """What takes the place of a function that writes."""
    raise OSError(errno.ENOSPC, "No space left on device")


@contextlib.contextmanager
def one_line_error(message):
    """What stands below raises a ValueError of one line, in which the pattern is found."""
    with pytest.raises(ValueError, match=message) as caught:
        yield caught
    assert "\n" not in str(caught.value)


def raises(message, call, *arguments, **options):
    """The call raises such an error."""
    with one_line_error(message):
        call(*arguments, **options)


@contextlib.contextmanager
def told(*texts):
    """What stands below raises a ValueError of one line with all of these texts."""
    with one_line_error(".") as caught:
        yield
    for text in texts:
        assert text in str(caught.value)
