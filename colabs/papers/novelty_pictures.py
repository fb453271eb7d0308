"""Pictures of novelty detectors: what they reject, and how often they sound an alarm."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisy_jax.plots.style import curve, label, look, panels, plain, tick_at, tick_by_decades

PITCH = 1.25
"""Distance between the rows of a gallery, in column widths; it leaves room for captions."""


def draw_rejections(
    galleries: Mapping[str, tuple[Any, Sequence[str]]], *, columns: int = 5, axes=None
):
    """Draws galleries of small grey images, row by row, with a caption below each image.

    Args:
        galleries: titles with images `[n, h, w]` and n captions. All galleries have the same grey
            scale; the largest value is white.
        columns: images side by side, at least 1.
        axes: matplotlib axes to draw on, one for each gallery; new ones side by side by default.

    Returns:
        A sequence of the axes, one for each gallery.

    Source: Online Learning with Kernels, Figure 3.

    Example:
        >>> (axes,) = draw_rejections({"alarms": (np.eye(8)[None], ["a 7"])})
        >>> axes.get_title()
        'alarms'
    """
    for title, (images, captions) in galleries.items():
        if len(images) != len(captions):
            raise ValueError(
                f"the gallery {title!r} must have one caption for each image, got "
                f"{len(captions)} for {len(images)}"
            )
    rows = max([1, *(-(-len(images) // columns) for images, _ in galleries.values())])
    width = (0.25 + 0.68 * columns) * len(galleries)
    axes = panels(axes, len(galleries), width=width, height=0.6 + 0.84 * rows)
    shades = [np.asarray(images) for images, _ in galleries.values() if len(images)]
    greys = {
        "cmap": "gray",
        "vmin": min((s.min() for s in shades), default=0),
        "vmax": max((s.max() for s in shades), default=1),
    }
    for ax, (title, (images, captions)) in zip(axes, galleries.items(), strict=True):
        for place, (image, caption) in enumerate(zip(images, captions, strict=True)):
            row, column = divmod(place, columns)
            top = PITCH * row
            ax.imshow(image, extent=(column + 0.06, column + 0.94, top + 0.88, top), **greys)
            ax.text(column + 0.5, top + 0.91, plain(caption), fontsize=7.5, ha="center", va="top")
        ax.set_xlim(0, columns)
        ax.set_ylim(PITCH * rows, 0)
        ax.set_title(plain(title), fontsize=10)
        ax.set_axis_off()
    return axes


def draw_alarm_rates(nus: Any, detectors: Mapping[str, tuple[Any, Any, Any]], *, axes=None):
    """Achieved shares of alarms against ν, on log-log axes, with 95% intervals of the means.

    The dotted line is where the share is ν.

    Args:
        nus: `[N]`, increasing.
        detectors: by name, the mean over runs and both ends of its interval, `[N]` each.
        axes: matplotlib axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> shares = [0.11, 0.19], [0.1, 0.1], [0.2, 0.2]
        >>> draw_alarm_rates([0.1, 0.2], {"norma": shares}).get_xscale()
        'log'
    """
    if axes is None:
        (axes,) = panels(None, 1, width=5.4, height=4.6)
    axes.plot(nus, nus, ":", color="black", linewidth=1.2, label="ν")
    for index, (name, (mean, *ends)) in enumerate(detectors.items()):
        hollow = {"markerfacecolor": "none", **look(index)}  # as shares agree for large ν
        curve(axes, nus, mean, ends, label=plain(name), **hollow)
    label(axes, "ν, the share asked for", "share of rounds with an alarm", log="xy")
    tick_at(axes.xaxis, nus)
    tick_by_decades(axes.yaxis)
    axes.legend(frameon=False)
    return axes
