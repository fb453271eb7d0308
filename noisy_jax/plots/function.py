"""The picture of a kernel fit, or of a model: the function of one column, with its bands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from noisy_jax.plots.style import COLOURS, label, plain, single
from noisy_jax.reports.intervals import LEVEL
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import number
from noisy_jax.validation.objects import check_columns, choice, instance
from noisy_jax.validation.values import collected_map

_POINTS = 201
_ROWS = 2000  # noisy rows that are drawn


def function(
    fit: Any,
    table: Any,
    column: str | None = None,
    *,
    at: Mapping[str, float] | None = None,
    level: float = LEVEL,
    axes: Any = None,
) -> Any:
    """Draws a fitted curve as a function of one column, with its bands.

    The solid line is the corrected fit over the middle 90% of the column's noisy values, the dashed
    one the uncorrected fit. The darker band holds the curve at each point with probability `level`.
    A kernel fit also has a lighter band, for the whole curve at once. If the fit has one column
    only, points show up to 2,000 of the noisy rows.

    Args:
        fit: a result of `nj.fit(table, nj.methods.Fourier(…))` or of
            `nj.fit(table, nj.methods.Model(…))`; any other is a ValueError.
        table: the table that it was fitted to.
        column: name of the column; by default the first one.
        at: values of the other columns, by name; the mean of the noisy values where one is left
            out.
        level: of the bands, between 0 and 1; 0.95 by default.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The axes; `axes.figure.savefig("curve.png")` saves the picture.

    Raises:
        ImportError: matplotlib is not installed.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> x, n = np.random.default_rng(0).normal(size=(2, 500, 2))
        >>> y = np.sin(x[:, 0]) + 0.3 * n[:, 1]
        >>> error = nj.noise.Gaussian([0.1, 0.0])  # variances: the second column is exact
        >>> table = nj.observations.from_arrays(x + [0.1**0.5, 0] * n, y, noise=error)
        >>> fit = nj.fit(table, nj.methods.Fourier(length_scale=0.7, num_features=64))
        >>> nj.plots.function(fit, table, "x1", at={"x2": 1.0}).get_xlabel()
        'x1, at x2 = 1'
    """
    if isinstance(fit, type) or getattr(fit, "form", None) != "curve":
        maker = "nj.fit(table, nj.methods.Fourier(length_scale=…)) makes one"
        instance("fit", fit, "a FourierFit", maker, attribute="band")
    names = fit.names
    check_columns(table, names)
    column = names[0] if column is None else choice("column", column, names)
    others = [name for name in names if name != column]
    at = collected_map({} if at is None else at)
    if not isinstance(at, Mapping):
        raise ValueError(f"at must map names to numbers, got {given(at)}")
    fixed = {
        choice("each name in at", name, others): float(number(f"at[{name!r}]", value))
        for name, value in at.items()
    }
    place, noisy = names.index(column), table.x.mean(axis=1)
    low, high = np.quantile(noisy[:, place], [0.05, 0.95])
    grid = np.linspace(low, high, _POINTS)
    middle = dict(zip(names, noisy.mean(axis=0).tolist(), strict=True)) | fixed
    x = np.tile(list(middle.values()), (_POINTS, 1))
    x[:, place] = grid
    axes = single(axes, width=7.0, height=4.5)
    if not others:
        some = np.linspace(0, len(noisy) - 1, min(len(noisy), _ROWS)).astype(int)
        axes.plot(noisy[some, 0], table.y[some], ".", color="0.8", markersize=2, label="noisy rows")
    color = COLOURS[0]
    corrected, *ends = fit.predict(x, interval=True, level=level)
    bands: list[Any] = [("at each point", 0.3, ends)]
    if hasattr(fit, "band"):
        bands.insert(0, ("for the whole curve", 0.15, fit.band(x, level, simultaneous=True)))
    for name, alpha, ends in bands:
        looks = {"color": color, "alpha": alpha, "linewidth": 0}
        axes.fill_between(grid, *ends, label=f"{100 * level:g}% {name}", **looks)
    axes.plot(grid, corrected, color=color, linewidth=1.8, label="corrected")
    axes.plot(grid, fit.uncorrected.predict(x), "--", color=COLOURS[1], label="uncorrected")
    values = ", ".join(f"{plain(name)} = {value:.4g}" for name, value in fixed.items())
    label(axes, f"{plain(column)}, at {values}" if fixed else plain(column), plain(fit.target))
    axes.legend(frameon=False)
    return axes
