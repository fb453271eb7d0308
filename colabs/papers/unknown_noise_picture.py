"""Pictures of what learning costs in noisy copies."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from noisy_jax.plots.style import curve, label, legend_above, look, panels, plain, tick_by_decades
from noisy_jax.simulated.results import Study


def draw_price(
    studies: Mapping[str, Study], copies: Mapping[str, Mapping[str, float]], *, axes: Any = None
) -> Any:
    """Mean regret against the number of noisy copies used, on log-log axes, with 95% intervals.

    Args:
        studies: `{title: study}`, a panel for each.
        copies: `{title: {learner: number of noisy copies that it uses per round}}`; learners
            without an entry are left out.
        axes: matplotlib axes to draw on, one for each study; new ones side by side by default.

    Returns:
        A sequence of the axes, one for each panel.

    Example:
        >>> from noisy_jax.simulated.results import Row
        >>> study = Study(tuple(Row("two", t, 8, *[t**0.5] * 10) for t in (16, 64, 256)), {}, {})
        >>> (axes,) = draw_price({"Gaussian noise": study}, {"Gaussian noise": {"two": 2.0}})
        >>> axes.get_xlabel()
        'noisy copies used, in all'
    """
    lacking = ", ".join(studies.keys() - copies.keys())
    if lacking:
        raise ValueError(f"copies must have an entry for each study, but has none for {lacking}")
    width = 0.5 + 5 * len(studies)
    axes = panels(axes, len(studies), width=width, height=4.8, sharey=True)
    names = list(dict.fromkeys(name for own in copies.values() for name in own))
    for ax, (title, study) in zip(axes, studies.items(), strict=True):
        for name, a_round in copies[title].items():
            rows = [row for row in study.rows if row.learner == name]
            paid = a_round * np.array([row.horizon for row in rows])
            ends = [row.low for row in rows], [row.high for row in rows]
            style = look(names.index(name))  # a learner looks the same in every panel
            words = f"{plain(name)}, {a_round:.3g} a round"
            curve(ax, paid, [row.regret for row in rows], ends, label=words, **style)
        label(ax, "noisy copies used, in all", log="xy")
        legend_above(ax, title=plain(title))
    for ax in axes:  # once all is drawn, as panels may share an axis
        tick_by_decades(ax.xaxis)
        tick_by_decades(ax.yaxis)
    axes[0].set_ylabel("expected regret on clean data")
    return axes
