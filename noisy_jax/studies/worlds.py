"""The study `worlds`: a picture of kernels cut off for the noise, and of their surrogates."""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from noisy_jax import kernels, noise, plots, worlds
from noisy_jax.evaluate.tables import Table
from noisy_jax.studies.runner import Report
from noisy_jax.studies.settings import BaseSettings, at_least, option
from noisy_jax.validation import non_negative, positive


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Picture of the rational kernel, cut off, and its surrogates.

    Which kernel can be learned from noisy data, and what does it look like?

    The rational kernel g = (1 + r²/d)⁻¹ is a mixture of Gaussians of all length scales. Those
    narrower than the noise are left out: cut off at c, g becomes k = g(1 − exp(−c/g)), which has an
    exact surrogate k̂ for c < d/(4σ²). A larger c brings k closer to g, but increases the norm of
    noisy copies, which slows learning. Draws all three kernels, and writes worlds.png, worlds.csv
    and config.json.

    Examples:
      python -m noisy_jax worlds
      python -m noisy_jax worlds --cutoffs 1 2 4 8 --dim 10
    """

    cutoffs: tuple[float, ...] = option(
        (2.0, 4.0),
        "c, one panel for each, below d/(4σ²)",
        metavar="C",
        check=lambda name, value: positive(name, value, shape=None),
    )
    dim: int = option(4, "dimension of the data", metavar="D", check=at_least(1))
    noise_variance: float = option(
        0.2,
        "σ², variance of the noise on each feature; 0 for none",
        metavar="V",
        check=non_negative,
    )


def run(settings: Settings) -> Iterator[Report]:
    """The kernels at 201 distances."""
    dim, variance = settings.dim, settings.noise_variance
    limit = dim / (4 * variance) if variance else math.inf
    largest = max(settings.cutoffs)
    if largest >= limit:
        raise ValueError(
            f"--cutoffs must be below d/(4σ²) = {limit:g}, got {largest:g}: narrower Gaussians "
            "have no surrogate under this noise"
        )
    kernel, distribution = kernels.rational(length_scale=(dim / 2) ** 0.5), noise.Gaussian(variance)
    made = {
        c: worlds.rational(dim=dim, noise=distribution, cutoff=c / dim) for c in settings.cutoffs
    }
    distances = np.linspace(0, 5, 201)
    values, rows, shown = plots.profile(kernel, distances, dim), [], []
    for c, world in made.items():
        grams = (world.kernel, world.surrogate)
        columns = distances, values, *(plots.profile(gram, distances, dim) for gram in grams)
        names = ("r", "g", "k", "surrogate")
        rows += [
            {"c": c, **dict(zip(names, map(float, row), strict=True))}
            for row in zip(*columns, strict=True)
        ]
        error, diagonal = float(world.approximation_error), float(world.diagonal)
        shown.append({"c": c, "limit": limit, "error": error, "diagonal": diagonal})
    cells = [
        ("c", "{c:g}"),
        ("limit of c", "{limit:.4g}"),
        ("sup|g − k|", "{error:.3g}"),
        ("R² = k̂(0)", "{diagonal:.4g}"),
    ]
    table = Table(rows, cells, shown=shown)

    def draw():
        titles = {f"$c = {c:g}$, $\\sigma^2 = {variance:g}$": world for c, world in made.items()}
        return plots.worlds(titles, kernel, distances=distances)[0].figure

    yield Report(str(table), {"worlds": table}, {"worlds": draw})
