"""jaxlib computes what the library relies on, or the library avoids what it does not."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.jaxlib_errors import avoid_wrong_sums
from tests.running import printed

FLAG = "--xla_cpu_experimental_ynn_fusion_type"


@pytest.mark.parametrize(
    ("dtype", "rows"), [(np.float64, 16_385), (np.float64, 40_000), (np.float32, 40_000)]
)
def test_sums_beside_a_product_are_those_of_their_own_rows(rng, dtype, rows):
    """Those of jaxlib 0.10.2 are not, from 128 KiB on (https://github.com/jax-ml/jax/issues/39103)."""
    x, z = (rng.normal(size=(n, 3)).astype(dtype) for n in (3, rows))
    with jax.enable_x64(dtype == np.float64):
        gram = jax.jit(nj.kernels.gaussian(length_scale=1.0))(x, z)
        scaled = jax.jit(jax.vmap(lambda row: jnp.sum((x @ row) ** 2)))(z)
    assert gram.dtype == dtype
    expected = np.exp(-np.sum((x[:, None] - z[None]) ** 2, axis=-1) / 2)
    np.testing.assert_allclose(gram, expected, atol=1e-5)
    np.testing.assert_allclose(scaled, np.sum((z @ x.T) ** 2, axis=1), rtol=1e-4, atol=1e-4)


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
        assert os.environ["XLA_FLAGS"] == f"{FLAG}=-reduce {flags}".strip()


def test_an_import_sets_it():
    code = """
import jaxlib.version, os
jaxlib.version.__version__ = "0.10.2"
import noisy_jax
print(os.environ["XLA_FLAGS"])
"""
    assert printed("-c", code, XLA_FLAGS="") == f"{FLAG}=-reduce\n"


@pytest.mark.parametrize(
    ("started", "flags"), [(True, ""), (False, "flags.txt"), (False, f"{FLAG}=-dot")]
)
def test_where_the_flag_has_no_effect_there_is_a_warning(monkeypatch, started, flags):
    monkeypatch.setattr("jax._src.xla_bridge.backends_are_initialized", lambda: started)
    monkeypatch.setattr("jaxlib.version.__version__", "0.10.2")
    monkeypatch.setenv("XLA_FLAGS", flags)
    with pytest.warns(UserWarning, match=f"before JAX starts, or add {FLAG}=-reduce to XLA_FLAGS"):
        avoid_wrong_sums()
    assert os.environ["XLA_FLAGS"] == flags
