import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from tests.keys import key

KERNELS = {
    "gaussian": nj.kernels.gaussian(length_scale=0.8),
    "laplacian": nj.kernels.laplacian(length_scale=0.8),
    "matern_5": nj.kernels.matern(nu=2.5, length_scale=0.8),
    "rational": nj.kernels.rational(length_scale=0.8, alpha=0.7),
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", KERNELS)
def test_inner_products_have_the_kernel_for_their_mean(name, rng):
    x = jnp.asarray(rng.normal(size=(4, 3)), jnp.float32)
    pairs = 50_000
    z = nj.kernels.fourier_features(KERNELS[name], key(0), 2 * pairs)(x)
    np.testing.assert_allclose(jnp.sum(z**2, axis=1), 1, rtol=1e-4)
    # One pair of features has a variance of at most 1.
    np.testing.assert_allclose(z @ z.T, KERNELS[name](x, x), atol=5 / pairs**0.5)


@pytest.mark.slow
def test_the_map_is_a_plain_function():
    features = nj.kernels.fourier_features(KERNELS["gaussian"], jax.random.key(0), 8)
    x = jnp.linspace(-1, 1, 12).reshape(2, 3, 2)
    assert features(x).shape == (2, 3, 8)
    np.testing.assert_allclose(jax.jit(jax.vmap(features))(x), features(x), atol=1e-6)
    assert jax.jacfwd(features)(x[0, 0]).shape == (8, 2)
