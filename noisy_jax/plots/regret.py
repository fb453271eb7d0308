"""Pictures of studies: regret against the horizon."""

from __future__ import annotations

import math
from typing import Any

from noisy_jax.plots.style import (
    curve,
    label,
    legend_above,
    look,
    plain,
    single,
    tick_at,
    tick_by_decades,
)
from noisy_jax.validation.objects import instance


def regret(study: Any, *, axes: Any = None) -> Any:
    """Mean regret against the horizon on log-log axes, with 95% intervals, bounds and exponents.

    The y axis is linear near 0 if an interval reaches below 0. Solid lines are regrets, dotted
    lines with hollow markers of the same colour their bounds. The legend has the fitted exponent a
    of T^a over the upper half of the horizons, with its 95% interval; no exponent is shown where it
    has no interval.

    Args:
        study: results of `nj.study`.
        axes: matplotlib axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> from noisy_jax.simulated.results import Row, Study, growth
        >>> columns = {
        ...     "std_error": 0.1, "bound_over_regret": 4.0, "difference": 0.0,
        ...     "difference_std_error": 0.0, "learning_rate": 0.1, "diverged": 0.0}
        >>> rows = tuple(
        ...     Row("two copies", t, num_seeds=8, regret=t**0.5, low=0.9 * t**0.5,
        ...         high=1.1 * t**0.5, bound=4 * t**0.5, **columns)
        ...     for t in (16, 64, 256))
        >>> exponents = {"two copies": growth([16, 64, 256], [4.0, 8.0, 16.0], [0.1, 0.1, 0.1], 8)}
        >>> regret(Study(rows, exponents, {})).get_xscale()
        'log'
    """
    instance("study", study, "a Study", "nj.study makes one", attribute="growth")
    axes = single(axes, width=7.0, height=4.8)
    for index, (name, fit) in enumerate(study.growth.items()):
        rows = [row for row in study.rows if row.learner == name]
        horizons = [row.horizon for row in rows]
        words = plain(name)
        if fit.low < fit.high:
            words += f": $a$ = {fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}]"
        ends = [row.low for row in rows], [row.high for row in rows]
        curve(axes, horizons, [row.regret for row in rows], ends, label=words, **look(index))
        bounds = {**_BOUND, **look(index)}
        axes.plot(horizons, [row.bound for row in rows], **bounds)
    if not all(math.isnan(row.bound) for row in study.rows):
        axes.plot([], [], color="0.3", label="guaranteed or claimed bound", **_BOUND)
    ordinate = "expected regret on clean data in $T$ rounds"
    label(axes, "horizon $T$ (rounds)", ordinate, log="xy")
    tick_at(axes.xaxis, [row.horizon for row in study.rows])
    if min(row.low for row in study.rows) < 0:  # a comparator in a ball can be beaten
        axes.set_yscale("symlog", linthresh=10)
    else:
        tick_by_decades(axes.yaxis)
    legend_above(axes, ncols=2)
    return axes


_BOUND = {"linestyle": ":", "linewidth": 1.2, "markersize": 4, "markerfacecolor": "none"}
