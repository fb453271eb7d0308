"""NORMA: stochastic gradient descent on the regularised risk in a kernel's Hilbert space.

    p_t = f_t(x_t) + b_t
    f_{t+1} = (1 − η_t λ) f_t − η_t ℓ'(p_t, y_t) k(x_t, ·),   b_{t+1} = b_t − η_t ℓ'(p_t, y_t)

from f_1 = 0 and b_1 = 0, the offset b left out unless asked for. Old terms decay, so that the
learner follows a target that moves, and all but the newest may be forgotten. An adaptive loss moves
its scale s along, by η_t times `AdaptiveLoss.descent`, from the same values.

Scale law: without offset and at constant η, a run of the soft margin ρ depends on (η, λ, ρ) only
through (ηλ, ρ/η), for f(η, λ, ρ) = η f(1, ηλ, ρ/η). Two parameters are to be tuned, not three; for
ρ = 0 it is ηλ alone. The same holds of tubes and widths, with ε/η, σ/η and y/η.

Source: Online Learning with Kernels, Secs. II-III. Eq. 9 prints the decay 1 − ηλ where the step is
η_t; Eqs. 19, 20 and 24 print signs and factors that do not descend (see `losses`).
"""

import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.expansion import Round, Rule, Update, expansion
from noisy_jax.kernels import Kernel
from noisy_jax.losses import AdaptiveLoss, Loss
from noisy_jax.memory import Memory, Space, ring, weight_vector
from noisy_jax.validation import (
    check_at_least,
    check_labels,
    check_non_negative,
    check_one_number,
    check_positive,
    concrete,
)
from noisy_jax.worlds import FourierWorld, World

Buffer = int | Callable[[Space], Memory]
"""τ, how many of the newest rounds keep their terms; or what makes a memory of a space, such as
`lambda space: memory.everything(space, horizon)`."""


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
    views: int | None = None,
    block: int = 64,
) -> Learner:
    """Online kernel descent with decay, for classes, values, or novelty, on targets that drift.

    Predictions are f(x) + b; with `losses.novelty` they are f(x) − ρ, an alarm where that is ≤ 0.

    Noisy inputs: with a world, f lives in the surrogate's space and is judged on clean data by the
    clean kernel. It is read at a second copy of x, independent of the copy that the new term holds:
    for the squared loss the step is then right on average, as in `parallel_worlds`; for another
    loss it is that of ℓ averaged over the noise of f at the second copy. One view for both is right
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
        regularization: λ ≥ 0.
        buffer: τ ≥ 1, the number of newest rounds whose terms are kept (rounds, not support
            vectors): with a loss of |ℓ'| ≤ c that leaves out at most (1 − ηλ)^τ c √k(x, x)/λ. Or
            what makes a `Memory` of a space: with the linear kernel `lambda space: weight_vector()`
            keeps w itself. None with random features, which have no terms.
        offset: whether to learn b, which does not decay.
        decay: "always", or "on_update", in rounds with ℓ' ≠ 0 alone.
        views: noisy copies that a step reads, 1 or 2; by default 1 with a kernel, else 2.
        block: rounds that `unroll` takes at once, cut to what the memory takes.

    Returns:
        A `Learner` whose state's field `rule` is a `NormaState`. Where a traced ηλ is above 1, a
        traced ν is outside (0, 1), or a label of a margin loss is not ±1, the run ends in NaN.

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
        ...     nj.kernels.gaussian(squared_width=0.5), nj.losses.soft_margin(),
        ...     learning_rate=1.0, regularization=0.03, buffer=200)
        >>> stream = nj.streams.drifting(jax.random.key(0), horizon=100)
        >>> nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1)).diverged_at
        Array(-1, dtype=int32)
    """
    _check_loss(loss, offset)
    _check_rate(learning_rate, regularization)
    if decay not in ("always", "on_update"):
        raise ValueError(f'decay must be "always" or "on_update", got {decay!r}')
    views = (1 if isinstance(kernel, Kernel) else 2) if views is None else views
    if views not in (1, 2):
        raise ValueError(f"views must be 1 or 2, got {views!r}")
    element, memory = _element_and_memory(kernel, buffer)
    if decay == "always" and not _labelled(loss):
        room = memory.horizon or memory.longest_block
        _warn_of_few_support_vectors(loss.nu, learning_rate, regularization, room)

    def read(sample: Sample, key: chex.PRNGKey) -> Round:
        del key  # no randomness of its own
        cov = None if sample.cov is None else jnp.asarray(sample.cov)[None]
        stored, *probes = (element(copy[None], cov) for copy in sample.x[:views])
        return Round(jax.tree.map(lambda e: e[0], stored), *(probes or [None]), sample.y)

    learner = expansion(
        read=read,
        rule=_rule(loss, learning_rate, regularization, offset=offset, decay=decay),
        memory=memory,
        views=views,
        block=min(block, memory.longest_block or block),
        dim=None if isinstance(kernel, Kernel) else kernel.dim,
    )
    if isinstance(kernel, World):
        learner = learner._replace(noise=kernel.noise)
    return checking_labels(learner) if loss.kind == "margin" and _labelled(loss) else learner


def _rule(loss, learning_rate, regularization, *, offset, decay) -> Rule:
    adaptive = isinstance(loss, AdaptiveLoss)

    def init() -> NormaState:
        return NormaState(jnp.zeros(()), jnp.asarray(loss.initial, float) if adaptive else None)

    def update(state: NormaState, values, y, t) -> Update:
        rate = learning_rate(t) if callable(learning_rate) else learning_rate
        now = loss.at(state.scale) if adaptive else loss
        y = labels(y) if loss.kind == "margin" else y
        y = y if _labelled(loss) else jnp.ones_like(values[-1])
        p = values[-1] + state.offset
        derivative = now.derivative(p, y)
        decays = 1.0 if decay == "always" else jnp.where(derivative != 0, 1.0, 0.0)
        sound = (rate >= 0) & (regularization >= 0) & (rate * regularization <= _LARGEST_DECAY)
        if adaptive:
            sound &= (loss.nu > 0) & (loss.nu < 1)
        shrink = jnp.where(sound, 1 - rate * regularization * decays, jnp.nan)
        b = state.offset - rate * derivative if offset else state.offset
        s = state.scale
        if adaptive:
            s = jnp.maximum(s + rate * loss.descent(now.argument(p, y), s), loss.smallest)
        return Update(-rate * derivative, shrink, NormaState(b, s))

    def output(state: NormaState, values):
        return values + state.offset if _labelled(loss) else values - state.scale

    return Rule(init, update, output)


def labels(y: chex.Array) -> chex.Array:
    """y where it is −1 or +1, NaN elsewhere, so that a run with other labels ends in NaN."""
    return jnp.where(jnp.abs(y) == 1, y, jnp.nan)


def checking_labels(learner: Learner) -> Learner:
    """The learner, refusing labels other than ±1 where its step and unroll see concrete ones."""

    def checking(way):
        def checked(state, samples: Sample, *rest):
            check_labels("y", samples.y)
            return way(state, samples, *rest)

        return checked

    return learner._replace(step=checking(learner.step), unroll=checking(learner.unroll))


def memory_of(kernel: Kernel | World, space: Space, buffer: Buffer | None) -> Memory:
    """The memory of the kernel's space that `buffer` stands for."""
    if callable(buffer):
        memory = buffer(space)
        if not isinstance(memory, Memory):
            raise ValueError(
                "buffer must make a Memory of a space, such as lambda space: "
                f"memory.everything(space, horizon), but made a {type(memory).__name__}"
            )
        if memory.space.inner is not space.inner and not _is_linear(kernel):
            raise ValueError(
                "buffer must make a memory of the kernel's own space: a weight_vector holds linear "
                "functions; for other kernels take random features (worlds.fourier_gaussian)"
            )
        return memory
    check_at_least("buffer", buffer, 1, "τ, the number of newest rounds that keep their terms")
    return ring(space, buffer)


def _element_and_memory(kernel, buffer):
    """What makes an element of a copy, `(x[1, d], cov) -> element[1]`, and the memory."""
    if isinstance(kernel, Kernel):
        return lambda x, cov: x, memory_of(kernel, Space(kernel.gram, kernel.gram), buffer)
    if isinstance(kernel, World):
        space = Space(kernel.surrogate, kernel.evaluate, read=kernel.read)
        return kernel.element, memory_of(kernel, space, buffer)
    if not isinstance(kernel, FourierWorld):
        raise ValueError(
            "kernel must be a Kernel, a World or a FourierWorld, as kernels and worlds build them, "
            f"got {type(kernel).__name__}"
        )
    if buffer is not None:
        raise ValueError(
            f"buffer must be left out with random features, got {buffer!r}: they keep one weight "
            "vector, and no terms"
        )
    return lambda x, cov: kernel.noisy(x), weight_vector(kernel.clean)


def _is_linear(kernel) -> bool:
    if not isinstance(kernel, Kernel) or kernel.series is None:
        return False
    series = kernel.series(1)
    return series.degree == 1 and kernel.envelope is None and series.coefficients[0] == 0


def _labelled(loss) -> bool:
    return getattr(loss, "labelled", True)


def _check_loss(loss, offset) -> None:
    if not isinstance(loss, (Loss, AdaptiveLoss)):
        raise ValueError(
            f"loss must be made by one of losses, such as losses.soft_margin(), got {loss!r}"
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
        check_positive("learning_rate", rate, "the factor of the gradient")
    decay = _product(rate, regularization)
    if decay is not None and (decay > _LARGEST_DECAY if callable(learning_rate) else decay >= 1):
        raise ValueError(
            f"learning_rate must be below 1/regularization = {1 / float(regularization):g}, got "
            f"{float(rate):g}: f would be forgotten at once, or change its sign"
        )


def _warn_of_few_support_vectors(nu, learning_rate, regularization, room) -> None:
    if callable(learning_rate):
        if room is None:
            return
        learning_rate = learning_rate(jnp.int32(room))
    decay, nu = _product(learning_rate, regularization), concrete(nu)
    if decay is not None and nu is not None and nu < 25 * decay:
        warnings.warn(
            f"nu = {nu:g} is too small for a decay of {decay:.2g} in every round: it leaves about "
            f"{nu / decay:.2g} support vectors in memory, and 25 are wanted. A nu of at least "
            f'{25 * decay:.2g}, less decay, or decay="on_update" would do',
            stacklevel=3,
        )


def _product(rate, regularization) -> float | None:
    """ηλ, or `None` where one of them is traced."""
    values = concrete(rate), concrete(regularization)
    return None if any(value is None for value in values) else float(values[0] * values[1])
