"""Speed of fits: `python tests/benchmarks/moments.py`."""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.linear_model import LinearRegression
from timing import at_most, median_times, report

import noisy_jax as nj

ROWS, DIM = 1_000_000, 10
VARIANCE = 0.1
QUICK = {"ROWS": 200_000}


def observed():
    """Noisy rows and their targets in float64, and the table of both."""
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (ROWS, DIM))
    y = x @ jnp.ones(DIM) + jax.random.normal(keys[1], (ROWS,))
    x += VARIANCE**0.5 * jax.random.normal(keys[2], x.shape)
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return x, y, nj.observations.from_arrays(x, y, noise=VARIANCE)


def rows():
    """`nj.fit` against ordinary least squares."""
    x, y, table = observed()
    seconds = median_times(
        lambda: nj.fit(table).coefficients, lambda: LinearRegression().fit(x, y).coef_, repeats=5
    )
    return [at_most(f"fit / LinearRegression, n = {ROWS:,}, d = {DIM}", *seconds, 2)]


if __name__ == "__main__":
    report(f"float32; noise of variance {VARIANCE}", rows)
