"""NORMA: stochastic gradient descent on the regularized risk in a kernel's Hilbert space.

    p_t = f_t(x_t) + b_t
    f_{t+1} = (1 − η_t λ) f_t − η_t ℓ'(p_t, y_t) k(x_t, ·),   b_{t+1} = b_t − η_t ℓ'(p_t, y_t)

from f_1 = 0 and b_1 = 0; the offset b is optional. Old terms decay, so that the learner can follow
a target that drifts, and all but the newest terms may be dropped. An adaptive loss also moves its
scale s, by η_t times `AdaptiveLoss.descent`.

Tuning: without offset, at constant η, a run with the hinge loss of margin ρ depends on (η, λ, ρ)
only through (ηλ, ρ/η), since f(η, λ, ρ) = η f(1, ηλ, ρ/η). So only two parameters need tuning, and
only ηλ for ρ = 0. The same holds for the widths ε and σ of other losses, with ε/η, σ/η and y/η.

Source: Online Learning with Kernels, Secs. II-III. Eq. 9 prints the decay 1 − ηλ where the step is
η_t; Eqs. 19, 20 and 24 print signs and factors that do not descend (see `losses`).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from noisy_jax.base import Learner, exportable
from noisy_jax.engine import Rule, Update, function_space
from noisy_jax.engine.function_space import Buffer
from noisy_jax.engine.memory import Memory
from noisy_jax.engine.rules import schedule
from noisy_jax.kernels import Kernel
from noisy_jax.losses import Loss
from noisy_jax.losses.adaptive import AdaptiveLoss
from noisy_jax.losses.loss import curvature, flips_of, has_bounded_slope
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.objects import choice, switch
from noisy_jax.validation.values import ArrayLike, concrete
from noisy_jax.warning import warn
from noisy_jax.worlds import World
from noisy_jax.worlds.fourier import FourierWorld

_LARGEST_DECAY = 1 + 1e-6
"""A schedule may start at ηλ = 1, and in float32 η = 1/λ times λ may exceed 1 by rounding."""


@exportable
class NormaState(NamedTuple):
    """State of NORMA besides f: field `rule` of its `ExpansionState`.

    Attributes:
        offset: `[]`, b; zero if no offset is learned.
        scale: `[]`, ρ, ε or σ of an adaptive loss; `None` with a fixed loss.
    """

    offset: jax.Array
    scale: jax.Array | None


def norma(
    kernel: Kernel | World | FourierWorld,
    loss: Loss | AdaptiveLoss,
    *,
    learning_rate: optax.ScalarOrSchedule | None = None,
    regularization: ArrayLike,
    buffer: Buffer | None = None,
    offset: bool = False,
    decay: Literal["always", "on_update"] = "always",
    copies: int | None = None,
    block: int | None = None,
) -> Learner:
    """Online kernel learning with decay: classification, regression, novelty detection, drift.

        f_{t+1} = (1 − η_t λ) f_t − η_t ℓ'_t k(x_t, ·),   b_{t+1} = b_t − η_t ℓ'_t

    ℓ'_t is the derivative of the loss at the prediction f_t(x_t) + b_t, η_t the learning rate and λ
    the regularization; f_1 = 0, and b_t = 0 unless `offset` is set. The kernel k is evaluated at
    the noisy copy as if it were clean, unless `kernel` is a world. With `losses.novelty`
    predictions are f(x) − ρ, negative or zero for an alarm.

    **Guarantees** for the regularized risk (`bounds.regularized_risk`) hold on clean data with a
    kernel, without offset, at η_t = η/√t, for a loss of bounded slope: Theorem 4 of the paper if
    all terms are kept (`buffer=engine.everything(T)`), its Theorem 6 with `engine.growing`. Neither
    covers a fixed τ, the squared loss, or a world.

    **Noisy inputs.** With a world (`worlds`), f is evaluated at a second copy x̃' of x, independent
    of the copy in the new term. For the squared loss the step is then unbiased. For other losses
    its mean is the gradient of E ℓ(f(x) + e, y) in f, where the error e = f_t(x̃') − f_t(x) of the
    current value is kept fixed. It is not the gradient of ℓ(f(x), y), which `random_truncation`
    estimates without bias, nor of E ℓ(f(x̃), y), as with `copies=1`.

    **Novelty detection.** With decay in every round, f remembers 1/(ηλ) rounds, of which a share ν
    (`losses.novelty(nu=ν)`) have terms. For ν < 25ηλ these are too few, and a UserWarning says so.
    Choose a larger ν, less decay, or `decay="on_update"`, with which f remembers 1/(ηλ) alarms at
    any ν. Give a learning rate: at the default, ρ moves too slowly.

    Args:
        kernel: one of `kernels`; for noisy inputs a world (`worlds`), or its random features
            (`worlds.fourier`), which cost O(D) a round.
        loss: one of `losses`. `losses.squared` has no factor ½: the paper's η and λ (Eq. 21) are
            `learning_rate` = η/2 and `regularization` = 2λ.
        learning_rate: η > 0 with ηλ < 1, or an optax schedule of rounds 0, 1, …, which may start at
            ηλ = 1; the paper's η/√t is `lambda t: eta / jnp.sqrt(t + 1)`. `None`, the default, is
            η_t = 1/(λ min(t, τ/3)) in rounds t = 1, 2, …; with the squared loss 1/(λ min(t, τ/3) +
            2k(x_t, x_t)), and 2 more in the denominator with an offset. (Without a buffer τ = ∞.)
            Other losses of unbounded slope and `engine.growing` have no default.
        regularization: λ ≥ 0 of the risk E ℓ + (λ/2)‖f‖²; λ > 0 for the default rate.
        buffer: τ ≥ 1, number of newest rounds whose terms are kept, or a memory such as
            `engine.everything(T)`, or `engine.weight_vector()` with the linear kernel. Required,
            but `None` with random features. With |ℓ'| ≤ c and k(x, x) ≤ X² the dropped terms have
            norm at most (1 − ηλ)^τ cX/λ.
        offset: True to learn b, which does not decay; False by default.
        decay: "always", the default, or "on_update": only in rounds with ℓ'_t ≠ 0.
        copies: 1 or 2, noisy copies that a step reads; by default 1 with a kernel, else 2.
        block: number of rounds that `unroll` plays at once, for speed only; by default at most 64.

    Returns:
        A `Learner` with O(τ) kernel evaluations a round. `state.rule.offset` is b, and
        `state.rule.scale` the learned scale of an adaptive loss. With a world, or its random
        features, and two copies it has `clean_estimates` (unbiased estimates of f(x) and f(x)² at
        the clean x). An ηλ above 1, a ν outside (0, 1) and labels other than ±1 raise ValueError;
        traced ones give NaN.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> learner = nj.learners.norma(
        ...     nj.kernels.gaussian(length_scale=0.5), nj.losses.hinge(),
        ...     regularization=0.03, buffer=200)
        >>> stream = nj.streams.drifting(jax.random.key(0), horizon=1000)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        >>> print(f"share of mistakes {jnp.mean(run.predictions * stream.y <= 0):.2f}")
        share of mistakes 0.08

    Source: Online Learning with Kernels, Secs. II and III, whose equations are named above.
    """
    if not isinstance(loss, (Loss, AdaptiveLoss)):
        raise ValueError(f"loss must be one such as losses.hinge(), got {given(loss)}")
    labelled = getattr(loss, "labelled", True)
    if switch("offset", offset) and not labelled:
        raise ValueError("offset must be False with the novelty loss, which learns a threshold ρ")
    regularization = non_negative("regularization", regularization, "λ of (λ/2)‖f‖²")
    space = function_space(kernel, buffer)
    memory = space.memory
    choice("decay", decay, ("always", "on_update"))
    constant = learning_rate is not None and not callable(learning_rate)
    if learning_rate is None:
        rate_at = _of_strong_convexity(regularization, memory, loss, offset)
    else:
        given_rate = schedule(learning_rate)
        first, limit = learning_rate, 1.0
        if callable(learning_rate):
            first, limit = learning_rate(jnp.int32(0)), _LARGEST_DECAY
            non_negative("learning_rate at round 0", first, "rounds are counted from 0")
        _check_decay(first, regularization, limit)

        def rate_at(t, square):
            del square
            return given_rate(t)

    room = memory.horizon or memory.longest_block
    if not labelled and decay == "always" and (room is not None or constant):
        _warn_of_few_support_vectors(loss, rate_at(jnp.int32(room or 0), 0.0), regularization)
    rule = _rule(loss, rate_at, regularization, labelled, offset, decay)
    margin = loss.kind == "margin" and labelled
    flips = flips_of(loss) if labelled else None
    return space.learner(rule, copies=copies, block=block, labels=margin, flips=flips)


def _of_strong_convexity(regularization, memory: Memory, loss: Any, offset: bool):
    """Returns η_t = 1/(λ min(t, τ/3)): a term is dropped after 3/(ηλ) = τ rounds, with 5% left.

    With the curvature c of a quadratic loss it is 1/(λ min(t, τ/3) + c‖φ_t‖²). A step then moves
    the prediction at its own point by at most the residual, so that f cannot explode.

    Source: Hazan, Agarwal and Kale, Logarithmic regret algorithms (2007); Shalev-Shwartz, Singer
    and Srebro, Pegasos (2007).
    """
    positive("regularization", regularization, "or give learning_rate, which has a default for λ>0")
    if memory.forgets and memory.horizon is not None:
        raise ValueError(
            "learning_rate must be given with engine.growing, such as the theorem's "
            "lambda t: eta / jnp.sqrt(t + 1)"
        )
    curved = curvature(loss)
    if curved is None and isinstance(loss, Loss) and not has_bounded_slope(loss):
        raise ValueError(
            f"learning_rate must be given with {loss}, whose slope has no bound: let it be below "
            "1/(k(x, x) ℓ'') at all predictions that may occur, such as 0.01"
        )
    longest = max(1.0, memory.longest_block / 3) if memory.longest_block else jnp.inf

    def rate_at(t, square):
        grown = regularization * jnp.minimum(jnp.asarray(t, float) + 1, longest)
        return 1 / (grown if curved is None else grown + curved * (square + offset))

    return rate_at


def _rule(loss: Any, rate_at, regularization, labelled, offset, decay) -> Rule:
    adaptive = isinstance(loss, AdaptiveLoss)

    def init() -> NormaState:
        return NormaState(jnp.zeros(()), jnp.asarray(loss.initial, float) if adaptive else None)

    def update(state: NormaState, values, y, t, square) -> Update:
        b, s = state
        now, rate = loss.at(s) if adaptive else loss, rate_at(t, square)
        y = y if labelled else jnp.ones_like(values[-1])
        p = values[-1] + b
        derivative = now.gradient(p, y)
        decays = 1.0 if decay == "always" else jnp.where(derivative != 0, 1.0, 0.0)
        sound = rate * regularization <= _LARGEST_DECAY
        if offset:
            b = b - rate * derivative
        if adaptive:
            sound &= (loss.nu > 0) & (loss.nu < 1)
            descent = now.at_clean_label(lambda y: loss.descent(now.argument(p, y), s), y)
            s = jnp.maximum(s + rate * descent, loss.smallest)
        factor = jnp.where(sound, 1 - rate * regularization * decays, jnp.nan)
        return Update(-rate * derivative, factor, NormaState(b, s))

    def output(state: NormaState, values):
        return values + state.offset if labelled else values - state.scale

    return Rule(init, update, output if offset or not labelled else None)


def _warn_of_few_support_vectors(loss: Any, learning_rate, regularization) -> None:
    eta, lam, nu = map(concrete, (learning_rate, regularization, loss.nu))
    if eta is None or lam is None or nu is None or nu >= 25 * eta * lam:
        return
    decay = eta * lam
    larger = f"a nu of at least {25 * decay:.2g}, " if 25 * decay < 1 else ""
    warn(
        f"nu = {nu:g} is too small for a decay of {decay:.2g} in every round: about "
        f"{nu / decay:.2g} support vectors stay in memory, fewer than 25. Use {larger}"
        'less decay, or decay="on_update"',
    )


def _check_decay(learning_rate, regularization, limit: float) -> None:
    """Raises ValueError if ηλ ≥ `limit`, for a learning rate η and a regularization λ.

    At the limit 1 the decay of old terms, a factor 1 − ηλ in each round, would not be positive.
    """
    eta, lam = concrete(learning_rate), concrete(regularization)
    if eta is not None and lam is not None and not np.all(eta * lam < limit):
        raise ValueError(
            f"learning_rate must be below 1/regularization = {1 / lam}, got {eta}: the decay "
            "factor 1 − ηλ must be positive, or f is forgotten at once, or changes its sign"
        )
