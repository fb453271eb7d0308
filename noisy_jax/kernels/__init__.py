"""Kernels as Gram closures `([n, d], [m, d]) -> [n, m]`, jittable, by matrix products.

Two families: functions of the inner product ⟨x, z⟩ with a power series of non-negative coefficients
(which random truncation samples from), and functions of the distance r = ‖x − z‖. The Gaussian
kernel belongs to both.

Each family of the distance has a length scale of its own. In terms of scikit-learn's `length_scale`
ℓ, they are

- `gaussian(squared_width=s²)`: s² = 2ℓ² of `RBF`,
- `laplacian(scale=s)`: s = ℓ of `Matern` with ν = ½,
- `matern(length=ℓ)`: that of `Matern`,
- `rational(m=m)`: m = 2αℓ² of `RationalQuadratic`.
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
