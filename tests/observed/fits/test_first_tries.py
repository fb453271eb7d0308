"""What a new user tries first: a clear message names the right call; predictions run under jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays


def data(rng, n=300):
    x = rng.normal(size=(n, 2)) + np.array([5.0, 0.0])
    return x, x @ [1.0, -0.5] + 0.1 * rng.normal(size=n)


def predictors(rng):
    x, y = data(rng)
    table = from_arrays(x, y, noise=nj.noise.Gaussian(0.1))
    labels = 1.0 * (y > y.mean() + rng.normal(size=len(y)))
    yield nj.fit(table)
    yield nj.fit(from_arrays(x, labels, noise=0.1), model="logistic")
    yield nj.fit(from_arrays(x, rng.poisson(np.exp(y - 6)), noise=0.1), model="poisson")
    yield nj.fit(table, nj.fourier(length_scale=1.0, num_features=8))
    yield nj.learn(nj.learners.known_covariance(radius=3.0), table, jax.random.key(0))


def test_predictions_are_the_same_under_jit_vmap_and_grad(rng):
    x = rng.normal(size=(7, 2)) + np.array([5.0, 0.0])
    for fit in predictors(rng):
        expected = fit.predict(x)
        assert expected.dtype == np.float64
        scale = np.abs(expected).max()
        for predict in (jax.jit(fit.predict), jax.vmap(fit.predict)):
            np.testing.assert_allclose(predict(jnp.asarray(x)), expected, atol=2e-5 * scale)
        slope = jax.grad(fit.predict)(jnp.asarray(x[0]))
        step = 1e-3 * np.eye(2)
        change = [(fit.predict(x[0] + e) - fit.predict(x[0] - e)) / 2e-3 for e in step]
        np.testing.assert_allclose(slope, change, rtol=1e-2, atol=1e-3 * scale)
        with pytest.raises(ValueError, match=r"x must be|could not be broadcast"):
            jax.jit(fit.predict)(jnp.zeros((4, 3)))


def test_features_without_a_table_get_the_right_call(rng):
    x, y = data(rng)
    for given in (x, jnp.asarray(x), pd.DataFrame(x), x.tolist()):
        with pytest.raises(ValueError, match=r"nj\.observations\.from_arrays\(x, y, noise=…\)"):
            nj.fit(given, y)
    with pytest.raises(ValueError, match=r"nj\.observations\.csv\('file\.csv', target=…"):
        nj.fit("file.csv")


def test_replicates_on_the_last_axis_are_found(rng):
    """By names, by the noise, and by the means of what would be replicates."""
    x, y = data(rng)
    swapped = x[:, :, None] + 0.1 * rng.normal(size=(len(x), 2, 3))
    swap = r"np\.swapaxes\(x, 1, 2\)"
    for known in ({"names": ["a", "b"]}, {"noise": [0.01, 0.01]}, {"noise": 0.01 * np.eye(2)}):
        with (
            pytest.warns(UserWarning, match=swap),
            pytest.raises(ValueError, match=swap),
        ):
            from_arrays(swapped, y, **known)
    with pytest.warns(UserWarning, match="different means.*" + swap):
        from_arrays(swapped, y)
    from_arrays(np.swapaxes(swapped, 1, 2), y)  # no warning


def test_fits_inside_jit_say_that_they_run_on_the_host(rng):
    x, y = data(rng)
    table = from_arrays(x, y, noise=nj.noise.Gaussian(0.1))

    def inside(x):
        return nj.fit(from_arrays(x, y, noise=0.1)).coefficients

    with pytest.raises(ValueError, match="outside jit"):
        jax.jit(inside)(x)
    features = nj.fourier(length_scale=1.0, num_features=8)
    with pytest.raises(ValueError, match="outside jit"):
        jax.jit(lambda: nj.fit(table, features).weights)()


def test_a_factory_in_a_study_says_to_call_it():
    stream = nj.streams.linear(jax.random.key(0), 8, 2)
    with pytest.raises(ValueError, match=r"function two_copies.*call it, as two_copies\("):
        nj.study(
            {"a": nj.learners.two_copies}, stream, nj.noise.Gaussian(0.1), jax.random.key(0),
            num_seeds=2, horizons=[8],
            comparator=lambda past: nj.comparators.linear_ball(past, 1.0),
        )  # fmt: skip


def test_a_negative_variance_names_its_column(rng):
    x, y = data(rng)
    with pytest.raises(ValueError, match=r"noise\['x2'\] must be finite and >= 0, got -1"):
        from_arrays(x, y, noise={"x1": 0.1, "x2": -1.0})
