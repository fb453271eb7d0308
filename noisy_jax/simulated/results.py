"""Regret over rounds, the exponent of its growth, and the results of a study.

Results are a table to print, read and save, with the configuration that made it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_clean_targets, check_loss
from noisy_jax.reports.intervals import half_width
from noisy_jax.reports.saving import writable_folder
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.simulated.configuration import save_config
from noisy_jax.simulated.estimates import Estimate, parts_of
from noisy_jax.validation.arrays import check_axes, check_shape, real_array
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.values import Array


def regret(loss: Loss, predictions: Array, comparator: Array, y: Array) -> Array:
    """Computes the regret of predictions against a comparator, after every round.

        R_t = Σ_{s ≤ t} ℓ(p_s, y_s) − ℓ(q_s, y_s)

    The differences are summed, which in float32 is more precise over long streams than the
    difference of two sums.

    Args:
        loss: ℓ, one of `losses`.
        predictions: p, `[T]`, of the learner on clean instances, such as `rollout(…).predictions`.
        comparator: q, `[T]`, predictions of the best fixed predictor, such as
            `comparators.linear_ball(stream, radius).predictions`.
        y: `[T]` clean targets; −1 or +1 for a loss of the margin.

    Returns:
        R, `[T]`, cumulative: R_T is the regret of the whole run.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> p, q, y = jnp.zeros(3), jnp.array([1.0, 1.0, 1.0]), jnp.array([1.0, 2.0, 0.0])
        >>> print(nj.simulated.regret(nj.losses.squared(), p, q, y))
        [1. 4. 3.]
    """
    check_loss(loss, flips=False)
    predictions = real_array("predictions", predictions)
    comparator = real_array("comparator", comparator)
    y = real_array("y", y)
    check_axes("y", y, "[T]", "; batch runs with jax.vmap")
    check_clean_targets(loss, y)
    for name, values in {"predictions": predictions, "comparator": comparator}.items():
        check_shape(name, values, np.shape(y), "one for each y")
    return jnp.cumsum(jnp.subtract(loss(predictions, y), loss(comparator, y)))


class Growth(NamedTuple):
    """Exponent a in regret ~ T^a, with its 95% interval; NaN if it cannot be estimated.

    Attributes:
        exponent: a.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    exponent: float
    low: float
    high: float


def growth(
    horizons: Sequence[int],
    mean_regret: Sequence[float],
    std_error: Sequence[float],
    num_seeds: int,
) -> Growth:
    """Estimates the exponent a in regret ~ T^a, with its 95% interval, from mean regrets.

    a is the slope of least squares of log regret on log T. Only the upper half of the horizons is
    used (at least two), so that the first rounds do not count. Standard errors must be independent
    across horizons. With the mean m_h, its standard error SE_h and the weight c_h of horizon h in
    the slope,

        Var a = Σ_h v_h,   v_h = c_h² (SE_h/m_h)²,

    and the interval is by Student's t with (S − 1) (Σ_h v_h)² / Σ_h v_h² degrees of freedom (Welch,
    Satterthwaite).

    Args:
        horizons: H increasing numbers of rounds T, above 0.
        mean_regret: H mean regrets after so many rounds, over seeds.
        std_error: H standard errors of these means, at least 0.
        num_seeds: S ≥ 1, number of seeds of each mean.

    Returns:
        A named tuple of floats: `exponent` a, and the ends `low` and `high` of the interval. All
        are NaN if there are fewer than two horizons, or if a mean that is used is not positive.
        With one seed the ends are NaN.

    Raises:
        ValueError: lengths differ, horizons do not increase, or a standard error is negative.

    Example:
        >>> import noisy_jax as nj
        >>> fit = nj.simulated.growth([100, 400, 1600], [10.0, 20.0, 40.0], [0.1, 0.2, 0.4], 8)
        >>> print(f"{fit.exponent:.3f} [{fit.low:.3f}, {fit.high:.3f}]")
        0.500 [0.478, 0.522]
    """
    rounds = np.asarray(real_array("horizons", horizons), float)
    if rounds.ndim != 1 or np.any(rounds[:1] <= 0) or not np.all(np.diff(rounds) > 0):
        raise ValueError(f"horizons must be positive and increasing, got {rounds.tolist()}")
    means = np.asarray(real_array("mean_regret", mean_regret), float)
    errors = np.asarray(real_array("std_error", std_error), float)
    num_seeds = whole("num_seeds", num_seeds)
    for name, values in {"mean_regret": means, "std_error": errors}.items():
        check_shape(name, values, (len(rounds),), "one for each horizon")
    if np.any(errors < 0):
        raise ValueError(f"std_error must be >= 0, got {errors.min():g}")
    upper = slice(max(min(len(rounds) // 2, len(rounds) - 2), 0), None)
    means, errors = means[upper], errors[upper]
    if len(rounds) < 2 or not np.all(means > 0):
        return Growth(math.nan, math.nan, math.nan)
    centred = np.log(rounds[upper]) - np.log(rounds[upper]).mean()
    slope = centred / np.sum(centred**2)
    exponent = float(slope @ np.log(means))
    variances = (slope * errors / means) ** 2
    total, squares = variances.sum(), np.sum(variances**2)
    freedom = (num_seeds - 1) * (total**2 / squares if squares else 1)
    half = float(half_width(np.sqrt(total), freedom))
    return Growth(exponent, exponent - half, exponent + half)


class Row(NamedTuple):
    """One learner at one horizon.

    Attributes:
        learner: name of the learner.
        horizon: T, number of rounds.
        num_seeds: S, number of seeds.
        regret: mean over seeds of the regret on clean data after T rounds; NaN if a seed diverged.
        std_error: standard error of that mean.
        low: lower end of the 95% interval, by Student's t with S − 1 degrees of freedom; NaN with
            one seed.
        high: upper end.
        bound: the guarantee's bound on the expected regret; NaN where there is no guarantee, and
            so are `bound_over_regret` and `learning_rate`.
        bound_over_regret: bound divided by regret; a value in (0, 1) means that the regret is
            larger than the bound.
        difference: mean of (regret − regret of the study's first learner), paired by seed.
        difference_std_error: standard error of that mean.
        learning_rate: the guarantee's η.
        diverged: fraction of seeds whose run overflowed.
        quantiles: of the regret over seeds, at the levels of `config["quantiles"]`; each is the
            regret of one seed.
    """

    learner: str
    horizon: int
    num_seeds: int
    regret: float
    std_error: float
    low: float
    high: float
    bound: float
    bound_over_regret: float
    difference: float
    difference_std_error: float
    learning_rate: float
    diverged: float
    quantiles: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Study:
    """Results of `study`: print them, read the rows, or save them.

    Attributes:
        rows: one `Row` for each learner and horizon: learners in the order of the study, and for
            each the horizons from short to long. A row has the fields `learner` (its name),
            `horizon` T, `num_seeds` S, `regret` (mean over seeds of the regret summed over T
            rounds), its `std_error`, the ends `low` and `high` of its 95% interval, `bound` on the
            expected regret (NaN without a guarantee), `bound_over_regret`, `difference` to the
            regret of the study's first learner (paired by seed), `difference_std_error`,
            `learning_rate` (of the guarantee), `diverged` (share of seeds whose regret was not
            finite) and `quantiles` of the regret over seeds.
        growth: by name of the learner, the exponent a in regret ~ T^a over the upper half of the
            horizons, with fields `exponent`, `low` and `high` (95% interval, a point without
            noise). NaN with one horizon, or where a mean regret is not positive.
        config: a mapping with the settings of the study, as `save` writes it to `config.json`.
        estimates: an `Estimate` for each horizon of the regret, the difference and the divergence
            of all learners, which `merge` adds up.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=64, dim=3)
        >>> learners = {"two copies": nj.learners.two_copies(radius=1.0)}
        >>> result = nj.study(learners, stream, nj.noise.Gaussian(0.1), jax.random.key(1),
        ...                   num_seeds=4, horizons=[32, 64],
        ...                   comparator=nj.comparators.linear_ball(radius=1.0))
        >>> print([(row.learner, row.horizon, row.num_seeds) for row in result.rows])
        [('two copies', 32, 4), ('two copies', 64, 4)]
    """

    rows: tuple[Row, ...]
    growth: Mapping[str, Growth]
    config: Mapping[str, Any]
    estimates: tuple[Estimate, ...] = ()

    @staticmethod
    def merge(studies: Iterable[Study]) -> Study:
        """Returns the study of all seeds from studies of disjoint ranges of seeds, in any order.

        If each range is one batch, the result equals the result of one call with this
        `batch_size`, bit for bit; otherwise up to rounding of float64.

        Args:
            studies: at least one, of the same arguments but for `num_seeds`, which are disjoint
                ranges such as `range(64, 128)`.

        Raises:
            ValueError: a seed is in two of them, they differ in other settings, or there are none.

        Example:
            >>> import jax, noisy_jax as nj
            >>> stream = nj.streams.linear(jax.random.key(0), horizon=64, dim=3)
            >>> learners = {"two copies": nj.learners.two_copies(radius=1.0)}
            >>> parts = [nj.study(learners, stream, nj.noise.Gaussian(0.1), jax.random.key(1),
            ...                   num_seeds=range(start, start + 4), horizons=[32, 64],
            ...                   comparator=nj.comparators.linear_ball(radius=1.0))
            ...          for start in (0, 4)]
            >>> nj.Study.merge(parts).config["num_seeds"]
            8
        """
        parts = parts_of(Study, "studies", studies)
        parts = sorted(parts, key=lambda part: part.config["first_seed"])
        if not parts:
            raise ValueError("merge needs at least one study, got none")
        configs = [
            {name: value for name, value in part.config.items() if name not in _OF_SEEDS}
            for part in parts
        ]
        for config in configs[1:]:
            differ = [n for n in {**config, **configs[0]} if config.get(n) != configs[0].get(n)]
            if differ:
                raise ValueError(f"the studies differ in {', '.join(differ)}: merge parts of one")
        by_horizon = zip(*(part.estimates for part in parts), strict=True)
        estimates = [Estimate.merge(of_horizon) for of_horizon in by_horizon]
        config = dict(parts[0].config) | {"num_seeds": estimates[0].num_seeds}
        first = parts[0].rows
        bounds = {(row.learner, row.horizon): (row.bound, row.learning_rate) for row in first}
        return study_of_estimates(list(parts[0].growth), estimates, bounds, config)

    @property
    def table(self) -> Table:
        """Returns the table to print and save: the rows, each with the exponent of its learner.

        `table.to_frame()` is a pandas DataFrame of all columns.
        """
        rows = []
        names = [f"quantile_{level:g}" for level in self.config.get("quantiles", ())]
        for row in self.rows:
            columns = row._asdict() | dict(zip(names, row.quantiles, strict=True))
            del columns["quantiles"]
            exponent = self.growth[row.learner]._asdict().items()
            rows.append(columns | {f"growth_{name}": value for name, value in exponent})
        tails = [(f"q{name[9:]}", partial(_rounded, name)) for name in names]
        return Table(rows, (*_COLUMNS[:4], *tails, *_COLUMNS[4:]))

    def __str__(self) -> str:
        """Returns the table, and the exponents below it."""
        exponents = Table(
            [{"learner": name, "fit": fit} for name, fit in self.growth.items()], _FIT
        )
        heading = "regret grows like T^a over the upper half of horizons, a with 95% interval:"
        return f"{self.table}\n\n{heading}\n{exponents}"

    def save(self, folder: str | Path) -> Path:
        """Writes `results.csv` (the table) and `config.json`, and returns the path of the folder.

        The folder is made if it does not exist.
        """
        folder = writable_folder(folder)
        self.table.save(folder / "results.csv")
        save_config(self.config, folder)
        return folder


_OF_SEEDS = ("num_seeds", "first_seed", "batch_size", "devices")
"""Entries of a study's configuration in which its parts may differ."""


def study_of_estimates(
    names: Sequence[str],
    estimates: Sequence[Estimate],
    bounds: Mapping[tuple[str, int], tuple[float, float]],
    config: Mapping[str, Any],
) -> Study:
    """Returns the study with these estimates of `programs.Regrets`.

    Args:
        names: of the learners.
        estimates: for each of `config["horizons"]`.
        bounds: by learner and horizon, the bound and the learning rate.
        config: of the study.
    """
    horizons, rows, exponents = config["horizons"], [], {}
    summaries = [(e.num_seeds, e.mean, e.std_error, e.half_width, e.quantiles) for e in estimates]
    for i, name in enumerate(names):
        of_learner = []
        for horizon, (num_seeds, mean, std_error, half_widths, quantiles) in zip(
            horizons, summaries, strict=True
        ):
            bound, learning_rate = bounds[name, horizon]
            regret, half = float(mean.regret[i]), float(half_widths.regret[i])
            of_learner.append(
                Row(
                    learner=name,
                    horizon=horizon,
                    num_seeds=num_seeds,
                    regret=regret,
                    std_error=float(std_error.regret[i]),
                    low=regret - half,
                    high=regret + half,
                    bound=bound,
                    bound_over_regret=bound / regret if regret else math.inf,
                    difference=float(mean.difference[i]),
                    difference_std_error=float(std_error.difference[i]),
                    learning_rate=learning_rate,
                    diverged=float(mean.diverged[i]),
                    quantiles=() if quantiles is None else tuple(quantiles.regret[:, i].tolist()),
                )
            )
        regrets, errors = [row.regret for row in of_learner], [row.std_error for row in of_learner]
        exponents[name] = growth(horizons, regrets, errors, of_learner[0].num_seeds)
        rows += of_learner
    return Study(tuple(rows), exponents, config, tuple(estimates))


def _or_none(column: str, spec: str):
    return lambda row: "none" if math.isnan(row[column]) else format(row[column], spec)


def _rounded(column: str, row) -> str:
    return f"{row[column]:.1f}"


def _interval(row) -> str:
    fit = row["fit"]
    return f"[{fit.low:.3f}, {fit.high:.3f}]" if fit.low < fit.high else "(no interval)"


def _verdict(row) -> str:
    low, high = row["fit"].low, row["fit"].high
    if high <= 0.6:
        return "like √T or slower"
    if low >= 0.8:
        return "nearly like T"
    return "between √T and T" if low >= 0.5 and high <= 1 else ""


_COLUMNS = (
    ("learner", "{learner}"),
    ("T", "{horizon:,}"),
    ("regret", "{regret:.1f}"),
    ("± 95%", plus_minus("std_error", ".1f")),
    ("bound", _or_none("bound", ".1f")),
    ("bound/regret", _or_none("bound_over_regret", ".2f")),
    ("vs first", "{difference:+.1f}"),
    ("± 95%", plus_minus("difference_std_error", ".1f")),
    ("", lambda row: f"diverged in {row['diverged']:.0%} of seeds" if row["diverged"] else ""),
)
_FIT = (("", "{learner}"), ("", "{fit.exponent:6.3f}"), ("", _interval), ("", _verdict))
