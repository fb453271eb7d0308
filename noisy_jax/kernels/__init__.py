"""Kernels as Gram closures `([n, d], [m, d]) -> [n, m]`, jittable, by matrix products.

There are two families: functions of the inner product ⟨x, z⟩ with a power series of non-negative
coefficients, whose terms random truncation samples, and functions of the distance r = ‖x − z‖. The
Gaussian kernel belongs to both.

The `length_scale` ℓ of a kernel of the distance has the meaning that it has in scikit-learn's
`RBF`, `Matern` (with ν = ½ for `laplacian`) and `RationalQuadratic`.
"""

from noisy_jax.kernels.distances import gaussian, laplacian, matern, rational
from noisy_jax.kernels.kernel import Kernel, squared_distances
from noisy_jax.kernels.products import binomial, exponential, linear, polynomial
from noisy_jax.kernels.random_features import fourier_features

__all__ = [
    "Kernel",
    "binomial",
    "exponential",
    "fourier_features",
    "gaussian",
    "laplacian",
    "linear",
    "matern",
    "polynomial",
    "rational",
    "squared_distances",
]
