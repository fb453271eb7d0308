"""The learners that the command `drift` compares, how they are tuned, and their mistakes.

All have a Gaussian kernel, keep all terms, and see each stream without noise. Parameters are those
of the grid with the fewest mistakes on streams of their own, in the mean.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import kernels, learners, losses, streams
from noisy_jax.base import Learner, Sample, Stream, unrolled
from noisy_jax.engine import everything
from noisy_jax.evaluate.montecarlo import monte_carlo
from noisy_jax.evaluate.regrets import NORMAL_95

SCHEDULES: Mapping[str, Callable[..., Stream]] = {
    "drift": streams.drifting,
    "switch": streams.switching,
}
"""How the classes move."""

BLOCK = 50
"""Rounds at once: it goes into round horizons, of which a rest would be compiled apart."""

GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Widths that are tried, γ of exp(−γ‖x − z‖²)."""


class Family(NamedTuple):
    """Learners that differ in two numbers, beside the kernel.

    Attributes:
        make: `(kernel, first, second, memory) -> Learner`.
        grid: names of both numbers, and the values that are tried.
    """

    make: Callable[..., Learner]
    grid: Mapping[str, Sequence[float]]

    @property
    def names(self) -> tuple[str, str, str]:
        """Of the numbers in a setting."""
        return ("gamma", *self.grid)

    def settings(self) -> np.ndarray:
        """All settings, `[G, M, 3]`: a width, then both numbers."""
        axes = np.meshgrid(GAMMAS, *self.grid.values(), indexing="ij")
        return np.stack(axes, axis=-1).reshape(len(GAMMAS), -1, 3)


def _norma(kernel, decay, margin, memory) -> Learner:
    loss = losses.soft_margin(margin=margin)
    return learners.norma(
        kernel, loss, learning_rate=1.0, regularization=decay, buffer=memory, block=BLOCK
    )


def _alma(kernel, threshold, scale, memory) -> Learner:
    return learners.alma(kernel, threshold=threshold, scale=scale, buffer=memory, block=BLOCK)


# fmt: off
FAMILIES = {
    # By NORMA's scale distribution this is all there is to tune: ηλ and ρ/η.
    "norma": Family(_norma, {
        "decay": (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2),
        "margin": (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    }),
    "alma": Family(_alma, {
        "threshold": (0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2),
        "scale": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    }),
}
# fmt: on
"""Families by name."""


class Rival(NamedTuple):
    """One of the learners that are compared.

    Attributes:
        family: where it comes from.
        fixed: numbers that are not tuned.
    """

    family: str
    fixed: Mapping[str, float]


RIVALS = {
    "Perceptron": Rival("norma", {"decay": 0.0, "margin": 0.0}),
    "ALMA0": Rival("alma", {"threshold": 0.0}),
    "NORMA0": Rival("norma", {"margin": 0.0}),
    "ALMA": Rival("alma", {}),
    "NORMA": Rival("norma", {}),
}
"""Learners by name; a 0 says that no margin is asked for."""


class Difference(NamedTuple):
    """Mistakes of one learner less those of another, paired by stream.

    Attributes:
        fewer: the learner with fewer mistakes.
        more: the other.
        mean: of the difference, at most zero.
        half_width: of its 95% interval.
    """

    fewer: str
    more: str
    mean: float
    half_width: float

    @property
    def significant(self) -> bool:
        """Whether zero is outside the interval."""
        return bool(abs(self.mean) > self.half_width)


class Comparison(NamedTuple):
    """The rivals under one schedule.

    Attributes:
        tuned: their parameters, by learner.
        curves: mistakes up to each of R rounds by learner, mean `[R]` over streams and its standard
            error `[R]`.
        differences: after the last round, one for each pair, the best learners first.
    """

    tuned: Mapping[str, Mapping[str, float]]
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]]
    differences: Sequence[Difference]


def mistakes(learner: Learner, stream: Stream) -> chex.Array:
    """How many mistakes were made up to each round, `[T]`: y p ≤ 0, or a p that is no number."""
    keys = jax.random.split(jax.random.key(0), len(stream.y))  # of learners that draw nothing
    samples = Sample(stream.x[:, None], stream.y)
    state = learner.init(stream.x.shape[1])
    predictions = unrolled(learner)(state, samples, stream.x, keys)[1]
    return jnp.cumsum(~(stream.y * predictions > 0))


def compare(
    key: chex.PRNGKey,
    difficulty: streams.Difficulty,
    rounds: np.ndarray,
    *,
    num_seeds: int,
    num_tuning_seeds: int,
    progress: Callable[[int, int], None],
) -> dict[str, Comparison]:
    """Tunes the rivals for each schedule, and counts their mistakes on other streams.

    Args:
        key: randomness of all streams.
        difficulty: of the streams.
        rounds: `[R]`, increasing numbers of rounds after which mistakes are counted.
        num_seeds: streams of each schedule.
        num_tuning_seeds: streams of each schedule for tuning.
        progress: called with (streams done, all).

    Returns:
        A `Comparison` by schedule.
    """
    tuning_key, key = jax.random.split(key)
    total = num_tuning_seeds + num_seeds
    progress(0, total)
    grids = {name: np.stack([f.settings()] * len(SCHEDULES)) for name, f in FAMILIES.items()}
    counts = monte_carlo(
        jax.tree_util.Partial(
            lambda *run: {
                name: a[..., -1] for name, a in _counted(*run, difficulty, rounds).items()
            },
            grids,
        ),
        tuning_key,
        num_tuning_seeds,
        batch_size=1,
        progress=lambda done, _: progress(done, total),
    ).mean
    tuned = [
        {name: _best(rival, counts[rival.family][s]) for name, rival in RIVALS.items()}
        for s in range(len(SCHEDULES))
    ]
    found = monte_carlo(
        jax.tree_util.Partial(
            lambda *run: _paired(_counted(*run, difficulty, rounds)), _settings(tuned)
        ),
        key,
        num_seeds,
        batch_size=min(num_seeds, 10),
        progress=lambda done, _: progress(num_tuning_seeds + done, total),
    )
    return {
        name: _comparison(tuned[s], *jax.tree.map(lambda a: a[s], (found.mean, found.std_error)))  # noqa: B023
        for s, name in enumerate(SCHEDULES)
    }


def _counted(settings, key, difficulty, rounds) -> dict[str, chex.Array]:
    """Mistakes `[2, G, M, R]` with the settings `[2, G, M, 3]` of each family and schedule.

    All M settings of a group have the width of its first: one Gram matrix serves them.
    """
    horizon = int(rounds[-1])
    made = [stream(key, horizon, difficulty=difficulty) for stream in SCHEDULES.values()]

    def memory(space):
        # Samples show the clean x, so that steps and predictions read f at the same points.
        def read(weights, atoms, others, points):
            values = weights @ space.inner(atoms, others)
            return values, values

        return everything(space._replace(read=read), horizon)

    def of_one(make, stream, kernel, numbers):
        return mistakes(make(kernel, *numbers, memory), stream)[rounds - 1]

    def of_width(make, stream, group):
        kernel = kernels.gaussian(length_scale=(2 * group[0, 0]) ** -0.5)
        return jax.vmap(functools.partial(of_one, make, stream, kernel))(group[:, 1:])

    def of_schedule(make, stream, settings):
        return jax.vmap(functools.partial(of_width, make, stream))(settings)

    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *made)
    return {
        name: jax.vmap(functools.partial(of_schedule, FAMILIES[name].make))(both, array)
        for name, array in settings.items()
    }


def _best(rival: Rival, counts: np.ndarray) -> dict[str, float]:
    """The parameters of a rival with the smallest of its family's counts `[G, M]`."""
    family = FAMILIES[rival.family]
    settings = family.settings().reshape(-1, 3)
    allowed = np.ones(len(settings), bool)
    for name, value in rival.fixed.items():
        allowed &= settings[:, family.names.index(name)] == value
    best = np.where(allowed, counts.ravel(), np.inf).argmin()
    return dict(zip(family.names, settings[best].tolist(), strict=True))


def _settings(tuned) -> dict[str, np.ndarray]:
    """The tuned settings of each family, `[2, G, 1, 3]`, its rivals in order along G."""
    return {
        family: np.array(
            [
                [
                    [list(by_name[n].values())]
                    for n, rival in RIVALS.items()
                    if rival.family == family
                ]
                for by_name in tuned
            ]
        )
        for family in FAMILIES
    }


def _paired(counted) -> tuple[chex.Array, chex.Array]:
    """Curves `[2, L, R]` of the rivals in order, and their differences `[2, L, L]` in the end."""
    rest = {family: iter(jnp.moveaxis(a[:, :, 0], 1, 0)) for family, a in counted.items()}
    curves = jnp.stack([next(rest[rival.family]) for rival in RIVALS.values()], axis=1)
    last = curves[..., -1]
    return curves, last[:, :, None] - last[:, None]


def _comparison(tuned, means, errors) -> Comparison:
    names, order = list(RIVALS), np.argsort(means[0][:, -1], kind="stable")
    return Comparison(
        tuned,
        dict(zip(names, zip(means[0], errors[0], strict=True), strict=True)),
        [
            Difference(
                names[i], names[j], float(means[1][i, j]), NORMAL_95 * float(errors[1][i, j])
            )
            for place, i in enumerate(order)
            for j in order[place + 1 :]
        ],
    )
