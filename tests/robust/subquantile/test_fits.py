import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.robust import subquantile
from noisy_jax.robust.subquantile import starts
from noisy_jax.robust.subquantile.steps import SOLVERS
from tests.errors import raises
from tests.robust.subquantile import trimmed
from tests.robust.subquantile.trimmed import PROBLEMS, classification, closed_form, regression

ITERATIONS = 10_000
LONG = functools.partial(subquantile.ridge, iterations=ITERATIONS)
_ridge = jax.jit(LONG, static_argnames="solver")


def ridge(gram, y, share, lam, start=None, *, solver="accelerated", tolerance=1e-6):
    """From zero, or from coefficients: one compilation for all calls of a size and solver."""
    options = {"start": np.zeros(len(y)) if start is None else start, "tolerance": tolerance}
    return _ridge(gram, y, contamination=share, regularization=lam, solver=solver, **options)


@jax.jit
def ridge_from_best(gram, y, share, lam):
    return subquantile.ridge(gram, y, contamination=share, regularization=lam)


@jax.jit
def logistic(gram, y, share, lam, radius):
    options = {"contamination": share, "regularization": lam, "radius": radius}
    return subquantile.logistic(gram, y, **options)


@pytest.mark.slow
@pytest.mark.claim("SQ-Alg1", "SQ-related")
@pytest.mark.parametrize("solver", SOLVERS)
def test_fits_are_ridge_on_the_rows_kept(x64, rng, solver):
    """With nothing trimmed, with gross outliers, and with one row kept, to 1e-6 and beyond."""
    gram, y = regression(rng)
    n = len(y)
    shares = np.array([0.0, 0.15, 0.999])  # traced, the last is not checked: m = 1

    def fit(share):
        return ridge(gram, y, share, 0.015, solver=solver, tolerance=1e-15)

    fits = jax.tree.map(np.asarray, jax.vmap(fit)(shares))
    assert np.all(fits.converged)
    np.testing.assert_array_equal(fits.kept.sum(axis=1), [n, 34, 1])
    np.testing.assert_allclose(fits.contamination, [0, 6 / n, 1 - 1 / n])
    if solver == "accelerated":  # the other one may need a single refit for each
        assert len(set(fits.iterations)) > 1  # so that some lanes waited for others, unchanged
    for index, share in enumerate(shares):
        exact = closed_form(gram, y, fits.kept[index], 0.015)
        np.testing.assert_allclose(gram @ fits.coefficients[index], gram @ exact, atol=1e-6)
        alone = fit(float(share))
        np.testing.assert_allclose(fits.coefficients[index], alone.coefficients, atol=1e-9)
        np.testing.assert_allclose(fits.iterations[index], alone.iterations, rtol=0.2, atol=2)
    assert not np.any(fits.kept[1, :6])
    a = fits.coefficients[1]
    least = trimmed.objective("ridge", gram, y, 34, 0.015, a)
    np.testing.assert_allclose(fits.objective[1], least, rtol=1e-10)
    np.testing.assert_allclose(fits.norm[1], np.sqrt(a @ gram @ a), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.claim("SQ-T")
def test_converged_fits_are_within_the_tolerance_in_float32(rng):
    """Of the least objective on the rows kept, by every solver."""
    gram, y = regression(rng, n=60)
    iterations = {}
    for solver in SOLVERS:
        fit = ridge(gram, y, 0.15, 0.004, solver=solver)
        assert fit.converged
        assert fit.gap <= 1e-6 * fit.objective
        assert not np.any(fit.kept[:6])
        exact = closed_form(gram, y, fit.kept, 0.004)
        least = trimmed.objective("ridge", gram, y, 51, 0.004, exact)
        np.testing.assert_allclose(fit.objective, least, rtol=3e-6)
        iterations[solver] = fit.iterations
    assert iterations["alternation"] < 10
    # F is noisy here: a plain step that seems to raise it must be taken, or nothing moves again.
    assert ridge(gram, y, 0.15, 6e-4).converged
    # Where a step changes nothing, no more of them are made.
    stuck = ridge(gram, y, 0.15, 4e-7, solver="alternation")
    assert not stuck.converged
    assert stuck.iterations < 100


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [-85, -66, 66])
def test_fits_do_not_depend_on_the_units_of_the_targets(rng, exponent):
    """In float32 the squares of y · 2^−66 and y · 2^66 underflow and overflow."""
    gram, y = regression(rng, n=60)
    plain, unit = ridge(gram, y, 0.15, 0.004), np.float32(2.0**exponent)
    scaled = ridge(gram, unit * y, 0.15, 0.004)
    assert scaled.converged
    assert scaled.iterations == plain.iterations
    np.testing.assert_array_equal(scaled.kept, plain.kept)
    np.testing.assert_allclose(scaled.coefficients / unit, plain.coefficients, rtol=1e-6)
    np.testing.assert_allclose(scaled.norm / unit, plain.norm, rtol=1e-6)


@pytest.mark.slow
def test_a_start_without_finite_losses_is_not_converged():
    """As every gap is within any share of infinity."""
    point, options = np.array([[0.0, 1.0, np.inf]]), {"solver": "alternation", "steps": 1}
    _, states, _ = trimmed.trajectories(EYE, 1e20 * ONES, point, task="ridge", **options)
    assert not states.converged


@pytest.mark.slow
def test_what_did_not_converge_or_is_bound_says_so(rng):
    gram, y = regression(rng, n=60)
    fit = ridge(gram, y, 0.2, 4e-7)
    assert (fit.converged, fit.iterations, fit.bound_fraction) == (False, ITERATIONS, 0)
    assert fit.gap > 1e-6 * fit.objective
    bound = logistic(*classification(rng, n=100), 0.2, 0.0, 1e-3)
    assert bound.bound_fraction == 1
    np.testing.assert_allclose(bound.norm, 1e-3, rtol=1e-5)
    # Without λ and radius there is no bound on the gap.
    free = ridge(gram, y, 0.2, 0.0)
    assert (free.gap, free.converged) == (np.inf, False)


@pytest.mark.statistical
@pytest.mark.slow
def test_outliers_on_one_side_do_no_harm(rng):
    """30% of 500 labels: within 10% of the oracle. Ridge and Huber are 10 times worse."""
    n, share, lam = 500, 0.3, 0.0012
    kernel, grid = nj.kernels.gaussian(length_scale=0.5), np.linspace(-3, 3, 200)[:, None]
    x = rng.uniform(-3, 3, size=(n, 1))
    clean, target = (np.sin(2 * at[:, 0]) + 0.3 * at[:, 0] for at in (x, grid))
    y = clean + 0.1 * rng.normal(size=n)
    bad = np.arange(int(share * n))
    y[bad] = 10.0
    gram, cross = kernel(x, x), kernel(grid, x)

    def error(coefficients):
        return np.sqrt(np.mean((cross @ coefficients - target) ** 2))

    fit = ridge_from_best(gram, y, share, lam)
    oracle = error(closed_form(np.asarray(gram), y, np.arange(n) >= len(bad), lam))
    assert fit.converged
    assert not np.any(fit.kept[bad])
    assert error(fit.coefficients) < 1.1 * oracle
    assert error(nj.robust.kernel_ridge(gram, y, regularization=lam)) > 10 * oracle
    assert error(nj.robust.huber_ridge(gram, y, regularization=lam)) > 10 * oracle


def solved(gram, y, kept, lam):
    """Ridge on these rows, by a dense solution that JAX differentiates."""
    rows = np.flatnonzero(kept)
    a = jnp.linalg.solve(
        gram[np.ix_(rows, rows)] + len(rows) * lam / 2 * jnp.eye(len(rows)), y[rows]
    )
    a = jnp.zeros(len(y)).at[rows].set(a)
    losses, square = (gram @ a - y)[rows] ** 2, a @ gram @ a
    return a, losses.mean() + lam / 2 * square, losses.max(), jnp.sqrt(square)


@pytest.mark.slow
def test_derivatives_are_those_of_ridge_on_the_rows_kept(x64, rng):
    """In both modes, in λ, y and the Gram matrix, of all that is differentiable."""
    gram, y = map(jnp.asarray, regression(rng, n=20, outliers=3))
    weights = rng.normal(size=len(y))

    def of_fit(gram, y, lam):
        fit = subquantile.ridge(
            gram, y, contamination=0.15, regularization=lam, start="zero", solver="alternation",
            tolerance=1e-14,
        )  # fmt: skip
        values = jnp.stack([weights @ fit.coefficients, fit.objective, fit.threshold, fit.norm])
        return values, fit.kept

    arguments, kept = (gram, y, 0.03), np.arange(20) >= 3

    def exact(gram, y, lam):
        a, *others = solved(gram, y, kept, lam)
        return jnp.stack([weights @ a, *others])

    inward = rng.normal(size=(20, 20))
    tangents = jnp.asarray(inward + inward.T), jnp.asarray(rng.normal(size=20)), 1.0
    forward = jax.jit(lambda *at: jax.jvp(of_fit, at, tangents, has_aux=True))(*arguments)
    wanted = jax.jvp(exact, arguments, tangents)
    np.testing.assert_array_equal(forward[2], kept)
    for found, right in zip(forward, wanted, strict=False):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-6)
    reverse = jax.jit(jax.jacrev(of_fit, (0, 1, 2), has_aux=True))(*arguments)[0]
    for slope, right in zip(reverse, jax.jacrev(exact, (0, 1, 2))(*arguments), strict=True):
        np.testing.assert_allclose(slope, right, rtol=1e-4, atol=1e-5 * np.abs(right).max())


@pytest.mark.slow
def test_derivatives_are_finite_at_zero_targets(rng):
    gram, y = regression(rng, n=20, outliers=3)
    options = {"contamination": 0.2, "start": "zero", "solver": "alternation"}

    def fitted(lam):
        fit = subquantile.ridge(gram, 0 * y, regularization=lam, **options)
        return jnp.stack([fit.objective, fit.norm])

    np.testing.assert_array_equal(jax.jit(jax.jacrev(fitted))(0.05), [0, 0])


@pytest.mark.slow
def test_forward_mode_works_where_reverse_mode_does_not(x64, rng):
    """With a radius and for labels: through the iterations."""
    gram, y = regression(rng)
    labelled = classification(rng)

    def ridge_in_ball(lam):
        options = {"contamination": 0.15, "regularization": lam, "radius": 0.8, "start": "zero"}
        fit = subquantile.ridge(gram, y, **options)
        return jnp.stack([fit.objective, fit.threshold])

    def by_logistic(lam):
        options = {"contamination": 0.15, "regularization": lam, "start": "zero"}
        fit = subquantile.logistic(*labelled, **options)
        return jnp.stack([fit.objective, fit.threshold])

    for function in map(jax.jit, (ridge_in_ball, by_logistic)):
        lam, step = 0.05, 1e-4
        slope = jax.jit(lambda lam, of=function: jax.jvp(of, (lam,), (1.0,))[1])(lam)
        by_differences = (function(lam + step) - function(lam - step)) / (2 * step)
        np.testing.assert_allclose(slope, by_differences, rtol=1e-2, atol=1e-9)
        with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
            jax.jacrev(function)(lam)


@pytest.mark.slow
@pytest.mark.statistical
def test_best_is_the_lowest_of_the_starts(x64, rng):
    """Which is the same start for none of them in all tables."""
    gram, _ = regression(rng)

    @jax.jit
    def each(y):
        problem = PROBLEMS["ridge"](gram, y, contamination=0.35, regularization=0.024)
        found = starts.coefficients(problem, starts.STARTS)
        return jax.vmap(lambda start: ridge(gram, y, 0.35, 0.024, start=start).objective)(found)

    lowest = []
    for _ in range(8):
        near_zero, one_sided = (regression(rng)[1] for _ in range(2))
        near_zero = near_zero + 3.0  # away from zero, where a third of the labels now lies
        near_zero[:13] = 0.05 * rng.normal(size=13)
        one_sided[:13] = 10.0
        for y in (near_zero, one_sided):
            ends, best = each(y), ridge_from_best(gram, y, 0.35, 0.024)
            np.testing.assert_allclose(best.objective, min(ends), rtol=1e-10)
            np.testing.assert_allclose(ends[int(best.start)], min(ends), rtol=1e-10)
            lowest.append(ends < 1.001 * min(ends))
    assert not np.any(np.all(lowest, axis=0))


@pytest.mark.slow
def test_starts_are_untrimmed_fits(x64, rng):
    """Smoothed by one more ridge, so that nothing of them lies where K is zero."""
    gram, y = regression(rng)
    problem = PROBLEMS["ridge"](gram, y, contamination=0.2, regularization=0.01875)
    found = jax.jit(lambda: starts.coefficients(problem, starts.STARTS))()
    inverse = np.linalg.inv(gram + 0.3 * np.eye(len(y)))
    constant, fit = inverse @ np.full(len(y), np.median(y)), inverse @ y
    huber = nj.robust.huber_ridge(gram, y, regularization=0.015, iterations=30)
    np.testing.assert_array_equal(found[0], 0)
    expected = [inverse @ gram @ start for start in (constant, fit, huber)]
    np.testing.assert_allclose(found[1:], expected, atol=1e-10)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("SQ-Alg2")
def test_flipped_labels_are_found(rng):
    """With a radius alone, as in the paper, and with λ alone."""
    x = rng.normal(size=(100, 2))
    clean = np.where(x[:, 0] + x[:, 1] > 0, 1.0, -1.0)
    y, gram = clean.copy(), x @ x.T
    bad = np.argsort(-np.abs(x.sum(axis=1)))[:20]  # far from the boundary
    y[bad] *= -1
    by_ball = logistic(gram, y, 0.2, 0.0, 3.0)
    by_weight = logistic(gram, y, 0.2, 0.0025, np.inf)
    for fit in (by_ball, by_weight):
        assert fit.converged
        assert not np.any(fit.kept[bad])
        assert np.mean(np.sign(fit.predict(gram)) == clean) > 0.94
    np.testing.assert_allclose(by_ball.norm, 3.0, rtol=1e-4)


def test_nan_is_reported_not_trimmed(rng):
    """A traced NaN cannot be rejected; as the largest loss it would be the first to go."""
    gram, y = regression(rng, n=60)
    y[3] = np.nan
    fit = ridge(gram, y, 0.2, 0.0125)
    assert np.isnan(fit.objective)
    assert not fit.converged
    message = r"y must be finite, but y\[3\] is nan"
    raises(message, subquantile.ridge, gram, y, contamination=0.2, regularization=0.0125)


@pytest.mark.slow
def test_given_coefficients_are_a_start(x64, rng):
    gram, y = regression(rng)
    first = ridge(gram, y, 0.2, 0.02)
    again = ridge(gram, y, 0.2, 0.02, first.coefficients)
    assert again.start == -1
    assert again.iterations < 5 < first.iterations
    np.testing.assert_allclose(again.objective, first.objective, rtol=1e-6)


EYE, ONES = np.eye(2), np.ones(2)
FROM_ZERO = functools.partial(subquantile.ridge, EYE, ONES, contamination=0.1, start="zero")


@pytest.mark.parametrize(
    ("gram", "y", "options", "message"),
    [
        (EYE, ONES, {"contamination": 0.5}, r"contamination must be one number in \[0, 0\.5\)"),
        (EYE, ONES, {"contamination": ONES / 9}, r"contamination must be one number .* \[0.11"),
        (np.ones((2, 3)), ONES, {}, r"gram must be \[n, n\] with n >= 1, got \[2, 3\]"),
        (np.eye(3), ONES, {}, r"gram must be \[2, 2\], as y, got a side of 3"),
        (np.triu(np.ones((2, 2))), ONES, {}, "gram must be symmetric"),
        (np.diag([1.0, -0.1]), ONES, {}, "gram must be .* has the eigenvalue -0.1"),
        (np.diag([1.0, np.nan]), ONES, {}, r"gram must be finite, but gram\[1, 1\] is nan"),
        (nj.kernels.linear(), ONES, {}, r"gram must be \[n, n\], got Kernel; .* k\(x, x\)"),
        (EYE, np.ones((2, 2)), {}, r"y must be \[n\] .* one target a row"),
        (EYE, ONES, {"regularization": -1.0}, "regularization must be finite and >= 0"),
        (EYE, ONES, {"radius": 0.0}, "radius must be positive"),
        (EYE, ONES, {"start": "mean"}, "start must be 'best', 'zero', 'median', 'ri"),
        (EYE, ONES, {"start": np.zeros(3)}, r"start must be \[2\], as y, got \[3\]"),
        (EYE, ONES, {"solver": "newton"}, "solver must be 'accelerated' or 'alt"),
        (EYE, ONES, {"solver": "alternation", "radius": 1.0}, "alternation needs radius = inf"),
        (EYE, ONES, {"solver": "alternation", "regularization": 0}, "needs regularization > 0"),
        (EYE, ONES, {"iterations": 0}, "iterations must be a whole number of at least 1"),
        (EYE, ONES, {"tolerance": -1.0}, "tolerance must be finite and >= 0"),
    ],
)  # fmt: skip
def test_ridge_raises_on_bad_input(gram, y, options, message):
    good = {"contamination": 0.1, "regularization": 1.0}
    raises(message, subquantile.ridge, gram, y, **good | options)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([0.0, 1.0], {}, "y must be labels −1 and \\+1, got 0; 2y − 1 turns labels 0 and 1"),
        ([1.0, -1.0], {"radius": np.inf}, "regularization must be > 0 or radius finite"),
        ([1.0, -1.0], {"solver": "alternation"}, "alternation works for squared losses only"),
    ],
)
def test_logistic_raises_on_bad_input(y, options, message):
    good = {"contamination": 0.1, "radius": 1.0}
    raises(message, subquantile.logistic, EYE, jnp.array(y), **good | options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fit", "wrong", "good"),
    [
        (lambda y: subquantile.logistic(EYE, y, contamination=0.1, radius=1.0), EYE[0], -ONES),
        (lambda share: ridge(EYE, ONES, share, 1.0), np.nan, 0.1),
        (lambda lam: FROM_ZERO(regularization=lam, radius=1.0), -1.0, 1.0),
        (lambda radius: FROM_ZERO(regularization=1.0, radius=radius), -1.0, 1.0),
    ],
    ids=["labels", "contamination", "regularization", "radius"],
)
def test_traced_arguments_out_of_range_give_nan(fit, wrong, good):
    run = jax.jit(fit)
    assert np.isnan(run(wrong).objective)
    assert np.isfinite(run(good).objective)


def test_points_of_another_number_raise():
    fit = subquantile.Fit(*11 * [np.zeros(2)])
    raises(r"gram must be \[q, n\], kernel\(z, x\), got \[2, 5\]", fit.predict, np.zeros((2, 5)))
