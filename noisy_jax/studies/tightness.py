"""The study `tightness`: how close the worst streams that are found come to each guarantee."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import bounds, estimators, kernels, learners, losses, plots, worlds
from noisy_jax import moments as moment_kinds
from noisy_jax.adversaries import ascend, clean_regret, structured_starts
from noisy_jax.adversaries.search import chosen, four_keys, half_widths, stack
from noisy_jax.base import Learner, Stream
from noisy_jax.evaluate.rollouts import rollout
from noisy_jax.evaluate.tables import Table
from noisy_jax.learners import wrappers
from noisy_jax.noise import Gaussian, Rademacher
from noisy_jax.studies import regret
from noisy_jax.studies.runner import Report, picture, progress_bar
from noisy_jax.studies.settings import INTERVALS, SeededSettings, at_least, option
from noisy_jax.validation import non_negative, positive

DRAWS = 8  # of the noise in a step of the ascent
LARGEST_FOURIER = 128  # rounds: each step solves a comparator from the Gram matrix of all rounds
FEATURES = 32  # of the Fourier features
SMALL_RADIUS = 0.1


class Case(NamedTuple):
    """A learner with a bound.

    Attributes:
        learner: its name in the table.
        bound: "corrected", "printed", "self-bounding" or "after the run".
        guarantee: `(moments, horizon, radius)` to what has a learning rate and a regret; the rate
            is NaN for learners that choose their own.
        radius: B_w of the learner and of the comparators.
        share: of the noise's covariance, which `known_covariance` subtracts twice.
    """

    learner: str
    bound: str
    guarantee: Callable[..., Any]
    radius: float = 1.0
    share: float = 1.0


class Family(NamedTuple):
    """Cases that one program serves, whose learners differ in numbers only."""

    build: Callable[..., Learner]  # of radius, rate, covariance told
    cases: list[Case]
    kernel: Any = None
    largest: int | None = None  # rounds
    after: Callable[..., Any] | None = None  # (state, radius) to the bound, known after a run


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """How close the worst streams that are found come to each guarantee.

    Are the bounds loose, or are random streams easier than the worst ones?

    For each learner with a guarantee, gradient ascent looks for streams with |x| <= 1 and |y| <= Y
    of large expected regret (`adversaries.worst`), at each horizon and each variance of ±σ noise. A
    ratio above 1 shows that a bound is false: those are bounds as the papers print them. Writes
    tightness.csv, config.json and tightness.png.

    Examples:
      python -m noisy_jax tightness
      python -m noisy_jax tightness --horizons 16 256 4096 --steps 200
    """

    horizons: tuple[int, ...] = regret.horizons((16, 128, 2048))
    variances: tuple[float, ...] = option(
        (0.0, 1.0, 4.0), "variances of the noise", "V",
        lambda name, values: non_negative(name, values, shape=None),
    )  # fmt: skip
    y_size: float = option(2.0, "size of the largest target", "Y", positive)
    steps: int = option(60, "steps of the ascent", "N", at_least(1))
    seeds: int = option(128, "draws of the noise for each regret in the table", "N", INTERVALS)


def run(settings: Settings) -> Iterator[Report]:
    """All learners at all horizons and noise levels."""
    every = families(settings.y_size)
    with progress_bar("streams", "program") as progress:
        rows = []
        for number, family in enumerate(every):
            for horizon in settings.horizons:
                rows += found(settings, family, horizon)
            progress(number + 1, len(every))
    columns = [
        ("learner", "{learner}"),
        ("bound", "{bound}"),
        ("radius", "{radius:g}"),
        ("variance", "{variance:g}"),
        ("T", "{horizon:,}"),
        ("worst regret", "{regret:.2f}"),
        ("± 95%", "{half_width:.2f}"),
        ("/ √T", "{per_root:.2f}"),
        ("guarantee", "{guarantee:.2f}"),
        ("ratio", "{ratio:.3f}"),
        ("random signs", "{random:.3f}"),
    ]
    table = Table(rows, columns, "expected regret on the worst stream found, over the guarantee")
    draw = picture(plots.tightness, rows)
    yield Report(None, {"tightness": table}, {"tightness": draw})


def families(y_size: float) -> list[Family]:
    """The learners and their bounds."""

    def two(radius, rate, told):
        return learners.two_copies(radius=radius, learning_rate=rate)

    def one(radius, rate, told):
        learner = learners.known_covariance(radius=radius, learning_rate=rate)
        return wrappers.assuming(learner, told)

    def adaptive(radius, rate, told):
        return learners.two_copies(radius=radius)

    def leader(radius, rate, told):
        return learners.corrected_ftrl(moment_kinds.known_covariance())

    def mixture(radius, rate, told):
        radii = jnp.array([0.25, 1.0]) * radius
        return wrappers.mixture(
            wrappers.swept(lambda radius: learners.two_copies(radius=radius), radii)
        )

    space = worlds.gaussian(dim=1, length_scale=1.5, noise=Gaussian(1.0))
    features = worlds.fourier(space, jax.random.key(0), num_features=FEATURES)

    def fourier(radius, rate, told):
        return learners.fourier_worlds(features, radius=radius, learning_rate=rate, block=1)

    def waves(x, z):
        return jnp.matmul(features.clean(x), features.clean(z).T, precision="highest")

    def in_world(moments, *, horizon, radius):
        return bounds.parallel_worlds(
            features.squared_norm, horizon=horizon, radius=radius,
            y_second_moment=moments.y_second_moment,
        )  # fmt: skip

    def noisy_kernel(moments, *, horizon, radius):
        estimator = estimators.gradient(
            kernels.linear(), losses.squared(), squared_radius=radius**2,
            x_second_moment=float(moments.x_second_moment), y_largest=y_size,
        )  # fmt: skip
        return bounds.as_printed.random_truncation(estimator, horizon=horizon)

    def at_adaptive(moments, **options):
        return bounds.at_adaptive_rate(bounds.two_copies(moments, **options))

    def unknown(moments, *, horizon, radius):
        return bounds.Guarantee(*3 * (jnp.array(jnp.nan),))

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
            Case("random_truncation", printed, noisy_kernel, small),
        ]),
        Family(one, [
            Case("known_covariance", right, bounds.known_covariance),
            Case("known_covariance, Σw", printed, bounds.as_printed.known_covariance, share=0.5),
            Case("uncorrected", right, bounds.uncorrected, share=0.0),
            Case("uncorrected", printed, bounds.as_printed.uncorrected, share=0.0),
        ]),
        Family(adaptive, [Case("two_copies, adaptive", right, at_adaptive)]),
        Family(leader, [Case("corrected_ftrl", after, unknown)], after=of_leader),
        Family(mixture, [Case("mixture, adaptive", after, unknown)], after=of_mixture),
        Family(fourier, [Case("fourier_worlds", right, in_world)], waves, LARGEST_FOURIER),
    ]  # fmt: skip


def found(settings: Settings, family: Family, horizon: int) -> list[dict[str, Any]]:
    """The rows of a family at one horizon."""
    if horizon > (family.largest or horizon):
        return []
    variances = (1.0,) if family.kernel else settings.variances
    pairs = [(case, variance) for variance in variances for case in family.cases]
    pairs = [pair for pair in pairs if pair[1] or pair[0].share == 1]  # else the same without noise
    limits = [limit(case, variance, horizon, settings.y_size) for case, variance in pairs]
    numbers = np.asarray(
        [
            (case.radius, float(bound.learning_rate), variance, case.share * variance)
            for (case, variance), bound in zip(pairs, limits, strict=True)
        ],
        np.float32,
    )
    key = jax.random.fold_in(jax.random.key(settings.seed), horizon)
    start_key, *_, held_out_key = four_keys(key)
    named = structured_starts(start_key, horizon, 1, y_size=settings.y_size)
    longest = max(t for t in settings.horizons if t <= (family.largest or t))
    room = [(0, 0), (0, longest - horizon), (0, 0)]
    starts = Stream(*(jnp.pad(leaf, room[: leaf.ndim]) for leaf in stack(named.values())))
    search = _program(family.build, family.kernel, settings.y_size, settings.steps, settings.seeds)
    streams, scores = search(numbers, starts, horizon, key)
    best, count = np.argmax(scores.mean, axis=1), np.arange(len(pairs))
    if family.after is None:
        bound_values = np.array([float(bound.regret) for bound in limits])
    else:
        worst = jax.tree.map(lambda leaf: leaf[count, best, :horizon], streams)
        bound_values = _after(family, settings.seeds)(numbers, worst, held_out_key)
    means, halves = (a[count, best] for a in (np.asarray(scores.mean), half_widths(scores)))
    random = np.asarray(scores.mean)[:, [*named].index("random")] / bound_values
    return [
        {
            "learner": case.learner,
            "bound": case.bound,
            "radius": case.radius,
            "variance": variance,
            "horizon": horizon,
            "regret": float(means[i]),
            "half_width": float(halves[i]),
            "per_root": float(means[i]) / horizon**0.5,
            "guarantee": float(bound_values[i]),
            "ratio": float(means[i] / bound_values[i]),
            "random": float(random[i]),
        }
        for i, (case, variance) in enumerate(pairs)
    ]


def limit(case: Case, variance: float, horizon: int, y_size: float) -> Any:
    """The bound of a case, which holds for all streams with |x| ≤ 1 and |y| ≤ `y_size`."""
    fourth = 1 + 6 * variance + variance**2  # E(1 ± σ)⁴, where |x| = 1
    moments = bounds.Moments(1 + variance, fourth, y_size**2, variance)
    return case.guarantee(moments, horizon=horizon, radius=case.radius)


@functools.cache
def _program(build, kernel, y_size, steps, seeds):
    """`(numbers [N, 4], starts, horizon, key)` to streams and scores `[N, R + 1, ...]`."""

    def one(numbers, starts, horizon, key):
        learner, noise = _game(build, kernel, numbers)

        def regret(stream, key):
            return clean_regret(
                learner, stream, noise, key, radius=numbers[0], kernel=kernel, rounds=horizon
            )

        used = jnp.where(jnp.arange(starts.y.shape[1]) < horizon, 1.0, 0.0)
        climb_key = four_keys(key)[1]
        found, _ = ascend(
            regret, starts, climb_key, y_size=y_size, steps=steps, draws=DRAWS, used=used
        )
        streams, _, scores = chosen(regret, starts, found, key, seeds)
        return streams, scores

    return jax.jit(jax.vmap(one, (0, None, None, None)))


def _after(family: Family, seeds: int):
    """`(numbers [N, 4], streams, key)` to mean bounds after a run, `[N]`."""
    after: Any = family.after

    def one(numbers, stream, key):
        learner, noise = _game(family.build, family.kernel, numbers)

        def bound(key):
            state = rollout(learner, stream, noise, key).state
            state = state if learner.finish is None else learner.finish(state)
            return after(state, numbers[0])

        return jax.vmap(bound)(jax.random.split(key, seeds)).mean()

    return jax.jit(jax.vmap(one, (0, 0, None)))


def _game(build, kernel, numbers):
    radius, rate, variance, told = numbers
    deviation = jnp.sqrt(jnp.maximum(variance, 1e-12))  # coins of size zero are not allowed
    noise = Gaussian(variance) if kernel else Rademacher(deviation)
    return build(radius, rate, told), noise
