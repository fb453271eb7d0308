"""Pictures of studies: regret against the horizon."""

import math

from noisy_jax.plots.style import COLOURS, MARKERS, new_axes
from noisy_jax.results import Study


def regret(study: Study, ax=None):
    """Mean regret against the horizon on log-log axes, with 95% intervals, bounds and exponents.

    Args:
        study: results of `studies.study`.
        ax: matplotlib axes to draw on; new ones by default.

    Returns:
        The axes.

    Raises:
        ImportError: matplotlib is not installed.
    """
    if ax is None:
        ax = new_axes(width=7.0, height=4.8)[0]
    for index, (name, fit) in enumerate(study.growth.items()):
        rows = [row for row in study.rows if row.learner == name]
        horizons = [row.horizon for row in rows]
        label = name if math.isnan(fit.exponent) else f"{name} ~ $T^{{{fit.exponent:.2f}}}$"
        style = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
        ax.plot(horizons, [row.regret for row in rows], label=label, linewidth=1.8, **style)
        ax.fill_between(
            horizons,
            [row.low for row in rows],
            [row.high for row in rows],
            color=style["color"],
            alpha=0.25,
            linewidth=0,
        )
        bounds = [row.bound for row in rows]
        ax.plot(horizons, bounds, color=style["color"], linestyle=":", linewidth=1.2)
    ax.plot([], [], color="0.3", linestyle=":", label="guaranteed or claimed bound")
    ax.set_xscale("log")
    ax.set_yscale("log")
    every = sorted({row.horizon for row in study.rows})
    ticks = every[:: -(-len(every) // 8)]  # at most eight labels find room
    ax.set_xticks(ticks, [f"{horizon:,}" for horizon in ticks])
    ax.minorticks_off()
    ax.set_xlabel("horizon $T$ (rounds)")
    ax.set_ylabel("expected regret on clean data (squared loss)")
    ax.grid(which="major", alpha=0.3)
    # Above the axes, as bounds and regrets together leave no corner free.
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return ax
