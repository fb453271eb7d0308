"""Draws `.images/idea.png`, the picture at the top of README: `python docs/idea.py`.

Left a line and right a curve, each fitted to measurements of x with error: the uncorrected fits are
too flat, with any number of rows, and the corrected ones are not.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import noisy_jax as nj

VARIANCE = 0.3
ROWS = 4000


def panel(axes, truth, method, name: str) -> None:
    """Noisy rows, the clean function, and both fits."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=ROWS)
    y = truth(x) + 0.2 * rng.normal(size=ROWS)
    measured = x + VARIANCE**0.5 * rng.normal(size=ROWS)
    noise = nj.noise.Gaussian(VARIANCE)
    table = nj.observations.from_arrays(measured[:, None], y, noise=noise)
    fit, grid = nj.fit(table, method), np.linspace(-2, 2, 201)
    axes.plot(measured[:400], y[:400], ".", color="0.8", markersize=4, label="noisy rows")
    axes.plot(grid, truth(grid), color="black", label="truth")
    axes.plot(grid, fit.uncorrected.predict(grid[:, None]), "--", color="#D55E00", lw=2,
              label="uncorrected")  # fmt: skip
    axes.plot(grid, fit.predict(grid[:, None]), color="#0072B2", lw=2, label="corrected")
    axes.set(xlim=(-2.6, 2.6), ylim=(-1.9, 1.9), xlabel="x", ylabel="y", title=name)


def main() -> None:
    """Writes the picture."""
    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
    panel(left, lambda x: 0.8 * x, nj.methods.Linear(), "nj.fit(table)")
    curve = nj.methods.Fourier(length_scale="auto")
    panel(right, lambda x: np.sin(2 * x), curve, "nj.fit(table, nj.methods.Fourier(…))")
    right.set_ylabel("")
    right.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(Path(__file__).parent.parent / ".images" / "idea.png", dpi=110)


if __name__ == "__main__":
    main()
