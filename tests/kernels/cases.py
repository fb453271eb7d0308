"""Kernels that the tests of this room share."""

import math

from noisy_jax import kernels

# Each kernel with its value for one pair of points, written from its definition.
KERNELS = {
    "linear": (kernels.linear(), lambda x, z: x @ z),
    "polynomial": (kernels.polynomial(degree=3), lambda x, z: (x @ z + 1) ** 3),
    "homogeneous": (kernels.polynomial(degree=2, offset=0.0), lambda x, z: (x @ z) ** 2),
    "exponential": (kernels.exponential(), lambda x, z: math.exp(x @ z)),
    "binomial": (kernels.binomial(alpha=1.5), lambda x, z: (1 - x @ z) ** -1.5),
    "gaussian": (
        kernels.gaussian(length_scale=0.6),
        lambda x, z: math.exp(-(dist(x, z) ** 2) / 0.72),
    ),
    "rational": (
        kernels.rational(length_scale=0.8, alpha=1.7),
        lambda x, z: (1 + dist(x, z) ** 2 / (2 * 1.7 * 0.64)) ** -1.7,
    ),
    "laplacian": (kernels.laplacian(length_scale=0.6), lambda x, z: math.exp(-dist(x, z) / 0.6)),
    "matern32": (kernels.matern(nu=1.5, length_scale=0.9), lambda x, z: matern(x, z, 1.5)),
    "matern52": (kernels.matern(nu=2.5, length_scale=0.9), lambda x, z: matern(x, z, 2.5)),
}


def dist(x, z):
    return math.sqrt(sum((x - z) ** 2))


def matern(x, z, nu):
    q = math.sqrt(2 * nu) * dist(x, z) / 0.9
    return (1 + q + (q**2 / 3 if nu == 2.5 else 0)) * math.exp(-q)
