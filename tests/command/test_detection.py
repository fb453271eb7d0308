import jax.numpy as jnp
import numpy as np
from sklearn.metrics import roc_auc_score

from noisy_jax.command.detection import auc, effective_terms


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
