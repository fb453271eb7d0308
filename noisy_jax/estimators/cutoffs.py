"""Where power series are cut off: orders whose bias is allowed, and series that have none."""

from collections.abc import Callable

import chex

from noisy_jax.kernels import Kernel
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss
from noisy_jax.validation import check_at_least, concrete, given

LARGEST_ORDER = 40
"""Where the search for an order that is large enough ends."""


def order_for(
    name: str,
    given: int | None,
    degree: int | None,
    allowed: chex.Numeric,
    bias: Callable[[int], chex.Numeric],
) -> int:
    """The order given, or the smallest whose bias is allowed."""
    if given is not None:
        check_at_least(name, given, 1, "where the power series is cut off")
    if degree is not None and (given is None or given >= degree):
        return degree
    known = concrete(allowed) is not None and concrete(bias(1)) is not None
    if given is not None and (not known or bias(given) <= allowed):
        return given
    if not known:
        raise ValueError(
            f"{name} must be given where parameters are traced: it is a shape, and cannot follow "
            "from them"
        )
    enough = (n for n in range(1, LARGEST_ORDER + 1) if bias(n) <= allowed)
    enough = next(enough, None)
    advice = f"{name}={enough} would do" if enough else f"no order up to {LARGEST_ORDER} would do"
    if given is None and enough:
        return enough
    order = LARGEST_ORDER if given is None else given
    raise ValueError(
        f"{name} is too small: cut off at {order}, the series leaves a bias of up to "
        f"{float(bias(order)):.3g}, but max_bias allows {float(allowed):.3g}; {advice}. Or allow "
        "more, or make squared_radius, x_second_moment or the loss's sharpness smaller"
    )


def check_series(kernel: Kernel, loss: Loss) -> None:
    """Refuses kernels and losses without a power series, and names one that has."""
    check_loss(loss)
    if loss.series is None:
        raise ValueError(
            f"loss must have a power series, and {loss} has none: no number of noisy copies makes "
            f"an unbiased estimate of its derivative. losses.{loss.analytic}(sharpness=…) is close to it"
        )
    if not isinstance(kernel, Kernel) or kernel.series is None:
        raise ValueError(
            "kernel must have a power series: linear, polynomial, exponential, binomial or "
            f"gaussian of kernels, got {given(kernel)}"
        )


def check_convergence(
    kernel: Kernel, x_second_moment: chex.Numeric, p: chex.Numeric | None
) -> None:
    """Refuses data beyond the reach of the kernel's series; p is that of a geometric distribution."""
    name, needed = (
        ("x_second_moment", x_second_moment)
        if p is None
        else ("p x_second_moment", p * x_second_moment)
    )
    reach, needed = concrete(kernel.series(1).convergence), concrete(needed)
    if reach is None or needed is None or needed < reach:
        return
    advice = "scale the data down"
    if p is not None and x_second_moment < reach:
        advice += f", or take p below {reach / x_second_moment:.4g} or distribution='optimal'"
    raise ValueError(
        f"{name} must be below {reach}, where the kernel's series stops converging, got "
        f"{needed:.4g}: {advice}"
    )
