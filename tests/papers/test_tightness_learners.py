import numpy as np
import pytest

import noisy_jax as nj
from tests.quadrature import gauss_hermite
from tightness_learners import DECAY, EXCESS, LARGEST, families
from tightness_memory import growing_start


def family_of(learner):
    return next(f for f in families(2.0) if f.cases[0].learner == learner)


def test_comparators_of_stored_atoms_are_those_of_the_kernel_averaged_over_the_noise(rng):
    """‖û‖² = aᵀK̂a for u = Σ a_i Ψ(z_i), whose values are Σ a_i E k(x + n, z_i)."""
    smoothed = family_of("parallel_worlds").regret.keywords["kernel"]
    x, z = rng.normal(size=(3, 1)), rng.normal(size=(4, 1))
    nodes, weights = gauss_hermite(40, 1.0, 1)
    kernel = nj.kernels.gaussian(length_scale=1.5)
    expected = sum(w * kernel(x + node, z) for node, w in zip(nodes, weights, strict=True))
    np.testing.assert_allclose(smoothed(x, z), expected, rtol=1e-5)


def test_a_growing_memory_is_that_of_the_theorem_and_drops_terms():
    corrected, printed = family_of("norma, growing").cases
    moments = nj.bounds.DataMoments(1.0, 1.0, 4.0, 0.0)
    for case in corrected, printed:
        rate = case.guarantee(moments, horizon=128, radius=0.5).learning_rate
        assert float(rate) / 0.5 == pytest.approx(DECAY)  # ηλ, with λ = 1/0.5
    state = family_of("norma, growing").build(0.5, 0.45, None).init(1)
    assert growing_start(DECAY, EXCESS) < len(state.weights) < LARGEST
