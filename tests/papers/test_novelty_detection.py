import jax.numpy as jnp
import numpy as np
from sklearn.metrics import roc_auc_score

from novelty_detection import FALLING, Rate, auc, effective_terms


def test_auc_counts_ties_half(rng):
    scores, positive = rng.integers(0, 5, 40), rng.random(40) < 0.3
    found = auc(jnp.asarray(scores), jnp.asarray(positive))
    np.testing.assert_allclose(found, roc_auc_score(positive, scores), rtol=1e-6)


def test_effective_terms():
    def terms(*weights):
        return effective_terms(jnp.array(weights))

    assert terms(2.0, 2.0, 0.0, 2.0) == 3
    np.testing.assert_allclose(terms(3.0, 1.0), 1.6, rtol=1e-6)
    np.testing.assert_allclose(terms(3e-30, 1e-30), 1.6, rtol=1e-6)  # squares underflow
    assert terms(0.0, 0.0) == 0


def test_rates_fall_or_are_constant():
    assert (FALLING.name, Rate(0.002, falling=False).name) == ("t^(−1/2)", "0.002")
    np.testing.assert_allclose(FALLING(jnp.array([0, 3])), [1, 0.5])
    np.testing.assert_allclose(Rate(0.002, falling=False)(jnp.array([0, 3])), [0.002] * 2)
