"""Guarantees of NORMA against runs of it: plain NumPy loops, over many streams at once."""

from decimal import Decimal, getcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.bounds import (
    Drift,
    a_priori,
    as_printed,
    drift,
    margin_errors,
    mistakes,
    regularized_risk,
    truncation_error,
)
from tests.drifting import drifting_streams, hinge

STILL = Drift(norm=2.0, length=0.0, squared_length=0.0)


def soft_margin_run(x, y, learning_rate, regularization, margin):
    """Margin errors and mistakes `[S]` on streams x `[S, m, d]`, y `[S, m]`, linear kernel."""
    w = np.zeros((len(x), x.shape[2]))
    errors, wrong = np.zeros((2, len(x)))
    for t in range(x.shape[1]):
        value = y[:, t] * np.sum(w * x[:, t], axis=1)
        update = value <= margin
        errors += update
        wrong += value <= 0
        w *= (1 - learning_rate * regularization)[:, None]
        w += (learning_rate * update * y[:, t])[:, None] * x[:, t]
    return errors, wrong


@pytest.mark.claim("NORMA-Eq25-27", "NORMA-Thm2", "NORMA-Thm3")
@pytest.mark.parametrize("dim", [2, 5])
def test_theorems_2_and_3_hold_on_drifting_streams(x64, rng, dim):
    x, y, g = drifting_streams(rng, dim)
    diagonal, moved = np.sum(x**2, axis=2).max(axis=1), jax.vmap(drift)(g)
    tightest = []
    for mu, rho in ((1.0, 0.0), (1.0, 0.5), (0.5, 0.1)):
        given = {"horizon": x.shape[1], "comparator_margin": mu}
        given["comparator_loss"] = hinge(g, x, y, mu)
        allowed = margin_errors(diagonal, moved, margin=rho, **given)
        rates = np.asarray(allowed.learning_rate), np.asarray(allowed.regularization)
        counts = [(soft_margin_run(x, y, *rates, rho)[0], allowed.mistakes)]
        allowed = mistakes(diagonal, moved, **given)
        rates = np.asarray(allowed.learning_rate), np.asarray(allowed.regularization)
        counts += [
            (soft_margin_run(x, y, *rates, margin)[1], allowed.mistakes)
            for margin in (0.0, np.asarray(allowed.margin))
        ]
        for count, bound in counts:
            assert np.all(count <= bound)
            tightest.append(np.max(count / bound))
        assert np.mean(np.asarray(bound) < x.shape[1]) > 0.1  # and are informative
    assert max(tightest) > 0.3
    assert min(tightest) > 0.1


@pytest.mark.claim("NORMA-IV.B", "NORMA-Thm2", "NORMA-Thm3", "NORMA-IV.C")
def test_mistake_bound_is_attained():
    """Orthonormal instances: f is zero at each of n, and B = μ√n separates them with margin μ."""
    n, mu = 16, 0.5
    x, y = np.eye(n)[None], np.ones((1, n))
    still = drift(np.full((n, n), mu))
    np.testing.assert_allclose(still, (mu * n**0.5, 0, 0), rtol=1e-6)
    given = {"horizon": n, "comparator_margin": mu, "comparator_loss": 0.0}
    found = mistakes(1.0, still, **given)
    rates = np.asarray(found.learning_rate)[None], np.asarray(found.regularization)[None]
    np.testing.assert_allclose(found.mistakes, n, rtol=1e-6)
    assert soft_margin_run(x, y, *rates, 0.0)[1] == n
    # Sec. IV.C: X²B²/(μ − ρ)²; at ρ = μ/2 that is 4X²B²/μ², printed 4X²B²/μ. Each instance twice.
    errors = margin_errors(1.0, still, margin=mu / 2, **given)
    np.testing.assert_allclose(errors.mistakes, 4 * n, rtol=1e-6)
    rates = np.asarray(errors.learning_rate)[None], np.asarray(errors.regularization)[None]
    twice = soft_margin_run(np.repeat(x, 2, axis=1), np.repeat(y, 2, axis=1), *rates, mu / 2)[0]
    printed = 4 * float(still.norm) ** 2 / mu
    # In units in which margins are a tenth the errors are the same, and what is printed a tenth.
    assert printed / 10 < twice == 2 * n <= errors.mistakes
    tenth = Drift(*(np.asarray(part) / 10 for part in still))
    scaled = margin_errors(
        1.0, tenth, margin=mu / 20, horizon=n, comparator_margin=mu / 10, comparator_loss=0.0
    )
    np.testing.assert_allclose(scaled.mistakes, errors.mistakes, rtol=1e-5)


@pytest.mark.claim("NORMA-Eq30")
@pytest.mark.parametrize("loss", [0.0, 1e-12, 1e-9, 0.3, 40.0, 1e6])
def test_h_to_all_digits(x64, loss):
    """μ − ρ = h(μ, K, C) at C = 1, against 60 decimals; as printed, digits cancel."""
    found = mistakes(
        1.0, STILL, horizon=9, comparator_margin=1.0, comparator_loss=loss
    )  # X²B²/4 = 1
    getcontext().prec = 60
    k = Decimal(loss)
    h = ((1 / k) * (1 + 1 / k)).sqrt() - 1 / k if loss else Decimal("0.5")
    np.testing.assert_allclose(found.margin, 1 - float(h), rtol=1e-15)
    np.testing.assert_allclose(found.learning_rate, 2 * float(h), rtol=1e-15)
    if loss == 1e-9:
        assert abs(np.sqrt((1 / loss) * (1 + 1 / loss)) - 1 / loss - float(h)) > 1e-11


@pytest.mark.claim("NORMA-Lemma7")
@pytest.mark.parametrize(("gap", "loss"), [(0.8, 2.0), (3.0, 0.5), (0.1, 7.0)])
def test_lemma_7_minimises(x64, gap, loss):
    """K/(γ − z) + C/(z(γ − z)) has its least value, the bound, at z = h; printed "maximised"."""
    z = np.linspace(0, gap, 20001)[1:-1]
    values = loss / (gap - z) + 1.0 / (z * (gap - z))
    found = mistakes(1.0, STILL, horizon=9, comparator_margin=gap, comparator_loss=loss)
    np.testing.assert_allclose(gap - found.margin, z[values.argmin()], atol=gap / 1e4)
    np.testing.assert_allclose(found.mistakes, values.min(), rtol=1e-6)
    assert found.mistakes < values[[0, -1]].min()


@pytest.mark.claim("NORMA-Eq31-32")
def test_constants_by_hand(x64):
    """X² = 2, B = 3, D₁ = 4, D₂ = .25, m = 100: √(mD₂) = 5, C = ½(9 + 27) = 18; K = 15, γ = 1."""
    options = {"horizon": 100, "comparator_margin": 1.5, "comparator_loss": 15.0}
    found = margin_errors(2.0, Drift(3.0, 4.0, 0.25), margin=0.5, **options)
    h = (18 / 15 * (1 + 18 / 15)) ** 0.5 - 18 / 15
    prime = 2 * h / 2.0
    np.testing.assert_allclose(found.regularization, 0.25**0.5 / 10 / (3 * prime))
    np.testing.assert_allclose(found.learning_rate, prime / (1 + prime * found.regularization))
    np.testing.assert_allclose(found.mistakes, 15 + 36 + 2 * (18 * (15 + 18)) ** 0.5)
    np.testing.assert_allclose(found.margin, 0.5)
    # λη' = √(D₂/m)/B: the decay of a round needs neither margins nor losses.
    decay = 1 - found.learning_rate * found.regularization
    np.testing.assert_allclose(decay, 1 / (1 + 0.05 / 3))


@pytest.mark.claim("NORMA-IV.B")
def test_drift_in_the_space_of_a_kernel(x64, rng):
    features, weights = rng.normal(size=(6, 3)), rng.normal(size=(20, 6))
    found = drift(weights, features @ features.T)
    moves = np.linalg.norm(np.diff(weights @ features, axis=0), axis=1)
    norms = np.linalg.norm(weights @ features, axis=1)
    np.testing.assert_allclose(found, (norms.max(), moves.sum(), np.sum(moves**2)))
    np.testing.assert_allclose(drift(weights @ features), found)
    np.testing.assert_allclose(drift(weights[:1])[1:], 0)


def test_a_gram_matrix_is_judged_by_the_norms_that_it_gives(rng):
    """Rounding of a singular one is allowed, and no eigenvalues are computed."""
    features = rng.normal(size=(40, 2)).astype(np.float32)
    gram, null = features @ features.T, np.linalg.svd(features.T)[2][2:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.linalg, "eigvalsh", None)
        found = drift(100 * null, gram)
        seen = drift(features.T, gram)
    squares = np.sum(null * (null @ gram), axis=1)
    assert squares.min() < 0  # in float32
    assert found.norm < 0.2
    np.testing.assert_allclose(seen.norm, np.linalg.norm(features.T @ features, axis=1).max(), 1e-5)


def test_a_loose_squared_length_is_no_worse_than_the_length(x64):
    """D₂ ≤ D₁²: where the field says more, the bounds are those at D₁²."""
    given = {"horizon": 100, "comparator_margin": 1.0, "comparator_loss": 2.0}
    loose, exact, tight = (mistakes(1.0, Drift(1.0, 0.5, d), **given) for d in (1.0, 0.25, 0.2))
    np.testing.assert_array_equal(loose, exact)
    assert tight.mistakes < exact.mistakes


def kernel_run(gram, y, derivative, rates, regularization, keep=None):
    """Predictions `[m]`, norms `[m]` of f_t before round t, and the largest Σ|α|, from f_1 = 0."""
    m = y.size
    a, f, squares, largest = np.zeros(m), np.zeros(m), np.zeros(m), 0.0
    for t in range(m):
        f[t] = a[:t] @ gram[:t, t]
        squares[t] = a[:t] @ gram[:t, :t] @ a[:t]
        a[:t] *= 1 - rates[t] * regularization
        a[t] = -rates[t] * derivative(f[t], y[t])
        if keep is not None:
            a[: max(t + 1 - keep[t], 0)] = 0
        largest = max(largest, np.abs(a).sum())
    return f, squares, largest


def hinge_slope(p, y):
    return -y * (y * p <= 1)


def flipped_labels(rng, m):
    x = rng.normal(size=(m, 2))
    y = np.sign(x[:, 0] + x[:, 1] / 2) * np.where(rng.random(m) < 0.1, -1, 1)
    return np.exp(-np.sum((x[:, None] - x[None]) ** 2, axis=-1)), y


@pytest.mark.claim("NORMA-Eq17", "NORMA-Eq33-34", "NORMA-Thm4", "NORMA-Thm6")
@pytest.mark.parametrize(
    ("regularization", "decay", "start", "power"),
    [(1.0, 0.9, 7, 0.8), (0.1, 0.9, 26, 0.9), (0.02, 0.5, 80, 0.9)],
)
def test_theorems_4_and_6_hold(x64, rng, regularization, decay, start, power):
    """Against the minimiser ĝ, and the a-priori bounds with it; t₀ from the claims' table."""
    m, loss = 300, nj.losses.soft_margin()
    gram, y = flipped_labels(rng, m)
    best = nj.comparators.regularized(gram, y, loss, regularization)
    assert best.converged
    t = np.arange(1, m + 1)
    keep = np.minimum(t, np.maximum(start, np.ceil(t**power))).astype(int)
    assert keep[-1] < 0.6 * m
    size = a_priori(1.0, slope=1.0, regularization=regularization)
    assert best.norm <= size.norm
    rate, tightness = decay / regularization, []
    given = {"horizon": m, "slope": 1.0, "regularization": regularization, "learning_rate": rate}
    for growing, kept in ((False, None), (True, keep)):
        run = kernel_run(gram, y, hinge_slope, rate / np.sqrt(t), regularization, kept)
        f, squares, largest = run
        risks = np.maximum(1 - y * f, 0) + regularization / 2 * squares
        bound = regularized_risk(1.0, **given, growing_memory=growing)
        assert risks.sum() - m * best.risk <= bound.regret
        tightness.append((risks.sum() - m * best.risk) / bound.regret)
        assert largest <= size.coefficients * (1 + 1e-12)
        assert squares.max() <= size.norm**2
        assert np.abs(f).max() <= size.value
        for s in t[::20] - 1:
            # ‖ℓ'k(x_t, ·) + λf_t‖² ≤ 4c²X²
            slope = hinge_slope(f[s], y[s])
            gradient = slope**2 + 2 * regularization * slope * f[s]
            assert gradient + regularization**2 * squares[s] <= bound.second_moment
    assert min(tightness) > 0.01
    printed = as_printed.regularized_risk(1.0, **given, growing_memory=True)
    assert printed.regret > bound.regret


@pytest.mark.claim("NORMA-Eq17")
def test_coefficients_stay_small_whatever_is_dropped(rng):
    """Σ|α_i| ≤ c/λ is attained where every round updates, and truncation keeps to it."""
    m, lam = 200, 0.5
    gram, y = np.ones((m, m)), np.ones(m)
    limit = float(a_priori(1.0, slope=1.0, regularization=lam).coefficients)
    keep = rng.integers(1, 50, m)
    for kept in (None, keep):
        constant, falling = np.full(m, 0.3), 1 / np.sqrt(np.arange(1, m + 1))
        for rates in (constant, falling):
            largest = kernel_run(gram, y, lambda p, y: -y, rates, lam, kept)[2]
            assert largest <= limit * (1 + 1e-12)
            if kept is None:
                assert largest > 0.999 * limit


@pytest.mark.claim("NORMA-Eq33-34")
def test_a_priori_by_hand():
    """X² = 4, c = 3, λ = ½."""
    np.testing.assert_allclose(a_priori(4.0, slope=3.0, regularization=0.5), (6, 12, 24))


@pytest.mark.claim("NORMA-Thm4")
def test_regularized_risk_by_hand(x64):
    """X² = 4, c = 3, λ = ½, η = 1: U = 12, a = 144(2z + 1/z) at z = ½, b = 72; m = 25."""
    given = {"horizon": 25, "slope": 3.0, "regularization": 0.5}
    printed = as_printed.regularized_risk
    for bound, growing, factor in (
        (regularized_risk, False, 2),
        (printed, False, 2),
        (regularized_risk, True, 6),
        (printed, True, 10),
    ):
        options = {**given, "growing_memory": growing}
        found = bound(4.0, learning_rate=1.0, **options)
        np.testing.assert_allclose(found, (1.0, 144 * (factor / 2 + 2) * 5 + 72, 144))
        best = bound(4.0, **options)
        z = factor**-0.5
        np.testing.assert_allclose(best.learning_rate, 2 * z)
        np.testing.assert_allclose(best.regret, 144 * (factor * z + 1 / z) * 5 + 36 / z)
        # Its part a√m is the smallest of all rates.
        rates = np.linspace(0.02, 1.98, 50)
        a = [bound(4.0, learning_rate=r, **options).regret - 72 / r for r in rates]
        assert best.regret - 36 / z <= min(a)
    np.testing.assert_allclose(
        regularized_risk(4.0, **given).regret, 4 * 2**0.5 * 72 * 5 + 36 * 2**0.5
    )


@pytest.mark.claim("NORMA-Prop1")
def test_proposition_1_is_attained(x64):
    """All x equal, every round updates; after 399 rounds the claims' figures to 6 decimals."""
    given = {"buffer": 30, "slope": 1.0, "learning_rate": 0.3, "regularization": 0.1}
    powers = 0.97 ** np.arange(400)
    dropped = 0.3 * powers[30:399].sum()
    np.testing.assert_allclose(truncation_error(1.0, rounds=399, **given), dropped, rtol=1e-12)
    printed = as_printed.truncation_error(1.0, rounds=399, **given)
    np.testing.assert_allclose(printed, 0.3 * powers[30:].sum(), rtol=1e-12)
    closed = truncation_error(1.0, **given)
    np.testing.assert_allclose(
        [dropped, printed, closed], [4.010018, 4.010020, 4.010071], atol=1e-6
    )
    assert dropped < printed < closed < dropped * (1 + 1e-4)
    np.testing.assert_array_equal(truncation_error(1.0, rounds=30, **given), 0)
    np.testing.assert_allclose(truncation_error(4.0, **{**given, "slope": 3.0}), 6 * closed)


def test_proposition_1_in_float32():
    """ηλ = 1e-6, where 1 − ηλ has lost most of its digits."""
    given = {"slope": 1.0, "learning_rate": 1e-3, "regularization": 1e-3}
    found = truncation_error(1.0, buffer=10**6, **given)
    np.testing.assert_allclose(found, 1e3 * (1 - 1e-6) ** 10**6, rtol=1e-6)


@pytest.mark.claim("NORMA-Prop1")
@pytest.mark.parametrize("name", ["soft_margin", "logistic", "huber"])
def test_proposition_1_holds_on_runs(rng, name):
    m = 150
    slope = {
        "soft_margin": hinge_slope,
        "logistic": lambda p, y: -y / (1 + np.exp(y * p)),
        "huber": lambda p, y: np.clip((p - y) / 0.3, -1, 1),
    }[name]
    gram, y = flipped_labels(rng, m)
    ratios = []
    for eta, lam, tau in ((0.3, 0.1, 30), (0.5, 0.2, 10), (0.1, 1.0, 20), (0.9, 1.0, 1)):
        rates = np.full(m, eta)
        f = kernel_run(gram, y, slope, rates, lam)[0]
        born = -eta * slope(f, y)
        a = born * (1 - eta * lam) ** np.arange(m - 1, -1, -1)
        dropped = a[:-tau] @ gram[:-tau, :-tau] @ a[:-tau]
        bound = truncation_error(
            1.0, buffer=tau, slope=1.0, learning_rate=eta, regularization=lam, rounds=m
        )
        ratios.append(np.sqrt(dropped) / bound)
    assert max(ratios) <= 1
    assert max(ratios) > 0.3


def test_hyper_parameters_may_be_traced():
    def all_of(lam):
        given = {"slope": 1.0, "regularization": lam}
        guarantee = regularized_risk(1.0, horizon=100, **given)
        error = truncation_error(1.0, buffer=3, learning_rate=0.5, rounds=9, **given)
        count = margin_errors(
            1.0, STILL, horizon=9, margin=lam, comparator_margin=2.0, comparator_loss=lam
        )
        return guarantee, error, count, a_priori(1.0, **given)

    swept = jax.jit(jax.vmap(all_of))(jnp.array([0.5, 1.0]))
    last = jax.tree.map(lambda leaf: leaf[1], swept)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), last, all_of(1.0))


def test_traced_arguments_out_of_range_give_nan_or_infinity():
    """(√(C/γ²) + √(C/γ²))² is positive for γ < 0 as well."""

    def all_of(margin, decay):
        given = {"slope": 1.0, "regularization": 1.0, "learning_rate": decay}
        return (
            margin_errors(
                1.0, STILL, horizon=9, margin=margin, comparator_margin=1.0, comparator_loss=0.0
            ).mistakes,
            regularized_risk(1.0, horizon=9, **given).regret,
            truncation_error(1.0, buffer=3, **given),
        )

    swept = jax.jit(jax.vmap(all_of))(jnp.array([0.5, 1.0, 1.5]), jnp.array([0.5, 1.0, -0.5]))
    for bounds in swept:
        np.testing.assert_array_equal(np.isfinite(bounds), [True, False, False])


BY_MARGIN = {"horizon": 9, "margin": 0.5, "comparator_margin": 1.0, "comparator_loss": 1.0}
BY_RISK = {"horizon": 9, "slope": 1.0, "regularization": 0.5, "learning_rate": 1.0}
BY_BUFFER = {"buffer": 3, "slope": 1.0, "regularization": 0.5, "learning_rate": 1.0}


@pytest.mark.parametrize(
    ("bound", "options", "message"),
    [
        (margin_errors, {**BY_MARGIN, "margin": -0.1}, r"margin must be finite and >= 0"),
        (margin_errors, {**BY_MARGIN, "margin": 1.0}, "comparator_margin - margin must be pos"),
        (margin_errors, {**BY_MARGIN, "comparator_loss": -1.0}, "comparator_loss must be finite"),
        (margin_errors, {**BY_MARGIN, "horizon": 0}, "horizon must be positive and finite, got 0"),
        (regularized_risk, {**BY_RISK, "learning_rate": 2.0}, "above 0 and below 1, got 1"),
        (regularized_risk, {**BY_RISK, "regularization": 0.0}, "regularization must be positive"),
        (regularized_risk, {**BY_RISK, "slope": np.inf}, "slope must be positive and finite"),
        (truncation_error, {**BY_BUFFER, "learning_rate": 2.5}, "below 1, got 1.25"),
        (truncation_error, {**BY_BUFFER, "buffer": -1}, "buffer must be finite and >= 0, got -1"),
        (truncation_error, {**BY_BUFFER, "rounds": -1}, "rounds must be finite and >= 0, got -1"),
    ],
)  # fmt: skip
def test_bad_arguments_raise(bound, options, message):
    first = (1.0, STILL) if bound is margin_errors else (1.0,)
    with pytest.raises(ValueError, match=message):
        bound(*first, **options)
    with pytest.raises(ValueError, match=r"diagonal must be positive and finite, got 0\.0"):
        bound(0.0, *first[1:], **{**options, **BY_MARGIN} if first[1:] else options)


def test_bad_comparators_raise():
    given = {"horizon": 9, "comparator_margin": 1.0, "comparator_loss": 1.0}
    with pytest.raises(ValueError, match=r"drift\.norm must be positive and finite, got 0\.0"):
        mistakes(1.0, Drift(0.0, 0.0, 0.0), **given)
    with pytest.raises(ValueError, match="comparator_margin must be positive and finite, got 0"):
        mistakes(1.0, STILL, **{**given, "comparator_margin": 0.0})
    with pytest.raises(ValueError, match=r"weights must be \[m, n\], got \[3\]: one comparator"):
        drift(np.ones(3))
    with pytest.raises(ValueError, match=r"weights must be finite, got an array \[2, 2\]"):
        drift(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match=r"gram must be \[2, 2\], as .* \[m, 2\], got \[3, 3\]"):
        drift(np.ones((5, 2)), np.eye(3))
    with pytest.raises(ValueError, match=r"gram must be finite, but gram\[0, 0\] is nan"):
        drift(np.ones((5, 2)), np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match=r"semi-definite, but it gives ‖g_t‖² as low as -2;"):
        drift(np.ones((3, 2)), -np.eye(2))
    turned = np.diag([1.0, -0.5])  # no norm is negative, a step is
    with pytest.raises(ValueError, match=r"gives ‖g_{t\+1} − g_t‖² as low as -2;"):
        drift(np.array([[2.0, 1.0], [2.0, -1.0]]), turned)
    with pytest.raises(ValueError, match="gram must be symmetric"):
        drift(np.ones((3, 2)), np.triu(np.ones((2, 2))))
    with pytest.raises(ValueError, match="drift must be a Drift, got tuple: bounds"):
        mistakes(1.0, (1.0, 0.0, 0.0), **given)
