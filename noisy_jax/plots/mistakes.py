"""Pictures of classifiers on streams: mistakes against rounds."""

from collections.abc import Mapping

import chex
import numpy as np

from noisy_jax.plots.style import COLOURS
from noisy_jax.regret import NORMAL_95


def mistakes(
    rounds: chex.Array,
    panels: Mapping[str, Mapping[str, tuple[chex.Array, chex.Array]]],
    axes=None,
):
    """Mistakes of learners up to each round, with 95% intervals of the means over seeds.

    Args:
        rounds: `[R]` numbers of rounds.
        panels: by title, then by name of the learner, the mean `[R]` and its standard error `[R]`;
            a name that ends in 0, of a learner without a margin, has the colour of the name without
            and is dashed.
        axes: matplotlib axes to draw on, one for each panel; new ones side by side by default.

    Returns:
        The axes, an array.

    Raises:
        ImportError: matplotlib is not installed.

    Source: Online Learning with Kernels, Figure 2.
    """
    if axes is None:
        from matplotlib.figure import Figure

        # Panels differ much in their numbers: axes that share the vertical one would hide a panel.
        figure = Figure(figsize=(0.5 + 4.4 * len(panels), 4.2), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
    rounds = np.asarray(rounds)
    for ax, (title, learners) in zip(axes, panels.items(), strict=True):
        families = list(dict.fromkeys(name.rstrip("0") for name in learners))
        for name, (mean, error) in learners.items():
            mean, half = np.asarray(mean), NORMAL_95 * np.asarray(error)
            colour = COLOURS[families.index(name.rstrip("0")) % len(COLOURS)]
            line = "--" if name.endswith("0") else "-"
            ax.plot(rounds, mean, line, color=colour, linewidth=1.8, label=name)
            ax.fill_between(rounds, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
        ax.set_title(title)
        ax.set_xlabel("rounds")
        ax.set_xlim(0, rounds[-1])
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("mistakes")
    axes[0].legend(frameon=False, loc="upper left")
    return axes
