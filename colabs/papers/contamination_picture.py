"""Picture of robustness: error against the share of corrupted rows."""

from collections.abc import Mapping, Sequence

from noisy_jax.plots.style import curve, look, panels, plain, tick_by_decades
from noisy_jax.plots.style import label as label_axes

_COLUMNS = 5


def draw_errors(
    shares: Sequence[float],
    errors: Mapping[str, Mapping[str, Sequence[tuple[float, float, float]]]],
    *,
    label: str = "error on clean data (RMSE)",
    axes=None,
):
    """Error, on a logarithmic axis, against the share of corrupted rows, in one or more panels.

    Args:
        shares: `[E]`, shares of corrupted rows, increasing.
        errors: `{panel: {curve: points}}`, where `points` has one tuple (error, low, high) for each
            share. The interval from low to high is drawn as a band. The legend shows the curves
            of the first panel, so all panels must have the same names in the same order. A
            curve named "oracle" (a fit that knows the clean rows) is dashed.
        label: label of the vertical axis.
        axes: matplotlib axes to draw on, one for each panel; new ones, five in a row, by default.

    Returns:
        A sequence of the axes, one for each panel.

    Example:
        >>> errors = {"ridge": [(0.1, 0.09, 0.11), (0.5, 0.4, 0.6)]}
        >>> (axes,) = draw_errors([0.0, 0.2], {"gross": errors})
        >>> axes.get_xlabel()
        'share ε of corrupted rows'
    """
    given, count = axes is not None, len(errors)
    rows, columns = -(-count // _COLUMNS), min(count, _COLUMNS)
    size = {"width": 0.8 + 2.4 * columns, "height": 1.0 + 2.4 * rows}
    axes = panels(axes, count, columns=columns, sharex=True, sharey=True, **size)
    for ax, (panel, curves) in zip(axes, errors.items(), strict=True):
        for index, (name, points) in enumerate(curves.items()):
            middle, *ends = zip(*points, strict=True)
            oracle = name == "oracle"
            style = {"color": "0.25", "zorder": 3} if oracle else look(index)
            line = "--" if oracle else "-"
            curve(
                ax,
                shares,
                middle,
                ends,
                line,
                label=plain(name),
                markersize=4,
                linewidth=1.5,
                **style,
            )
        ax.set_title(plain(panel), fontsize=11)
        label_axes(ax, "share ε of corrupted rows", label, log="y")
    # What the curves need: an interval on few seeds may reach below zero.
    middles = [p[0] for curves in errors.values() for curve in curves.values() for p in curve]
    for ax in axes:
        ax.set_ylim(min(middles) / 1.5, max(middles) * 1.5)
        tick_by_decades(ax.yaxis)
    if given:
        axes[0].legend(frameon=False)
        return axes
    for place, ax in enumerate(axes):  # inside the grid they would say it again
        left, bottom = place % _COLUMNS == 0, place + _COLUMNS >= len(axes)
        ax.tick_params(labelleft=left, labelbottom=bottom)
        ax.xaxis.label.set_visible(bottom)
        ax.yaxis.label.set_visible(left)
    handles, names = axes[0].get_legend_handles_labels()
    above = {"loc": "outside upper center", "ncols": len(names), "frameon": False}
    axes[0].figure.legend(handles, names, **above)
    return axes
