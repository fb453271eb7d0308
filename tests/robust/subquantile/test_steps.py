import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import comparators
from noisy_jax.robust.subquantile.problem import rows_kept, smallest
from noisy_jax.robust.subquantile.steps import init
from tests.robust.subquantile import trimmed
from tests.robust.subquantile.trimmed import GRID, data, regression, trajectories

STEPS = 60
TASKS = ["ridge", "logistic"]


def kept_count(n, share):
    return int(np.ceil(n * (1 - share) - 1e-9))


@pytest.mark.slow
@pytest.mark.claim("SQ-Alg1", "SQ-Alg1-step", "SQ-Lemma20", "SQ-Alg2", "SQ-Eqs13-14")
@pytest.mark.parametrize("task", TASKS)
def test_descent_equals_the_loop(x64, rng, task):
    """With the safe step 1/L and the projection, over (ε, λ), in a ball and without."""
    gram, y = data(task, rng)
    _, states, smoothness = trajectories(gram, y, GRID, task=task, solver="descent", steps=STEPS)
    curvature = 2 if task == "ridge" else 0.25
    for (share, lam, radius), found, L in zip(GRID, states.coefficients, smoothness, strict=True):
        m = kept_count(len(y), share)
        # 1/L of ‖K‖ itself is the longest step that is safe: L is above, by little.
        exact = curvature * np.linalg.norm(gram, 2) / m + lam
        assert exact * (1 - 1e-12) <= L <= 1.2 * exact
        loop = trimmed.descent(task, gram, y, m, lam, radius, 1 / L, STEPS)
        np.testing.assert_allclose(found, loop, rtol=1e-9, atol=1e-11)
    assert 0 < np.mean(states.bound) < 1


@pytest.mark.slow
@pytest.mark.claim("SQ-descent", "SQ-Lemma21", "SQ-related")
@pytest.mark.parametrize(
    ("task", "solver"),
    [(t, s) for t in TASKS for s in ("descent", "accelerated")] + [("ridge", "alternation")],
)
def test_the_objective_never_rises_and_falls_by_a_known_amount(x64, rng, task, solver):
    gram, y = data(task, rng)
    points = GRID if solver != "alternation" else GRID[: len(GRID) // 2]
    start = 0.3 * rng.normal(size=len(y))  # far off, outside the ball
    options = {"task": task, "solver": solver, "steps": STEPS}
    first, states, smoothness = trajectories(gram, y, points, start=start, **options)
    path = np.concatenate([first.objective[:, None], states.objective], axis=1)
    falls, scale = path[:, :-1] - path[:, 1:], path[:, :1]
    assert np.all(falls >= -1e-13 * scale)
    assert np.all(falls[:, 0] > 1e-3 * scale[:, 0])
    for index, (share, lam, radius) in enumerate(points):
        m, a = kept_count(len(y), share), states.coefficients[index, -1]
        if solver == "descent" and radius == np.inf:
            g = trimmed.gradient(task, gram, y, m, lam, first.coefficients[index])
            known = g @ gram @ g / (2 * smoothness[index])
            assert falls[index, 0] >= known * (1 - 1e-12) > 0
        last = trimmed.objective(task, gram, y, m, lam, a)
        np.testing.assert_allclose(states.objective[index, -1], last)
        assert np.sqrt(a @ gram @ a) <= radius * (1 + 1e-9)


@pytest.mark.claim("SQ-Alg1-step")
def test_the_printed_step_diverges_where_nothing_is_trimmed(x64, rng):
    """η = m/‖K‖ is 2/L at λ = 0 and larger for λ > 0; the corrected step descends."""
    gram, y = regression(rng)
    n, printed = len(y), len(y) / np.linalg.norm(gram, 2)
    first, ours, _ = trajectories(gram, y, GRID, task="ridge", solver="descent", steps=STEPS)
    for lam in (0.05, 0.5):
        path = trimmed.descent("ridge", gram, y, n, lam, np.inf, printed, 100)
        values = [trimmed.objective("ridge", gram, y, n, lam, a) for a in (np.zeros(n), path[-1])]
        assert values[1] > 1e3 * values[0]
        (index,) = np.flatnonzero(([0.0, lam, np.inf] == GRID).all(axis=1))
        assert ours.objective[index, -1] < first.objective[index]


@pytest.mark.slow
@pytest.mark.claim("SQ-Lemma4", "SQ-Alg1", "SQ-Eqs13-14", "SQ-Eqs12,23")
@pytest.mark.parametrize("task", TASKS)
def test_gradient_in_the_kernels_space(x64, rng, task):
    """hᵀKG is the derivative along h, in coefficients and in the features of a linear kernel."""
    features, (_, y) = rng.normal(size=(40, 3)), data(task, rng)
    gram, lam = features @ features.T, 0.05
    problem = trimmed.PROBLEMS[task](gram, y, contamination=0.3, regularization=lam)
    a, h = 0.1 * rng.normal(size=(2, 40))
    state = init(problem, a)
    kept, m = np.asarray(state.kept), int(problem.count)
    G = np.asarray(problem.gradient_on(state.kept, state.coefficients, state.values))

    def explicit(w):  # of weights w = Φᵀa
        p = features @ w
        each = (p - y) ** 2 if task == "ridge" else jnp.logaddexp(0, -y * p)
        return each[kept].sum() / m + lam / 2 * w @ w

    in_features = jax.grad(explicit)(features.T @ a)
    np.testing.assert_allclose(features.T @ G, in_features, rtol=1e-10)
    slope = jax.jvp(lambda a: problem.objective_on(state.kept, a, gram @ a), (a,), (h,))[1]
    np.testing.assert_allclose(h @ gram @ G, slope, rtol=1e-10)
    # The printed gradients, with C = mλ/2 without its factor 2 or beside the mean, are wrong.
    for wrong in (lam / 2, m * lam):
        assert np.abs(features.T @ (G - lam * a + wrong * a) - in_features).max() > 1e-3


@jax.jit
def started(gram, y, share, lam, coefficients):
    """How many rows are kept, and the state at these coefficients."""
    problem = trimmed.PROBLEMS["ridge"](gram, y, contamination=share, regularization=lam)
    return problem.count.astype(int), init(problem, coefficients)


@pytest.mark.slow
@pytest.mark.claim("SQ-quantile", "SQ-minmax", "SQ-Lemma3")
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.45])
def test_threshold_is_the_quantile_and_maximises_the_variational_objective(x64, rng, share):
    gram, y = regression(rng)
    lam, a = 0.03, 0.2 * rng.normal(size=40)
    m, state = started(gram, y, share, lam, a)
    each = (gram @ a - y) ** 2
    assert m == kept_count(40, share)
    quantile = np.quantile(each, m / 40 - 1e-9, method="inverted_cdf")
    np.testing.assert_allclose([np.sort(each)[m - 1], quantile], state.threshold, rtol=1e-12)

    def variational(t, weight):
        return t - weight * np.maximum(t - each, 0).sum()

    trimmed_part = state.objective - lam / 2 * a @ gram @ a
    np.testing.assert_allclose(variational(state.threshold, 1 / m), trimmed_part, rtol=1e-10)
    thresholds = np.concatenate([each, np.linspace(-1, 2 * each.max(), 500)])
    assert max(variational(t, 1 / m) for t in thresholds) <= trimmed_part * (1 + 1e-12)
    # Without the factor 1/m, as printed, the maximum is the smallest loss: one point to fit.
    # There it is constant up to the next loss.
    largest = max(variational(t, 1) for t in thresholds)
    np.testing.assert_allclose([variational(each.min(), 1), largest], each.min(), atol=1e-12)


@pytest.mark.slow
def test_gap_is_exact_along_a_function_of_trimmed_rows_alone(x64):
    """There the objective on the rows kept is ½λ‖f‖², so that no smaller λ bounds its excess.

    With K = I, y = 0 and f = 2k(x_4, ·), row 4 is trimmed and F_S(f) − min F_S = 2λ. A step of 1/L
    lowers it by ‖g‖²/(2L) = 2λ²/L at least.
    """
    lam, start = 0.1, np.array([0.0, 0.0, 0.0, 2.0])
    point, options = np.array([[0.25, lam, np.inf]]), {"solver": "accelerated", "steps": 1}
    found = trajectories(np.eye(4), np.zeros(4), point, task="ridge", start=start, **options)
    first, states, smoothness = found
    np.testing.assert_allclose(smoothness, 2 / 3 + lam, rtol=1e-12)
    np.testing.assert_allclose(first.objective, 2 * lam, rtol=1e-12)
    np.testing.assert_allclose(states.gap, 2 * lam - 2 * lam**2 / (2 / 3 + lam), rtol=1e-12)
    assert states.objective <= states.gap


@pytest.mark.slow
def test_gap_bounds_what_refitting_would_gain(x64, rng):
    """Against closed forms on the rows of the step: ridge, and least squares in a ball."""
    gram, y = regression(rng)
    points = np.array([[0.3, 1 / 14, np.inf], [0.3, 0.0, 0.8]])
    padded = np.concatenate([points, GRID[2:]])  # as many as in other tests, compiled once
    _, states, _ = trajectories(gram, y, padded, task="ridge", solver="accelerated", steps=STEPS)
    m = kept_count(len(y), 0.3)
    for index, (_, lam, radius) in enumerate(points):
        for t in (1, 5, 59):
            rows = np.flatnonzero(states.kept[index, t - 1])
            own, C = gram[np.ix_(rows, rows)], m * lam / 2
            if lam:
                least = C * y[rows] @ np.linalg.solve(own + C * np.eye(m), y[rows]) / m
            else:
                least = comparators.kernel_ball(own, y[rows], radius).loss / m
            excess, gap = states.objective[index, t] - least, states.gap[index, t]
            assert excess <= gap + 1e-12
            assert gap < (1e-3 if t == 59 else np.inf) * states.objective[index, t]


@pytest.mark.claim("SQ-Lemma4")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_selection_is_by_rank_and_ties_by_index(x64, rng, dtype):
    values = np.round(rng.exponential(size=(30, 17)), 1).astype(dtype)
    values[0], values[1, 3], values[2, :2] = 0, np.inf, np.finfo(dtype).tiny
    select = jax.jit(jax.vmap(jax.vmap(smallest, (None, 0)), (0, None)))
    rows, largest = select(values, np.arange(1, 18))
    order = np.argsort(values, axis=1, kind="stable")
    for count in range(1, 18):
        expected = np.zeros_like(values, bool)
        np.put_along_axis(expected, order[:, :count], True, axis=1)
        np.testing.assert_array_equal(rows[:, count - 1], expected)
        np.testing.assert_array_equal(largest[:, count - 1], np.sort(values)[:, count - 1])


def test_rows_kept_are_counted_without_rounding():
    """⌈n(1 − ε)⌉ of ε = k/100 by whole numbers: concrete, and traced in float32."""
    counted = jax.jit(rows_kept, static_argnums=0)
    wrong = 0
    for n in (1, 2, 10, 55, 500, 2000):
        for k in range(50):
            exact = -(-n * (100 - k) // 100)
            assert rows_kept(n, k / 100) == counted(n, k / 100) == exact
            wrong += np.ceil(np.float32(n) * (1 - np.float32(k / 100))) != exact
    assert wrong > 0  # unguarded
