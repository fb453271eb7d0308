"""Local differential privacy: instances clipped, then released under noise calibrated to a budget.

A mechanism M is (ε, δ)-private where P(M(x) ∈ A) ≤ e^ε P(M(x') ∈ A) + δ for all x, x' and every A.
Locally, x and x' are any two values that one person may have; of norm at most c, they are 2c apart,
the sensitivity Δ. What is released is x + n, and the noise distributions here have mean zero and a known
distribution, so that `learners` can undo them on average.

Releasing V copies costs more than one: Laplace budgets add up, and V Gaussian copies tell what one
of variance σ²/V tells, their mean. Mechanisms take the number of copies, `Learner.copies`, and give
the noise of each, so that all of them together keep to the budget.

The guarantees are those of real numbers: floating-point samples have gaps by which an attacker who
sees all their digits may tell more.
"""

import chex
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm as normal

from noisy_jax.noise import Gaussian, Laplace
from noisy_jax.validation import (
    check_at_least,
    check_between,
    check_choice,
    check_concrete,
    check_one_number,
    check_positive,
)

__all__ = ["clipped", "gaussian_mechanism", "laplace_mechanism"]


def clipped(x: chex.Array, norm: chex.Numeric, *, order: int = 2) -> chex.Array:
    """Instances pulled towards the origin into the ball of a norm: x min(1, c/‖x‖).

    Args:
        x: `[..., d]`.
        norm: c > 0, the largest norm. Any two of the results are at most 2c apart.
        order: 2 for ‖x‖₂, as `gaussian_mechanism` needs, or 1 for ‖x‖₁, as `laplace_mechanism`.

    Returns:
        `[..., d]`.

    Raises:
        ValueError: c not positive, another order, or no axis of features.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.array([[3.0, 4.0], [0.25, 0.5]])
        >>> print(clipped(x, 2.5).tolist(), clipped(x, 3.5, order=1).tolist())
        [[1.5, 2.0], [0.25, 0.5]] [[1.5, 2.0], [0.25, 0.5]]
    """
    check_positive("norm", norm, "the largest norm of an instance")
    check_choice("order", order, (1, 2))
    x = jnp.asarray(x, float)
    if x.ndim == 0:
        raise ValueError("x must be [..., d] with an axis of features, got a scalar")
    size = jnp.linalg.norm(x, ord=order, axis=-1, keepdims=True)
    return x * jnp.where(size > norm, norm / jnp.where(size > norm, size, 1), 1)


def laplace_mechanism(
    *, epsilon: chex.Numeric, l1_sensitivity: chex.Numeric, copies: int = 1
) -> Laplace:
    """The Laplace noise that makes each of V copies (ε/V, 0)-, and all of them (ε, 0)-private.

    b = VΔ/ε on every coordinate: the log ratio of the densities of the copies from x and from x' is
    at most V‖x − x'‖₁/b ≤ ε, and attained.

    Args:
        epsilon: ε > 0, of all copies together.
        l1_sensitivity: Δ > 0, the largest ‖x − x'‖₁; 2c after `clipped(x, c, order=1)`.
        copies: V ≥ 1, how many are released.

    Raises:
        ValueError: ε or Δ not one positive number, or no whole number of copies.

    Source: Dwork, McSherry, Nissim and Smith, Calibrating Noise to Sensitivity in Private Data
    Analysis.

    Example:
        >>> print(laplace_mechanism(epsilon=4.0, l1_sensitivity=2.0, copies=2).scale)
        1.0
    """
    for name, value in {"epsilon": epsilon, "l1_sensitivity": l1_sensitivity}.items():
        check_one_number(name, value)
    check_positive("epsilon", epsilon, "the privacy budget of all copies")
    check_positive("l1_sensitivity", l1_sensitivity, "the largest ‖x − x'‖₁")
    check_at_least("copies", copies, 1, "the number of copies released")
    return Laplace(copies * l1_sensitivity / epsilon)


def gaussian_mechanism(
    *, epsilon: float, delta: float, l2_sensitivity: float, copies: int = 1
) -> Gaussian:
    """The least Gaussian noise, σ² on every coordinate, that makes V copies (ε, δ)-private.

    σ solves δ(σ/(√V Δ)) = δ, with u the noise in units of the distance,

        δ(u) = Φ(1/(2u) − εu) − e^ε Φ(−1/(2u) − εu),

    which is exactly what Gaussian noise attains, and falls in u. It is found by bisection, in
    float64 on the host, from u = (√(L + ε) + √L)/(√2 ε), L = log(1/δ), which is enough by the
    moments of the privacy loss. The classical σ = Δ√(2 log(1.25/δ))/ε is larger, and holds for
    ε ≤ 1 only.

    Args:
        epsilon: ε > 0, of all copies together.
        delta: δ in (0, 1), of all copies together; well below one in the number of people.
        l2_sensitivity: Δ > 0, the largest ‖x − x'‖₂; 2c after `clipped(x, c)`.
        copies: V ≥ 1, how many are released.

    Raises:
        ValueError: a number that is out of range or traced, or no whole number of copies.

    Source: Balle and Wang, Improving the Gaussian Mechanism for Differential Privacy: Analytical
    Calibration and Optimal Denoising, Theorem 8.

    Example:
        >>> distribution = gaussian_mechanism(epsilon=1.0, delta=1e-5, l2_sensitivity=1.0)
        >>> print(f"{distribution.cov**0.5:.4f}")
        3.7306
    """
    numbers = {"epsilon": epsilon, "delta": delta, "l2_sensitivity": l2_sensitivity}
    for name, value in numbers.items():
        check_concrete(name, value, "the noise is calibrated on the host")
        check_one_number(name, value)
    check_positive("epsilon", epsilon, "the privacy budget of all copies")
    advice = "Gaussian noise leaves a δ; for none, use laplace_mechanism"
    check_between("delta", delta, 0, 1, advice)
    check_positive("l2_sensitivity", l2_sensitivity, "the largest ‖x − x'‖₂")
    check_at_least("copies", copies, 1, "the number of copies released")
    with jax.enable_x64(True):
        noise_to_distance = float(_calibrated(float(epsilon), float(delta)))
    return Gaussian(copies * (noise_to_distance * float(l2_sensitivity)) ** 2)


_BISECTIONS = 60
"""As many as float64 has digits, and some for an answer far below the first bracket."""


@jax.jit
def _calibrated(epsilon, delta):
    """The least u with δ(u) ≤ δ."""
    log_inverse = -jnp.log(delta)
    enough = (jnp.sqrt(log_inverse + epsilon) + jnp.sqrt(log_inverse)) / (jnp.sqrt(2.0) * epsilon)

    def halve(_, bracket):
        low, high = bracket
        middle = (low + high) / 2
        private = _log_delta(middle, epsilon) <= -log_inverse
        return jnp.where(private, low, middle), jnp.where(private, middle, high)

    return jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.zeros_like(enough), enough))[1]


def _log_delta(u, epsilon):
    """log δ(u), by logarithms: e^ε overflows, and both terms may be far below δ's own rounding."""
    first = normal.logcdf(0.5 / u - epsilon * u)
    second = epsilon + normal.logcdf(-0.5 / u - epsilon * u)
    return first + jnp.log(-jnp.expm1(second - first))
