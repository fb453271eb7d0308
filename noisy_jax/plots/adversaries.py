"""Pictures of the adversaries that no learner from one noisy copy beats in both guises."""

from collections.abc import Mapping, Sequence

import numpy as np

from noisy_jax.bounds import one_copy_excess, one_copy_lower_bound
from noisy_jax.losses import Loss
from noisy_jax.plots.style import curve, look, new_axes, panel_axes, tick_at


def one_copy(rows: Sequence, losses: Mapping[str, Loss], *, radius: float, axes=None):
    """Average regret under the worse adversary against the horizon, and where its floor is from.

    On the left each learner, with 95% intervals, and the floor of the first loss. On the right, for
    each loss, what constant weights w lose under A (solid) and under B (dashed): the floor, marked,
    is where the two cross.

    Args:
        rows: with `learner`, `horizon`, `maximum`, `low` and `high`, as `commands.one_copy` makes;
            of learners for the first loss.
        losses: by name.
        radius: B > 0, of the ball in which learners and competitors are.
        axes: two matplotlib axes to draw on; new ones side by side by default.

    Returns:
        The axes, an array.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: another number of axes.

    Example:
        >>> import types, noisy_jax as nj
        >>> row = types.SimpleNamespace(learner="blind", horizon=16, maximum=0.6, low=0.5, high=0.7)
        >>> left, right = one_copy([row], {"squared": nj.losses.squared()}, radius=1.5)
        >>> right.get_xlabel()
        'constant weight $w$'
    """
    if axes is None:
        axes = new_axes(2, width=10.5, height=5.2, sharey=True)
    axes = panel_axes(axes, 2)
    floors = {name: one_copy_lower_bound(loss, radius=radius) for name, loss in losses.items()}
    _draw_regrets(axes[0], rows, next(iter(floors.values())).lower_bound)
    _draw_excesses(axes[1], losses, floors, radius)
    top = max(1, *(1.05 * row.high for row in rows))
    titles = (
        f"Learners under the worse adversary, {next(iter(losses))} loss",
        "Constant weights under both; marks are floors",
    )
    for ax, title in zip(axes, titles, strict=True):
        ax.set_ylim(0, top)
        ax.grid(alpha=0.3)
        # Above the axes, as the curves cross every corner.
        ax.legend(title=title, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return axes


def _draw_regrets(ax, rows, floor):
    for index, learner in enumerate(dict.fromkeys(row.learner for row in rows)):
        own = [row for row in rows if row.learner == learner]
        ends = [row.low for row in own], [row.high for row in own]
        middle = [row.maximum for row in own]
        curve(ax, [row.horizon for row in own], middle, ends, label=learner, **look(index))
    ax.axhline(floor, color="0.2", linestyle=":", label=f"floor for one copy: {floor:.3f}")
    ax.set_xscale("log")
    tick_at(ax.xaxis, [row.horizon for row in rows], most=6)
    ax.set_xlabel("horizon $T$ (rounds)")
    ax.set_ylabel("expected regret on clean data, a round")


def _draw_excesses(ax, losses, floors, radius):
    weights = np.linspace(0, min(1.25, radius), 201)
    for index, (name, loss) in enumerate(losses.items()):
        width = max(2.8 - 0.8 * index, 1)  # later ones thinner, as losses may agree
        weight, floor = floors[name]
        label = f"{name}: {floor:.3f} at $w$ = {weight:.3f}"
        for excess, line in zip(
            one_copy_excess(loss, weights, radius=radius), ("-", "--"), strict=True
        ):
            ax.plot(weights, excess, line, color=look(index)["color"], linewidth=width)
        ax.plot(weight, floor, label=label, linewidth=width, markersize=7, **look(index))
    ax.plot([], [], "-", color="0.3", label="A: 3 or −1, no noise")
    ax.plot([], [], "--", color="0.3", label="B: always 1, noise ±2")
    ax.set_xlabel("constant weight $w$")
    ax.set_ylabel("expected loss beyond the best weight's, a round")
