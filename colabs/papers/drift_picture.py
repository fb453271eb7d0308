"""Pictures of classifiers on streams: mistakes against rounds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from noisy_jax.plots import style
from noisy_jax.plots.style import curve, label, look, plain


def draw_mistakes(rounds: Any, panels: Mapping[str, Mapping[str, Any]], *, axes=None):
    """Mistakes of learners up to each round, with 95% intervals of the means over seeds.

    Args:
        rounds: `[R]` numbers of rounds.
        panels: `{title: {learner: (mean, low, high)}}`, the means and both ends of their intervals,
            `[R]` each. If the name of a learner ends in 0 (the variant without a margin), its curve
            is dashed, with the colour and marker of the name without the 0.
        axes: matplotlib axes to draw on, one for each panel; new ones side by side by default.

    Returns:
        A sequence of the axes, one for each panel.

    Source: Online Learning with Kernels, Figure 2.

    Example:
        >>> curve = [4.0, 7.0], [3.0, 6.0], [5.0, 8.0]
        >>> (axes,) = draw_mistakes([10, 20], {"drift": {"perceptron": curve}})
        >>> axes.get_ylabel()
        'mistakes so far'
    """
    # Panels differ much in their numbers: one vertical axis for all would hide a panel.
    axes = style.panels(axes, len(panels), width=0.5 + 4.4 * len(panels), height=4.2)
    rounds = np.asarray(rounds)
    for ax, (title, learners) in zip(axes, panels.items(), strict=True):
        families = list(dict.fromkeys(name.rstrip("0") for name in learners))
        for place, (name, (mean, *ends)) in enumerate(learners.items()):
            # A marker here and there, and not one above the other where learners agree.
            marked = (0.02 * (place + 1), 0.15)
            curve(
                ax,
                rounds,
                mean,
                ends,
                "--" if name.endswith("0") else "-",
                label=plain(name),
                markevery=marked,
                markersize=5,
                **look(families.index(name.rstrip("0"))),
            )
        ax.set_title(plain(title))
        label(ax, "rounds", "mistakes so far")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:,.7g}")
        ax.set_xlim(0, rounds[-1])
        ax.locator_params(axis="x", nbins=6)  # more labels find no room
        ax.set_ylim(bottom=0)
    axes[0].legend(frameon=False, loc="upper left", handlelength=2.8)  # for the dashes
    return axes
