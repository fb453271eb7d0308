"""Pictures of robustness: error against the share of corrupted rows."""

from collections.abc import Mapping, Sequence

from noisy_jax.plots.style import COLOURS, MARKERS

_COLUMNS = 5


def contamination(
    shares: Sequence[float],
    errors: Mapping[str, Mapping[str, Sequence[tuple[float, float, float]]]],
    *,
    label: str = "error on clean data (RMSE)",
    axes=None,
):
    """Small multiples of error, on a log axis, against the share of corrupted rows.

    Args:
        shares: `[E]`, increasing.
        errors: by panel and curve, `[E]` of (error, low, high), the ends of an interval. All panels
            have the curves of the first; one named "oracle" is dashed, as nobody can have it.
        label: of the vertical axis.
        axes: matplotlib axes to draw on, one a panel; new ones, five in a row, by default.

    Returns:
        The axes, an array.

    Raises:
        ImportError: matplotlib is not installed.
    """
    rows = -(-len(errors) // _COLUMNS)
    if axes is None:
        axes = _new_grid(rows, min(len(errors), _COLUMNS))[: len(errors)]
    for ax, (panel, curves) in zip(axes, errors.items(), strict=True):
        for index, (name, points) in enumerate(curves.items()):
            middle, low, high = zip(*points, strict=True)
            oracle = name == "oracle"
            colour = "0.25" if oracle else COLOURS[index % len(COLOURS)]
            marker = None if oracle else MARKERS[index % len(MARKERS)]
            ax.fill_between(shares, low, high, color=colour, alpha=0.2, linewidth=0)
            ax.plot(
                shares,
                middle,
                "--" if oracle else "-",
                label=name,
                color=colour,
                marker=marker,
                markersize=4,
                linewidth=1.5,
                zorder=3 if oracle else 2,
            )
        ax.set_title(panel, fontsize=11)
        ax.set_yscale("log")
        ax.grid(which="major", alpha=0.3)
    # What the curves need: an interval on few seeds may reach below zero.
    every = [point[0] for curves in errors.values() for curve in curves.values() for point in curve]
    for ax in axes:
        ax.set_ylim(min(every) / 1.5, max(every) * 1.5)
    figure = axes[0].figure
    figure.supxlabel("share ε of corrupted rows", fontsize=11)
    figure.supylabel(label, fontsize=11)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
    return axes


def _new_grid(rows, columns):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.8 + 2.4 * columns, 1.0 + 2.4 * rows), layout="constrained")
    return figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
