"""Kernels as Gram closures `([n, d], [m, d]) -> [n, m]`, jittable, by matrix products.

Two families: functions of the inner product ⟨x, z⟩ with a power series of non-negative coefficients
(which random truncation samples from), and functions of the distance r = ‖x − z‖. The Gaussian
kernel belongs to both.

The `length_scale` ℓ of a kernel of the distance is that of scikit-learn's `RBF`, `Matern` (with
ν = ½ for `laplacian`) and `RationalQuadratic`.
"""

from noisy_jax.kernels.distances import gaussian, laplacian, matern, rational
from noisy_jax.kernels.kernel import Envelope, Kernel, inner_products, squared_distances
from noisy_jax.kernels.products import binomial, exponential, linear, polynomial

__all__ = [
    "Envelope",
    "Kernel",
    "binomial",
    "exponential",
    "gaussian",
    "inner_products",
    "laplacian",
    "linear",
    "matern",
    "polynomial",
    "rational",
    "squared_distances",
]
