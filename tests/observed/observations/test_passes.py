"""`fit` and `learn` over chunks: those of another kind are an error."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from noisy_jax.observed.observations.passes import Pass
from tests.errors import raises, told
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


def test_a_chunk_without_a_row_of_two_replicates_is_joined_to_a_neighbour():
    """First, in the middle, or last: the coefficients are those of the whole table."""
    rng, n = np.random.default_rng(0), 800
    x = rng.normal(size=n)
    frame = {f"x{k}": x + 0.5 * rng.normal(size=n) for k in (1, 2)}
    frame |= {"y": 2 * x + 0.1 * rng.normal(size=n)}
    options: dict[str, Any] = {"target": "y", "replicates": {"x": ["x1", "x2"]}}
    for alone in (0, 2, 3):
        gaps = np.arange(n) // 200 == alone
        some = pd.DataFrame(frame | {"x2": np.where(gaps, np.nan, frame["x2"])})
        parts = [some[start : start + 200] for start in range(0, n, 200)]
        chunks = list(Pass(nj.observations.chunks(parts, **options)))
        assert sorted(len(one.y) for one in chunks) == [200, 200, 400]
        np.testing.assert_array_equal(np.concatenate([one.y for one in chunks]), frame["y"])
        fit = nj.fit(nj.observations.chunks(parts, **options))
        whole = nj.fit(nj.table(some, **options))
        np.testing.assert_allclose(fit.coefficients, whole.coefficients, rtol=0.05)
    first = pd.DataFrame(frame | {"x2": np.where(np.arange(n) < 200, frame["x2"], np.nan)})
    parts = [first[start : start + 200] for start in range(0, n, 200)]
    (only,) = Pass(nj.observations.chunks(parts, **options))
    wanted = nj.table(first, **options)
    np.testing.assert_array_equal(only.copies, wanted.copies)
    assert only.index.equals(wanted.index)
    alone = pd.DataFrame(frame | {"x2": np.nan})
    with told("no row has two copies of 'x', from which", "of one copy as noise={'x': …}"):
        nj.fit(nj.observations.chunks([alone[:400], alone[400:]], **options))
