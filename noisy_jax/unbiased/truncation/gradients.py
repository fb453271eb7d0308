"""Unbiased estimates of the clean gradient of a loss in a kernel's space, under unknown noise.

    ∇ = ℓ'(f(x), y) Ψ(x)   is estimated by   g̃ Ψ̃,

where Ψ̃ is an estimate of the feature map (`maps`), and g̃ one of the loss's derivative at
f(x) = ⟨f, Ψ(x)⟩ (`means`). Each X in g̃ is a value of f at a further, independent estimate Ψ̃_j of
the same Ψ(x):

    margin losses     g̃ = y (γ_N/p_N) Π_j (y⟨f, Ψ̃_j⟩ − c),
    residual losses   g̃ = (γ_N/p_N) Π_j (⟨f, Ψ̃_j⟩ − y − c).

All that is known of the noise is that copies are independent, with the mean x, and E‖x̃‖² ≤ B_x².
In a parallel world, where the distribution of the noise is known, a copy itself is the estimate of
Ψ(x): Ψ̃ = Ψ̂(x̃), and ⟨f, Ψ̃_j⟩ = f̂(x̃_j) in the surrogate.

Targets y are known without noise: one noisy ỹ in several factors would make them dependent. Only
the squared loss, which has one factor, is unbiased with noisy targets as well.

Source: Online Learning of Noisy Data with Kernels, Sec. 4, Algorithm 1, subroutine 1, which is
printed without the y inside the product: that is unbiased for yℓ'(⟨f, Ψ⟩) instead.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.kernels import Kernel
from noisy_jax.losses import Loss
from noisy_jax.unbiased.truncation import orders
from noisy_jax.unbiased.truncation.cutoffs import order_for, series_of_kernel, series_of_loss
from noisy_jax.unbiased.truncation.maps import MapEstimator, MapOrders
from noisy_jax.unbiased.truncation.means import MeanEstimator, first_copies
from noisy_jax.unbiased.truncation.worlds import WorldMaps
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import between, non_negative, number, positive
from noisy_jax.validation.objects import check_unused, choice
from noisy_jax.validation.values import ArrayLike, array_module, concrete
from noisy_jax.worlds import World

Distribution = Literal["geometric", "optimal"]


class GradientOrders(NamedTuple):
    """The random orders of one round.

    Attributes:
        derivative: `[]`, N, number of values of f in the derivative.
        maps: orders of 1 + G estimates of Ψ(x): the stored one, and those where f is evaluated.
    """

    derivative: jax.Array
    maps: MapOrders


class GradientEstimator(NamedTuple):
    """An estimator of the clean gradient of a loss in a kernel's space.

    Attributes:
        loss: ℓ.
        maps: of the estimate Ψ̃ of the feature map Ψ(x), or a world.
        derivative: of the estimate g̃ of the loss's derivative at f(x).
        radius: B, the largest ‖f‖ that bounds are for (the paper's √B_w).
        x_second_moment: B_x² ≥ E‖x̃‖²; `None` in a world.
        y_largest: B_y ≥ |y|.
    """

    loss: Loss
    maps: MapEstimator | WorldMaps
    derivative: MeanEstimator
    radius: ArrayLike
    x_second_moment: Any
    y_largest: ArrayLike

    @property
    def copies(self) -> int:
        """The most copies of x that one round uses."""
        return self.maps.copies * (1 + self.derivative.copies)

    @property
    def mean_copies(self) -> ArrayLike:
        """Mean number of copies of x that one round uses."""
        return self.maps.mean_copies * (1 + self.derivative.orders.mean)

    def draw_orders(self, key: jax.Array) -> GradientOrders:
        """The random orders of one round."""
        key = parsed_key(key)
        derivative_key, maps_key = jax.random.split(key)
        map_keys = jax.random.split(maps_key, 1 + self.derivative.copies)
        return GradientOrders(
            self.derivative.orders.draw(derivative_key), jax.vmap(self.maps.draw_orders)(map_keys)
        )

    def estimates(self, orders: GradientOrders, x: jax.Array) -> tuple[Any, Any]:
        """The estimate of Ψ(x) that is stored, and the G where f is evaluated.

        Args:
            orders: of the round.
            x: `[copies, d]`, independent noisy copies, of which each is used at most once.

        Returns:
            One `MapEstimate` (in a world, `WorldEstimate`) whose `copies` are those of the whole
            round, and `[G]` others.
        """
        query_points = self.derivative.copies
        x = first_copies(x, self.copies, "[copies, d]").reshape(
            1 + query_points, self.maps.copies, -1
        )
        every = jax.vmap(self.maps.estimate)(orders.maps, x)
        stored = jax.tree.map(lambda leaf: leaf[0], every)
        others = jax.tree.map(lambda leaf: leaf[1:], every)
        used = jnp.where(jnp.arange(query_points) < orders.derivative, others.copies, 0)
        return stored._replace(copies=stored.copies + jnp.sum(used)), others

    @property
    def kernel_bias(self) -> ArrayLike:
        """A bound on |E⟨Ψ̃, Ψ(z)⟩ − k(x, z)|, for all z (see `MapEstimator.bias`)."""
        return self.maps.bias(self.x_second_moment)

    @property
    def derivative_bias(self) -> ArrayLike:
        """A bound on |E g̃ − ℓ'| at every f with ‖f‖ ≤ `radius`."""
        largest = largest_argument(self.loss, self.largest_value, self.y_largest)
        return self.derivative.bias(largest + abs(self.derivative.series.center))

    @property
    def map_second_moment(self) -> ArrayLike:
        """B_Ψ, a bound on E‖Ψ̃‖²."""
        return self.maps.second_moment(self.x_second_moment)

    @property
    def derivative_second_moment(self) -> ArrayLike:
        """A bound on E g̃² at every f with ‖f‖ ≤ `radius`, and targets of at most `y_largest`."""
        moment = self.radius**2 * self.map_second_moment
        center = self.derivative.series.center
        return self.derivative.second_moment(
            value_moment(self.loss, moment, self.y_largest, center)
        )

    @property
    def largest_value(self) -> ArrayLike:
        """`radius` times the largest ‖E Ψ̃‖: a bound on ⟨f, E Ψ̃⟩, where ⟨f, Ψ̃⟩ estimates f(x)."""
        return self.radius * self.maps.largest_norm(self.x_second_moment)


def kernel_gradient(
    kernel: Kernel | World,
    loss: Loss,
    *,
    radius: ArrayLike,
    x_second_moment: ArrayLike | None = None,
    y_largest: ArrayLike = 1.0,
    distribution: Distribution = "geometric",
    p: ArrayLike | None = None,
    center: ArrayLike = 0.0,
    value_second: ArrayLike | None = None,
    max_bias: ArrayLike = 0.05,
    kernel_order: int | None = None,
    loss_order: int | None = None,
) -> GradientEstimator:
    """Makes an estimator of a clean loss's gradient in a kernel's space, from noisy copies of x.

    Let f be a predictor in the space of a kernel k, and Ψ the kernel's feature map, so that
    f(x) = ⟨f, Ψ(x)⟩. The gradient of the loss ℓ(f(x), y) in f is ℓ'(f(x), y) Ψ(x), with the
    derivative ℓ' in the first argument. Both factors are expanded in power series, whose terms are
    estimated by products over independent noisy copies of x, up to a random order
    (`truncation.MeanEstimator`). The noise has mean zero and any distribution; of it only E‖x̃‖²
    must be known. Targets y must be exact, but for the squared loss.

    Series are cut off at finite orders, as shapes must be fixed. For polynomial kernels and the
    squared loss nothing is lost; otherwise the estimate is unbiased for a kernel and a derivative
    that differ from the given ones by at most `max_bias`.

    Args:
        kernel: a kernel of the inner product, such as `kernels.polynomial`, or Gaussian. The
            variance grows like exp(2B_x²/ℓ²) for Gaussian kernels of length scale ℓ: center the
            data first. Or a world of `worlds`, for noise of known distribution: then nothing of the
            kernel is cut off, and a round takes at most `loss_order` + 1 copies.
        loss: one with a power series: `losses.squared`, `logistic`, `exponential`,
            `smoothed_absolute` or `smoothed_hinge`.
        radius: B > 0, the norm of the largest predictor that competes (the paper's √B_w). In a
            world, whose surrogate estimates f from one noisy copy, in the surrogate's norm.
        x_second_moment: B_x² > 0 with E‖x̃‖² = ‖x‖² + tr Σ ≤ B_x² in every round, where Σ is the
            covariance of the noise (`bounds.moments` computes it). `None` in a world.
        y_largest: B_y with |y| ≤ B_y, at least 0; 1 by default. A loss of the margin, whose labels
            are ±1, does not depend on it.
        distribution: distribution of the random orders: "geometric" (the default), as in the paper,
            or "optimal", with the smallest variance.
        p: base of the geometric distribution, above 1, by default 2; larger means fewer copies.
        center: c, the point around which ℓ' is expanded; best left at 0, unless the margins yf(x),
            or the residuals f(x) − y, are known to be near another number.
        value_second: E(X − c)² > 0, where X is the estimate of the margin or residual, for the
            optimal distribution of the derivative's order; by default its bound. A smaller guess
            saves copies; a wrong one costs variance, never bias.
        max_bias: the largest bias, above 0, of the derivative, and of the kernel relative to its
            largest value, over ‖f‖ ≤ B and ‖x‖ ≤ B_x; 0.05 by default.
        kernel_order: the order after which the kernel's series is cut off; by default the smallest
            that `max_bias` allows. `None` in a world.
        loss_order: the order after which the derivative's series is cut off; by default the
            smallest that `max_bias` allows. If parameters are traced, both orders must be given.

    Returns:
        A `GradientEstimator`, for `learners.random_truncation` and `bounds.random_truncation`. A
        round uses at most `copies`, and on average `mean_copies`, noisy copies of x.

    Raises:
        ValueError: the kernel or the loss has no such series, the series does not converge for
            these sizes, or an option of the other distribution, or of no world, is given.

    Source: Online Learning of Noisy Data with Kernels, Sec. 4, Algorithm 1, with an error in its
    subroutine 1 corrected; the optimal distribution is not in the paper.

    Example:
        >>> import noisy_jax as nj
        >>> kernel, loss = nj.kernels.polynomial(degree=2), nj.losses.squared()
        >>> estimator = nj.unbiased.kernel_gradient(
        ...     kernel, loss, radius=2.0, x_second_moment=1.5
        ... )
        >>> print(f"{estimator.mean_copies:.2f} copies on average, at most {estimator.copies}")
        1.14 copies on average, at most 4
    """
    radius = positive("radius", radius)
    loss_series = series_of_loss(loss)
    y_largest = non_negative("y_largest", y_largest)
    if choice("distribution", distribution, get_args(Distribution)) == "geometric":
        check_unused("with distribution='geometric'", value_second=value_second)
    else:
        check_unused("with distribution='optimal'", p=p)
    p = orders.base(2.0 if p is None else p)
    center, max_bias = number("center", center), positive("max_bias", max_bias)

    def distribution_of(coefficients, second_moment):
        if distribution == "geometric":
            return orders.geometric(coefficients, p=p)
        return orders.optimal(coefficients, second_moment=second_moment)

    if isinstance(kernel, World):
        if x_second_moment is not None or kernel_order is not None:
            raise ValueError("x_second_moment and kernel_order must be None in a world")
        maps: Any = WorldMaps(kernel)
    else:
        x_second_moment = positive("x_second_moment", x_second_moment)
        maps = _maps(
            kernel, x_second_moment, kernel_order, max_bias, distribution_of,
            p if distribution == "geometric" else None,
        )  # fmt: skip
    largest = largest_argument(loss, radius * maps.largest_norm(x_second_moment), y_largest)
    reach = largest + abs(center)
    loss_order = order_for(
        "loss_order",
        loss_order,
        loss_series(1, center).degree,
        max_bias,
        lambda n: loss_series(n, center).remainder(reach),
    )
    series = loss_series(loss_order, center)
    if value_second is None:
        moment = radius**2 * maps.second_moment(x_second_moment)
        value_second = value_moment(loss, moment, y_largest, center)
    else:
        value_second = positive("value_second", value_second)
    derivative = MeanEstimator(series, distribution_of(series.coefficients, value_second))
    return GradientEstimator(loss, maps, derivative, radius, x_second_moment, y_largest)


def _maps(
    kernel: Kernel, x_second_moment, kernel_order, max_bias, distribution_of, p
) -> MapEstimator:
    """The estimator of a kernel's feature map; p is the base of geometric orders, or `None`."""
    kernel_series = series_of_kernel(kernel)
    reach = kernel_series(1).convergence
    if np.isfinite(reach) and concrete(x_second_moment) is not None:
        hint = "the kernel's series diverges: scale the data down"
        between("x_second_moment", x_second_moment, 0, reach, hint)
        if p is not None:
            hint = "the second moment diverges: scale the data down, or distribution='optimal'"
            between("p", p, 1, reach / x_second_moment, hint)
    diagonal = 1.0 if kernel.envelope is not None else kernel_series(1).absolute(x_second_moment)
    if concrete(diagonal) is not None and not np.isfinite(diagonal):
        raise ValueError(f"x_second_moment = {x_second_moment} is too large: scale the data down")

    def maps_of(order) -> MapEstimator:
        series, envelope = kernel_series(order), None
        if kernel.envelope is not None:
            powers = kernel.envelope.series(order)
            envelope_orders = distribution_of(powers.coefficients, x_second_moment**2)
            envelope = MeanEstimator(powers, envelope_orders)
        roots = array_module(series.coefficients).sqrt(series.coefficients)
        return MapEstimator(kernel, series, distribution_of(roots, x_second_moment), envelope)

    kernel_order = order_for(
        "kernel_order",
        kernel_order,
        kernel_series(1).degree,
        max_bias * diagonal,
        lambda n: maps_of(n).bias(x_second_moment),
    )
    return maps_of(kernel_order)


def largest_argument(loss: Loss, value: Any, y_largest: Any) -> Any:
    """The largest margin |yf| or residual |f − y| for |f| ≤ value."""
    return value if loss.kind == "margin" else value + y_largest


def value_moment(
    loss: Loss, moment: ArrayLike, y_largest: ArrayLike, center: ArrayLike
) -> ArrayLike:
    """A bound on E(X − c)², X the margin or residual of a value ⟨f, Ψ̃⟩ of E⟨f, Ψ̃⟩² ≤ moment."""
    size = largest_argument(loss, array_module(moment).sqrt(moment), y_largest)
    return (size + abs(center)) ** 2
