"""A parallel world as an estimator of the feature map, from one copy and without truncation."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import exportable
from noisy_jax.kernels import Kernel
from noisy_jax.unbiased.truncation.maps import MapOrders
from noisy_jax.validation.values import Array, array_module
from noisy_jax.worlds import World


@exportable
class WorldEstimate(NamedTuple):
    """A noisy copy in the space of a world's surrogate.

    Attributes:
        atom: `[d]`, the copy.
        copies: `[]`, number of copies of x that were used.
    """

    atom: jax.Array
    copies: jax.Array


class WorldMaps(NamedTuple):
    """The feature maps of a world in the form of a `MapEstimator`: E⟨f̂, Ψ̂(x̃)⟩ = f(x).

    Attributes:
        world: the kernel and its surrogate.
    """

    world: World

    copies = 1
    mean_copies = 1.0

    @property
    def kernel(self) -> Kernel:
        """The clean kernel."""
        return self.world.kernel

    def draw_orders(self, key: jax.Array) -> MapOrders:
        """The orders of one copy, which are not random."""
        del key
        return MapOrders(jnp.int32(1), jnp.int32(0))

    def estimate(self, orders: MapOrders, x: jax.Array) -> WorldEstimate:
        """Ψ̂(x̃) of one copy x `[1, d]`."""
        return WorldEstimate(x[0], orders.tensor)

    def inner(self, estimates: WorldEstimate, others: WorldEstimate) -> Array:
        """k̂, `[n, m]`."""
        return self.world.surrogate(estimates.atom, others.atom)

    def points(self, z: jax.Array) -> jax.Array:
        """Known points, as they are."""
        return z

    def evaluate(self, estimates: WorldEstimate, points: jax.Array) -> Array:
        """Values of noisy copies at known points, `[n, m]`."""
        return self.world.kernel(estimates.atom, points)

    def second_moment(self, x_second_moment: Any) -> Any:
        """R² ≥ ‖Ψ̂(x̃)‖²."""
        del x_second_moment
        return self.world.diagonal

    def bias(self, x_second_moment: Any) -> Any:
        """The error of a kernel that is cut off (`World.approximation_error`)."""
        del x_second_moment
        return self.world.approximation_error

    def largest_norm(self, x_second_moment: Any) -> Any:
        """√k(x, x) ≥ ‖E Ψ̂(x̃)‖, as ‖E Ψ̂‖² = ∫ pφ ≤ ∫ p for a spectrum p and 0 ≤ φ ≤ 1."""
        del x_second_moment
        with jax.ensure_compile_time_eval():  # a number also under jit, where the world is concrete
            square = self.kernel.diagonal(jnp.zeros((1, self.world.dim)))[0]
        return array_module(square).sqrt(square)
