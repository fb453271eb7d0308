"""Random Fourier features of a kernel of the distance, as a plain function."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.features import cosines_and_sines, number_of_pairs
from noisy_jax.kernels.kernel import Kernel, check_kernel
from noisy_jax.validation.arrays import real_array
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.values import Array


def fourier_features(
    kernel: Kernel, key: jax.Array, num_features: int = 128
) -> Callable[[Array], jax.Array]:
    """Returns a random map z from `[..., d]` to `[..., D]` with E⟨z(x), z(a)⟩ = k(x, a).

        z(x) = √(2/D) (cos⟨ω_1, x⟩, sin⟨ω_1, x⟩, …, cos⟨ω_{D/2}, x⟩, sin⟨ω_{D/2}, x⟩), up to order

    The expectation is over the D/2 frequencies ω_j `[d]`, which are drawn from the kernel's
    spectral density. For one draw ⟨z(x), z(a)⟩ ≈ k(x, a) with an error of order 1/√D, and ‖z(x)‖ =
    1 always. A linear learner on z(x) so approximates a learner with the kernel.

    Args:
        kernel: a kernel of the distance: `gaussian`, `laplacian`, `matern` or `rational`. One
            without a sampler (`Kernel.spectrum`) raises ValueError.
        key: a random key for the frequencies. The same key and d give the same map.
        num_features: D, even and at least 2; 128 by default.

    Source: Rahimi and Recht, Random features for large-scale kernel machines (2007).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> kernel, x = nj.kernels.gaussian(length_scale=1.0), jnp.array([[0.0, 0.0], [1.0, 0.0]])
        >>> z = nj.kernels.fourier_features(kernel, jax.random.key(0), num_features=2048)(x)
        >>> print((z @ z.T).round(1), kernel(x, x).round(1))
        [[1.  0.6]
         [0.6 1. ]] [[1.  0.6]
         [0.6 1. ]]
    """
    pairs = number_of_pairs(num_features)
    check_kernel(kernel)
    key = parsed_key(key)
    draw = kernel.spectrum
    if draw is None:
        raise ValueError("kernel must be a kernel of the distance, such as kernels.gaussian")

    def features(x: Array) -> jax.Array:
        x = real_array("x", x)
        if not np.shape(x)[-1:] or not np.shape(x)[-1]:
            raise ValueError(f"x must be [..., d] with d >= 1 features, got {list(np.shape(x))}")
        x = jnp.asarray(x, jnp.result_type(x, float))
        frequencies = draw(key, pairs, x.shape[-1]) / (2 * jnp.pi)
        return cosines_and_sines(x, frequencies) / jnp.sqrt(pairs)

    return features
