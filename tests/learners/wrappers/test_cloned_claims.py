"""Claims on clones of a copy, by NumPy."""

import numpy as np
import pytest

from tests.learners import references
from tests.residuals import signs


@pytest.mark.claim("EXT-Cloning")
def test_clones_average_to_the_gradient_of_one_copy(rng):
    """E_ξ 2(⟨w, x̃ + ξ⟩ − y)(x̃ − ξ) = 2(⟨w, x̃⟩ − y)x̃ − 2Σw, and not −Σw."""
    w, x, y = *rng.normal(size=(2, 2)), 0.3
    root = rng.normal(size=(2, 2))
    xi = signs(2) @ root.T
    mean = np.mean(2 * ((x + xi) @ w - y)[:, None] * (x - xi), axis=0)
    given = w, x[None], y, root @ root.T
    np.testing.assert_allclose(mean, references.gradient("known_covariance", *given), atol=1e-12)
    assert np.abs(mean - references.gradient("as_printed", *given)).max() > 0.1
