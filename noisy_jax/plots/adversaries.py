"""Pictures of the adversaries whom no learner from one noisy copy beats both."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisy_jax.losses import Loss
from noisy_jax.plots.style import curve, label, legend_above, look, panels, plain, tick_at
from noisy_jax.simulated.bounds import one_copy_excess, one_copy_lower_bound


def one_copy(
    rows: Sequence[Mapping[str, Any]], losses: Mapping[str, Loss], *, radius: float, axes=None
):
    """Average regret under the worse adversary against the horizon, and why it has a lower bound.

    On the left each learner, with 95% intervals, and the lower bound for the first loss. On the
    right, for each loss, what constant weights w lose under A (solid) and under B (dashed): the
    lower bound, marked, is where the two cross.

    Args:
        rows: mappings with `learner`, `horizon`, `maximum`, `low` and `high`, as those of the
            table of `studies.one_copy`; of learners for the first loss.
        losses: by name.
        radius: B > 0, of the ball in which learners and competitors are.
        axes: two matplotlib axes to draw on; new ones side by side by default.

    Returns:
        A sequence of the axes, one for each panel.

    Example:
        >>> import noisy_jax as nj
        >>> row = {"learner": "uncorrected", "horizon": 16, "maximum": 0.6, "low": 0.5, "high": 0.7}
        >>> left, right = one_copy([row], {"squared": nj.losses.squared()}, radius=1.5)
        >>> right.get_xlabel()
        'constant weight $w$'
    """
    axes = panels(axes, 2, width=10.5, height=5.2, sharey=True)
    bounds = {name: one_copy_lower_bound(loss, radius=radius) for name, loss in losses.items()}
    _draw_regrets(axes[0], rows, next(iter(bounds.values()))[1])
    _draw_excesses(axes[1], losses, bounds, radius)
    top = max(1, *(1.05 * row["high"] for row in rows))
    titles = (
        f"Learners under the worse adversary, {plain(next(iter(losses)))} loss",
        "Constant weights under both; marks are lower bounds",
    )
    for ax, title in zip(axes, titles, strict=True):
        ax.set_ylim(0, top)
        legend_above(ax, title=title, ncols=2)
    return axes


def _draw_regrets(ax, rows, lowest):
    for index, learner in enumerate(dict.fromkeys(row["learner"] for row in rows)):
        horizon, middle, *ends = (
            [row[column] for row in rows if row["learner"] == learner]
            for column in ("horizon", "maximum", "low", "high")
        )
        curve(ax, horizon, middle, ends, label=plain(learner), **look(index))
    ax.axhline(lowest, color="0.2", linestyle=":", label=f"lower bound for one copy: {lowest:.3f}")
    label(ax, "horizon $T$ (rounds)", "expected regret on clean data, a round", log="x")
    tick_at(ax.xaxis, [row["horizon"] for row in rows], most=6)


def _draw_excesses(ax, losses, bounds, radius):
    weights = np.linspace(0, min(1.25, radius), 201)
    for index, (name, loss) in enumerate(losses.items()):
        width = max(2.8 - 0.8 * index, 1)  # later ones thinner, as losses may agree
        weight, lowest = bounds[name]
        words = f"{plain(name)}: {lowest:.3f} at $w$ = {weight:.3f}"
        for excess, line in zip(
            one_copy_excess(loss, weights, radius=radius), ("-", "--"), strict=True
        ):
            ax.plot(weights, excess, line, color=look(index)["color"], linewidth=width)
        ax.plot(weight, lowest, label=words, linewidth=width, markersize=7, **look(index))
    ax.plot([], [], "-", color="0.3", label="A: 3 or −1, no noise")
    ax.plot([], [], "--", color="0.3", label="B: always 1, noise ±2")
    label(ax, "constant weight $w$", "expected loss beyond the best weight's, a round")
