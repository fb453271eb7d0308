"""Parallel worlds: surrogate kernels whose noisy inner products are right on average.

A world is right for the noise distribution that it was built with. A rollout does not check that
its noise is the same: under another distribution the learner is biased.

The `length_scale` ℓ of a world is that of the same kernel in `kernels`. A `cutoff` is in units of
1/r².
"""

from noisy_jax.worlds.fourier import FourierWorld, fourier, fourier_gaussian
from noisy_jax.worlds.gaussian import gaussian
from noisy_jax.worlds.heteroscedastic import (
    heteroscedastic,
    heteroscedastic_laplace,
    heteroscedastic_radial,
)
from noisy_jax.worlds.measures import (
    Measure,
    density_measure,
    discrete_measure,
    laplacian_measure,
    matern_measure,
    rational_measure,
)
from noisy_jax.worlds.mixtures import Decay
from noisy_jax.worlds.radial import laplacian, matern, radial, rational
from noisy_jax.worlds.world import World, world_of

__all__ = [
    "Decay",
    "FourierWorld",
    "Measure",
    "World",
    "density_measure",
    "discrete_measure",
    "fourier",
    "fourier_gaussian",
    "gaussian",
    "heteroscedastic",
    "heteroscedastic_laplace",
    "heteroscedastic_radial",
    "laplacian",
    "laplacian_measure",
    "matern",
    "matern_measure",
    "radial",
    "rational",
    "rational_measure",
    "world_of",
]
