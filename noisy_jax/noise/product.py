"""Noise whose coordinates are independent, each with a distribution of its own."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.noise.base import Noise, register_distribution
from noisy_jax.noise.hidden import Attributes
from noisy_jax.noise.misclassified import Misclassified
from noisy_jax.validation import array_module, check_dimension, given, instance


@register_distribution
class Product(Noise):
    """Independent coordinates, each with a distribution of its own.

    Args:
        columns: d scalar distributions, one a coordinate; `Gaussian(0.0)` for one without noise,
            `Misclassified(matrix)` for one of 0 and 1.

    Example:
        >>> import noisy_jax as nj
        >>> print(Product([nj.noise.Laplace(0.5), nj.noise.Gaussian(0.1)]).cov)
        [0.5 0.1]
    """

    columns: tuple[Noise, ...]

    def __post_init__(self) -> None:
        columns = self.columns
        if isinstance(columns, Noise) or not isinstance(columns, Sequence) or not columns:
            raise ValueError(
                "Product.columns must be a list of scalar distributions, such as "
                f"[noise.Laplace(0.1), noise.Gaussian(0.2)], got {given(columns)}"
            )
        object.__setattr__(self, "columns", tuple(columns))
        self.check(stacked=False)

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        for j, one in enumerate(self.columns):
            instance(f"Product.columns[{j}]", one, Noise, "such as noise.Laplace(0.1)")
            shapes = [np.shape(leaf) for leaf in jax.tree.leaves(one)]
            rank = 2 * isinstance(one, Misclassified) + stacked
            composed = isinstance(one, Attributes | Product)
            if composed or any(len(shape) > rank for shape in shapes):
                raise ValueError(
                    f"Product.columns[{j}] must be a scalar distribution, got "
                    f"{type(one).__name__} with parameters of shapes {shapes}"
                )
            if isinstance(one, Misclassified) and shapes[0][-1] > 2:
                raise ValueError(
                    f"Product.columns[{j}] must be of two categories, got {shapes[0][-1]}: a "
                    "column of more becomes several indicators, as in nj.table"
                )

    def _stacked(self, name: str):
        values = [getattr(one, name) for one in self.columns]
        np_or_jnp = array_module(*values)
        return np_or_jnp.stack(np_or_jnp.broadcast_arrays(*values), axis=-1)

    @property
    def depends_on_x(self):
        """Whether the variance of a coordinate depends on x; `cov` is NaN there."""
        return any(one.depends_on_x for one in self.columns)

    @property
    def cov(self):
        """Variances, `[d]`."""
        return self._stacked("cov")

    def estimated_cov(self, copy: Any) -> Any:
        """Variances, `[d]`, which are estimated where they depend on x (see `Noise`)."""
        pairs = zip(self.columns, copy, strict=True)
        found = [one.estimated_cov(value) for one, value in pairs]
        return jnp.stack([jnp.asarray(one, copy.dtype) for one in found])

    def covariance_at(self, x: Any) -> Any:
        """Var(x̃ | x), `[d, d]` (see `Noise.covariance_at`)."""
        found = [one.covariance_at(x[j : j + 1])[0, 0] for j, one in enumerate(self.columns)]
        return jnp.diag(jnp.stack(found))

    def square_fourth_moment(self, x: Any) -> Any:
        """(Σ_i E x̃_i²)² + Σ_i (E x̃_i⁴ − (E x̃_i²)²), or a bound (see `Noise`)."""
        second = x**2 + jnp.diag(self.covariance_at(x))
        single = [one.square_fourth_moment(x[j : j + 1]) for j, one in enumerate(self.columns)]
        return jnp.sum(second) ** 2 + jnp.sum(jnp.stack(single) - second**2)

    @property
    def mean(self):
        """The known means, `[d]`."""
        return self._stacked("mean")

    @property
    def characteristic_vanishes(self):
        """Whether the characteristic function of a coordinate has zeros."""
        return any(one.characteristic_vanishes for one in self.columns)

    def fourth_moment(self, dim: int) -> Any:
        """(tr Σ)² + 2‖Σ‖²_F + Σ_i κ_i Σ_ii² (see `Noise.fourth_moment`)."""
        variances = jnp.diag(self.covariance(dim))
        kurtosis = jnp.where(variances > 0, jnp.asarray(self._stacked("excess_kurtosis")), 0)
        return jnp.sum(variances) ** 2 + jnp.sum((2 + kurtosis) * variances**2)

    def _copies(self, key, x):
        check_dimension("Product.columns", self.columns, x.shape)
        keys = jax.random.split(key, len(self.columns))
        draws = [one.centred(keys[j], x[..., j]) for j, one in enumerate(self.columns)]
        return jnp.stack(draws, axis=-1)

    def log_characteristic(self, omega: Any) -> Any:
        """Σ_i log φ_i(ω_i); `None` if one is not known (see `Noise.log_characteristic`)."""
        omega = jnp.asarray(omega)
        check_dimension("Product.columns", self.columns, omega.shape)
        total = jnp.zeros(omega.shape[:-1]) + 0j
        for j, one in enumerate(self.columns):
            log = one.log_characteristic(omega[..., j : j + 1])
            if log is None:
                return None
            total = total + log
        return total
