"""The picture of a selection: estimated errors of the candidates on clean data."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisy_jax.plots.style import label, look, plain, single
from noisy_jax.validation.objects import instance


def risks(found: Any, *, axes: Any = None) -> Any:
    """Draws the estimated error of each candidate on clean data, with its 95% interval.

    One row is a candidate, the lowest `found.risk` at the top. The dotted line marks the risk of
    `found.best`, which may be another one: the candidate with the lowest sum of risk, standard
    error and a tenth of the bias. Candidates that diverged have no point.

    Args:
        found: a result of `nj.select`.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The axes; `axes.figure.savefig("risks.png")` saves the picture.

    Raises:
        ImportError: matplotlib is not installed.

    Example:
        >>> import jax, numpy as np, noisy_jax as nj
        >>> x = np.random.default_rng(0).normal(size=(500, 2))
        >>> table = nj.observations.from_arrays(x, x[:, 0] - x[:, 1], noise=0.1)
        >>> found = nj.select({"fit": nj.fit}, table, jax.random.key(0))
        >>> nj.plots.risks(found).get_xlabel()
        'mean squared error on clean data'
    """
    instance("found", found, "a Selection", "nj.select(…) makes one", attribute="difference")
    axes = single(axes, width=7.0, height=1.2 + 0.4 * len(found.names))
    order, places = np.argsort(found.risk), np.arange(len(found.names))[::-1]
    low, high = (end[order] for end in found.interval())
    axes.hlines(places, low, high, color=look(0)["color"])
    axes.plot(found.risk[order], places, linestyle="", **look(0))
    best = found.risk[found.names.index(found.best)]
    axes.axvline(best, color="0.5", linewidth=1, linestyle=":")
    axes.set_yticks(places, [plain(found.names[k]) for k in order])
    label(axes, "mean squared error on clean data", "candidate")
    return axes
