"""Covariances of errors that depend on the value, estimated from the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.noise import Poisson
from noisy_jax.noise.dependent import Dependent


def covariances(noise: Dependent, x: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Returns the mean of `noise.estimated_cov` over the copies of each row, `[n, d, d]`.

    Args:
        noise: of the d columns.
        x: `[n, V, d]`, the measured values, in float64.
        names: of the columns, for messages.
    """
    noise.check_dimension(x.shape[2:])
    if isinstance(noise, Poisson):
        for row, _, column in np.argwhere((x < 0) | (x != np.round(x))).tolist():
            raise ValueError(
                f"noise.Poisson is for counts, but {names[column]!r} is not a count in row {row}: "
                "give counts as they are, without scaling"
            )
    with jax.enable_x64(True):
        cov = np.asarray(jax.vmap(jax.vmap(noise.estimated_cov))(jnp.asarray(x))).mean(axis=1)
    return cov if cov.ndim == 3 else cov[:, :, None] * np.eye(x.shape[2])
