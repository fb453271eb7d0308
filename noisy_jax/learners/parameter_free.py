"""FreeGrad: online learning without learning rate, radius or horizon, for losses of bounded slope.

    F_t = −Σ_{s<t} ĝ_s,   V_t = h_1² + Σ_{s<t} ‖ĝ_s‖²,   h_t = max_{s<t} ‖g_s‖,   n_t = ‖F_t‖
    f_t = ε h_1² (2V_t + h_t n_t)/(2(V_t + h_t n_t)² √V_t) exp(n_t²/(2V_t + 2h_t n_t)) F_t

g_t = ℓ'(f_t(x_t), y_t) k(x_t, ·) is the gradient, ĝ_t = g_t min(1, h_t/‖g_t‖) the clipped one, h_1
the norm of the first gradient that is not zero, and ε the unit of f. The function grows
exponentially as long as gradients agree, and so reaches a ‖u‖ that it was not told.

**Theorem.** For all vectors g_1, …, g_T, all u, and T rounds,

    Σ_t ⟨g_t, f_t − u⟩ ≤ ε h_1 + 2‖u‖√(V ln₊(2‖u‖V/(ε h_1²))) ∨ 4h‖u‖ ln₊(4h‖u‖√V/(ε h_1²))
                         + Σ_t (‖g_t‖ − h_t)₊ ‖f_t‖ + (h − h_1)‖u‖

with V and h after the last round, a ∨ b the larger, and ln₊ = max(0, ln). Proof: f_t = ∇Φ_t(F_t)
for Φ_t(F) = ε h_1²/√V_t exp(‖F‖²/(2V_t + 2h_t‖F‖)). If ‖ĝ_t‖ ≤ h_t, then Φ_{t+1}(F_t − ĝ_t) ≤
Φ_t(F_t) − ⟨ĝ_t, f_t⟩, as Φ decreases in h. Summed over t, Σ_t ⟨ĝ_t, f_t − u⟩ ≤ Φ_1(0) + ‖u‖n − Φ(n)
for n = ‖F‖ after the last round; the first line is the maximum over n. Clipping adds the second.

Source: Mhammedi and Koolen, Lipschitz and comparator-norm adaptivity in online learning (2020),
with the hints of Cutkosky, Artificial constraints and hints for unbounded online learning (2019).
Before them: Orabona and Pál, Coin betting (2016) and Scale-free online learning (2018). On noisy
gradients without a bound: Jun and Orabona, Parameter-free online convex optimization with
sub-exponential noise (2019, BANCO); van der Hoeven, User-specified local differential privacy in
unconstrained adaptive online learning (2019); Zhang and Cutkosky, Parameter-free regret in high
probability with heavy tails (2022).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, exportable
from noisy_jax.engine import Rule, Update, function_space
from noisy_jax.engine.memory import MakeMemory
from noisy_jax.kernels import Kernel
from noisy_jax.linalg.ball import root
from noisy_jax.losses.loss import Loss, check_loss, flips_of, has_bounded_slope
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import positive
from noisy_jax.validation.values import ArrayLike
from noisy_jax.worlds import World
from noisy_jax.worlds.fourier import FourierWorld


@exportable
class ParameterFreeState(NamedTuple):
    """State of FreeGrad besides f: field `rule` of its `ExpansionState`.

    Attributes:
        unit: `[]`, ε.
        first: `[]`, h_1, norm of the first gradient that is not zero; zero before it.
        hint: `[]`, h, the largest norm of a gradient so far.
        squares: `[]`, V = h_1² + Σ ‖ĝ_s‖².
        squared_sum: `[]`, ‖F‖², of the sum of the clipped gradients.
        excess: `[]`, Σ (‖g_s‖ − h_s)₊ ‖f_s‖, over the clipped parts of the gradients.
    """

    unit: jax.Array
    first: jax.Array
    hint: jax.Array
    squares: jax.Array
    squared_sum: jax.Array
    excess: jax.Array


def parameter_free(
    kernel: Kernel | World | FourierWorld,
    loss: Loss,
    *,
    buffer: MakeMemory | None = None,
    unit: ArrayLike = 1.0,
    copies: int | None = None,
    block: int | None = None,
) -> Learner:
    """Online learning with a loss of bounded slope, without learning rate, radius or horizon.

    It learns a function f of a kernel. Its regret against every fixed u, the total loss over T
    rounds minus the total of u, is of order ‖u‖√(T ln(‖u‖T)) plus the cost of clipping. Projected
    gradient descent that was told ‖u‖ has the same regret, up to a logarithmic factor. Against
    u = 0 it is of order ε. Gradients g_t that are larger than all earlier ones are clipped to the
    largest earlier norm. This costs at most E max_t ‖g_t‖ (max_t ‖f_t‖ + ‖u‖), usually far less.

    The bound (`bounds.parameter_free` gives it after a run) holds for all sequences of gradients.
    So its mean over the noise bounds an expected regret, also under noise without a bound. The
    regret is measured in these losses:

    - with a kernel and clean inputs, ℓ(f(x), y) against the targets that the learner sees;
    - with a world and two copies x̃ and x̃', E ℓ(f(x) + e, y). Here e = f_t(x̃') − f_t(x) is the
      error of the learner's own value at the second copy, of mean zero. The comparator u has the
      same one, E ℓ(u(x) + e, y). This is not the regret in ℓ(f(x), y), nor in ℓ(f(x̃'), y).
    - with a world and `copies=1`, E ℓ(f(x̃), y) at noisy copies, where u is evaluated too.

    In a world ‖u‖ is in the norm of the surrogate's space. Noisy inputs without a world bias the
    gradients. For the squared loss use `corrected_ftrl`.

    Args:
        kernel: one of `kernels`; for noisy inputs a world (`worlds`), or its random features
            (`worlds.fourier`).
        loss: one of `losses` of bounded slope; others, such as the squared loss, raise ValueError.
        buffer: a memory that keeps all of f: `engine.everything(T)`, or `engine.weight_vector()`
            with the linear kernel. `None`, the default, with random features only.
        unit: ε > 0, a guess of the unit of f; 1 by default. A guess that is wrong by a factor a
            adds ln a under the root, or, if it is too large, ε times the norm of the first
            gradient.
        copies: 1 or 2, noisy copies that a step reads; by default 1 with a kernel, else 2.
        block: number of rounds that `unroll` plays at once, for speed only; by default at most 64.

    Returns:
        A `Learner` with O(t) kernel evaluations in round t, or O(D) time with D random features.
        With a world, or its random features, and two copies it has `clean_estimates` (unbiased
        estimates of f(x) and f(x)² at the clean x). A run ends in NaN if f overflows, or in float32
        if later gradients are more than about 10¹²/√T times the first.

    Source: Mhammedi and Koolen, Lipschitz and comparator-norm adaptivity in online learning (2020).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> learner = nj.learners.parameter_free(
        ...     nj.kernels.linear(), nj.losses.absolute(), buffer=nj.engine.weight_vector())
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4000, dim=3)
        >>> def relative_loss(size):
        ...     scaled = stream._replace(y=size * stream.y)
        ...     run = nj.rollout(learner, scaled, nj.noise.Gaussian(0.0), jax.random.key(1))
        ...     return jnp.abs(run.predictions - scaled.y)[2000:].mean() / jnp.abs(scaled.y).mean()
        >>> print(jax.vmap(relative_loss)(jnp.array([0.01, 1.0, 100.0])).round(2))
        [0.02 0.03 0.03]
    """
    check_loss(loss)
    if not has_bounded_slope(loss):
        raise ValueError(
            f"loss must have a bounded slope, as losses.huber() has, got {loss}: for the squared "
            "loss use corrected_ftrl"
        )
    problem = (
        "buffer must be a memory that keeps all of f, such as engine.everything(horizon), got "
    )
    if not (callable(buffer) or isinstance(kernel, FourierWorld)):
        raise ValueError(problem + given(buffer))
    space = function_space(kernel, buffer)
    if space.memory.forgets:
        raise ValueError(problem + "one that forgets terms")
    rule = _rule(loss, positive("unit", unit, "ε, of the order of f"))
    labels = loss.kind == "margin"
    return space.learner(rule, copies=copies, block=block, labels=labels, flips=flips_of(loss))


def _rule(loss: Loss, unit) -> Rule:
    def init() -> ParameterFreeState:
        zero = jnp.zeros(())
        return ParameterFreeState(jnp.asarray(unit, float), zero, zero, zero, zero, zero)

    def update(state: ParameterFreeState, values, y, t, square) -> Update:
        slope: Any = loss.gradient(values[-1], y)
        size = jnp.abs(slope) * root(square)
        started = state.first > 0
        first = jnp.where(started, state.first, size)
        hint = jnp.where(started, state.hint, size)
        clipped = size > hint
        step = -slope * jnp.where(clipped, hint / jnp.where(clipped, size, 1), 1)
        before = _factor(state)
        value = values[0] / before  # ⟨F_t, φ_t⟩
        squared_sum = state.squared_sum + 2 * step * value + step**2 * square
        state = ParameterFreeState(
            state.unit,
            first,
            jnp.maximum(hint, size),
            jnp.where(started, state.squares, first**2) + step**2 * square,
            jnp.maximum(squared_sum, 0),
            state.excess + jnp.maximum(size - hint, 0) * before * root(state.squared_sum),
        )
        after = _factor(state)
        return Update(after * step, after / before, state)

    return Rule(init, update)


def _factor(state: ParameterFreeState):
    """Returns c_t of f_t = c_t F_t, computed in units of h_1 to avoid overflow; 1 at the start."""
    started = state.first > 0
    first = jnp.where(started, state.first, 1)
    squares = jnp.where(started, state.squares / first / first, 1)
    norm = root(state.squared_sum) / first
    total = squares + state.hint / first * norm
    polynomial = (1 + squares / total) / (2 * total * jnp.sqrt(squares))
    factor = state.unit / first * polynomial * jnp.exp(norm * (norm / (2 * total)))
    return jnp.where(started, factor, 1)
