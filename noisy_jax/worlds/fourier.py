"""Fourier worlds: random features whose noisy map is right on average, one vector in R^D a copy.

For any frequency ω, E exp(i⟨ω, x + n⟩) = φ(ω) exp(i⟨ω, x⟩), where φ is the noise's characteristic
function. Features of noisy copies are turned back by arg φ, and features of clean instances are
multiplied by |φ|. Then the mean of the noisy features is the clean features, at all frequencies:
learning from noisy copies is linear regression in R^D on unbiased features.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import normal
from noisy_jax.features import cosines_and_sines, number_of_pairs
from noisy_jax.kernels.kernel import length_scale_of
from noisy_jax.noise import Noise
from noisy_jax.noise.characteristic import check_characteristic
from noisy_jax.validation.arrays import check_dimension, real
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.values import Array, ArrayLike
from noisy_jax.worlds.world import World, check_log_diagonal, check_world


class FourierWorld(NamedTuple):
    """Random features of noisy copies and of clean instances: P = D/2 cosines and P sines.

    A pytree, so that it can be an argument of `jit` and an output of `vmap`.

    Attributes:
        frequencies: `[P, d]`, ω_j/2π, in cycles per unit of x.
        shift: `[P]`, arg φ(ω_j)/2π, in cycles.
        amplitude: `[P]`, c_j.
        modulus: `[P]`, |φ(ω_j)|.
        noise: distribution of the noise in the copies.
    """

    frequencies: jax.Array
    shift: jax.Array
    amplitude: jax.Array
    modulus: jax.Array
    noise: Noise | None = None

    @property
    def dim(self) -> int:
        """d, the dimension of the data."""
        return self.frequencies.shape[-1]

    @property
    def num_features(self) -> int:
        """D, the number of features."""
        return 2 * self.frequencies.shape[-2]

    @property
    def squared_norm(self) -> Array:
        """R² = Σ_j c_j², which is ‖noisy(x̃)‖² for every x̃, `[]`."""
        return jnp.sum(self.amplitude**2, axis=-1)

    def noisy(self, x: Array) -> Array:
        """Returns c_j cos(⟨ω_j, x̃⟩ − arg φ(ω_j)), then sines, `[..., D]`, with mean `clean(x)`."""
        return self._waves(x, self.shift, self.amplitude)

    def clean(self, x: Array) -> Array:
        """Returns c_j |φ(ω_j)| cos⟨ω_j, x⟩, then the same with sines, `[..., D]`."""
        return self._waves(x, None, self.amplitude * self.modulus)

    def _waves(self, x, shift, amplitude):
        x = real("x", x)
        check_dimension("FourierWorld.frequencies", self.frequencies, jnp.shape(x))
        return cosines_and_sines(x, self.frequencies, shift, amplitude)


def fourier(key: jax.Array, world: World, num_features: int) -> FourierWorld:
    """Draws random features of a world: maps to R^D that are right on average at noisy copies.

        noisy(x̃) = (c cos(⟨ω_j, x̃⟩ − arg φ(ω_j)), c sin(⟨ω_j, x̃⟩ − arg φ(ω_j)))_j
        clean(x) = (c |φ(ω_j)| cos⟨ω_j, x⟩,       c |φ(ω_j)| sin⟨ω_j, x⟩)_j

    φ is the characteristic function of the noise. The P = D/2 frequencies ω_j are drawn from the
    spectral density of the world's surrogate k̂, and c² = R²/P for its `diagonal` R². For every
    draw of them and every D, E noisy(x + n) = clean(x). `learners.fourier_worlds` learns a linear
    function of these features from two copies; its regret bound is `bounds.parallel_worlds`. As D
    grows, ⟨noisy(x̃), noisy(z̃)⟩ tends to k̂(x̃, z̃) and ⟨noisy(x̃), clean(x)⟩ to the world's
    kernel k(x̃, x), at the rate 1/√D; ⟨clean(x), clean(z)⟩ tends to a smoother kernel than k.

    Args:
        key: a key of `jax.random.key`, for the frequencies.
        world: a `World` with a `spectrum`, and with noise whose characteristic function is known
            and has no zeros, such as every world of `worlds`.
        num_features: D, even and at least 2.

    Returns:
        A `FourierWorld`, with methods `noisy` and `clean` from `[..., d]` to `[..., D]`, and
        `squared_norm` `[]`, ‖noisy(x̃)‖² = R² for every x̃.

    Raises:
        ValueError: D is odd, or the world has no noise or no spectrum.

    Source: none of the papers; random Fourier features (Rahimi & Recht, 2007) of the surrogates of
    Learning from Noisy Data under Distributional Assumptions, Sec. 6. They come in pairs, as a
    single cosine of random phase has a squared norm of up to 2R².

    Example:
        >>> import jax, noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=3, length_scale=2**0.5, noise=nj.noise.Gaussian(0.5))
        >>> features = nj.worlds.fourier(jax.random.key(0), world, 256)
        >>> features.noisy(jax.numpy.ones((5, 3))).shape
        (5, 256)
        >>> learner = nj.learners.fourier_worlds(features, radius=1.0)
    """
    pairs = number_of_pairs(num_features)
    check_world(world)
    key = parsed_key(key)
    if world.noise is None:
        raise ValueError("world must have a noise distribution, as worlds.gaussian gives it")
    if world.spectrum is None:
        needed = "a sampler of its surrogate's spectral density (World.spectrum)"
        raise ValueError(f"world must have {needed}; worlds.fourier_gaussian needs none")
    check_characteristic(world.noise, world.dim)
    omega = world.spectrum(key, pairs)
    log_phi = world.noise.log_characteristic(omega)
    amplitude = jnp.sqrt(jnp.asarray(world.diagonal, omega.dtype) / pairs)
    return _fourier_world(omega, log_phi, jnp.broadcast_to(amplitude, (pairs,)), world.noise)


def fourier_gaussian(
    key: jax.Array, num_features: int, *, dim: int, length_scale: ArrayLike, noise: Noise
) -> FourierWorld:
    """Draws random features of the Gaussian kernel that are right on average at noisy copies.

        noisy(x̃) = (c_j cos(⟨ω_j, x̃⟩ − arg φ(ω_j)), c_j sin(⟨ω_j, x̃⟩ − arg φ(ω_j)))_j
        clean(x) = (c_j |φ(ω_j)| cos⟨ω_j, x⟩,       c_j |φ(ω_j)| sin⟨ω_j, x⟩)_j

    It takes any noise whose characteristic function φ is known and has no zeros; a world, as
    `worlds.fourier` needs, exists for few. The P = D/2 frequencies ω_j are drawn from N(0, I/ℓ²),
    the spectral density of k(x, a) = exp(−‖x − a‖²/2ℓ²), and c_j² = 1/(P |φ(ω_j)|). For every draw
    of them and every D, E noisy(x + n) = clean(x). If the noise is symmetric, ⟨noisy(x̃), clean(x)⟩
    tends to k(x̃, x) as D grows.

    R² = ‖noisy(x̃)‖² = Σ_j c_j² is the same for all x̃. Its mean is E 1/|φ(ω)|. If that is infinite
    (Gaussian noise with ‖Σ‖ ≥ ℓ²), no surrogate exists, and R² grows with D without limit. R²
    converges at the rate 1/√D only if E 1/|φ(ω)|² is finite (Gaussian noise with 2‖Σ‖ < ℓ²).

    Args:
        key: a key of `jax.random.key`, for the frequencies.
        num_features: D, even and at least 2.
        dim: d ≥ 1, the number of features of x.
        length_scale: ℓ > 0 of the Gaussian kernel, in the units of x.
        noise: distribution of the noise in each copy; its mean has no effect.

    Returns:
        A `FourierWorld`, for `learners.fourier_worlds`, with methods `noisy` and `clean` from
        `[..., d]` to `[..., D]`, and `squared_norm` `[]`, R².

    Raises:
        ValueError: φ is not known or has zeros, or R² is so large that its square overflows.

    Source: none of the papers; random Fourier features (Rahimi & Recht, 2007) with importance
    weights.

    Example:
        >>> import jax, noisy_jax as nj
        >>> noise = nj.noise.ContaminatedGaussian(4.0, probability=0.7)
        >>> features = nj.worlds.fourier_gaussian(
        ...     jax.random.key(0), 64, dim=3, length_scale=2**0.5, noise=noise)
        >>> learner = nj.learners.fourier_worlds(features, radius=1.0)
    """
    pairs = number_of_pairs(num_features)
    key = parsed_key(key)
    dim = whole("dim", dim)
    length_scale = length_scale_of(length_scale)
    check_characteristic(noise, dim)
    omega = normal(key, (pairs, dim)) / jnp.asarray(length_scale, float)
    log_phi = jnp.asarray(noise.log_characteristic(omega))
    features = _fourier_world(omega, log_phi, jnp.exp(-log_phi.real / 2) / np.sqrt(pairs), noise)

    def log_squared_norm(share):
        log_phi = jnp.asarray(noise.log_characteristic(share**0.5 * omega))
        return jax.nn.logsumexp(-log_phi.real) - np.log(pairs)

    check_log_diagonal(log_squared_norm, "a larger length_scale or fewer dimensions")
    return features


def _fourier_world(omega, log_phi, amplitude, noise):
    turn, modulus = 2 * np.pi, jnp.exp(log_phi.real)
    return FourierWorld(omega / turn, log_phi.imag / turn, amplitude, modulus, noise)
