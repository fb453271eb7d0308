"""Unbiased estimates of the feature map Ψ(x) of a kernel, from independent noisy copies of x.

For k(x, z) = h(x) h(z) Q(⟨x, z⟩), Q(a) = Σ_n β_n a^n, the map is h(x) times the tensor powers of x,

    Ψ̃ = θ · (√β_N/p_N) x̃_1 ⊗ ⋯ ⊗ x̃_N,   E Ψ̃ = Ψ(x),

where N is a random order, and θ estimates the envelope h from further copies: h = 1 for kernels of
the inner product, and e^(−‖x‖²/2ℓ²) for the Gaussian kernel, with ⟨x̃, x̃'⟩ for each ‖x‖². Only the
copies are stored. Inner products are

    ⟨Ψ̃, Ψ̃'⟩ = 1[N = N'] θθ' β_N/(p_N p_N') Π_j ⟨x̃_j, x̃'_j⟩,
    ⟨Ψ̃, Ψ(z)⟩ = θ (β_N/p_N) h(z) Π_j ⟨x̃_j, z⟩.

A stored estimate is a list of J vectors of d + 1 numbers, (x̃_j, 0) for j ≤ N and (0, 1) for j > N,
the first one times θ √β_N/p_N. The product of their inner products is the whole first formula,
including the indicator.

Source: Online Learning of Noisy Data with Kernels, Eq. 2, Lemmas 3-6, subroutines 2-7, App. B.
Printed for the Gaussian kernel, the features lack the square root over (1/ℓ²)^n/n!, and both inner
products follow the wrong features: (n!)² stands for n!, and ℓ^(4n) for ℓ^(2n).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import exportable
from noisy_jax.kernels import Kernel
from noisy_jax.series import PowerSeries
from noisy_jax.unbiased.truncation.means import MeanEstimator, first_copies
from noisy_jax.unbiased.truncation.orders import OrderDistribution
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.values import ArrayLike, array_module


class MapOrders(NamedTuple):
    """The numbers that are drawn at random for one estimate of Ψ(x).

    Attributes:
        tensor: `[]`, N, the order of the tensor power of x that is estimated.
        envelope: `[]`, number of pairs of copies that estimate the envelope h; zero if h = 1.
    """

    tensor: jax.Array
    envelope: jax.Array


@exportable
class MapEstimate(NamedTuple):
    """An estimate Ψ̃ of a kernel's feature map Ψ(x), as `MapEstimator.estimate` returns it.

    Ψ̃ is a tensor of random order N ≤ J, stored as J vectors: ⟨Ψ̃, Ψ̃'⟩ is the product over j of the
    inner products of the j-th vectors of Ψ̃ and Ψ̃'. All leaves of n estimates have a leading axis n.

    Attributes:
        factors: `[J, d + 1]`, the J vectors; they hold the noisy copies and the estimate's weight.
        root: `[]`, √β_N, for the kernel's series Q(a) = Σ_n β_n a^n; `MapEstimator.evaluate` needs
            it.
        copies: `[]`, number of copies of x that the estimate used.
    """

    factors: jax.Array
    root: jax.Array
    copies: jax.Array


class MapEstimator(NamedTuple):
    """An estimator of the feature map of a kernel with a power series.

    Attributes:
        kernel: k.
        series: of Q, up to the largest order J.
        orders: distribution of the order N of the tensor.
        envelope: estimator of h(x) from noisy values of ‖x‖²; `None` if h = 1.
    """

    kernel: Kernel
    series: PowerSeries
    orders: OrderDistribution
    envelope: MeanEstimator | None

    @property
    def roots(self) -> jax.Array:
        """`[J + 1]`, √β_n."""
        return array_module(self.series.coefficients).sqrt(self.series.coefficients)

    @property
    def copies(self) -> int:
        """The most copies of x that an estimate uses."""
        return self._tensor.copies + (0 if self.envelope is None else 2 * self.envelope.copies)

    @property
    def mean_copies(self) -> ArrayLike:
        """Mean number of copies that an estimate uses."""
        return self.orders.mean + (0 if self.envelope is None else 2 * self.envelope.orders.mean)

    def draw_orders(self, key: jax.Array) -> MapOrders:
        """The random orders of one estimate."""
        key = parsed_key(key)
        tensor_key, envelope_key = jax.random.split(key)
        if self.envelope is None:
            return MapOrders(self.orders.draw(tensor_key), jnp.int32(0))
        return MapOrders(self.orders.draw(tensor_key), self.envelope.orders.draw(envelope_key))

    def estimate(self, orders: MapOrders, x: jax.Array) -> MapEstimate:
        """Ψ̃ at given orders, one estimate.

        Args:
            orders: N, and the envelope's.
            x: `[copies, d]`, independent noisy copies of x: those of the tensor, then the
                envelope's pairs.
        """
        power, x = self._tensor.copies, first_copies(x, self.copies, "[copies, d]")
        weight = self._tensor.weight(orders.tensor, x.dtype)
        used = orders.tensor + 2 * orders.envelope
        if self.envelope is not None:
            pairs = x[power:].reshape(-1, 2, x.shape[1])
            norms = jnp.sum(pairs[:, 0] * pairs[:, 1], axis=1)
            weight = weight * self.envelope.estimate(orders.envelope, norms)
        unused = (jnp.arange(power) >= orders.tensor)[:, None]
        factors = jnp.concatenate([jnp.where(unused, 0, x[:power]), unused.astype(x.dtype)], axis=1)
        factors = factors.at[0].multiply(weight)
        root = jnp.asarray(self.roots, x.dtype)[orders.tensor]
        return MapEstimate(factors, root, used.astype(jnp.int32))

    @jax.default_matmul_precision("highest")
    def inner(self, estimates: MapEstimate, others: MapEstimate) -> jax.Array:
        """⟨Ψ̃_i, Ψ̃'_j⟩, `[n, m]`."""
        product: Any = 1.0
        for j in range(self._tensor.copies):
            product = product * (estimates.factors[:, j] @ others.factors[:, j].T)
        return product

    def points(self, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Known points `z[m, d]` in the form for `evaluate`: (z, 1), and h(z)."""
        ones, h = jnp.ones((*z.shape[:-1], 1), z.dtype), self.kernel.envelope
        values = ones[:, 0] if h is None else jnp.asarray(h.value(jnp.sum(z**2, axis=-1)))
        return jnp.concatenate([z, ones], axis=-1), values

    @jax.default_matmul_precision("highest")
    def evaluate(self, estimates: MapEstimate, points: tuple[jax.Array, jax.Array]) -> jax.Array:
        """⟨Ψ̃_i, Ψ(z_j)⟩ at known points, `[n, m]`."""
        z, envelope = points
        product = estimates.root[:, None] * envelope[None]
        for j in range(self._tensor.copies):
            product = product * (estimates.factors[:, j] @ z.T)
        return product

    def second_moment(self, x_second_moment: ArrayLike) -> ArrayLike:
        """B_Ψ ≥ E‖Ψ̃‖², for E‖x̃‖² ≤ x_second_moment; attained without noise.

        Σ_n (β_n/p_n) B^n, times E θ² ≤ Σ_n (η_n²/q_n) B^(2n) for the envelope's Σ_n η_n b^n and
        its distribution q. As E⟨x̃, x̃'⟩² = tr((E x̃x̃ᵀ)²) ≤ B², noise makes that factor smaller.
        """
        tensor = self._tensor.second_moment(x_second_moment)
        if self.envelope is None:
            return tensor
        return tensor * self.envelope.second_moment(x_second_moment**2)

    def bias(self, x_second_moment: ArrayLike) -> ArrayLike:
        """A bound on |E⟨Ψ̃, Ψ(z)⟩ − k(x, z)| for ‖x‖², ‖z‖² ≤ x_second_moment; zero for polynomials.

        The remainder of Q. For the Gaussian kernel it is multiplied by h² (the product grows with
        x), and the remainder of h times 1/h ≥ h(z) Q(⟨x, z⟩) is added.
        """
        rest = self.series.remainder(x_second_moment)
        if self.envelope is None:
            return rest
        inverse = self.envelope.series.absolute(x_second_moment)  # 1/h = e^(B/2ℓ²)
        return self.envelope.bias(x_second_moment) * inverse + rest / inverse**2

    def largest_norm(self, x_second_moment: ArrayLike) -> ArrayLike:
        """A bound on ‖E Ψ̃‖ for ‖x‖² ≤ x_second_moment; for the Gaussian kernel slightly above 1."""
        if self.envelope is not None:
            lost = self.envelope.bias(x_second_moment)
            return 1 + lost * self.envelope.series.absolute(x_second_moment)
        largest = self.series.absolute(x_second_moment)
        return array_module(largest).sqrt(largest)

    @property
    def _tensor(self) -> MeanEstimator:
        """The tensor as an estimator of Σ_n √β_n a^n: it has the same weights and moments."""
        return MeanEstimator(self.series._replace(coefficients=self.roots), self.orders)
