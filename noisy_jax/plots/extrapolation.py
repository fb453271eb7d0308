"""The picture of SIMEX: estimates against the added noise, and the curve to none."""

from typing import Any

import numpy as np

from noisy_jax.observed.fits.extrapolation import SimexFit
from noisy_jax.plots.style import COLOURS, label, panels_of_columns, plain
from noisy_jax.tables import picture_of
from noisy_jax.validation import instance

_POINTS = 61


@picture_of(SimexFit)
def extrapolation(fit: SimexFit, *, axes: Any = None) -> Any:
    """Estimates with added noise and the curve through them to no noise, a panel for each number.

    The level of the added noise is a multiple of the covariance of the noise in the table: at 0 is
    the uncorrected estimate, at −1 the corrected one with its 95% interval. The curve is dashed
    where it is extended beyond the estimates.

    Args:
        fit: result of `nj.fit` with `nj.methods.SIMEX`.
        axes: matplotlib axes to draw on, one for each of `fit.names`; new ones by default.

    Returns:
        A sequence of the axes, one for each panel.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> x = np.random.default_rng(0).normal(size=(500, 2))
        >>> table = nj.observations.from_arrays(x, x[:, 0] - x[:, 1], noise=0.1)
        >>> len(extrapolation(nj.fit(table, nj.methods.SIMEX())))
        2
    """
    instance("fit", fit, SimexFit, "nj.fit(table, nj.methods.SIMEX()) makes one")
    axes = panels_of_columns(axes, len(fit.names))
    parts = np.linspace(-1, 0, _POINTS), np.linspace(0, fit.levels[-1], _POINTS)
    beyond, within = (fit.curve(part)[:, 1:] for part in parts)
    low, high = fit.interval()
    first, second = COLOURS[:2]
    for j, (ax, name) in enumerate(zip(axes, fit.names, strict=True)):
        line = {"color": first, "linewidth": 1.8}
        ax.plot(parts[1], within[:, j], label=f"{fit.extrapolation} curve", **line)
        ax.plot(parts[0], beyond[:, j], "--", label="extended", **line)
        points = {"color": first, "label": "with added noise"}
        ax.plot(fit.levels, fit.estimates[:, 1 + j], "o", **points)
        ax.vlines([-1], low[j], high[j], color=second)
        ax.plot([-1], fit.coefficients[j], "s", color=second, label="corrected")
        what = "coefficient of " if not np.isnan(fit.intercept) else ""
        label(ax, "added noise, as a multiple", f"{what}{plain(name)}")
    axes[0].legend(frameon=False)
    return axes
