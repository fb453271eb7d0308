"""Pictures of fits: coefficients with their intervals, corrected and not."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisy_jax.plots.style import label, look, plain, single
from noisy_jax.validation.objects import instance

_CURVE = "nj.plots.function(fit, table) draws it"


def coefficients(fit: Any, *, axes: Any = None) -> Any:
    """Draws corrected and uncorrected coefficients with their 95% intervals, one row a coefficient.

    Each coefficient is multiplied by the standard deviation of its noisy column, so that all share
    a scale: the change of y for a change of x by one standard deviation. In logistic and Poisson
    fits it is the change of the log odds, or of the log rate, of y. Numbers that do not belong to
    columns, as SIMEX of a function has, are drawn as they are. The intercept is left out.

    Args:
        fit: a result of `nj.fit` with coefficients: linear, logistic, Poisson, calibrated, or by
            SIMEX. A curve is a ValueError: `nj.plots.function` draws it.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The axes; `axes.figure.savefig("coefficients.png")` saves the picture.

    Raises:
        ImportError: matplotlib is not installed.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> x = np.random.default_rng(0).normal(size=(500, 3))
        >>> fit = nj.fit(nj.observations.from_arrays(x[:, :2], x.sum(axis=1), noise=0.1))
        >>> nj.plots.coefficients(fit).get_xlabel()
        'change of y for one standard deviation of the column'
    """
    makers = "linear, logistic and Poisson fits, RegressionCalibration and SIMEX make one"
    instance("fit", fit, "a Fit", makers, attribute="uncorrected")
    if fit.form == "curve":
        raise ValueError(f"fit must have coefficients, got a curve of your own: {_CURVE}")
    labels = fit.labels[-len(fit.coefficients) :]
    scale = 1.0 if fit.scale is None else fit.scale
    axes = single(axes, width=7.0, height=1.2 + 0.5 * len(labels))
    places = np.arange(len(labels))[::-1]
    for index, (name, part) in enumerate((("corrected", fit), ("uncorrected", fit.uncorrected))):
        low, high = (end[-len(labels) :] * scale for end in part.interval())
        height = places + 0.12 - 0.24 * index
        axes.hlines(height, low, high, color=look(index)["color"])
        axes.plot(part.coefficients * scale, height, linestyle="", label=name, **look(index))
    axes.axvline(0, color="0.5", linewidth=0.8)
    axes.set_yticks(places, [plain(name) for name in labels])
    what = f"the log {fit.unit} of {plain(fit.target)}" if fit.unit else plain(fit.target)
    change = f"change of {what} for one standard deviation of the column"
    label(axes, *((change, "column") if fit.scale is not None else ("estimate", "")))
    axes.legend(frameon=False)
    return axes
