"""The picture of a fit under multiples of the noise."""

from typing import Any

import numpy as np

from noisy_jax.observed.fits.sensitivity import Sensitivity
from noisy_jax.plots.style import COLOURS, curve, label, panels_of_columns, plain
from noisy_jax.tables import picture_of
from noisy_jax.validation import instance


@picture_of(Sensitivity)
def sensitivity(found: Sensitivity, *, axes: Any = None) -> Any:
    """Coefficients with 95% intervals against multiples of the noise, a panel for each column.

    A dotted line marks the noise as stated, and a dashed one the coefficient 0. Hollow points take
    away only a share of the noise. Crosses at the bottom mark multiples at which there is no fit.

    Args:
        found: result of `nj.fits.sensitivity`.
        axes: matplotlib axes to draw on, one for each column; new ones by default.

    Returns:
        A sequence of the axes, one for each panel.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> x = np.random.default_rng(0).normal(size=(500, 3))
        >>> table = nj.observations.from_arrays(x[:, :2], x.sum(axis=1), noise=0.1)
        >>> len(sensitivity(nj.fits.sensitivity(table)))
        2
    """
    instance("found", found, Sensitivity, "nj.fits.sensitivity(table) makes one")
    axes = panels_of_columns(axes, len(found.names))
    multiples, shares, color = np.array(found.multiples), found.shares, COLOURS[0]
    part, none = shares < 1, np.isnan(shares)
    for ax, name, path in zip(axes, found.names, np.moveaxis(found.paths(), 2, 0), strict=True):
        middle, low, high = np.where(part, np.nan, path)
        curve(ax, multiples, middle, (low, high), marker="o", label="coefficient", color=color)
        if part.any():
            middle, low, high = path[:, part]
            ax.vlines(multiples[part], low, high, color=color)
            hollow = {"markerfacecolor": "white", "color": color, "label": "part of the noise"}
            ax.plot(multiples[part], middle, "o", **hollow)
        if none.any():
            bottom = {"transform": ax.get_xaxis_transform(), "color": "k", "label": "no fit"}
            ax.plot(multiples[none], np.full(none.sum(), 0.04), "x", **bottom)
        ax.axvline(1, color="0.5", linewidth=1, linestyle=":", label="noise as stated")
        ax.axhline(0, color="0.5", linewidth=1, linestyle="--")
        label(ax, "multiple of the noise's covariance", f"coefficient of {plain(name)}")
    axes[0].legend(frameon=False)
    return axes
