"""Pictures of results, by matplotlib, which is imported where a picture is made."""

import math
from collections.abc import Mapping

import jax
import numpy as np

from noisy_jax.kernels import Kernel
from noisy_jax.results import Study
from noisy_jax.worlds import World


def regret(study: Study, ax=None):
    """Mean regret against the horizon on log-log axes, with 95% intervals, bounds and exponents.

    Args:
        study: results of `studies.study`.
        ax: matplotlib axes to draw on; new ones by default.

    Returns:
        The axes.

    Raises:
        ImportError: matplotlib is not installed.
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(7.0, 4.8), layout="constrained").add_subplot()
    for index, (name, fit) in enumerate(study.growth.items()):
        rows = [row for row in study.rows if row.learner == name]
        horizons = [row.horizon for row in rows]
        label = name if math.isnan(fit.exponent) else f"{name} ~ $T^{{{fit.exponent:.2f}}}$"
        style = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
        ax.plot(horizons, [row.regret for row in rows], label=label, linewidth=1.8, **style)
        ax.fill_between(
            horizons,
            [row.low for row in rows],
            [row.high for row in rows],
            color=style["color"],
            alpha=0.25,
            linewidth=0,
        )
        bounds = [row.bound for row in rows]
        ax.plot(horizons, bounds, color=style["color"], linestyle=":", linewidth=1.2)
    ax.plot([], [], color="0.3", linestyle=":", label="guaranteed or claimed bound")
    ax.set_xscale("log")
    ax.set_yscale("log")
    every = sorted({row.horizon for row in study.rows})
    ticks = every[:: -(-len(every) // 8)]  # at most eight labels find room
    ax.set_xticks(ticks, [f"{horizon:,}" for horizon in ticks])
    ax.minorticks_off()
    ax.set_xlabel("horizon $T$ (rounds)")
    ax.set_ylabel("expected regret on clean data (squared loss)")
    ax.grid(which="major", alpha=0.3)
    # Above the axes, as bounds and regrets together leave no corner free.
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return ax


def worlds(worlds: Mapping[str, World], kernel: Kernel, *, distances=None, axes=None):
    """The kernels of worlds and their surrogates, against the distance r.

    Solid the kernel g that was asked for, dashed the kernel k that a world has instead, dash-dotted
    its surrogate k̂.

    Args:
        worlds: by title, a panel for each; under noise of one law.
        kernel: g, a function of the distance.
        distances: `[n]`, increasing; from 0 to 5 by default.
        axes: matplotlib axes to draw on, one for each world; new ones side by side by default.

    Returns:
        The axes, an array.

    Raises:
        ImportError: matplotlib is not installed.

    Source: Learning from Noisy Data under Distributional Assumptions, Figure 1, which shows g and k
        of `worlds.rational`.
    """
    if axes is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(0.5 + 3.6 * len(worlds), 3.8), layout="constrained")
        axes = figure.subplots(1, len(worlds), sharey=True, squeeze=False)[0]
    distances = np.linspace(0, 5, 201) if distances is None else distances
    for ax, (title, world) in zip(axes, worlds.items(), strict=True):
        curves = (
            ("asked for, $g$", kernel, "-"),
            ("clean, $k$", world.kernel, "--"),
            (r"surrogate, $\hat{k}$", world.surrogate, "-."),
        )
        for colour, (label, gram, line) in zip(COLOURS, curves, strict=False):
            values = profile(gram, distances, world.dim)
            ax.plot(distances, values, line, color=colour, linewidth=1.8, label=label)
        ax.set_title(title)
        ax.set_xlabel("distance $r$")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("kernel")
    axes[-1].legend(frameon=False)
    return axes


def profile(gram, distances, dim: int) -> np.ndarray:
    """The value of a kernel at each distance from the origin, along the first coordinate.

    Args:
        gram: `(x[n, d], z[m, d]) -> [n, m]`.
        distances: `[n]`.
        dim: d.

    Returns:
        `[n]`.

    Example:
        >>> import noisy_jax as nj
        >>> print(profile(nj.kernels.rational(m=1.0), [0.0, 1.0, 2.0], dim=3))
        [1.  0.5 0.2]
    """
    x = np.zeros((len(distances), dim), jax.dtypes.canonicalize_dtype(float))
    x[:, 0] = distances
    return np.asarray(gram(x, np.zeros_like(x[:1])))[:, 0]


# The palette of Okabe and Ito, which the colour-blind can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
