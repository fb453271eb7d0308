"""A picture of how close the worst streams come to each guarantee."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from noisy_jax.plots.style import label, legend_above, look, panels, plain, tick_at, tick_by_decades


def draw_ratios(rows: Sequence[Mapping[str, Any]], *, axes=None):
    """The regret on the worst stream found over the guarantee, against the horizon.

    On the left the guarantees of `bounds`, on the right those that papers and textbooks print, each
    at the noise level where the ratio is largest. A bound above the line at 1 is false.

    Args:
        rows: mappings with `learner`, `bound`, `radius`, `horizon` and `ratio`, as the rows
            of tightness.csv; rows with the bound "after the run" are left out.
        axes: two matplotlib axes to draw on; new ones side by side by default.

    Returns:
        A sequence of the axes, one for each panel.

    Example:
        >>> row = {"learner": "two_copies", "bound": "printed", "radius": 1.0, "horizon": 16}
        >>> left, right = draw_ratios([row | {"ratio": 0.5}])
        >>> right.get_legend().get_texts()[0].get_text()
        'two_copies'
    """
    axes = panels(axes, 2, width=10.5, height=5.2, sharey=True)
    radii = {(row["learner"], row["radius"]) for row in rows}
    several = [
        learner for learner, count in Counter(name for name, _ in radii).items() if count > 1
    ]
    for ax, printed in zip(axes, (False, True), strict=True):
        curves: dict[str, dict[int, float]] = {}
        for row in rows:
            if row["bound"] == "after the run" or (row["bound"] == "printed") != printed:
                continue
            words = plain(row["learner"])
            if row["learner"] in several:
                words += f", $B_w$ = {row['radius']:g}"
            if row["bound"] not in ("corrected", "printed"):
                words += f", {plain(row['bound'])}"
            by_horizon = curves.setdefault(words, {})
            by_horizon[row["horizon"]] = max(row["ratio"], by_horizon.get(row["horizon"], 0))
        for index, (words, ratios) in enumerate(curves.items()):
            ax.plot(*zip(*ratios.items(), strict=True), label=words, linewidth=1.8, **look(index))
        ax.axhline(1, color="0.2", linestyle=":")
        label(ax, "horizon $T$ (rounds)", "regret on the worst stream found / guarantee", log="xy")
        tick_by_decades(ax.yaxis)
        tick_at(ax.xaxis, [row["horizon"] for row in rows])
        if curves:
            title = "Bounds as printed" if printed else "Bounds of this library"
            legend_above(ax, title=title, ncols=2, fontsize="small")
    return axes
