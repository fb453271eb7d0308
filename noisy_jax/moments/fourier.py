"""Unbiased second moments of Fourier features, from one noisy copy of each instance.

In expectation, noise multiplies a wave by the noise's characteristic function φ:
E e^{i⟨ω, x̃⟩} = φ(ω) e^{i⟨ω, x⟩}. The product of two features consists of waves at the sum and at
the difference of their frequencies. Dividing each of these by its φ gives the second moments of the
clean features, under any noise whose φ is known and has no zeros.

Source: deconvolution kernels (Stefanski and Carroll, 1990; Fan and Truong, 1993) in the random
features of Rahimi and Recht (2007).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Sample
from noisy_jax.draws import normal
from noisy_jax.features import cosines_and_sines, number_of_pairs
from noisy_jax.linalg.matrices import qr
from noisy_jax.moments.online import Moments, Sums
from noisy_jax.noise import Noise
from noisy_jax.noise.characteristic import check_characteristic, compiled
from noisy_jax.validation.arrays import check_shape
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import non_negative, positive, whole
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import ArrayLike, concrete


class Frequencies(NamedTuple):
    """Frequencies of Fourier features, and the noise's characteristic function between them.

    Attributes:
        omega: `[P, d]`, in radians per unit of x.
        amplitude: `[]`, c, the factor of every feature; c² = 1/P for a kernel with k(x, x) = 1.
        single: `[P]` complex, φ(ω_j).
        difference: `[P, P]` complex, φ(ω_j − ω_k).
        total: `[P, P]` complex, φ(ω_j + ω_k).
        noise: distribution of the noise, or `None` if only φ is known.
    """

    omega: jax.Array
    amplitude: jax.Array
    single: jax.Array
    difference: jax.Array
    total: jax.Array
    noise: Noise | None = None


def fourier(frequencies: Frequencies, *, wiener: ArrayLike = 1.0) -> Moments:
    """Estimates second moments of Fourier features of clean x from ONE noisy copy x̃ = x + n.

    The D = 2P features are z(x) = c (cos⟨ω_1, x⟩, …, cos⟨ω_P, x⟩, sin⟨ω_1, x⟩, …, sin⟨ω_P, x⟩).
    Products of two of them are sums of waves at ω_j + ω_k and ω_j − ω_k, whose clean values follow
    from noisy copies and the characteristic function of the noise, φ(ω) = E e^{i⟨ω, n⟩}:

        Σ_t e^{i⟨ω_j ∓ ω_k, x_t⟩} = E Σ_t e^{i⟨ω_j ∓ ω_k, x̃_t⟩} / φ(ω_j ∓ ω_k).

    The noise may have any distribution that is the same in all rounds, with known φ ≠ 0. It must be
    independent of the noise in y.

    Args:
        frequencies: ω_j, c and φ, as `gaussian_frequencies` draws them.
        wiener: ε ≥ 0; 1 by default. After t rounds the divisor is φ + ε/(t φ̄) instead of φ, with
            the complex conjugate φ̄. ε = 0 is unbiased. A positive ε multiplies entries by
            |φ|²/(|φ|² + ε/t) and so damps entries that are lost in the noise (Wiener
            deconvolution): a bias of order 1/t, for which sums over few rounds vary much less.
            Without it `learners.corrected_ftrl` may be worse than predicting zero for thousands of
            rounds. `Moments.clean_estimates` have no such bias.

    Returns:
        `Moments` of D features, for `learners.corrected_ftrl`. They estimate the sums over rounds
        Σ_t z(x_t)z(x_t)ᵀ `[D, D]` and Σ_t y_t z(x_t) `[D]`.

    Source: deconvolution kernels (Stefanski and Carroll, 1990; Fan and Truong, 1993) in the random
    features of Rahimi and Recht (2007).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> keys = jax.random.split(jax.random.key(0), 3)
        >>> x = jax.random.uniform(keys[0], (4000, 1), minval=-2, maxval=2)
        >>> stream, noise = nj.streams.from_arrays(x, jnp.sin(2 * x[:, 0])), nj.noise.Laplace(0.3)
        >>> frequencies = nj.moments.gaussian_frequencies(
        ...     keys[1], 64, dim=1, length_scale=0.7, characteristic=noise
        ... )
        >>> learner = nj.learners.corrected_ftrl(nj.moments.fourier(frequencies))
        >>> run = jax.jit(lambda key: nj.rollout(learner, stream, noise, key))(keys[2])
        >>> print(bool(jnp.mean((run.predictions - stream.y)[2000:] ** 2) < 0.1))
        True
    """
    instance("frequencies", frequencies, Frequencies, "moments.gaussian_frequencies draws them")
    wiener = non_negative("wiener", wiener)
    omega, amplitude = frequencies.omega, frequencies.amplitude
    pairs = omega.shape[0]

    def waves(x):
        return cosines_and_sines(x, omega / (2 * np.pi))

    def sums(samples: Sample, kept: jax.Array) -> Sums:
        z = waves(samples.x[:, 0])
        gram = jnp.matmul((kept[:, None] * z).T, z, precision="highest")  # 1/φ magnifies rounding
        cross = jnp.matmul(kept * samples.y, z, precision="highest")
        return Sums(gram, cross, kept.sum(), jnp.zeros(()))

    def corrected(sums: Sums, wiener=wiener):
        floor = wiener / jnp.maximum(sums.count, 1)
        cc, cs = sums.gram[:pairs, :pairs], sums.gram[:pairs, pairs:]
        ss = sums.gram[pairs:, pairs:]
        difference = jax.lax.complex(cc + ss, cs.T - cs) * _inverse(frequencies.difference, floor)
        total = jax.lax.complex(cc - ss, cs + cs.T) * _inverse(frequencies.total, floor)
        cc, ss = (difference.real + total.real) / 2, (difference.real - total.real) / 2
        cs = (total.imag - difference.imag) / 2
        gram = jnp.block([[cc, cs], [cs.T, ss]])
        cross = jax.lax.complex(sums.cross[:pairs], sums.cross[pairs:])
        cross = cross * _inverse(frequencies.single, floor)
        cross = jnp.concatenate([cross.real, cross.imag])
        return amplitude**2 * gram, amplitude * cross

    def clean_estimates(weights, sample: Sample):
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], sample._replace(y=jnp.ones(())))
        gram, value = corrected(sums(batch, jnp.ones(1)), 0.0)  # estimates must be unbiased
        return weights @ value, weights @ gram @ weights

    return Moments(
        num_features=lambda d: 2 * pairs,
        features=lambda x: amplitude * waves(x),
        sums=sums,
        corrected=corrected,
        clean_estimates=clean_estimates,
        copies=1,
        linear=False,
        noise=frequencies.noise,
        clipped=True,
    )


def _inverse(phi, floor):
    """1/φ, or φ̄/(|φ|² + floor)."""
    size = jnp.abs(phi) ** 2 + floor
    return jax.lax.complex(phi.real / size, -phi.imag / size)


def gaussian_frequencies(
    key: jax.Array,
    num_features: int,
    *,
    dim: int,
    length_scale: ArrayLike,
    characteristic: Callable[[jax.Array], jax.Array] | Noise,
) -> Frequencies:
    """Draws random frequencies of the Gaussian kernel, with the noise's characteristic function.

    With P = D/2 frequencies ω_j, the features c cos⟨ω_j, x⟩ and c sin⟨ω_j, x⟩, c = 1/√P, have inner
    products that approximate the kernel k(x, a) = exp(−‖x − a‖²/(2ℓ²)), with expectation k. Each
    ω_j is N(0, I/ℓ²). Blocks of d directions are orthogonal, so that they spread more evenly than
    independent ones.

    Args:
        key: a key of `jax.random.key`, the randomness of the frequencies.
        num_features: D ≥ 2, even: a cosine and a sine for each frequency.
        dim: d, the number of columns of x.
        length_scale: ℓ > 0, in the units of x, as in scikit-learn's `RBF`.
        characteristic: distribution of the noise in a copy of x, such as `noise.Laplace(0.3)`,
            whose characteristic function φ(ω) = E e^{i⟨ω, n⟩} is known and has no zeros; or φ
            itself, a function `omega[..., d] -> [...]`.

    Returns:
        `Frequencies`, for `moments.fourier`: `omega` `[P, d]` in radians per unit of x, `amplitude`
        c, and φ at all ω_j (`single` `[P]`), ω_j − ω_k and ω_j + ω_k (`difference` and `total`,
        `[P, P]`).

    Raises:
        ValueError: D is odd, or φ of the distribution is not known, has zeros or is not finite.

    Source: Rahimi and Recht, Random features for large-scale kernel machines (2007); Yu et al.,
    Orthogonal random features (2016).

    Example:
        >>> import jax, noisy_jax as nj
        >>> frequencies = nj.moments.gaussian_frequencies(
        ...     jax.random.key(0), 64, dim=2, length_scale=1.0, characteristic=nj.noise.Laplace(0.3)
        ... )
        >>> print(frequencies.omega.shape, frequencies.difference.shape)
        (32, 2) (32, 32)
    """
    pairs = number_of_pairs(num_features)
    dim = whole("dim", dim)
    length_scale = positive("length_scale", length_scale)
    omega = _orthogonal(parsed_key(key), pairs, dim) / length_scale
    if callable(characteristic) and not isinstance(characteristic, Noise):
        noise, phi = None, _at_pairs(characteristic, omega)
        single, _, total = phi
        hint = "for omega [P, d], one value for each frequency"
        check_shape("characteristic(omega)", single, (pairs,), hint)
        check_shape("characteristic(omega)", total, (pairs, pairs), "for omega [P, P, d]")
        if (array := concrete(total)) is not None and not np.all(np.isfinite(array)):
            raise ValueError("characteristic must be finite, but a value is NaN or infinite")
    else:
        hint = "one distribution, such as noise.Laplace(0.1), or a function of frequencies"
        noise = instance("characteristic", characteristic, Noise, hint)
        check_characteristic(noise, dim)
        phi = characteristics(noise, omega)
    amplitude = jnp.asarray(1 / np.sqrt(pairs))
    return Frequencies(omega, amplitude, *phi, noise)


@compiled
def characteristics(noise: Noise, omega: jax.Array, scale: Any = 1.0, copies: Any = 1):
    """φ of the error in the mean of `copies` over `scale`, as `Frequencies` has it.

    At ω `[P, d]`, and at differences and sums of two of them.
    """

    def phi(omega):
        ratio = jnp.broadcast_to(1 / (scale * copies), omega.shape)
        return jnp.exp(copies * cast(jax.Array, noise.log_characteristic(omega * ratio)))

    return _at_pairs(phi, omega)


def _at_pairs(phi, omega):
    """φ at ω_j, at ω_j − ω_k and at ω_j + ω_k."""
    return phi(omega), phi(omega[:, None] - omega[None]), phi(omega[:, None] + omega[None])


@functools.partial(jax.jit, static_argnums=(1, 2), inline=True)
def _orthogonal(key, pairs, dim):
    """Frequencies `[pairs, dim]` for ℓ = 1."""
    blocks = -(-pairs // dim)
    direction_key, length_key = jax.random.split(key)
    q, r = jax.vmap(qr)(normal(direction_key, (blocks, dim, dim)))
    directions = q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None]  # uniformly distributed
    lengths = jnp.linalg.norm(normal(length_key, (pairs, dim)), axis=1)
    return directions.reshape(-1, dim)[:pairs] * lengths[:, None]


def estimated_characteristic(
    frequencies: Frequencies, differences: Sums, *, copies: int = 2, floor: float = 0.05
) -> Frequencies:
    """Frequencies whose φ is estimated from replicates, for the mean of V copies.

    If the noise of one copy is symmetric with φ > 0 (Gaussian, Laplace, Student's t; not uniform),
    then E cos⟨ω, x̃ − x̃'⟩ = φ(ω)². The mean of V copies has the characteristic function
    φ(ω/V)^V, whose estimate is (mean cos⟨ω, (x̃ − x̃')/V⟩)^{V/2}. It takes the place of φ, so
    that the moments are consistent, but no longer unbiased.

    Args:
        frequencies: as `gaussian_frequencies` draws them; their φ is replaced.
        differences: `fourier(frequencies).sums` of samples whose features are (x̃ − x̃')/V, and whose
            targets are 1.
        copies: V ≥ 2.
        floor: smallest φ(ω/V) that is trusted; smaller estimates are replaced by it.
    """
    pairs = frequencies.omega.shape[0]
    cc, ss = differences.gram[:pairs, :pairs], differences.gram[pairs:, pairs:]

    def phi(cosines):
        mean = jnp.maximum(jnp.asarray(cosines / differences.count), floor**2)
        return (mean ** (copies / 2)).astype(frequencies.single.dtype)

    single, difference, total = phi(differences.cross[:pairs]), phi(cc + ss), phi(cc - ss)
    return frequencies._replace(single=single, difference=difference, total=total)
