"""The one look of all pictures: colours, markers, and new axes by matplotlib."""

import numpy as np

# The palette of Okabe and Ito, which the colour-blind can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def new_axes(count: int = 1, *, width: float, height: float) -> np.ndarray:
    """Axes side by side in a new figure, which no window shows.

    Args:
        count: how many.
        width: of the figure, in inches.
        height: of the figure, in inches.

    Returns:
        `[count]` matplotlib axes that share the vertical one.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure.subplots(1, count, sharey=True, squeeze=False)[0]
