"""Claims on NORMA that no other test shows, by NumPy."""

import numpy as np
import pytest

from noisy_jax import losses
from tests.learners import references
from tests.learners.norma_runs import PLAIN as KERNEL
from tests.learners.norma_runs import labelled

T = 80


def hinge(rate, margin=1.0):
    return lambda t, p, y, s: (rate * y * (y * p <= margin), s)


@pytest.mark.claim("NORMA-Eq7-9")
def test_the_step_shrinks_by_its_own_rate(rng):
    """f − η_t ∂R_inst = (1 − η_t λ)f − η_t ℓ'k; Eq. 9 prints a constant η in the first factor."""
    w, x, y, rate, constant, lam = *rng.normal(size=(2, 3)), 0.4, 0.2, 0.9, 0.5
    gradient = np.zeros(3)
    for i, unit in enumerate(1e-6 * np.eye(3)):
        ends = [((v @ x - y) ** 2 + lam / 2 * v @ v) for v in (w + unit, w - unit)]
        gradient[i] = (ends[0] - ends[1]) / 2e-6
    moved = -rate * 2 * (w @ x - y) * x
    np.testing.assert_allclose((1 - rate * lam) * w + moved, w - rate * gradient, atol=1e-8)
    assert np.abs((1 - constant * lam) * w + moved - w + rate * gradient).max() > 0.1


@pytest.mark.claim("NORMA-II.D-speedup")
def test_rescaled_storage(rng):
    """f_t = β^(t−1) Σ α_i β^(−i) k(x_i, ·), t from 1; printed with β = 1 − η and the power t."""
    (x, y), rate, lam = labelled(rng, T), 0.3, 0.1
    predictions, *_ = references.norma(
        KERNEL, hinge(rate), lambda t, added: 1 - rate * lam, x, y, oldest=lambda t: 0
    )
    births = rate * y * (y * predictions <= 1)
    t = np.arange(1, T + 1)
    gram = np.tril(KERNEL(x[:, None], x[None]), -1)

    def rescaled(beta, power):
        return beta**power * (gram @ (births * beta ** (-1.0 * t)))

    np.testing.assert_allclose(rescaled(1 - rate * lam, t - 1), predictions, atol=1e-12)
    for beta, power in ((1 - rate, t), (1 - rate * lam, t), (1 - rate, t - 1)):
        assert np.abs(rescaled(beta, power) - predictions).max() > 0.01


@pytest.mark.statistical
@pytest.mark.claim("NORMA-λ=1")
def test_regularization_only_scales_a_nu_classifier(rng):
    """(η, λ) and (ηλ, 1): f, b and ρ times λ, the same decisions; not so of Huber's loss."""
    (x, y), rate, lam, nu = labelled(rng, T), 0.5, 0.2, 0.3

    def run(step, rate, lam):
        found = references.norma(
            KERNEL, lambda t, *values: step(rate, *values), lambda t, added: 1 - rate * lam, x, y,
            oldest=lambda t: 0, offset=True,
        )  # fmt: skip
        return np.concatenate([np.ravel(part) for part in found])

    def classifier(e, p, y, s):
        error = y * p <= s
        return e * y * error, s + e * (nu - error)

    def huber(e, p, y, s):
        return e * np.clip((y - p) / 0.6, -1, 1), s

    np.testing.assert_allclose(
        lam * run(classifier, rate, lam), run(classifier, rate * lam, 1.0), atol=1e-13
    )
    assert np.abs(lam * run(huber, rate, lam) - run(huber, rate * lam, 1.0)).max() > 0.05


@pytest.mark.statistical
@pytest.mark.claim("NORMA-Eq24")
def test_the_printed_huber_update_is_no_gradient_step(rng):
    """α_t = ηδ/σ within σ and decay 1 − λη; printed δ/σ and 1 − η."""
    rate, lam, width = 0.1, 0.1, 0.3
    near = np.array([0.1, width * (1 - 1e-9)])
    step = -rate * losses.huber(width=width).derivative(-near)
    np.testing.assert_allclose(step, rate * near / width, rtol=1e-6)
    assert near[1] / width > 9 * step[1]  # what is printed jumps by 1/η where ℓ' does not
    x = rng.uniform(-3, 3, size=(800, 1))
    clean = np.sin(2 * x[:, 0])
    y = clean + 0.2 * rng.normal(size=len(x))

    def error(within, decay):
        def added(t, p, y, s):
            gap = y - p
            return rate * np.sign(gap) if abs(gap) > width else within * gap / width, s

        predictions, *_ = references.norma(
            references.gaussian_kernel(0.5), added, lambda t, _: 1 - decay, x, y,
            oldest=lambda t: t - 400,
        )  # fmt: skip
        return np.mean((predictions - clean)[400:] ** 2)

    assert error(1.0, rate) > 3 * error(rate, rate * lam)


@pytest.mark.claim("NORMA-Cor5")
def test_the_average_is_over_the_hypotheses_that_predicted(rng):
    """(1/m) Σ f_t over t = 1, …, m has coefficients α_i(1 − β^(m−i))/(mηλ); printed to m − 1."""
    (x, y), rate, lam = labelled(rng, 40), 0.5, 0.2
    m, beta = len(y), 1 - rate * lam
    played = np.zeros((m, m))
    for t in range(m - 1):
        value = y[t] * (played[t, :t] @ KERNEL(x[:t], x[t]))
        played[t + 1] = beta * played[t]
        played[t + 1, t] = rate * y[t] * (value <= 1)
    births = np.append(np.diagonal(played, -1), 0.0)
    average = births * (1 - beta ** (m - 1.0 - np.arange(m))) / (m * rate * lam)
    np.testing.assert_allclose(played.mean(axis=0), average, atol=1e-14)
    printed = played[:-1].sum(axis=0) / m
    np.testing.assert_allclose(average - printed, played[-1] / m, atol=1e-14)
    assert np.abs(average - printed).max() > 0.01
    # Convexity: no more risk than the mean of those played.
    points, target = labelled(rng, 200)
    values = KERNEL(points[:, None], x[None]) @ played.T
    hinge = np.maximum(1 - target[:, None] * values, 0).mean()
    assert np.maximum(1 - target * values.mean(axis=1), 0).mean() <= hinge
