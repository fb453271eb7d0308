"""A picture of kernels cut off for the noise, and of their surrogates."""

import dataclasses
import math
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np

from noisy_jax import kernels, noise, worlds
from noisy_jax.command.runner import Report, picture, script
from noisy_jax.command.settings import BaseSettings, at_least, option
from noisy_jax.reports.tables import Table
from noisy_jax.validation.numbers import non_negative, positive
from worlds_picture import draw_worlds, profile


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Picture of the rational kernel, cut off, and its surrogates.

    Which kernel can be learned from noisy data, and what does it look like?

    The rational kernel g = (1 + r²/d)⁻¹ is a mixture of Gaussians of all length scales. The
    narrowest have no surrogate under noise. Without them, cut off at c, g becomes
    k = g(1 − exp(−c/g)), which has an exact surrogate k̂ for c < d/(2σ²); the paper's bound on the
    norm of noisy copies needs c < d/(4σ²). A larger c brings k closer to g, but increases that
    norm, which slows learning. Draws all three kernels, and writes worlds.png, worlds.csv and
    config.json.

    Examples:
      python colabs/papers/worlds.py
      python colabs/papers/worlds.py --cutoffs 1 2 4 8 --dim 10
    """

    cutoffs: tuple[float, ...] = option(
        (2.0, 4.0),
        "c, one panel for each, below d/(2σ²)",
        "C",
        partial(positive, shape=None),
        fast=(2.0,),
    )
    dim: int = option(4, "dimension of the data", "D", at_least(1))
    noise_variance: float = option(
        0.2, "σ², variance of the noise on each feature; 0 for none", "V", non_negative
    )


def run(settings: Settings) -> Iterator[Report]:
    """The kernels at 201 distances."""
    dim, variance = settings.dim, settings.noise_variance
    limit = dim / (2 * variance) if variance else math.inf
    largest = max(settings.cutoffs)
    if largest >= limit:
        raise ValueError(
            f"--cutoffs must be below d/(2σ²) = {limit:g}, got {largest:g}: no surrogate exists "
            "beyond"
        )
    kernel, distribution = kernels.rational(length_scale=(dim / 2) ** 0.5), noise.Gaussian(variance)
    distances = np.linspace(0, 5, 201)
    panels, rows, shown = {}, [], []
    for c in settings.cutoffs:
        world = worlds.rational(dim=dim, noise=distribution, cutoff=c / dim)
        panels[f"$c = {c:g}$, $\\sigma^2 = {variance:g}$"] = world
        shown.append({"c": c, "limit": limit, "world": world})
        grams = kernel, world.kernel, world.surrogate
        values = distances, *(profile(gram, distances, dim) for gram in grams)
        for r, g, k, surrogate in np.transpose(values).tolist():
            rows.append({"c": c, "r": r, "g": g, "k": k, "surrogate": surrogate})
    columns = [
        ("c", "{c:g}"),
        ("limit of c", "{limit:.4g}"),
        ("sup|g − k|", "{world.approximation_error:.3g}"),
        ("R² = k̂(0)", "{world.diagonal:.4g}"),
    ]
    tables = {"worlds": Table(rows, columns, shown=shown)}
    draw = picture(draw_worlds, panels, kernel, distances=distances)
    yield Report(None, tables, {"worlds": draw})


if __name__ == "__main__":
    sys.exit(script(Settings, run))
