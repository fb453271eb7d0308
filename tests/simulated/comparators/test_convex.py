"""The best function in a ball for any convex loss, against SciPy and exact least squares."""

import numpy as np
import pytest
from scipy.optimize import minimize

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.simulated.comparators import convex, convex_ball, kernel_ball, linear_ball
from noisy_jax.simulated.streams import from_arrays

PIECES = {  # the largest of affine functions of the prediction, as (slope, value at 0) of y
    losses.hinge(): lambda y: [(0 * y, 0 * y), (-y, 1 + 0 * y)],
    losses.epsilon_insensitive(epsilon=0.0): lambda y: [(1 + 0 * y, -y), (-1 + 0 * y, y)],
    losses.epsilon_insensitive(epsilon=0.2): lambda y: [
        (0 * y, 0 * y), (1 + 0 * y, -y - 0.2), (-1 + 0 * y, y - 0.2),
    ],
}  # fmt: skip
SMOOTH = [losses.logistic(), losses.huber(width=0.3)]


def rows(rng, loss, m=40):
    x = rng.normal(size=(m, 2))
    y = x @ [1.0, -0.5] + 0.5 * rng.normal(size=m)
    return x, np.sign(y) if loss.kind == "margin" else y


def by_scipy(loss, x, y, radius):
    """The least loss in the ball: for kinks with a variable above the pieces of each row."""
    m, d = x.shape

    def positive(value, slope):
        return {"type": "ineq", "fun": value, "jac": slope}

    constraints = [positive(lambda v: radius**2 - v[:d] @ v[:d],
                            lambda v: np.append(-2 * v[:d], np.zeros(len(v) - d)))]  # fmt: skip
    if loss in PIECES:
        start = np.append(np.zeros(d), np.asarray(loss(0 * y, y)) + 0.1)
        total, slope = lambda v: v[d:].sum(), lambda v: np.append(np.zeros(d), np.ones(m))
        constraints += [
            positive(lambda v, s=s, c=c: v[d:] - s * (x @ v[:d]) - c,
                     lambda v, s=s: np.hstack([-s[:, None] * x, np.eye(m)]))
            for s, c in PIECES[loss](y)
        ]  # fmt: skip
    else:
        start = np.full(d, 0.1 * radius / d)
        total, slope = (lambda w: float(np.sum(loss(x @ w, y))),
                        lambda w: np.asarray(loss.gradient(x @ w, y), float) @ x)  # fmt: skip
    options = {"method": "SLSQP", "options": {"ftol": 1e-14, "maxiter": 1000}}
    return minimize(total, start, jac=slope, constraints=constraints, **options).fun


@pytest.mark.slow
@pytest.mark.parametrize("loss", [*PIECES, *SMOOTH], ids=repr)
def test_agrees_with_scipy_where_the_ball_binds_and_where_not(x64, rng, loss):
    x, y = rows(rng, loss)
    for radius, binds in ((0.4, True), (5.0, False)):
        found = convex_ball(from_arrays(x, y), loss, radius, tolerance=3e-7)
        expected = by_scipy(loss, x, y, radius)
        assert found.converged
        np.testing.assert_allclose(found.loss, expected, rtol=1e-6)
        assert found.loss - found.gap <= expected * (1 + 1e-9)
        assert found.norm <= radius * (1 + 1e-12)
        assert bool(found.norm > 0.999 * radius) == binds
        np.testing.assert_allclose(x @ found.weights, found.predictions, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(found.weights), found.norm, rtol=1e-5)
    assert found.multiplier < 1e-4  # of the second radius


def test_least_squares_far_inside_the_ball_converges_at_the_default_tolerance(x64, rng):
    x, y = rows(rng, losses.squared())
    best = np.linalg.lstsq(x, y)[0]
    least = np.sum((x @ best - y) ** 2)
    found = convex_ball(from_arrays(x, y), losses.squared(), 40.0 * np.linalg.norm(best))
    assert found.converged
    assert found.gap <= 1e-6 * np.sum(y**2)
    assert 0 <= found.loss - least <= found.gap
    # A bound from below that is too high would say that less is lacking.
    found = convex_ball(from_arrays(x, y), losses.squared(), 40.0, tolerance=0.3)
    assert found.loss - least <= found.gap


@pytest.mark.slow
def test_squared_loss_is_that_of_exact_comparators(x64, rng):
    x, y = rows(rng, losses.squared())
    stream = from_arrays(x, y)
    kernel = nj.kernels.gaussian(length_scale=1.0)
    for exact, radius, options in (
        (linear_ball(stream, 0.5), 0.5, {}),
        (kernel_ball(kernel(x, x), y, 1.5), 1.5, {"kernel": kernel}),
    ):
        found = convex_ball(stream, losses.squared(), radius, tolerance=1e-10, **options)
        np.testing.assert_allclose(found.predictions, exact.predictions, atol=1e-4)
        np.testing.assert_allclose(found.loss, exact.loss, rtol=1e-9)
        np.testing.assert_allclose(found.multiplier, exact.multiplier, rtol=1e-3)


@pytest.mark.slow
def test_repeated_rounds_count_as_often_as_they_come(x64, rng):
    """Each row comes once to three times, in any order: the answer is that of SciPy on all rows."""
    loss = losses.hinge()
    drawn = rng.permutation(np.repeat(np.arange(20), rng.integers(1, 4, size=20)))
    x, y = (rows[drawn] for rows in rows(rng, loss, 20))
    found = convex_ball(from_arrays(x, y), loss, 1.0, tolerance=3e-7)
    np.testing.assert_allclose(found.loss, by_scipy(loss, x, y, 1.0), rtol=1e-6)
    np.testing.assert_allclose(found.predictions, x @ found.weights, atol=1e-6)
    np.testing.assert_allclose(found.coefficients @ x, found.weights, atol=1e-9)
    np.testing.assert_allclose(np.sum(loss(found.predictions, y)), found.loss, rtol=1e-9)


@pytest.mark.slow
def test_a_gram_matrix_of_low_rank_is_factored_up_to_rounding(x64, rng):
    x = rng.normal(size=(300, 2))
    for kernel in (nj.kernels.polynomial(degree=2), nj.kernels.gaussian(length_scale=0.5)):
        features = convex.low_rank_factor(kernel, x)
        gram = kernel(x, x)
        np.testing.assert_allclose(features @ features.T, gram, atol=1e-12 * gram.max())
        assert features.shape[1] < 300
    assert convex.low_rank_factor(nj.kernels.polynomial(degree=2), x).shape[1] == 6


def test_the_gap_bounds_what_an_unfinished_search_lacks(x64, rng, monkeypatch):
    loss = losses.logistic()
    x, y = rows(rng, loss)
    least = by_scipy(loss, x, y, 1.0)
    monkeypatch.setattr(convex, "_MAX_MULTIPLIERS", 2)
    found = convex_ball(from_arrays(x, y), loss, 1.0)
    assert not found.converged
    assert 1e-3 < found.loss - least < found.gap


@pytest.mark.parametrize("loss", [losses.logistic(), losses.huber(width=0.3)], ids=repr)
def test_inside_the_ball_the_gap_is_the_price_of_the_multiplier(x64, rng, monkeypatch, loss):
    """It is 2μ‖g‖(B − ‖g‖), and at most a quarter of the tolerance more: the inner solver's gap.

    The first multiplier is so large that its function is inside.
    """
    x, y = rows(rng, loss)
    monkeypatch.setattr(convex, "_MAX_MULTIPLIERS", 1)
    found = convex_ball(from_arrays(x, y), loss, 2.0)
    price = 2 * found.multiplier * found.norm * (2.0 - found.norm)
    assert price > 0.1
    assert price * (1 - 1e-9) <= found.gap <= price + 1e-6 / 4 * np.sum(loss(0 * y, y)) + 1e-9


def test_nothing_to_learn(rng):
    """Zero is the best where no loss is left, or where no feature says anything."""
    x, _ = rows(rng, losses.squared())
    for points, y in ((x, np.zeros(40)), (0 * x, np.ones(40))):
        found = convex_ball(from_arrays(points, y), losses.huber(width=0.3), 1.0)
        assert found.converged
        assert found.norm == found.gap == 0
        assert not np.any(found.predictions)
