"""Unbiased estimates of the clean gradient of a loss in a kernel's space, under unknown noise.

    ∇ = ℓ'(f(x), y) Ψ(x)   is estimated by   g̃ Ψ̃,

Ψ̃ an estimate of the feature map (`maps`), and g̃ one of the loss's derivative at f(x) = ⟨f, Ψ(x)⟩
(`means`), each X in it being f read at a further, independent estimate Ψ̃_j of the same Ψ(x):

    margin losses     g̃ = y (γ_N/p_N) Π_j (y⟨f, Ψ̃_j⟩ − c),
    residual losses   g̃ = (γ_N/p_N) Π_j (⟨f, Ψ̃_j⟩ − y − c).

Nothing is known of the noise but that copies are independent, with the mean x, and E‖x̃‖² ≤ B_x².

Source: Online Learning of Noisy Data with Kernels, Sec. 4, Algorithm 1, subroutine 1, which is
printed without the y inside the product: that is unbiased for yℓ'(⟨f, Ψ⟩) instead.
"""

from typing import Literal, NamedTuple, get_args

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.estimators import orders
from noisy_jax.estimators.cutoffs import check_convergence, check_series, order_for
from noisy_jax.estimators.maps import MapEstimate, MapEstimator, MapOrders
from noisy_jax.estimators.means import MeanEstimator, check_copies
from noisy_jax.kernels import Kernel
from noisy_jax.losses import Loss
from noisy_jax.validation import (
    array_module,
    check_axes,
    check_choice,
    check_key,
    check_non_negative,
    check_one_number,
    check_positive,
    concrete,
    given,
)

Distribution = Literal["geometric", "optimal"]


class GradientOrders(NamedTuple):
    """The random orders of one round.

    Attributes:
        derivative: `[]`, N, how many values of f the loss's derivative takes.
        maps: orders of 1 + G estimates of Ψ(x): the stored one, and those at which f is read.
    """

    derivative: chex.Array
    maps: MapOrders


class GradientEstimator(NamedTuple):
    """An estimator of the clean gradient of a loss in a kernel's space.

    Attributes:
        loss: ℓ.
        maps: estimator of Ψ(x).
        derivative: estimator of the loss's derivative.
        squared_radius: B_w ≥ ‖f‖².
        x_second_moment: B_x² ≥ E‖x̃‖².
        y_largest: B_y ≥ |y|.
    """

    loss: Loss
    maps: MapEstimator
    derivative: MeanEstimator
    squared_radius: chex.Numeric
    x_second_moment: chex.Numeric
    y_largest: chex.Numeric

    @property
    def copies(self) -> int:
        """The most copies of x that one round uses."""
        return self.maps.copies * (1 + self.derivative.copies)

    @property
    def mean_copies(self) -> chex.Numeric:
        """How many copies of x one round uses on average."""
        return self.maps.mean_copies * (1 + self.derivative.orders.mean)

    def draw_orders(self, key: chex.PRNGKey) -> GradientOrders:
        """The random orders of one round."""
        check_key(key)
        derivative_key, maps_key = jax.random.split(key)
        map_keys = jax.random.split(maps_key, 1 + self.derivative.copies)
        return GradientOrders(
            self.derivative.orders.draw(derivative_key), jax.vmap(self.maps.draw_orders)(map_keys)
        )

    def estimates(self, orders: GradientOrders, x: chex.Array) -> tuple[MapEstimate, MapEstimate]:
        """The estimate of Ψ(x) that is stored, and the G at which f is read.

        Args:
            orders: of the round.
            x: `[copies, d]`, independent noisy copies, of which each is used at most once.

        Returns:
            One `MapEstimate` whose `copies` are those of the whole round, and `[G]` of them.

        Raises:
            ValueError: fewer copies than `copies`.
        """
        check_axes("x", x, "[copies, d]")
        check_copies(self.copies, x)
        query_points = self.derivative.copies
        x = x[: self.copies].reshape(1 + query_points, self.maps.copies, -1)
        every = jax.vmap(self.maps.estimate)(orders.maps, x)
        stored = jax.tree.map(lambda leaf: leaf[0], every)
        others = jax.tree.map(lambda leaf: leaf[1:], every)
        used = jnp.where(jnp.arange(query_points) < orders.derivative, others.copies, 0)
        return stored._replace(copies=stored.copies + jnp.sum(used)), others

    @property
    def kernel_bias(self) -> chex.Numeric:
        """A bound on |E⟨Ψ̃, Ψ(z)⟩ − k(x, z)|, see `MapEstimator.bias`."""
        return self.maps.bias(self.x_second_moment)

    @property
    def derivative_bias(self) -> chex.Numeric:
        """A bound on the bias of g̃, wherever ‖f‖² ≤ B_w."""
        largest = largest_argument(self.loss, self.largest_value, self.y_largest)
        return self.derivative.bias(largest + abs(self.derivative.series.center))

    @property
    def map_second_moment(self) -> chex.Numeric:
        """B_Ψ ≥ E‖Ψ̃‖²."""
        return self.maps.second_moment(self.x_second_moment)

    @property
    def derivative_second_moment(self) -> chex.Numeric:
        """B_g ≥ E g̃²: E X² is at most B_w B_Ψ for margins, (√(B_w B_Ψ) + B_y)² for residuals."""
        moment = self.squared_radius * self.map_second_moment
        center = self.derivative.series.center
        return self.derivative.second_moment(
            value_moment(self.loss, moment, self.y_largest, center)
        )

    @property
    def largest_value(self) -> chex.Numeric:
        """√B_w times the largest ‖E Ψ̃‖, which the mean ⟨f, E Ψ̃⟩ of a value does not exceed."""
        norm = self.maps.largest_norm(self.x_second_moment)
        return array_module(self.squared_radius, norm).sqrt(self.squared_radius) * norm


def gradient(
    kernel: Kernel,
    loss: Loss,
    *,
    squared_radius: chex.Numeric,
    x_second_moment: chex.Numeric,
    y_largest: chex.Numeric = 1.0,
    distribution: Distribution = "geometric",
    p: chex.Numeric = 2.0,
    center: chex.Numeric = 0.0,
    value_second: chex.Numeric | None = None,
    max_bias: float = 0.05,
    kernel_order: int | None = None,
    loss_order: int | None = None,
) -> GradientEstimator:
    """An estimator of the clean gradient, from what is known of data and predictor.

    Series are cut off at finite orders, so that shapes are fixed; polynomials (kernels and the
    squared loss) lose nothing. The estimate is then unbiased for a kernel and a derivative that differ
    from those asked for by no more than `max_bias`.

    Args:
        kernel: of the inner product, or Gaussian. As E‖Ψ̃‖² grows like exp(2B_x²/ℓ²) for Gaussian
            kernels, shift the data to their centre first.
        loss: with a power series: squared, logistic, exponential, smoothed_absolute or
            smoothed_hinge.
        squared_radius: B_w > 0, the squared norm of the largest predictor that competes.
        x_second_moment: B_x² > 0 with ‖x‖² + tr Σ = E‖x̃‖² ≤ B_x² in every round (`bounds.moments`): the
            variance is all that must be known of the noise.
        y_largest: B_y ≥ |y|; used by residual losses.
        distribution: of the orders: "geometric", the paper's, or "optimal", of the smallest variance.
        p: base of the geometric distribution, above 1; larger means fewer copies.
        center: c, of the series of the derivative; 0 is the good one, unless values are known to be
            near another.
        value_second: E(X − c)² that the optimal distribution of the derivative's order is made for; by default
            its bound, which makes E g̃² least in the worst case. A smaller guess saves copies;
            one that is wrong costs variance, never bias.
        max_bias: largest bias of the derivative, and of the kernel relative to its largest value, over
            ‖f‖² ≤ B_w and ‖x‖² ≤ B_x².
        kernel_order: where the kernel's series is cut off; the smallest that does by default. (A
            Gaussian kernel's envelope is cut off at the same order.)
        loss_order: where the derivative's series is cut off; the smallest that does by default.

    Returns:
        A `GradientEstimator`, for `learners.random_truncation` and `bounds.random_truncation`.

    Raises:
        ValueError: a loss or kernel without a power series, p not above 1, p B_x² where the
            kernel's series does not converge, an order too small for the bias (with one that would
            do), or a traced parameter that an order would have to be found from.

    Example:
        >>> import noisy_jax as nj
        >>> kernel, loss = nj.kernels.polynomial(degree=2), nj.losses.squared()
        >>> estimator = gradient(kernel, loss, squared_radius=4.0, x_second_moment=1.5)
        >>> estimator.copies, round(float(estimator.mean_copies), 2), float(estimator.kernel_bias)
        (4, 1.14, 0.0)
    """
    numbers = {
        "squared_radius": squared_radius,
        "x_second_moment": x_second_moment,
        "y_largest": y_largest,
    }
    numbers |= {"p": p, "center": center, "max_bias": max_bias}
    if value_second is not None:
        numbers |= {"value_second": value_second}
        check_positive(
            "value_second", value_second, "E(X − c)² for the distribution of the derivative's order"
        )
    for name, value in numbers.items():
        check_one_number(name, value)
    check_positive("squared_radius", squared_radius, "B_w, the squared norm of the predictors")
    check_positive(
        "x_second_moment", x_second_moment, "B_x², which E‖x̃‖² = ‖x‖² + tr Σ must not exceed"
    )
    check_positive("max_bias", max_bias, "how much bias is allowed where a series is cut off")
    check_non_negative("y_largest", y_largest, "B_y is at least every |y|")
    check_choice("distribution", distribution, get_args(Distribution))
    orders.check_base(p)
    check_series(kernel, loss)
    check_convergence(kernel, x_second_moment, p if distribution == "geometric" else None)

    def law_of(coefficients, second_moment):
        if distribution == "geometric":
            return orders.geometric(coefficients, p=p)
        return orders.optimal(coefficients, second_moment=second_moment)

    diagonal = 1.0 if kernel.envelope is not None else kernel.series(1).absolute(x_second_moment)
    if concrete(diagonal) is not None and not np.isfinite(diagonal):
        raise ValueError(
            f"x_second_moment is too large for this kernel, got {x_second_moment}: its series cannot be summed "
            "there; scale the data down"
        )

    def maps_of(order) -> MapEstimator:
        series, envelope = kernel.series(order), None
        if kernel.envelope is not None:
            powers = kernel.envelope.series(order)
            envelope = MeanEstimator(powers, law_of(powers.coefficients, x_second_moment**2))
        roots = array_module(series.coefficients).sqrt(series.coefficients)
        return MapEstimator(kernel, series, law_of(roots, x_second_moment), envelope)

    kernel_order = order_for(
        "kernel_order",
        kernel_order,
        kernel.series(1).degree,
        max_bias * diagonal,
        lambda n: maps_of(n).bias(x_second_moment),
    )
    maps = maps_of(kernel_order)
    largest = array_module(squared_radius).sqrt(squared_radius) * maps.largest_norm(x_second_moment)
    reach = largest_argument(loss, largest, y_largest) + abs(center)
    degree = loss.series(1, center).degree
    loss_order = order_for(
        "loss_order",
        loss_order,
        degree,
        max_bias,
        lambda n: loss.series(n, center).remainder(reach),
    )
    series = loss.series(loss_order, center)
    if value_second is None:
        moment = squared_radius * maps.second_moment(x_second_moment)
        value_second = value_moment(loss, moment, y_largest, center)
    derivative = MeanEstimator(series, law_of(series.coefficients, value_second))
    return GradientEstimator(loss, maps, derivative, squared_radius, x_second_moment, y_largest)


def check_estimator(estimator: GradientEstimator) -> None:
    """Refuses what is no `GradientEstimator`."""
    if not isinstance(estimator, GradientEstimator):
        raise ValueError(
            "estimator must be one that estimators.gradient(kernel, loss, …) makes, got "
            f"{given(estimator)}"
        )


def largest_argument(loss: Loss, value: chex.Numeric, y_largest: chex.Numeric):
    """The largest margin |yf| or residual |f − y| for |f| ≤ value."""
    return value if loss.kind == "margin" else value + y_largest


def value_moment(
    loss: Loss, moment: chex.Numeric, y_largest: chex.Numeric, center: chex.Numeric
) -> chex.Numeric:
    """A bound on E(X − c)², X the margin or residual of a value ⟨f, Ψ̃⟩ of E⟨f, Ψ̃⟩² ≤ moment."""
    size = largest_argument(loss, array_module(moment).sqrt(moment), y_largest)
    return (size + abs(center)) ** 2
