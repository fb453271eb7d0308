"""Pictures of regret against the learning rate."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisy_jax.intervals import half_width
from noisy_jax.plots.style import COLOURS, curve, label, look, panels, plain, tick_at


def rates(rows: Sequence[Mapping[str, Any]], *, axes=None):
    """Regret at fixed learning rates, and without tuning, at the last horizon.

    Fixed rates are a curve over multiples of the theorem's rate, with 95% intervals; the others are
    horizontal lines.

    Args:
        rows: with `data`, `learner`, `horizon`, `rate` (a multiple of the theorem's, or the name of
            a way to choose), `regret`, `std_error` and `num_seeds`, as the study `tuning` saves
            them.
        axes: matplotlib axes, a panel for each pair of data and learner; new ones by default.

    Returns:
        A sequence of the axes.

    Example:
        >>> row = {"data": "table", "learner": "two_copies", "horizon": 64, "std_error": 0.1,
        ...        "num_seeds": 8}
        >>> regrets = {0.3: 9.0, 1.0: 5.0, 3.0: 7.0, "adaptive": 5.5}
        >>> (axes,) = rates([{**row, "rate": r, "regret": v} for r, v in regrets.items()])
        >>> axes.get_title()
        'table, two_copies'
    """
    horizon = max(row["horizon"] for row in rows)
    rows = [row for row in rows if row["horizon"] == horizon]
    pairs = dict.fromkeys((row["data"], row["learner"]) for row in rows)
    columns = len(dict.fromkeys(learner for _, learner in pairs))
    height = 0.9 + 2.6 * -(-len(pairs) // columns)
    axes = panels(axes, len(pairs), width=0.5 + 3.4 * columns, height=height, columns=columns)
    for ax, pair in zip(axes, pairs, strict=True):
        own = [row for row in rows if (row["data"], row["learner"]) == pair]
        fixed = [row for row in own if not isinstance(row["rate"], str)]
        means = np.array([row["regret"] for row in fixed])
        half = np.array([half_width(row["std_error"], row["num_seeds"] - 1) for row in fixed])
        ends = means - half, means + half
        curve(ax, [row["rate"] for row in fixed], means, ends, label="fixed rate", **look(0))
        for index, row in enumerate(row for row in own if isinstance(row["rate"], str)):
            style = {"color": COLOURS[1 + index], "linestyle": ("-", "--", "-.", ":")[index % 4]}
            ax.axhline(row["regret"], label=plain(row["rate"]), **style)
        negative = min(row["regret"] for row in own) <= 0  # a comparator in a ball can be beaten
        label(ax, "multiple of the theorem's rate", log="x")
        if negative:
            ax.set_yscale("asinh", linear_width=30)
        else:
            ax.set_yscale("log")
        tick_at(ax.xaxis, [row["rate"] for row in fixed])
        ax.set_title(plain(", ".join(pair)), fontsize=10)
    axes[0].set_ylabel(f"regret in {horizon:,} rounds")
    handles, names = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, names, loc="outside upper center", ncols=5, frameon=False)
    return axes
