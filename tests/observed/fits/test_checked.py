"""What stands for a table by mistake is told with the right call."""

from typing import Any

import numpy as np
import pytest

import noisy_jax as nj
from tests.errors import raises


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], "fit takes one table of x, y and what is known of the noise"),
        (np.ones((3, 2)), r"nj.fit\(nj.observations.from_arrays\(x, y, noise=…"),
        ("rows.csv", r"the path 'rows.csv'; read the file: nj.fit\(nj.csv"),
    ],
)
def test_other_things_than_a_table_are_told(given: Any, message):
    for method in (None, nj.methods.Logistic(), nj.fourier(length_scale=1.0)):
        raises(message, nj.fit, given, method)
