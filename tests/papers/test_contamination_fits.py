import jax
import numpy as np
import pytest

import contamination_fits as fits
import noisy_jax as nj


@pytest.mark.slow
def test_real_data_are_split_and_scaled():
    stream = nj.Stream(np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]] * 5), np.arange(15.0))
    setting = fits.real(stream, length_scale=1.0, alpha=1.0)
    table = setting.draw(jax.random.key(0))
    every = np.sort(np.concatenate([table.y, table.test_y]))
    np.testing.assert_allclose(every, np.arange(15) / np.arange(15).std(), rtol=1e-5)
    assert table.x.shape == (10, 2)
    assert np.isfinite(table.x).all()
