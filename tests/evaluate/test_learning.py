"""Learning from observed rows: no noise is added, and the risk is that on clean data."""

import jax
import numpy as np
import pytest

import noisy_jax as nj


def table(copies=1, noise=1.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 2))
    y = 5 + x @ [2.0, -1.0] + 0.1 * rng.normal(size=6000)
    noisy = 100 + 10 * (x[:, None] + rng.normal(size=(6000, copies, 2)))
    return x, y, nj.observations.from_arrays(noisy, y, noise=None if noise is None else 100.0)


@pytest.mark.parametrize("copies", [1, 2])
def test_the_leader_predicts_clean_rows_and_knows_its_error(copies):
    x, y, observed = table(copies, 1.0 if copies == 1 else None)
    moments = nj.moments.known_covariance() if copies == 1 else nj.moments.two_copies()
    learned = nj.learn(nj.learners.corrected_ftrl(moments), observed, jax.random.key(0))
    error = np.mean((learned.predict(100 + 10 * x) - y) ** 2)
    assert error < 0.05
    # The early predictions are worse than the last: the progressive risk is above its error.
    assert -5 * learned.risk_std_error < learned.risk - error < 0.3


def test_a_learner_without_readings_has_no_risk():
    _, _, observed = table()
    learner = nj.learners.uncorrected(radius=2.0, learning_rate=0.01)
    learned = nj.learn(learner, observed, jax.random.key(0))
    assert np.isnan(learned.risk)
    assert np.isfinite(learned.predict([[100.0, 100.0]])).all()


def test_too_few_replicates_are_an_error():
    _, _, observed = table()
    learner = nj.learners.two_copies(radius=2.0, learning_rate=0.01)
    with pytest.raises(ValueError, match="needs 2 noisy copies of each row, but there are 1"):
        nj.learn(learner, observed, jax.random.key(0))


def test_noise_beyond_the_rows_own_variance_is_an_error_and_chance_is_not(rng):
    """Rows of pure noise vary less than it in half of all tables; a fifth less is no chance."""
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    x, y = rng.normal(size=(2000, 2)), rng.normal(size=2000)

    def learned(variances, names=("dose", "age")):
        observed = nj.observations.from_arrays(x, y, noise=variances, names=names)
        return nj.learn(learner, observed, jax.random.key(0))

    assert np.isfinite(learned([1.02, 1.0]).risk)
    with pytest.raises(ValueError, match=r"'age' is not identified: its noise variance, 1.5,"):
        learned([0.5, 1.5])
    with pytest.raises(ValueError, match=r"combination .* is not identified"):
        learned([[0.9, 0.5], [0.5, 0.9]])
