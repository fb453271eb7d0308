"""The command `worlds`: a picture of kernels cut off for the noise, and of their surrogates."""

import argparse
import csv
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from noisy_jax import kernels, noise, plots, worlds
from noisy_jax.commands import experiment
from noisy_jax.evaluate.provenance import versions
from noisy_jax.evaluate.results import save_config
from noisy_jax.validation import check_at_least, check_non_negative, check_positive, writable_folder

SUMMARY = "picture of the rational kernel, cut off, and its surrogates"

DESCRIPTION = """\
What does a kernel look like that can be learnt from noisy data?

The rational kernel g = (1 + r²/d)⁻¹ mixes Gaussians of all widths. Those narrower than the noise
must go: cut off at c, it is k = g(1 − exp(−c/g)), and has an exact surrogate k̂ for c < d/(4σ²).
Draws all three and writes worlds.png, worlds.csv and config.json.
"""

EXAMPLES = """\
  python -m noisy_jax worlds
  python -m noisy_jax worlds --cutoffs 1 2 4 8 --dim 10
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--cutoffs", type=float, nargs="+", default=[2.0, 4.0], metavar="C",
        help="c, a panel for each, below d/(4σ²) (default: 2 4)")
    add("--dim", type=int, default=4, metavar="D", help="dimension of the data (default: 4)")
    add("--variance", type=float, default=0.2, metavar="V",
        help="σ², noise variance on each feature; 0 for none (default: 0.2)")
    # fmt: on
    experiment.add_out(parser)


def run(options: argparse.Namespace) -> Path:
    """Builds the worlds, prints what they are, and saves picture and values."""
    experiment.require_plots()
    check_at_least("--dim", options.dim, 1, "the dimension of the data")
    check_positive("--cutoffs", options.cutoffs, "c, where the mixture of Gaussians ends")
    check_non_negative("--variance", options.variance, "zero stands for no noise")
    dim, distribution = options.dim, noise.Gaussian(options.variance)
    limit = dim / (4 * options.variance) if options.variance else math.inf
    if max(options.cutoffs) >= limit:
        raise ValueError(
            f"--cutoffs must be below d/(4σ²) = {limit:g}, got {max(options.cutoffs):g}: the noise "
            "hides narrower Gaussians"
        )
    folder = writable_folder(options.out)
    kernel = kernels.rational(length_scale=(dim / 2) ** 0.5)
    made = {
        c: worlds.rational(dim=dim, noise=distribution, cutoff=c / dim) for c in options.cutoffs
    }
    distances = np.linspace(0, 5, 201)
    axes = plots.worlds(
        {f"$c = {c:g}$, $\\sigma^2 = {options.variance:g}$": world for c, world in made.items()},
        kernel,
        distances=distances,
    )
    axes[0].figure.savefig(folder / "worlds.png", dpi=150)

    print(f"\n{'c':>6} {'limit of c':>10} {'sup|g − k|':>10} {'R² = k̂(0)':>11}")
    g = plots.profile(kernel, distances, dim)
    with open(folder / "worlds.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["c", "r", "g", "k", "surrogate"])
        for c, world in made.items():
            error, diagonal = float(world.approximation_error), float(world.diagonal)
            print(f"{c:>6g} {limit:>10.4g} {error:>10.3g} {diagonal:>10.4g}")
            k, surrogate = (
                plots.profile(gram, distances, dim) for gram in (world.kernel, world.surrogate)
            )
            columns = zip(distances, g, k, surrogate, strict=True)
            table.writerows([c, *map(float, row)] for row in columns)
    save_config({"command": vars(options), "versions": versions()}, folder)
    print(f"\n{conclusion(made, limit)}\n\nSaved in {folder}/")
    return folder


def conclusion(made: Mapping[float, worlds.World], limit: float) -> str:
    """One sentence that says what the table shows, from its numbers."""
    cuts = sorted({min(made), max(made)})
    errors, norms = (
        " to ".join(f"{float(getattr(made[c], name)):.3g}" for c in cuts)
        for name in ("approximation_error", "diagonal")
    )
    allowed = "any c" if math.isinf(limit) else f"c below {limit:.4g}"
    if len(cuts) == 1:
        return (
            f"Cut off at c = {cuts[0]:g}, the kernel that can be learnt is within {errors} of g, "
            f"and noisy copies have squared norm {norms}; this noise allows {allowed}."
        )
    return (
        "Cut off later, the kernel that can be learnt is closer to g and noisy copies are longer: "
        f"from c = {cuts[0]:g} to {cuts[1]:g} the largest error goes from {errors}, the squared "
        f"norm from {norms}; this noise allows {allowed}."
    )
