"""Pictures of studies: regret against the horizon."""

import math

from noisy_jax.evaluate.results import Study
from noisy_jax.plots.style import curve, look, new_axes, tick_at, tick_by_decades


def regret(study: Study, *, axes=None):
    """Mean regret against the horizon on log-log axes, with 95% intervals, bounds and exponents.

    Solid the regret; dotted the bound, of the same colour and with a hollow marker of the same
    form. The exponent a in the legend is fitted: regret grows like T^a over the upper half of the
    horizons.

    Args:
        study: results of `studies.study`.
        axes: matplotlib axes to draw on; new ones by default.

    Returns:
        The axes.

    Raises:
        ImportError: matplotlib is not installed.

    Example:
        >>> from noisy_jax.evaluate.regrets import growth
        >>> from noisy_jax.evaluate.results import Row
        >>> rows = tuple(Row("two copies", t, *[t**0.5] * 10) for t in (16, 64, 256))
        >>> exponents = {"two copies": growth([16, 64, 256], [4.0, 8.0, 16.0], [0.1, 0.1, 0.1])}
        >>> regret(Study(rows, exponents, {})).get_xscale()
        'log'
    """
    if axes is None:
        (axes,) = new_axes(width=7.0, height=4.8)
    for index, (name, fit) in enumerate(study.growth.items()):
        rows = [row for row in study.rows if row.learner == name]
        horizons = [row.horizon for row in rows]
        label = name if math.isnan(fit.exponent) else f"{name} ~ $T^{{{fit.exponent:.2f}}}$"
        ends = [row.low for row in rows], [row.high for row in rows]
        curve(axes, horizons, [row.regret for row in rows], ends, label=label, **look(index))
        bounds = {**_BOUND, **look(index)}
        axes.plot(horizons, [row.bound for row in rows], **bounds)
    axes.plot([], [], color="0.3", label="guaranteed or claimed bound", **_BOUND)
    axes.set_xscale("log")
    axes.set_yscale("log")
    tick_at(axes.xaxis, [row.horizon for row in study.rows])
    tick_by_decades(axes.yaxis)
    axes.set_xlabel("horizon $T$ (rounds)")
    axes.set_ylabel("expected regret on clean data in $T$ rounds")
    axes.grid(which="major", alpha=0.3)
    # Above the axes, as bounds and regrets together leave no corner free.
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return axes


_BOUND = {"linestyle": ":", "linewidth": 1.2, "markersize": 4, "markerfacecolor": "none"}
