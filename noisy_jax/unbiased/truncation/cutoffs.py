"""Orders at which power series are cut off: the smallest whose bias is allowed."""

from __future__ import annotations

from collections.abc import Callable

from noisy_jax.kernels.kernel import Kernel, check_kernel
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss
from noisy_jax.series import PowerSeries
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.values import ArrayLike, concrete

LARGEST_ORDER = 40
"""The largest order that is tried."""


def order_for(
    name: str,
    order: int | None,
    degree: int | None,
    allowed: ArrayLike,
    bias: Callable[[int], ArrayLike],
) -> int:
    """The order given, if its bias is allowed; by default the smallest such order."""
    if order is not None:
        order = whole(name, order)
    if degree is not None and (order is None or order >= degree):
        return degree
    are_concrete = concrete(allowed) is not None and concrete(bias(1)) is not None
    if order is not None and (not are_concrete or bias(order) <= allowed):
        return order
    if not are_concrete:
        raise ValueError(
            f"{name} must be given if parameters are traced: it sets shapes of arrays, so pass it "
            "explicitly under jit and vmap"
        )
    enough = next((n for n in range(1, LARGEST_ORDER + 1) if bias(n) <= allowed), None)
    if order is None and enough:
        return enough
    advice = f"{name}={enough} would do" if enough else f"no order up to {LARGEST_ORDER} would do"
    order = LARGEST_ORDER if order is None else order
    raise ValueError(
        f"{name} is too small: order {order} has a bias of up to {float(bias(order)):.3g}, but "
        f"max_bias allows {float(allowed):.3g}; {advice}, or a larger max_bias, or a smaller "
        "radius, x_second_moment or sharpness"
    )


def series_of_loss(loss: Loss) -> Callable[[int, ArrayLike], PowerSeries]:
    """The function that gives the power series of a loss' derivative."""
    check_loss(loss, flips=False)
    if loss.series is None:
        close = f": losses.{loss.analytic}(sharpness=…) is close to it" if loss.analytic else ""
        raise ValueError(f"loss must have a power series, but {loss} has none{close}")
    return loss.series


def series_of_kernel(kernel: Kernel) -> Callable[[int], PowerSeries]:
    """The function that gives the power series of a kernel."""
    check_kernel(kernel)
    if kernel.series is None:
        examples = "linear, polynomial, exponential, binomial and gaussian of kernels do"
        raise ValueError(f"kernel must have a power series: {examples}")
    return kernel.series
