import jax
import jax.numpy as jnp
import numpy as np

import noisy_jax as nj
from noisy_jax.features import cosines_and_sines
from tests.errors import raises


def test_waves_of_numpy_and_of_jax_are_the_real_and_imaginary_parts_of_exponentials(x64, rng):
    x, frequencies = rng.normal(size=(4, 3, 2)), rng.normal(size=(5, 2))
    shift, amplitude = rng.normal(size=5), rng.uniform(size=5)
    plain = np.exp(2j * np.pi * x @ frequencies.T)
    expected = np.concatenate([plain.real, plain.imag], axis=-1)
    turned = amplitude * plain * np.exp(-2j * np.pi * shift)
    turned = np.concatenate([turned.real, turned.imag], axis=-1)
    for convert in (np.asarray, jnp.asarray):
        arguments = [convert(a) for a in (x, frequencies, shift, amplitude)]
        waves = cosines_and_sines(*arguments[:2])
        assert isinstance(waves, np.ndarray) == (convert is np.asarray)
        np.testing.assert_allclose(waves, expected, atol=1e-12)
        np.testing.assert_allclose(cosines_and_sines(*arguments), turned, atol=1e-12)


def test_waves_in_float32_are_right_to_4e_7():
    turns = np.linspace(-50, 50, 400_001, dtype=np.float32) / np.float32(2 * np.pi)
    waves = np.asarray(cosines_and_sines(jnp.asarray(turns)[:, None], jnp.ones((1, 1))), np.float64)
    phases = 2 * np.pi * turns.astype(np.float64)
    assert waves.shape == (400_001, 2)
    np.testing.assert_allclose(waves, np.c_[np.cos(phases), np.sin(phases)], rtol=0, atol=4e-7)


def test_random_features_are_entire_although_they_round():
    """In float32 the sine of the library clips, which nj.unbiased.pair must not stumble on."""
    kernel = nj.kernels.gaussian(length_scale=0.7)
    features = nj.kernels.fourier_features(kernel, jax.random.key(0), num_features=8)
    copies = np.array([[3.1, -2.0], [2.8, -1.5]], np.float32)
    found = jax.jit(nj.unbiased.pair(features))(copies)
    assert found.dtype == jnp.float32
    omega = np.asarray(kernel.spectrum(jax.random.key(0), 4, 2), np.float64)
    angles = omega @ (copies.mean(axis=0) + 0.5j * (copies[0] - copies[1]))
    expected = np.concatenate([np.cos(angles), np.sin(angles)]).real / 2
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    def cosine_and_sine(x):
        return jnp.abs(x)

    raises("'abs'", jax.eval_shape, nj.unbiased.pair(jax.jit(cosine_and_sine)), copies)
