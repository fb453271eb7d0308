import functools
import pickle

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from noisy_jax.sklearn import OnlineRegressor
from tests.errors import raises, told


@pytest.mark.slow
def test_pieces_are_one_pass_also_behind_a_pickle(rng):
    x = rng.normal(size=(600, 2))
    noisy, y = x + 0.5 * rng.normal(size=x.shape), x @ [2.0, -1.0] + 3
    make = functools.partial(nj.learners.known_covariance, radius=3.0)
    parts = [slice(0, 300), slice(300, 450), slice(450, 600)]
    model = OnlineRegressor(make, noise=0.25, random_state=1)
    for part in parts:
        model = pickle.loads(pickle.dumps(model.partial_fit(noisy[part], y[part])))
    chunks = [from_arrays(noisy[part], y[part], noise=0.25) for part in parts]
    expected = nj.learn(make(), chunks, jax.random.key(1))
    np.testing.assert_allclose(model.predict(x), expected.predict(x), rtol=1e-5)
    np.testing.assert_allclose(model.clean_score_, 1 - expected.risk / expected.variance, rtol=1e-5)
    assert model.result_.num_rows == expected.num_rows == 525
    assert model.fit(noisy[:300], y[:300]).result_.num_rows == 225


@pytest.mark.slow
def test_the_last_chunk_may_have_one_row_and_the_seed_is_kept(rng):
    noisy = rng.normal(size=(41, 1))
    y = 2 * noisy[:, 0] + rng.normal(size=41)
    models = [OnlineRegressor(random_state=np.random.RandomState(3)) for _ in range(2)]
    for model in models:
        model.partial_fit(noisy[:40], y[:40])
        seed = model._seed
        model.partial_fit(noisy[40:], y[40:])
        assert model._seed == seed
    np.testing.assert_array_equal(models[0].predict(noisy), models[1].predict(noisy))
    assert models[0].result_.num_rows == 31
    assert np.isfinite(OnlineRegressor(random_state=None).fit(noisy, y).predict(noisy)).all()


@pytest.mark.slow
def test_sample_weights_count_rows(rng):
    """Twice everywhere changes nothing; 3 and 1 weigh two lines as 3:1; 0 leaves rows out."""
    x = rng.normal(loc=[5.0, -3.0], size=(2000, 2))
    first = rng.random(2000) < 0.5
    y = np.where(first, x @ [1.0, 2.0] + 4, x @ [-1.0, 0.5] + 9.5) + rng.normal(size=2000)
    noisy = x + 0.5 * rng.normal(size=x.shape)

    def coefficients(weights):
        model = OnlineRegressor(noise=0.25)
        for part in (slice(0, 1000), slice(1000, 2000)):
            own = None if weights is None else weights[part]
            model.partial_fit(noisy[part], y[part], sample_weight=own)
        return model.result_.coefficients

    plain, twice = coefficients(None), coefficients(np.full(2000, 2.0))
    np.testing.assert_allclose(twice, plain, atol=0.01)
    np.testing.assert_allclose(coefficients(1.0 * first), [1.0, 2.0], atol=0.2)
    threefold = coefficients(np.where(first, 3.0, 1.0))
    np.testing.assert_allclose(threefold, [0.5, 1.625], atol=0.25)
    np.testing.assert_allclose(plain, [0.0, 1.25], atol=0.25)
    model = OnlineRegressor(kernel_learner)
    raises("sample weights are for linear", model.partial_fit, noisy, y, sample_weight=first + 1.0)
    model = OnlineRegressor(noise=0.25)
    late = np.arange(2000) > 1900
    raises("must not all be zero", model.partial_fit, noisy, y, sample_weight=1.0 * late)


def kernel_learner():
    kernel = nj.kernels.gaussian(length_scale=1.0)
    return nj.learners.uncorrected_kernel(kernel, horizon=2000, radius=1.0)


def test_a_learner_that_is_none_and_a_switch_that_is_none():
    x, y = np.eye(4)[:, :2], np.arange(4.0)
    for options, message in (
        ({"learner": "two copies"}, "learner must be a function"),
        ({"standardize": "no"}, "standardize must be True or False"),
    ):
        with told(message):
            OnlineRegressor(**options).fit(x, y)
