import functools
import pickle

import jax
import numpy as np

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from noisy_jax.sklearn import OnlineRegressor


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
