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
    """Draws the mean regret of each learner of a study against the horizon, on log-log axes.

    Solid lines are mean regrets over seeds, with 95% intervals as bands. Dotted lines with hollow
    markers, of the same colour, are the bounds, if there are any. The legend has the exponent a of
    T^a, fitted over the upper half of the horizons, with its 95% interval; it is left out where
    there is no interval. The y axis is linear near 0 if an interval reaches below 0.

    Args:
        study: a result of `nj.study`.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The axes; `axes.figure.savefig("regret.png")` saves the picture.

    Raises:
        ImportError: matplotlib is not installed.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=64, dim=3)
        >>> found = nj.study(
        ...     {"two copies": nj.learners.two_copies(radius=1.0)}, stream, nj.noise.Gaussian(0.1),
        ...     jax.random.key(1), num_seeds=4, horizons=[16, 32, 64],
        ...     comparator=nj.comparators.linear_ball(radius=1.0))
        >>> nj.plots.regret(found).get_xscale()
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
