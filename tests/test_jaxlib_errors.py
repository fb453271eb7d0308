"""jaxlib computes what the library relies on, or the library avoids what it does not."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.jaxlib_errors import avoid_wrong_sums

FLAG = "--xla_cpu_experimental_ynn_fusion_type"


@pytest.mark.parametrize("rows", [16_385, 20_000, 40_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_beside_a_product_are_those_of_their_own_rows(x64, rng, dtype, rows):
    """Those of jaxlib 0.10.2 are not, from 128 KiB on (https://github.com/jax-ml/jax/issues/39103)."""
    x, z = (rng.normal(size=(n, 3)).astype(dtype) for n in (3, rows))
    gram = jax.jit(nj.kernels.gaussian(length_scale=1.0))(x, z)
    expected = np.exp(-np.sum((x[:, None] - z[None]) ** 2, axis=-1) / 2)
    np.testing.assert_allclose(gram, expected, atol=1e-5)
    scaled = jax.jit(jax.vmap(lambda row: jnp.sum((x @ row) ** 2)))(z)
    np.testing.assert_allclose(scaled, np.sum((z @ x.T) ** 2, axis=1), rtol=1e-4)


@pytest.mark.parametrize("flags", ["", "--xla_cpu_max_isa=AVX2"])
def test_the_flag_is_set_for_the_wrong_version_only(monkeypatch, flags):
    monkeypatch.setattr("jax._src.xla_bridge.backends_are_initialized", lambda: False)
    monkeypatch.setenv("XLA_FLAGS", flags)
    monkeypatch.setattr("jaxlib.version.__version__", "0.10.1")
    avoid_wrong_sums()
    assert os.environ["XLA_FLAGS"] == flags
    monkeypatch.setattr("jaxlib.version.__version__", "0.10.2")
    for _ in range(2):  # once is enough
        avoid_wrong_sums()
        assert os.environ["XLA_FLAGS"] == f"{flags} {FLAG}=-reduce".strip()


def test_what_comes_too_late_is_said_unless_the_user_has_chosen(monkeypatch):
    jax.devices()
    monkeypatch.setattr("jaxlib.version.__version__", "0.10.2")
    monkeypatch.setenv("XLA_FLAGS", "")
    with pytest.warns(UserWarning, match="import noisy_jax before JAX makes its first array"):
        avoid_wrong_sums()
    assert os.environ["XLA_FLAGS"] == ""
    monkeypatch.setenv("XLA_FLAGS", f"{FLAG}=-dot")
    avoid_wrong_sums()
