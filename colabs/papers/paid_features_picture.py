"""Picture of learners that pay for less noise."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisy_jax.plots.style import COLOURS, curve, label, legend_above, look, panels, tick_at
from noisy_jax.reports.intervals import half_width


def draw_payments(
    rows: Sequence[Mapping[str, Any]], payments: np.ndarray, losses: np.ndarray, *, axes=None
):
    """Left: the least loss at each payment. Right: the regret of learners against T.

    Vertical lines on the left show the mean payment of each learner at the largest T. Dotted and
    dash-dotted lines on the right grow like √T and T^(2/3).

    Args:
        rows: one for each learner and T, with `variance` ("known" or "unknown"), `horizon`,
            `regret`, `std_error`, `num_seeds` and mean `payment`, as the study `paid_features`
            saves them.
        payments: `[P]`, payments a round.
        losses: `[P]`, the least loss at each payment.
        axes: two matplotlib axes; new ones by default.

    Returns:
        A sequence of the two axes.

    Example:
        >>> row = {"variance": "known", "std_error": 0.1, "num_seeds": 8, "payment": 0.01}
        >>> rows = [{**row, "horizon": t, "regret": t**0.5} for t in (64, 256)]
        >>> left, right = draw_payments(rows, np.array([0, 0.01, 0.02]), np.array([0.3, 0.2, 0.25]))
        >>> right.get_ylabel()
        'regret'
    """
    left, right = axes = panels(axes, 2, width=10, height=4.8)
    left.plot(payments, losses, color="black", label="least loss, with payment")
    last = max(row["horizon"] for row in rows)
    for index, name in enumerate(dict.fromkeys(row["variance"] for row in rows)):
        own, style = [row for row in rows if row["variance"] == name], look(index)
        (paid,) = (row["payment"] for row in own if row["horizon"] == last)
        words = f"{name} variance: mean payment, T = {last:,}"
        left.axvline(paid, color=COLOURS[index], linestyle=("--", "-.")[index], label=words)
        rounds = np.array([row["horizon"] for row in own])
        means = np.array([row["regret"] for row in own])
        half = np.array([half_width(row["std_error"], row["num_seeds"] - 1) for row in own])
        curve(right, rounds, means, (means - half, means + half), label=f"{name} variance", **style)
        power, written = {"known": (0.5, "√T"), "unknown": (2 / 3, "T^(2/3)")}[name]
        slope = means[0] * (rounds / rounds[0]) ** power
        right.plot(
            rounds, slope, (":", "-.")[index], color=COLOURS[index], label=f"grows like {written}"
        )
    label(left, "payment a round", "expected loss a round")
    label(right, "T, rounds", "regret", log="xy")
    tick_at(right.xaxis, sorted({row["horizon"] for row in rows}))
    for ax in axes:
        legend_above(ax, fontsize=9)
    return axes
