"""Pictures of kernels and of their surrogates."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from noisy_jax.kernels import Kernel
from noisy_jax.plots.style import COLOURS, label, panels
from noisy_jax.worlds import World


def draw_worlds(
    worlds: Mapping[str, World], kernel: Kernel, *, distances: Any = None, axes: Any = None
) -> Any:
    """The kernels of worlds and their surrogates, against the distance r.

    Solid lines are the given kernel g, dashed lines the clean kernel k of a world, which is g cut
    off, and dash-dotted lines its surrogate k̂.

    Args:
        worlds: by title, a panel for each; under noise of one distribution. Titles may contain
            formulas, such as "$c = 2$".
        kernel: g, a function of the distance.
        distances: `[n]`, increasing; from 0 to 5 by default.
        axes: matplotlib axes to draw on, one for each world; new ones side by side by default.

    Returns:
        A sequence of the axes, one for each panel.

    Source: Learning from Noisy Data under Distributional Assumptions, Figure 1, which shows g and k
        of `worlds.rational`.

    Example:
        >>> import noisy_jax as nj
        >>> kernel = nj.kernels.gaussian(length_scale=1.0)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=1.0, noise=nj.noise.Gaussian(0.1))
        >>> (axes,) = draw_worlds({"Gaussian": world}, kernel)
        >>> axes.get_xlabel()
        'distance $r$'
    """
    axes = panels(axes, len(worlds), width=0.5 + 3.6 * len(worlds), height=3.8, sharey=True)
    distances = np.linspace(0, 5, 201) if distances is None else distances
    for ax, (title, world) in zip(axes, worlds.items(), strict=True):
        curves = (
            ("asked for, $g$", kernel, "-"),
            ("clean, $k$", world.kernel, "--"),
            (r"surrogate, $\hat{k}$", world.surrogate, "-."),
        )
        for colour, (words, gram, line) in zip(COLOURS, curves, strict=False):
            values = profile(gram, distances, world.dim)
            ax.plot(distances, values, line, color=colour, linewidth=1.8, label=words)
        ax.set_title(title)
        label(ax, "distance $r$")
    axes[0].set_ylabel("value of the kernel")
    axes[-1].legend(frameon=False)
    return axes


def profile(gram: Any, distances: Any, dim: int) -> np.ndarray:
    """The value of a kernel at each distance from the origin, along the first coordinate.

    Args:
        gram: `(x[n, d], z[m, d]) -> [n, m]`.
        distances: `[n]`.
        dim: d.

    Returns:
        `[n]`.

    Example:
        >>> import noisy_jax as nj
        >>> print(profile(nj.kernels.rational(length_scale=0.5**0.5), [0.0, 1.0, 2.0], dim=3))
        [1.  0.5 0.2]
    """
    x = np.zeros((len(distances), dim), jax.dtypes.canonicalize_dtype(float))
    x[:, 0] = distances
    return np.asarray(gram(x, np.zeros_like(x[:1])))[:, 0]
