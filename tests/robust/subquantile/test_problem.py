"""Claims on subquantile minimization that no other test shows: exact, by NumPy and SciPy."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm


def quantile(values, p):
    """The smallest t with Pr{U ≤ t} ≥ p; any larger one has it too, so there is no largest."""
    return np.sort(values)[np.ceil(p * len(values) - 1e-9).astype(int) - 1]


@pytest.mark.claim("SQ-quantile", "SQ-subquantile")
@pytest.mark.parametrize("p", [0.75, 0.8])
def test_subquantile_is_the_mean_of_the_quantiles_below(rng, p):
    """𝕃_p = (1/p) ∫₀^p Q_q dq = max_t {t − (1/p) E(t − U)⁺}, of fractions of a point as well."""
    values = rng.exponential(size=10)
    t, at = np.sort(values), quantile(values, p)
    integral = np.diff(np.minimum(np.arange(11) / 10, p)) @ t / p
    objective = t - np.mean(np.maximum(t[:, None] - values[None], 0), axis=1) / p
    np.testing.assert_allclose(objective.max(), integral, rtol=1e-12)
    assert objective[t == at] == pytest.approx(objective.max())  # also where others attain it
    below = values[values <= at].mean()  # E[U | U ≤ Q_p]
    assert (below == pytest.approx(integral)) == (p == 0.8)
    assert abs(at - integral) > 0.1  # as printed: Q_p under the integral


@pytest.mark.claim("SQ-Prop10")
@pytest.mark.parametrize(("n", "exact"), [(1000, 0.183), (100_000, 0.148)])
def test_largest_of_gaussians(n, exact):
    """Proposition 10 fails at s = 1; by Mills' ratio n^(1 − s²)/(s√(π log n)) holds."""

    def chance(s):
        return -np.expm1(n * np.log1p(-2 * norm.sf(s * np.sqrt(2 * np.log(n)))))

    def printed(s):
        return math.sqrt(2) / math.log(n) * math.exp(-(s**2))

    assert chance(1.0) == pytest.approx(exact, abs=1e-3)
    assert chance(1.0) > 2 * printed(1.0)
    for s in np.linspace(1, 3, 21):
        assert chance(s) <= n ** (1 - s**2) / (s * math.sqrt(math.pi * math.log(n)))


@pytest.mark.claim("SQ-Prop11")
def test_sums_of_squared_gaussians():
    """Proposition 11: P(Σμ² ≥ 8nσ²s) ≤ 4e^(−s) for s ≥ 1."""
    n, s = np.arange(1, 200)[:, None], np.linspace(1, 10, 91)[None]
    assert np.all(chi2.sf(8 * n * s, n) <= 4 * np.exp(-s))
    assert not np.all(chi2.sf(n * s, n) <= 4 * np.exp(-2 * s))


@pytest.mark.claim("SQ-Lemma12")
def test_weighted_sums_are_as_sub_gaussian_as_their_squared_weights():
    """Lemma 12, of coins: log E e^(λ Σ a_i X_i) ≤ ½λ² Σa_i², and by less than that it is not."""
    a, scales = np.array([0.3, -1.2, 2.0]), np.array([0.01, 0.5, 3.0])
    moments, bounds = np.log(np.cosh(np.outer(scales, a))).sum(axis=1), scales**2 * (a @ a) / 2
    assert np.all(moments <= bounds)
    assert moments[0] > 0.999 * bounds[0]


@pytest.mark.claim("SQ-Fact14")
def test_sums_of_binomial_coefficients():
    """Fact 14: Σ_{i ≤ k} C(n, i) ≤ (en/k)^k."""
    for n in (1, 2, 7, 30):
        for k in range(1, n + 1):
            assert sum(math.comb(n, i) for i in range(k + 1)) <= (math.e * n / k) ** k


@pytest.mark.claim("SQ-Jensen", "SQ-Prop17", "SQ-Prop22")
def test_standard_inequalities(rng):
    """Propositions 15 (Jensen), 17 (McDiarmid, of a mean of coins) and 22 (Young)."""
    a, b = rng.normal(size=(2, 1000))
    assert np.exp(a.mean()) <= np.exp(a).mean()
    assert np.all(a * b <= a**2 / 2 + b**2 / 2)
    n = 40
    successes = np.arange(n // 2, n + 1)
    tail, t = binom.sf(successes - 1, n, 0.5), successes / n - 0.5
    assert np.all(tail <= np.exp(-2 * n * t**2))
    assert np.any(tail > np.exp(-4 * n * t**2))


@pytest.mark.claim("SQ-Prop16")
def test_sums_over_the_worst_subset_grow_with_the_square_of_its_size():
    """Proposition 16, squared as the proofs use it, would keep them to order n^1.5 √(ε log 1/ε)."""
    share, ratios = 0.1, []
    for n in (10**3, 10**4, 10**5):
        x = norm.ppf((np.arange(n) + 0.5) / n)  # Γ = 1: the quantiles of a Gaussian sample
        worst = np.sort(x)[round(n * share / (1 - share)) :].sum() ** 2
        ratios.append(worst / (n**1.5 * math.sqrt(share * math.log(1 / share))))
        assert worst > 0.5 * n**2 * share**2 * math.log(1 / share)
    np.testing.assert_allclose(np.diff(np.log10(ratios)), 0.5, atol=0.02)  # unbounded


@pytest.mark.claim("SQ-Thm18")
def test_means_of_features():
    """Theorem 18, for all samples of six from three points: failures are rarer than δ."""
    x, p, n = np.array([-1.0, 0.2, 1.5]), np.array([0.5, 0.3, 0.2]), 6
    gram = np.exp(-((x[:, None] - x[None]) ** 2))
    samples = np.array(list(itertools.product(range(3), repeat=n)))
    gaps = np.eye(3)[samples].mean(axis=1) - p
    errors = np.sqrt(np.einsum("si,ij,sj->s", gaps, gram, gaps))
    chances = np.prod(p[samples], axis=1)
    assert chances @ errors <= n**-0.5
    for delta in (0.1, 0.5, 0.9, 0.99):
        assert chances @ (errors > n**-0.5 * (1 + math.sqrt(2 * math.log(1 / delta)))) <= delta
    assert errors.max() > n**-0.5 > errors.min()


@pytest.mark.claim("SQ-Prop19")
@pytest.mark.parametrize("dim", [1, 4])
def test_covariances_of_features(dim):
    """Proposition 19 takes E‖φ‖⁴ ≤ 2‖Γ‖²; of a Gaussian kernel it is 1, and the norm is small."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    root = np.sqrt(weights / weights.sum())
    gram = root[:, None] * np.exp(-((nodes[:, None] - nodes[None]) ** 2)) * root[None]
    largest, fourth = np.linalg.eigvalsh(gram)[-1] ** dim, 1.0  # k(x, x)² = P_k²
    np.testing.assert_allclose(largest, 0.5**dim, rtol=1e-12)
    assert 2 * largest**2 < 0.6 * fourth
    variance = fourth - np.sum(gram**2) ** dim  # n E‖Γ̂ − Γ‖²_HS, which is at most P_k²
    assert 0 < variance <= 1
    assert (variance > 8 * largest**2) == (dim == 4)


@pytest.mark.claim("SQ-Lemma21")
def test_the_objective_at_a_fixed_threshold_is_not_smooth():
    """Lemma 21: the slope jumps where a loss crosses t; from above it has the curvature 2."""
    t, f = 1.0, np.linspace(-2, 2, 401)
    value, slope = np.minimum(f**2 - t, 0), 2 * f * (f**2 < t)
    assert np.max(np.abs(np.diff(slope)) / np.diff(f)) > 100
    step = f[None] - f[:, None]
    assert np.all(value[None] <= value[:, None] + slope[:, None] * step + step**2 + 1e-12)


@pytest.mark.claim("SQ-Lemma23")
def test_descent_lowers_the_excess_and_not_the_objective():
    """Lemma 23: f⁺ − f* ≤ (1 − μ/ℓ)(f − f*); printed without f*, which need not be zero."""
    curvatures, least, x = np.array([0.5, 2.0]), 3.0, np.array([1.0, 0.5])

    def objective(x):
        return least + curvatures @ x**2 / 2

    after, factor = x - curvatures * x / 2.0, 1 - 0.5 / 2.0
    assert objective(after) - least <= factor * (objective(x) - least)
    assert objective(after) > factor * objective(x)


@pytest.mark.claim("SQ-Lemma24")
def test_logistic_gradients_are_bounded_by_the_norms_of_features(rng):
    """Lemma 24: (1/m)Σ‖φ_i‖ bounds them; max|c|·‖Σφ‖, as in its proof, does not."""
    features, labels = rng.normal(size=(30, 4)), rng.integers(0, 2, 30)
    for scale in (0.0, 1.0, 30.0):
        values = features @ (scale * rng.normal(size=4))
        gradient = ((1 / (1 + np.exp(-values)) - labels)[:, None] * features).mean(axis=0)
        assert np.linalg.norm(gradient) <= np.linalg.norm(features, axis=1).mean()
    opposite = c = np.array([1.0, -1.0])
    assert abs(c @ opposite) > np.abs(c).max() * abs(opposite.sum())


@pytest.mark.claim("SQ-Eq19")
def test_curvature_of_the_logistic_loss():
    """Eq. 19: s(1 − s) ≥ ¼e^(−|f|); printed with ½, it fails near zero."""
    f = np.linspace(-8, 8, 1601)
    curvature, bound = np.exp(-f) / (1 + np.exp(-f)) ** 2, np.exp(-np.abs(f)) / 4
    assert np.all(curvature >= bound)
    np.testing.assert_array_equal(curvature < 2 * bound, np.abs(f) < -np.log(np.sqrt(2) - 1))


@pytest.mark.claim("SQ-ζ")
def test_share_of_honest_rows_among_those_kept(rng):
    """At least ζ = (1 − 2ε)/(1 − ε), where all corrupted rows are kept; printed upside down."""
    n, share = 1000, 0.2
    corrupted = np.arange(n) < n * share
    for losses in (rng.exponential(size=n), np.where(corrupted, 0.0, 1 + rng.random(n))):
        honest = np.mean(~corrupted[np.argsort(losses)[: round(n * (1 - share))]])
        assert (1 - 2 * share) / (1 - share) <= honest + 1e-12
    assert honest == pytest.approx((1 - 2 * share) / (1 - share))
    assert (1 - share) / (1 - 2 * share) > 1


@pytest.mark.statistical
@pytest.mark.claim("SQ-Thm5")
def test_the_error_of_trimmed_fits_does_not_vanish(rng):
    """A share of labels moved by two deviations of the noise: no n makes up for it.

    Instances on a circle, λ_m = ½ and P_k = 1: the share is below 8^(−½)(λ_m/P_k)² = .088, as
    Theorem 5 asks.
    """
    share, weights = 0.08, np.array([1.0, -0.5])

    def error(n, corrupted):
        angle = rng.uniform(0, 2 * np.pi, n)
        x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        y = x @ weights + rng.normal(size=n)
        bad = np.arange(round(share * n))
        if corrupted:
            y[bad] = x[bad] @ weights + 2 * np.sign(x[bad, 0])
        w = np.zeros(2)
        for _ in range(30):
            kept = np.argsort((x @ w - y) ** 2)[: n - len(bad)]
            w = np.linalg.lstsq(x[kept], y[kept])[0]
        return np.linalg.norm(w - weights)

    large = error(50_000, True)
    assert large > 0.1
    assert error(50_000, False) < 0.2 * large
