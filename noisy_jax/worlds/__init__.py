"""Parallel worlds: surrogate kernels whose noisy inner products are right on average.

A world is right for the distribution of noise that it was built with. Under another one the learner
is biased, and `rollout` warns.

The `length_scale` ℓ of a world is the `length_scale` of the same kernel in `kernels`. A `cutoff` is
in units of 1/r².
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.worlds.fourier import fourier, fourier_gaussian
from noisy_jax.worlds.gaussian import gaussian
from noisy_jax.worlds.radial_kernels import laplacian, matern, rational
from noisy_jax.worlds.world import World, world_of

__all__ = [
    "World",
    "fourier",
    "fourier_gaussian",
    "gaussian",
    "laplacian",
    "matern",
    "rational",
    "world_of",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError; for a name that has left, it names the replacement."""
        refuse(__name__, name)
