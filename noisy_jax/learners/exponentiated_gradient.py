"""EG±: exponentiated gradient on linear weights in an l1 ball, along estimates of clean gradients.

    w_t = B(p⁺_t − p⁻_t),   p^±_{t,i} ∝ exp(∓η_t Σ_{s<t} ∇̃_{s,i}),   Σ_i p⁺_{t,i} + p⁻_{t,i} = 1

p_t are the shares of AdaHedge (`wrappers.mixture`) on the 2d corners ±B e_i of the ball, whose
losses are ±∇̃_{t,i} in units of B; its rate is η_t = ln(2d)/Δ_{t−1}. For ‖u‖₁ ≤ B and any ∇̃_t

    Σ_t ⟨∇̃_t, w_t − u⟩ ≤ 2BΔ_T ≤ 2B√(ln(2d) Σ_t ‖∇̃_t‖∞²) + 4B max_t ‖∇̃_t‖∞

Proof: the first step is AdaHedge's. One round adds δ_t ≤ η_t‖∇̃_t‖∞²/2 to Δ (Hoeffding), and at most
2‖∇̃_t‖∞. So Δ_T² = Σ_t 2Δ_{t−1}δ_t + δ_t² ≤ ln(2d) Σ_t ‖∇̃_t‖∞² + 2 max_t ‖∇̃_t‖∞ Δ_T. The best
constant rate, which nobody knows before, gives B√(2 ln(2d) Σ_t ‖∇̃_t‖∞²).

Source: Kivinen and Warmuth, Exponentiated gradient versus gradient descent for linear predictors
(1997); de Rooij, van Erven, Grünwald and Koolen, Follow the leader if you can, hedge if you must
(2014), for the rate. The bound at a constant rate: Shalev-Shwartz, Online learning and online
convex optimization (2012); Orabona, A modern introduction to online learning (2019).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import optax

from noisy_jax.base import Learner
from noisy_jax.engine.rules import parsed_radius
from noisy_jax.learners.gradient_descent import Gradient, gradient_descent
from noisy_jax.learners.known_covariance import gradient_estimate as from_one_copy
from noisy_jax.learners.two_copies import gradient_estimate as from_two_copies
from noisy_jax.learners.wrappers.mixture import MixtureState, after_round
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.objects import function
from noisy_jax.validation.values import ArrayLike


def exponentiated_gradient(
    gradient: Gradient | None = None, *, radius: ArrayLike, copies: int = 1
) -> Learner:
    """Exponentiated gradient on the weights of a linear predictor, in an l1 ball.

    The weights are a weighted mean of the 2d corners ±B e_i of the ball {‖w‖₁ ≤ B}; corners whose
    estimated loss is small get more weight. The regret grows with the number d of features like
    √(ln d) only. So it is better than gradient descent where a few of many features predict the
    target. There is no learning rate to tune.

    Args:
        gradient: `(weights[d], sample) -> [d]`, an estimate ∇̃ of the gradient of the loss at the
            clean x. By default of the squared loss: from one copy and its covariance `sample.cov`,
            or for `copies` ≥ 2 from the first two copies.
        radius: B > 0. Regret is the learner's total loss on clean data over T rounds minus the
            total of the best predictor u with ‖u‖₁ ≤ B (`comparators.l1_ball`).
        copies: V ≥ 1, number of noisy copies that `gradient` reads; 1 by default.

    Returns:
        A `Learner` of V copies with O(d) time a round. It has `clean_estimates` (unbiased estimates
        of f(x) and f(x)² at the clean x), which are NaN for one copy without a covariance. If ∇̃ is
        unbiased and the loss convex, its expected regret on clean data is at most
        E [2B√(ln(2d) Σ_t ‖∇̃_t‖∞²) + 4B max_t ‖∇̃_t‖∞]; `bounds.exponentiated_gradient(state, …)`
        computes a smaller bound after a run. `state.optimizer.shares` are the corners' weights.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> x = jax.random.normal(jax.random.key(0), (4000, 100))
        >>> stream, noise = nj.Stream(x, x[:, 7]), nj.noise.Gaussian(0.5)  # one of 100 features
        >>> for make in nj.learners.exponentiated_gradient, nj.learners.known_covariance:
        ...     run = nj.rollout(make(radius=1.0), stream, noise, jax.random.key(1))
        ...     print(f"mean squared loss {jnp.mean((run.predictions - stream.y) ** 2):.2f}")
        mean squared loss 0.01
        mean squared loss 0.22
    """
    if gradient is not None:
        function("gradient", gradient, "(weights, sample) -> [d]")
    estimate = gradient or (from_one_copy if whole("copies", copies) == 1 else from_two_copies)
    size = parsed_radius(radius)

    def init(params) -> MixtureState:
        losses = jnp.zeros(2 * len(params))
        return MixtureState((), jnp.full_like(losses, 1 / len(losses)), losses, jnp.zeros(()))

    def update(updates, state: Any, params: Any = None):
        state = after_round(state, jnp.concatenate([updates, -updates]))
        positive, negative = jnp.split(state.shares, 2)
        return size * (positive - negative) - params, state

    descent = optax.GradientTransformation(init, update)
    # Its weights are in the l1 ball, so that the projection on the l2 ball changes nothing.
    learner = gradient_descent(estimate, copies=copies, radius=radius, optimizer=descent)
    needs = learner.needs._replace(one_scale=True)
    if gradient is None:
        needs = needs._replace(targets="any", flips=False)
    return learner._replace(needs=needs)
