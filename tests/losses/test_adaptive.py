"""Losses that learn their scale: derivative and descent are derivatives of the value."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import losses

NU = 0.3
A = jnp.array([-2.3, -0.45, 0.2, 0.8, 1.7])
MAKERS = (losses.nu_hinge, losses.novelty, losses.nu_epsilon_insensitive, losses.nu_huber)


@pytest.mark.claim("NORMA-Eq19", "NORMA-Eq22", "NORMA-adaptive-σ")
@pytest.mark.parametrize(
    "loss", [*(make(nu=NU) for make in MAKERS), losses.nu_huber(nu=NU, tracker="joint")], ids=str
)
def test_steps_are_minus_the_derivatives(x64, loss):
    a, s = np.asarray(A, float), np.full(len(A), 0.5)

    @jax.jit
    def slopes(a, s):
        each = jax.vmap(jax.grad(lambda a, s: loss.value(a, s), (0, 1)))(a, s)
        return *each, loss.derivative(a, s), loss.descent(a, s)

    in_a, in_s, derivative, descent = jax.device_get(slopes(a, s))
    np.testing.assert_allclose(derivative, in_a, atol=1e-14)
    if "quantile" in str(loss):  # its step is the tube's
        tube = losses.nu_epsilon_insensitive(nu=NU)
        np.testing.assert_allclose(descent, tube.descent(a, s), atol=1e-15)
        assert np.abs(descent + in_s).max() > 0.1
    else:
        np.testing.assert_allclose(descent, -in_s, atol=1e-14)


@pytest.mark.parametrize("name", ["hinge", "epsilon_insensitive", "huber"])
def test_at_a_scale_it_is_the_fixed_loss_plus_a_constant(name):
    parameter = {"hinge": "margin", "epsilon_insensitive": "epsilon", "huber": "width"}[name]
    fixed = getattr(losses, name)(**{parameter: 0.5})
    adaptive = getattr(losses, f"nu_{name}")(nu=NU).at(0.5)
    y = jnp.where(A > 0.5, 1.0, -1.0)
    np.testing.assert_array_equal(adaptive.gradient(A, y), fixed.gradient(A, y))
    sign = -1 if name == "hinge" else 1
    np.testing.assert_allclose(adaptive(A, y) - fixed(A, y), sign * NU * 0.5, atol=1e-6)


@pytest.mark.claim("NORMA-Eq23")
def test_huber_with_a_width_is_convex_in_both(rng):
    loss = losses.nu_huber(nu=NU, tracker="joint")
    a, s = rng.normal(size=(2, 1000)), rng.uniform(0.1, 3, size=(2, 1000))
    middle = loss.value(a.mean(axis=0), s.mean(axis=0))
    assert np.all(middle <= loss.value(a, s).mean(axis=0) + 1e-6)
