import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.comparators import kernel_ball, linear_ball


def problem(kind, rng):
    x, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    if kind == "rank_deficient":
        x[:, 3] = x[:, 0] + x[:, 1]
    if kind == "fewer_rounds":
        x, y = x[:3], y[:3]
    if kind == "badly_scaled":
        x = x * np.array([1.0, 1e-2, 1e-4, 10.0])[None]
    if kind == "constant_zero_feature":
        x[:, 2] = 0
    return x, y + x @ np.array([2.0, -1.0, 0.5, 1.0])


KINDS = ["plain", "rank_deficient", "fewer_rounds", "badly_scaled", "constant_zero_feature"]


@pytest.mark.parametrize("kind", KINDS)
def test_optimality_conditions_to_1e10(x64, rng, kind):
    """‖w‖ ≤ B, (XᵀX + μI)w = Xᵀy, μ ≥ 0, μ(‖w‖ − B) = 0: sufficient, as the problem is convex."""
    x, y = problem(kind, rng)
    scale = np.abs(x.T @ y).max()
    for radius in (0.01, 2.0, 100.0):
        found = linear_ball(nj.streams.from_arrays(x, y), radius)
        w, mu = np.asarray(found.weights), float(found.multiplier)
        np.testing.assert_allclose(x.T @ (x @ w - y) + mu * w, 0, atol=1e-10 * scale)
        assert np.linalg.norm(w) <= radius * (1 + 1e-12)
        assert mu >= 0
        assert abs(mu) * abs(np.linalg.norm(w) - radius) < 1e-10 * scale
        np.testing.assert_allclose(found.loss, np.sum((x @ w - y) ** 2), atol=1e-12 * (y @ y))
        np.testing.assert_allclose(found.predictions, x @ w, atol=1e-12)


def test_interior_minimiser_has_least_norm(x64, rng):
    x, y = problem("rank_deficient", rng)
    found = linear_ball(nj.streams.from_arrays(x, y), 100.0)
    np.testing.assert_allclose(found.weights, np.linalg.pinv(x) @ y, atol=1e-10)
    assert found.multiplier == 0


@pytest.mark.parametrize(
    ("x", "y"), [(np.zeros((5, 2)), np.ones(5)), (np.ones((5, 2)), np.zeros(5))]
)
def test_zero_inputs_or_zero_targets_give_zero_weights(x, y):
    found = linear_ball(nj.streams.from_arrays(x, y), 1.0)
    np.testing.assert_array_equal(found.weights, 0)
    np.testing.assert_allclose(found.loss, np.sum(y**2))


def test_float32_over_a_long_stream():
    stream = nj.streams.resampled(jax.random.key(0), nj.streams.dataset("diabetes"), 50_000)
    x, y, w = (np.asarray(a, np.float64) for a in (*stream, linear_ball(stream, 1.0).weights))
    with jax.enable_x64(True):
        best = linear_ball(nj.streams.from_arrays(x, y), 1.0)
    # One part in 1e6 of the loss is far below the regret of any learner at this horizon.
    np.testing.assert_allclose(np.sum((x @ w - y) ** 2), float(best.loss), rtol=1e-6)


def test_goes_through_jit_and_vmap(rng):
    stream, radii = nj.streams.from_arrays(*problem("plain", rng)), jnp.array([0.5, 2.0, 100.0])
    swept = jax.jit(jax.vmap(lambda radius: linear_ball(stream, radius).loss))(radii)
    np.testing.assert_allclose(swept, [linear_ball(stream, r).loss for r in radii], rtol=1e-5)


def test_the_condition_of_the_loop_is_computed_in_its_body(rng, monkeypatch):
    """`vmap` computes a condition for all lanes and for each: with two roundings it may not end."""
    conditions, loop = [], jax.lax.while_loop

    def recorded(condition, body, start):
        conditions.append(jax.make_jaxpr(condition)(start))
        return loop(condition, body, start)

    monkeypatch.setattr(jax.lax, "while_loop", recorded)
    linear_ball(nj.Stream(rng.normal(size=(11, 7)), rng.normal(size=11)), 0.1)
    assert conditions
    assert not any(condition.eqns for condition in conditions)


@pytest.mark.slow
@pytest.mark.parametrize("radius", [1e-30, 1e-6, 1e15])
@pytest.mark.parametrize("unit", [1.0, 1e18])
def test_balls_of_any_scale_are_kept(rng, radius, unit):
    """In float32, where squares of radii and of targets in these units overflow or underflow."""
    x, y = problem("plain", rng)
    gram = np.exp(-np.sum((x[:, None] - x[None]) ** 2, axis=-1)).astype(np.float32)
    w = np.asarray(linear_ball(nj.streams.from_arrays(x, unit * y), radius).weights, np.float64)
    kernel = kernel_ball(gram, unit * y, radius, surrogate=gram)
    a, gram = np.asarray(kernel.coefficients, np.float64), np.asarray(gram, np.float64)
    for norm in (np.linalg.norm(w), np.sqrt(a @ gram @ a), kernel.norm, kernel.lifted_norm):
        assert norm <= radius * (1 + 1e-5)
        if 1e-30 < radius / unit < 1:  # the minimizer is on the sphere; float32 holds the ratio
            assert norm >= radius * (1 - 1e-5)
    inside = np.linalg.norm(unit * np.linalg.solve(x.T @ x, x.T @ y))
    assert radius < unit or np.isclose(np.linalg.norm(w), min(radius, inside), rtol=1e-4)


def test_without_a_stream_it_is_a_function_of_a_stream(rng):
    stream = nj.streams.from_arrays(*problem("plain", rng))
    for best in (linear_ball(None, 1.0), linear_ball(radius=1.0)):
        np.testing.assert_array_equal(best(stream).weights, linear_ball(stream, 1.0).weights)
    assert "linear_ball" in repr(best)
    assert "radius=1.0" in repr(best)
    with pytest.raises(TypeError, match="missing a required argument: 'radius'"):
        linear_ball()
