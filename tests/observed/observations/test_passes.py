"""`fit` and `learn` over chunks: those of another kind are an error."""

import pytest

from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.rows import NOISE, X, Y, run


@pytest.mark.parametrize("kind", ["fit", "learn"])
@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (3, "must be an Observations, got 3"),
        (from_arrays(X, Y, noise=NOISE, target="z"), "all chunks must have the columns"),
        (from_arrays(X[:, None].repeat(2, axis=1), Y, noise=NOISE), "as many copies of each row"),
        (from_arrays(X, Y, noise=NOISE, cross_cov=[0.1, 0.0]), "must have a cross_cov, or none"),
    ],
)
def test_a_later_chunk_of_another_kind_is_an_error(table, kind, chunk, message):
    raises(message, run, kind, [*table, chunk])
    raises(message, run, kind, (one for one in [*table, chunk]))
