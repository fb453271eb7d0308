"""Pictures of what learning costs in noisy copies."""

from collections.abc import Mapping

import numpy as np

from noisy_jax.plots.style import COLOURS, MARKERS, new_axes
from noisy_jax.results import Study


def copies(studies: Mapping[str, Study], copies: Mapping[str, Mapping[str, float]], *, axes=None):
    """Mean regret against the noisy copies paid for it, on log-log axes, with 95% intervals.

    Args:
        studies: by title, a panel for each.
        copies: for each study noisy copies a round by learner; those that are not named are left
            out.
        axes: matplotlib axes to draw on, one for each study; new ones side by side by default.

    Returns:
        The axes, an array.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.ticker import LogLocator

    if axes is None:
        axes = new_axes(len(studies), width=0.5 + 5 * len(studies), height=4.8)
    names = list(dict.fromkeys(name for own in copies.values() for name in own))
    for ax, (title, study) in zip(axes, studies.items(), strict=True):
        for name, a_round in copies[title].items():
            index = names.index(name)  # a learner looks the same in every panel
            rows = [row for row in study.rows if row.learner == name]
            paid = a_round * np.array([row.horizon for row in rows])
            colour = COLOURS[index % len(COLOURS)]
            marker = MARKERS[index % len(MARKERS)]
            label = f"{name}, {a_round:.3g} a round"
            regrets = [row.regret for row in rows]
            ax.plot(paid, regrets, label=label, color=colour, marker=marker, linewidth=1.8)
            ends = [row.low for row in rows], [row.high for row in rows]
            ax.fill_between(paid, *ends, color=colour, alpha=0.25, linewidth=0)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("noisy copies used, in all")
        for axis in (ax.xaxis, ax.yaxis):  # a decade may not hold two powers of ten
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:,.0f}")
        ax.minorticks_off()
        ax.grid(which="major", alpha=0.3)
        # Above the axes, as in the pictures of regret.
        ax.legend(title=title, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1))
    axes[0].set_ylabel("expected regret on clean data (squared loss)")
    return axes
