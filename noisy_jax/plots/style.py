"""The parts that pictures share: axes, labels, curves with intervals, ticks of logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisy_jax.validation.objects import instance

# The palette of Okabe and Ito, which the colour-blind can tell apart. Markers tell curves apart in
# grey print; there is one more of them than of colours, so that 56 curves differ.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def panels(
    axes, count: int, *, width: float, height: float, columns: int | None = None, **shared: Any
):
    """The axes that a picture draws on: those that were given, or new ones.

    Args:
        axes: matplotlib axes: one, a sequence, or an array as `plt.subplots` returns it. `None`
            makes a new figure without a window.
        count: how many axes the picture needs.
        width: of a new figure, in inches.
        height: of a new figure, in inches.
        columns: axes side by side in a new figure; all of them by default.
        **shared: `sharex` or `sharey` of a new figure.

    Returns:
        A sequence of `count` axes, row by row.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: another number of axes was given.
    """
    if axes is None:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("pictures need matplotlib: pip install matplotlib") from None

        figure = Figure(figsize=(width, height), layout="constrained")
        columns = columns or count
        axes = figure.subplots(-(-count // columns), columns, squeeze=False, **shared).ravel()
        for empty in axes[count:]:
            empty.remove()
        return axes[:count]
    axes = axes if np.ndim(axes) == 1 else np.ravel(axes)
    if len(axes) != count:
        raise ValueError(f"axes must be {count}, one for each panel, got {len(axes)}")
    return axes


def single(axes, *, width: float, height: float):
    """The axes of a picture without panels: those that were given, or new ones."""
    if axes is None:
        return panels(None, 1, width=width, height=height)[0]
    return instance(
        "axes", axes, "matplotlib axes", "plt.subplots() makes them", attribute="hlines"
    )


def plain(name: object) -> str:
    """A name as matplotlib shows it letter by letter: `$` begins no formula.

    A space stands before a first `_`, because legends leave out names that begin with it.
    """
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def label(ax, x: str, y: str = "", *, log: str = "") -> None:
    """Names both axes, makes those in `log` ("x", "y" or "xy") logarithmic, and draws a grid."""
    ax.set_xlabel(x)
    if y:
        ax.set_ylabel(y)
    for axis in log:
        ax.set(**{f"{axis}scale": "log"})
    ax.grid(which="major", alpha=0.3)


def legend_above(ax, **options: Any) -> None:
    """A legend above the axes, for pictures whose curves leave no corner free."""
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), **options)


def look(index: int) -> dict[str, str]:
    """Colour and marker of a curve, by its place among the curves of a picture."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def curve(axes, x: Any, middle: Any, ends: Sequence[Any], line: str = "-", **options: Any) -> None:
    """Draws a line, and its interval as a band of the same colour.

    Args:
        axes: matplotlib axes to draw on.
        x: `[N]`.
        middle: `[N]`.
        ends: lower and upper, `[N]` each.
        line: its style.
        **options: of matplotlib's `plot`; `color` is required (`look` gives one).
    """
    axes.plot(x, middle, line, **({"linewidth": 1.8} | options))
    axes.fill_between(x, *ends, color=options["color"], alpha=0.2, linewidth=0)


def tick_at(axis, values: Sequence[float], most: int = 8) -> None:
    """Ticks of a logarithmic axis at some of the values, of which `most` labels find room."""
    every = sorted({*values})
    labelled = every[:: -(-len(every) // most) or 1]
    axis.set_ticks(labelled, [f"{value:,.7g}" for value in labelled])
    axis.set_ticks([], minor=True)


def tick_by_decades(axis) -> None:
    """Ticks of a logarithmic axis that is drawn: powers of ten, and on short axes 2 and 5 times."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    if high < 100 * low:  # may not hold two powers of ten
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:,.7g}")
    axis.set_ticks([], minor=True)
