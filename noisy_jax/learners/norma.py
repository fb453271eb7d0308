"""NORMA: stochastic gradient descent on the regularised risk in a kernel's Hilbert space.

    p_t = f_t(x_t) + b_t
    f_{t+1} = (1 − η_t λ) f_t − η_t ℓ'(p_t, y_t) k(x_t, ·),   b_{t+1} = b_t − η_t ℓ'(p_t, y_t)

from f_1 = 0 and b_1 = 0, the offset b left out unless asked for. Old terms decay, so that the
learner follows a target that moves, and all but the newest may be forgotten. An adaptive loss moves
its scale s along, by η_t times `AdaptiveLoss.descent`, from the same values.

Scale distribution: without offset and at constant η, a run of the soft margin ρ depends on (η, λ, ρ) only
through (ηλ, ρ/η), for f(η, λ, ρ) = η f(1, ηλ, ρ/η). Two parameters are to be tuned, not three; for
ρ = 0 it is ηλ alone. The same holds of tubes and widths, with ε/η, σ/η and y/η.

Source: Online Learning with Kernels, Secs. II-III. Eq. 9 prints the decay 1 − ηλ where the step is
η_t; Eqs. 19, 20 and 24 print signs and factors that do not descend (see `losses`).
"""

import warnings
from typing import Literal, NamedTuple

import chex
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner
from noisy_jax.engine.expansion import expansion, reading
from noisy_jax.engine.rules import Rule, Update, schedule
from noisy_jax.kernels import Kernel
from noisy_jax.learners.buffers import Buffer, element_and_memory
from noisy_jax.learners.labels import checking_labels
from noisy_jax.losses import AdaptiveLoss, Loss
from noisy_jax.validation import (
    check_choice,
    check_decay,
    check_non_negative,
    check_one_number,
    concrete,
    given,
)
from noisy_jax.worlds import FourierWorld, World

_LARGEST_DECAY = 1 + 1e-6
"""1, and float32's rounding: a schedule may start there, and η = 1/λ times λ may exceed 1."""


class NormaState(NamedTuple):
    """What NORMA learns beside f.

    Attributes:
        offset: `[]`, b; stays zero where none is learnt.
        scale: `[]`, ρ, ε or σ of an adaptive loss; `None` with a fixed one.
    """

    offset: chex.Array
    scale: chex.Array | None


def norma(
    kernel: Kernel | World | FourierWorld,
    loss: Loss | AdaptiveLoss,
    *,
    learning_rate: optax.ScalarOrSchedule,
    regularization: chex.Numeric,
    buffer: Buffer | None = None,
    offset: bool = False,
    decay: Literal["always", "on_update"] = "always",
    copies: int | None = None,
    block: int = 64,
) -> Learner:
    """Online kernel descent with decay, for classes, values, or novelty, on targets that drift.

    Predictions are f(x) + b; with `losses.novelty` they are f(x) − ρ, an alarm where that is ≤ 0.

    Noisy inputs: with a world, f lives in the surrogate's space and is judged on clean data by the
    clean kernel. It is read at a second copy of x, independent of the copy that the new term holds:
    for the squared loss the step is then right on average, as in `parallel_worlds`; for another
    loss it is that of ℓ averaged over the noise of f at the second copy. One copy for both is right
    where x has no noise, and biased elsewhere (a coefficient depends on the copy it multiplies).

    Novelty with ν: decay in every round ("always") is the stated gradient, and remembers 1/(ηλ)
    rounds, of which a share ν are support vectors. With few of them f says where the last few
    alarms were and nothing else: at ν = 0.01 and η = t^(−1/2), λ = 1, the paper's, one is left on
    average, and alarms tell outliers from the rest hardly better than chance (AUC 0.54, on six
    clusters with 2% of outliers). Decay in rounds of alarms alone ("on_update") remembers 1/(ηλ)
    alarms, whatever ν, though its steps are no gradient; with the threshold kept at zero or above
    (`losses.novelty(smallest=0.0)`) it does it with AUC 0.998, and with 0.94 without.
    `python -m noisy_jax novelty` measures all four. "always" wants ν ≥ 25ηλ.

    Args:
        kernel: any of `kernels`; or a world for noisy inputs (`worlds`), or its random features
            (`worlds.fourier`), whose rounds cost O(D).
        loss: any of `losses`. `losses.squared` has no factor ½: the paper's η and λ (Eq. 21) are
            `learning_rate` = η/2 and `regularization` = 2λ.
        learning_rate: η > 0, or an optax schedule of the round, from 0 on: η/√t of the paper is
            `lambda t: eta / jnp.sqrt(t + 1)`. ηλ < 1; a schedule may start at ηλ = 1, as f_1 = 0.
        regularization: λ ≥ 0, as in `comparators.regularized`; 2C/m of the C of `subquantile` and
            `regressors`, which weigh ‖f‖² beside a sum of losses.
        buffer: τ ≥ 1, the number of newest rounds whose terms are kept (rounds, not support
            vectors): with a loss of |ℓ'| ≤ c that leaves out at most (1 − ηλ)^τ c √k(x, x)/λ. Or
            what makes a `Memory` of a space: with the linear kernel `lambda space: weight_vector()`
            keeps w itself. None with random features, which have no terms.
        offset: whether to learn b, which does not decay.
        decay: "always", or "on_update", in rounds with ℓ' ≠ 0 alone.
        copies: noisy copies that a step reads, 1 or 2; by default 1 with a kernel, else 2.
        block: rounds that `unroll` takes at once, cut to what the memory takes.

    Returns:
        A `Learner` whose state's field `rule` is a `NormaState`. `averaged` takes one without
        offset whose memory keeps all (`engine.everything`, or random features). Where a traced ηλ
        is above 1, a traced ν is outside (0, 1), or a label of a margin loss is not ±1, the run
        ends in NaN.

    Raises:
        ValueError: rate not positive, λ negative, ηλ ≥ 1, τ < 1, a loss that is none or has no use
            for an offset, no buffer where one is needed; when it runs, labels of a margin loss
            other than ±1, where `step` or `unroll` are called with concrete ones.

    Warns:
        UserWarning: novelty with "always" and ν < 25ηλ (for a schedule, ηλ after as many rounds as
            the memory has room for).

    Example:
        >>> import jax, noisy_jax as nj
        >>> learner = norma(
        ...     nj.kernels.gaussian(length_scale=0.5), nj.losses.soft_margin(),
        ...     learning_rate=1.0, regularization=0.03, buffer=200)
        >>> stream = nj.streams.drifting(jax.random.key(0), horizon=100)
        >>> nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1)).diverged_at
        Array(-1, dtype=int32)
    """
    _check_loss(loss, offset)
    _check_rate(learning_rate, regularization)
    check_choice("decay", decay, ("always", "on_update"))
    copies = (1 if isinstance(kernel, Kernel) else 2) if copies is None else copies
    check_choice("copies", copies, (1, 2))
    atom, memory = element_and_memory(kernel, buffer)
    if decay == "always" and not _labelled(loss):
        room = memory.horizon or memory.longest_block
        _warn_of_few_support_vectors(loss.nu, learning_rate, regularization, room)

    learner = expansion(
        read=reading(atom, copies),
        rule=_rule(loss, learning_rate, regularization, offset=offset, decay=decay),
        memory=memory,
        copies=copies,
        block=min(block, memory.longest_block or block),
        dim=None if isinstance(kernel, Kernel) else kernel.dim,
    )
    if not isinstance(kernel, Kernel):
        learner = learner._replace(noise=kernel.noise)
    return checking_labels(learner) if loss.kind == "margin" and _labelled(loss) else learner


def _rule(loss, learning_rate, regularization, *, offset, decay) -> Rule:
    adaptive, rate_of = isinstance(loss, AdaptiveLoss), schedule(learning_rate)

    def init() -> NormaState:
        return NormaState(jnp.zeros(()), jnp.asarray(loss.initial, float) if adaptive else None)

    def update(state: NormaState, values, y, t) -> Update:
        rate = rate_of(t)
        now = loss.at(state.scale) if adaptive else loss
        y = y if _labelled(loss) else jnp.ones_like(values[-1])
        p = values[-1] + state.offset
        derivative = now.gradient(p, y)
        decays = 1.0 if decay == "always" else jnp.where(derivative != 0, 1.0, 0.0)
        sound = (rate >= 0) & (regularization >= 0) & (rate * regularization <= _LARGEST_DECAY)
        if adaptive:
            sound &= (loss.nu > 0) & (loss.nu < 1)
        factor = jnp.where(sound, 1 - rate * regularization * decays, jnp.nan)
        b = state.offset - rate * derivative if offset else state.offset
        s = state.scale
        if adaptive:
            s = jnp.maximum(s + rate * loss.descent(now.argument(p, y), s), loss.smallest)
        return Update(-rate * derivative, factor, NormaState(b, s))

    def output(state: NormaState, values):
        return values + state.offset if _labelled(loss) else values - state.scale

    return Rule(init, update, output)


def _labelled(loss) -> bool:
    return getattr(loss, "labelled", True)


def _check_loss(loss, offset) -> None:
    if not isinstance(loss, (Loss, AdaptiveLoss)):
        raise ValueError(
            f"loss must be made by one of losses, such as losses.soft_margin(), got {given(loss)}"
        )
    if offset and not _labelled(loss):
        raise ValueError(
            "offset must be left out with the novelty loss: it would undo the threshold ρ, which "
            "is learnt already"
        )


def _check_rate(learning_rate, regularization) -> None:
    check_one_number("regularization", regularization)
    check_non_negative("regularization", regularization, "λ of (λ/2)‖f‖²")
    if callable(learning_rate):
        rate = learning_rate(jnp.int32(0))
        check_non_negative("learning_rate at round 0", rate, "rounds are counted from 0")
    else:
        rate = learning_rate
        check_one_number("learning_rate", rate)
    limit = _LARGEST_DECAY if callable(learning_rate) else 1.0
    check_decay(rate, regularization, limit=limit)


def _warn_of_few_support_vectors(nu, learning_rate, regularization, room) -> None:
    if callable(learning_rate):
        if room is None:
            return
        learning_rate = learning_rate(jnp.int32(room))
    eta, lam, nu = map(concrete, (learning_rate, regularization, nu))
    if eta is not None and lam is not None and nu is not None and nu < 25 * eta * lam:
        decay = eta * lam
        larger = f"A nu of at least {25 * decay:.2g}, less" if 25 * decay < 1 else "Less"
        warnings.warn(
            f"nu = {nu:g} is too small for a decay of {decay:.2g} in every round: it leaves about "
            f"{nu / decay:.2g} of the 25 support vectors that are wanted in memory. {larger} "
            'decay, or decay="on_update" would do',
            stacklevel=3,
        )
