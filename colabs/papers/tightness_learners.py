"""The learners of `tightness`: each has a guarantee, which bounds a regret."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax import engine, kernels, learners, losses, unbiased, worlds
from noisy_jax import moments as moment_kinds
from noisy_jax.base import Learner
from noisy_jax.learners import wrappers
from noisy_jax.noise import Gaussian, Noise, Rademacher
from noisy_jax.simulated import bounds
from noisy_jax.simulated.adversaries import clean_regret
from tightness_memory import growing_start
from tightness_regrets import ABSOLUTE, LINEAR, VECTOR, absolute_regret, risk_regret

LARGEST = 128  # rounds with a kernel: a step solves a comparator from the Gram matrix of all rounds
FEATURES = 32  # number of Fourier features
VARIANCE = 1.0  # of the Gaussian noise with kernels
SMALL_RADIUS = 0.1
DECAY, EXCESS = 0.9, 0.3  # ηλ and ε of Theorem 6, for which it keeps all of the first 7 terms only


def coins(variance: Any) -> Noise:
    """±σ, for σ > 0."""
    return Rademacher(jnp.sqrt(jnp.maximum(variance, 1e-12)))


class Case(NamedTuple):
    """A learner with a bound.

    Attributes:
        learner: its name in the table.
        bound: "corrected", "closed form" or "self-bounding"; "printed", by a paper or, of
            `uncorrected`, by textbooks; or "after the run".
        guarantee: `(moments, horizon, radius)` to what has a learning rate and a regret; the rate
            is NaN for learners that choose their own.
        radius: B_w of the learner and of the comparators; of norma 1/λ.
        share: of the noise's covariance, which `known_covariance` subtracts twice.
    """

    learner: str
    bound: str
    guarantee: Callable[..., Any]
    radius: float = 1.0
    share: float = 1.0


class Family(NamedTuple):
    """Cases that one program serves, whose learners differ in numbers only.

    Attributes:
        build: `(radius, rate, told)` to a learner; `told` is the covariance that it is told.
        cases: the learners and their bounds.
        regret: `(learner, stream, noise, key, *, radius, rounds) -> []`, what the guarantee bounds.
        noise: of a variance.
        variances: those of the noise; by default those of the study.
        largest: number of rounds; by default any.
        after: `(state, radius)` to a bound that is known after a run; `None` if it is known before.
    """

    build: Callable[..., Learner]
    cases: list[Case]
    regret: Callable[..., Any] = clean_regret
    noise: Callable[..., Noise] = coins
    variances: tuple[float, ...] | None = None
    largest: int | None = None
    after: Callable[..., Any] | None = None


def families(y_size: float) -> list[Family]:
    """All learners with their bounds, for one feature with |x| ≤ 1 and |y| ≤ `y_size`."""
    return [*_linear(y_size), *_with_kernels(y_size), *_of_the_absolute_loss()]


def _linear(y_size: float) -> list[Family]:
    """Those of the squared loss and linear functions."""

    def two(radius, rate, told):
        return learners.two_copies(radius=radius, learning_rate=rate)

    def one(radius, rate, told):
        learner = learners.known_covariance(radius=radius, learning_rate=rate)
        return wrappers.assuming(learner, told)

    def adaptive(radius, rate, told):
        return learners.two_copies(radius=radius)

    def leader(radius, rate, told):
        return learners.corrected_ftrl(moment_kinds.known_covariance())

    def leader_in_ball(radius, rate, told):
        return learners.corrected_ftrl(moment_kinds.known_covariance(), radius=radius)

    def mixture(radius, rate, told):
        radii = jnp.array([0.25, 1.0]) * radius
        return wrappers.mixture(
            wrappers.swept(lambda radius: learners.two_copies(radius=radius), radii)
        )

    def linear_kernel(moments, *, horizon, radius):
        estimator = unbiased.kernel_gradient(
            LINEAR, losses.squared(), radius=radius,
            x_second_moment=float(moments.x_second_moment), y_largest=y_size,
        )  # fmt: skip
        return bounds.as_printed.random_truncation(estimator, horizon=horizon)

    def at_adaptive(moments, **options):
        return bounds.at_adaptive_rate(bounds.two_copies(moments, **options))

    def of_adaptive(state, radius):
        return bounds.adaptive_rate(state, radius=radius)

    def of_leader(state, radius):
        return bounds.corrected_ftrl(state, comparator_norm=radius)

    def of_mixture(state, radius):  # the bound of the learner with the radius of the comparators
        return bounds.mixture(state) + bounds.adaptive_rate(state.inner, radius=radius)[-1]

    small, right, printed, after = SMALL_RADIUS, "corrected", "printed", "after the run"
    return [
        Family(two, [
            Case("two_copies", right, bounds.two_copies),
            Case("two_copies", "self-bounding", bounds.self_bounding),
            Case("two_copies", printed, bounds.as_printed.two_copies),
            Case("two_copies", right, bounds.two_copies, small),
            # With the linear kernel and the squared loss, random_truncation is two_copies.
            Case("random_truncation, linear", printed, linear_kernel, small),
        ]),
        Family(one, [
            Case("known_covariance", right, bounds.known_covariance),
            Case("known_covariance, Σw", printed, bounds.as_printed.known_covariance, share=0.5),
            Case("uncorrected", right, bounds.uncorrected, share=0.0),
            Case("uncorrected", printed, bounds.as_printed.uncorrected, share=0.0),
        ]),
        Family(adaptive, [Case("two_copies, adaptive", right, at_adaptive)]),
        Family(adaptive, [Case("two_copies, adaptive", after, _unknown)], after=of_adaptive),
        Family(leader, [Case("corrected_ftrl", after, _unknown)], after=of_leader),
        Family(leader_in_ball, [Case("corrected_ftrl in a ball", after, _unknown)],
               after=of_leader),
        Family(mixture, [Case("mixture, adaptive", after, _unknown)], after=of_mixture),
    ]  # fmt: skip


def _with_kernels(y_size: float) -> list[Family]:
    """Those of the squared loss in the space of a kernel, under Gaussian noise."""
    width = 1.5
    wider = (width**2 + VARIANCE) ** 0.5
    world = worlds.gaussian(dim=1, length_scale=width, noise=Gaussian(VARIANCE))
    features = worlds.fourier(jax.random.key(0), world, num_features=FEATURES)
    wide = kernels.gaussian(length_scale=wider)

    def stored(radius, rate, told):
        return learners.parallel_worlds(world, horizon=LARGEST, radius=radius, learning_rate=rate)

    def fourier(radius, rate, told):
        return learners.fourier_worlds(features, radius=radius, learning_rate=rate, block=1)

    def smoothed(x, z):  # E k(x + n, z) = E k̂(x + n, z + n'), n and n' the noise
        return width / wider * wide(x, z)

    def waves(x, z):
        return jnp.matmul(features.clean(x), features.clean(z).T, precision="highest")

    def in_world(formula, diagonal):
        def guarantee(moments, *, horizon, radius):
            square = moments.y_second_moment
            return formula(diagonal, horizon=horizon, radius=radius, y_second_moment=square)

        return guarantee

    def self_bounding(moments, *, horizon, radius):
        square = world.diagonal
        moments = bounds.DataMoments(square, square**2, moments.y_second_moment, square)
        return bounds.self_bounding(moments, horizon=horizon, radius=radius)

    right, printed = "corrected", "printed"
    family = functools.partial(Family, noise=Gaussian, variances=(VARIANCE,), largest=LARGEST)
    return [
        family(stored, [
            Case("parallel_worlds", right, in_world(bounds.parallel_worlds, world.diagonal)),
            Case("parallel_worlds", "self-bounding", self_bounding),
            Case("parallel_worlds", printed,
                 in_world(bounds.as_printed.parallel_worlds, world.diagonal)),
        ], functools.partial(clean_regret, kernel=smoothed)),
        family(fourier, [
            Case("fourier_worlds", right, in_world(bounds.parallel_worlds, features.squared_norm)),
        ], functools.partial(clean_regret, kernel=waves)),
        *(
            family(*_truncated(f"random_truncation, {name}", kernel, y_size))
            for name, kernel in (
                ("quadratic", kernels.polynomial(degree=2)),
                ("Gaussian", kernels.gaussian(length_scale=width)),
            )
        ),
    ]  # fmt: skip


def _truncated(name: str, kernel: Any, y_size: float):
    """Learner, cases and regret of `random_truncation` for the squared loss.

    The comparators are those of the kernel itself, from which a cut-off series hardly differs.
    """
    estimator = unbiased.kernel_gradient(
        kernel, losses.squared(), radius=1.0, x_second_moment=1 + VARIANCE, y_largest=y_size
    )

    def build(radius, rate, told):
        return learners.random_truncation(estimator, horizon=LARGEST, learning_rate=rate)

    def bound(formula, **options):
        return lambda moments, *, horizon, radius: formula(estimator, horizon=horizon, **options)

    return build, [
        Case(name, "corrected", bound(bounds.random_truncation)),
        Case(name, "closed form", bound(bounds.random_truncation, closed_form=True)),
        Case(name, "printed", bound(bounds.as_printed.random_truncation)),
    ], functools.partial(clean_regret, kernel=kernel)  # fmt: skip


def _of_the_absolute_loss() -> list[Family]:
    """Those of a loss of slope one and linear functions, on clean data: they hold on each run."""

    def norma(radius, rate, memory):
        return learners.norma(
            LINEAR, ABSOLUTE, learning_rate=lambda t: rate / jnp.sqrt(t + 1.0),
            regularization=1 / radius, buffer=memory,
        )  # fmt: skip

    def keeping(radius, rate, told):
        return norma(radius, rate, VECTOR)

    def dropping(radius, rate, told):
        start = growing_start(DECAY, EXCESS)
        return norma(radius, rate, engine.growing(LARGEST, start=start, excess=EXCESS))

    def free(radius, rate, told):
        return learners.parameter_free(LINEAR, ABSOLUTE, buffer=VECTOR)

    def of_risk(formula, growing):
        def guarantee(moments, *, horizon, radius):
            return formula(
                1.0, horizon=horizon, slope=1.0, regularization=1 / radius, growing_memory=growing,
                learning_rate=DECAY * radius if growing else None,
            )  # fmt: skip

        return guarantee

    def of_free(state, radius):
        return bounds.parameter_free(state, comparator_norm=radius)

    right, risk, printed = "corrected", bounds.regularized_risk, bounds.as_printed.regularized_risk
    clean = functools.partial(Family, variances=(0.0,))
    return [
        clean(keeping, [Case("norma", right, of_risk(risk, False))], risk_regret),
        clean(dropping, [
            Case("norma, growing", right, of_risk(risk, True)),
            Case("norma, growing", "printed", of_risk(printed, True)),
        ], risk_regret, largest=LARGEST),
        clean(free, [Case("parameter_free", "after the run", _unknown)], absolute_regret,
              after=of_free),
    ]  # fmt: skip


def _unknown(moments, *, horizon, radius):
    return bounds.Guarantee(*3 * (jnp.array(jnp.nan),))
