"""Where power series are cut off: the smallest orders whose bias is allowed."""

from collections.abc import Callable

import chex

from noisy_jax.kernels import Kernel
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss
from noisy_jax.series import PowerSeries
from noisy_jax.validation import concrete, given, whole

LARGEST_ORDER = 40
"""The largest order that is tried."""


def order_for(
    name: str,
    order: int | None,
    degree: int | None,
    allowed: chex.Numeric,
    bias: Callable[[int], chex.Numeric],
) -> int:
    """The order given, if its bias is allowed; by default the smallest such order."""
    if order is not None:
        order = whole(name, order)
    if degree is not None and (order is None or order >= degree):
        return degree
    known = concrete(allowed) is not None and concrete(bias(1)) is not None
    if order is not None and (not known or bias(order) <= allowed):
        return order
    if not known:
        raise ValueError(f"{name} must be given if parameters are traced: it is a shape")
    enough = next((n for n in range(1, LARGEST_ORDER + 1) if bias(n) <= allowed), None)
    if order is None and enough:
        return enough
    advice = f"{name}={enough} would do" if enough else f"no order up to {LARGEST_ORDER} would do"
    order = LARGEST_ORDER if order is None else order
    raise ValueError(
        f"{name} is too small: cut off at {order}, the series has a bias of up to "
        f"{float(bias(order)):.3g}, but max_bias allows {float(allowed):.3g}; {advice}, or a "
        "larger max_bias, or a smaller squared_radius, x_second_moment or sharpness"
    )


def series_of(
    kernel: Kernel, loss: Loss
) -> tuple[Callable[[int], PowerSeries], Callable[[int, chex.Numeric], PowerSeries]]:
    """The functions that give the power series of a kernel and of a loss' derivative."""
    check_loss(loss)
    if loss.series is None:
        raise ValueError(
            f"loss must have a power series, and {loss} has none: no number of noisy copies gives "
            f"an unbiased gradient; losses.{loss.analytic}(sharpness=…) is close to it"
        )
    if not isinstance(kernel, Kernel) or kernel.series is None:
        raise ValueError(
            "kernel must have a power series: linear, polynomial, exponential, binomial or "
            f"gaussian of kernels, got {given(kernel)}"
        )
    return kernel.series, loss.series


def check_convergence(
    convergence: chex.Numeric, x_second_moment: chex.Numeric, p: chex.Numeric | None
) -> None:
    """Raises ValueError where the kernel's series diverges; p of a geometric distribution."""
    name, needed = "x_second_moment", x_second_moment
    if p is not None:
        name, needed = "p x_second_moment", p * x_second_moment
    reach, needed = concrete(convergence), concrete(needed)
    if reach is None or needed is None or needed < reach:
        return
    advice = "scale the data down"
    if p is not None and x_second_moment < reach:
        advice += f", or take p below {reach / x_second_moment:.4g} or distribution='optimal'"
    raise ValueError(
        f"{name} must be below {reach}, where the kernel's series stops converging, got "
        f"{needed:.4g}: {advice}"
    )
