"""What is known of the noise, in every form, and by the names of columns.

`test_tables.py` tests the tables that are made.
"""

import jax
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.observed.rows import gaussians

X, Y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)


@pytest.mark.parametrize(
    "noise", [0.25, [0.25] * 3, 0.25 * np.eye(3), nj.noise.Gaussian(0.25), gaussians([0.25] * 20)]
)
def test_every_form_of_a_covariance_means_the_same(noise):
    table = from_arrays(X, Y, noise=noise)
    np.testing.assert_array_equal(np.broadcast_to(table.cov, (20, 3, 3))[7], 0.25 * np.eye(3))
    np.testing.assert_array_equal(table.x[:, 0], X)


@pytest.mark.parametrize("form", ["one distribution", "one a row"])
def test_a_known_mean_of_the_noise_is_subtracted(form):
    mean = np.array([3.0, -1.0, 0.5])
    noise = nj.noise.Gaussian(np.full(3, 0.1), mean=mean)
    if form == "one a row":
        rows = np.full((20, 3), 0.1), np.tile(mean, (20, 1))
        noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(*rows))
    np.testing.assert_allclose(from_arrays(X + mean, Y, noise=noise).x[:, 0], X, atol=1e-6)


@pytest.mark.parametrize(
    "noise",
    [
        {"c": 0.3, "a": 0.1},
        pd.Series([0.3, 0.0, 0.1], index=["c", "b", "a"]),
        pd.DataFrame(np.diag([0.0, 0.3, 0.1]), index=["b", "c", "a"], columns=["b", "c", "a"]),
        pd.Series([0.1, 0.0, 0.3]),
    ],
)
def test_noise_with_labels_is_taken_by_name(noise):
    table = from_arrays(pd.DataFrame(X, columns=["a", "b", "c"]), Y, noise=noise)
    np.testing.assert_allclose(table.cov, np.diag([0.1, 0.0, 0.3]))


def test_names_are_a_list_and_become_texts():
    with pytest.raises(ValueError, match="must be a list of 2 names"):
        from_arrays(np.eye(3)[:, :2], np.ones(3), noise=0.1, names="ab")
    assert from_arrays(np.eye(3)[:, :2], np.ones(3), noise=0.1, names=[1, 2]).names == ("1", "2")
