"""Noise with independent coordinates: Laplace, uniform, Rademacher, Student's t, and products.

The first four have a scale, `[]` (the same for all d coordinates) or `[d]`, and a known `mean`,
`[]` or `[d]`. `from_variance` takes the variance in place of the scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import laplace, rademacher, student_t, uniform
from noisy_jax.noise.base import Noise, parameter, register_distribution
from noisy_jax.noise.dependent import Attributes
from noisy_jax.noise.misclassified import Misclassified
from noisy_jax.validation.arrays import check_dimension, real_array
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import between, positive
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import Array, ArrayLike, array_module, collected


def _scale(name: str, value, hint: str = "", *, shape: tuple[()] | None = ()):
    """Returns the value if it is positive and floats can hold its square, for the variance."""
    value = positive(name, value, hint, shape=shape)
    dtype = jnp.finfo(jax.dtypes.canonicalize_dtype(float))
    hint = f"{dtype.dtype} must hold its square; measure the features in another unit"
    return between(name, value, 0, float(dtype.max) ** 0.5, hint, shape=shape)


class _Independent(Noise):
    """Noise with independent coordinates whose scale is the parameter named `_spread`."""

    _spread = "scale"

    @classmethod
    def from_variance(cls, variance: ArrayLike, **parameters: Any) -> Self:
        """Returns the distribution with given variances, `[]` or `[d]`.

        Other parameters, such as `mean` or the `df` of Student's t, are given by name. So different
        laws can be compared at the same variance.

        Example:
            >>> import noisy_jax as nj
            >>> print(nj.noise.Uniform.from_variance(3.0).half_width)
            3.0
            >>> print(nj.noise.StudentT.from_variance(2.0, df=4.0).scale)
            1.0
        """
        unit = cls(**{cls._spread: 1.0}, **parameters).cov
        if isinstance(variance, list | tuple):
            variance = real_array(f"variance of {cls.__name__}", variance)
        variance = positive(f"variance of {cls.__name__}", variance, shape=None)
        return cls(**{cls._spread: (variance / unit) ** 0.5}, **parameters)

    def _copies(self, key, x):
        # Drawn flat: XLA fills arrays of several small axes with random bits much more slowly.
        draws = self._standard(key, (x.size,), x.dtype).reshape(x.shape)
        return x + jnp.broadcast_to(getattr(self, self._spread), x.shape) * draws

    def _standard(self, key, shape, dtype) -> jax.Array:
        """Independent centred draws at scale 1."""
        raise NotImplementedError

    def _times_scale(self, omega):
        return jnp.broadcast_to(getattr(self, self._spread), jnp.shape(omega)) * omega


def _log_product(characteristics: jax.Array) -> Array:
    """Complex log of Π_i φ_i over the last axis, for real φ_i of any sign."""
    modulus = jnp.sum(jnp.log(jnp.abs(characteristics)), axis=-1)
    sign = jnp.prod(jnp.sign(characteristics), axis=-1)
    return jax.lax.complex(modulus, jnp.where(sign < 0, jnp.pi, 0.0).astype(modulus.dtype))


@register_distribution
class Laplace(_Independent):
    """Laplace noise: independent coordinates with density exp(−|n_i|/b_i)/(2b_i), variance 2b_i².

    Args:
        scale: b > 0, in the unit of x: `[]` (the same for all d coordinates) or `[d]`.
        mean: `[]` or `[d]`, the known mean; 0 by default.

    Example:
        >>> import noisy_jax as nj
        >>> float(nj.noise.Laplace(0.5).cov)
        0.5
    """

    scale: ArrayLike = parameter(_scale)
    mean: ArrayLike = 0.0

    excess_kurtosis = 3.0

    @property
    def cov(self):
        """The variances 2b², of the shape of `scale`."""
        return 2 * self.scale**2

    def _standard(self, key, shape, dtype):
        return laplace(key, shape, dtype)

    def log_characteristic(self, omega: Any) -> Any:
        """Returns −Σ_i log(1 + b_i²ω_i²), `[...]` (see `Noise.log_characteristic`)."""
        real = -jnp.sum(jnp.log1p(self._times_scale(omega) ** 2), axis=-1)
        return jax.lax.complex(real, jnp.zeros_like(real))


@register_distribution
class Uniform(_Independent):
    """Uniform noise: independent coordinates on [−a_i, a_i], variance a_i²/3.

    Its characteristic function has zeros, so that worlds of kernels raise ValueError.

    Args:
        half_width: a > 0, in the unit of x: `[]` (the same for all d coordinates) or `[d]`.
        mean: `[]` or `[d]`, the known mean; 0 by default.

    Example:
        >>> import noisy_jax as nj
        >>> float(nj.noise.Uniform(3.0).cov)
        3.0
    """

    half_width: ArrayLike = parameter(_scale)
    mean: ArrayLike = 0.0

    _spread = "half_width"
    excess_kurtosis = -1.2
    characteristic_vanishes = True

    @property
    def cov(self):
        """The variances a²/3, of the shape of `half_width`."""
        return self.half_width**2 / 3

    def _standard(self, key, shape, dtype):
        return uniform(key, shape, dtype, minval=-1, maxval=1)

    def log_characteristic(self, omega: Any) -> Any:
        """Returns log Π_i sin(a_iω_i)/(a_iω_i), `[...]`; −∞ where a_iω_i = kπ, k ≠ 0."""
        return _log_product(jnp.sinc(self._times_scale(omega) / jnp.pi))


@register_distribution
class Rademacher(_Independent):
    """Rademacher noise: independent coordinates ±c_i, each sign with probability ½, variance c_i².

    Its characteristic function has zeros, so that worlds of kernels raise ValueError.

    Args:
        scale: c > 0, in the unit of x: `[]` (the same for all d coordinates) or `[d]`.
        mean: `[]` or `[d]`, the known mean; 0 by default.

    Example:
        >>> import noisy_jax as nj
        >>> float(nj.noise.Rademacher(2.0).cov)
        4.0
    """

    scale: ArrayLike = parameter(_scale)
    mean: ArrayLike = 0.0

    excess_kurtosis = -2.0
    characteristic_vanishes = True

    @property
    def cov(self):
        """The variances c², of the shape of `scale`."""
        return self.scale**2

    def _standard(self, key, shape, dtype):
        return rademacher(key, shape, dtype)

    def log_characteristic(self, omega: Any) -> Any:
        """Returns log Π_i cos(c_iω_i), `[...]` (see `Noise.log_characteristic`)."""
        return _log_product(jnp.cos(self._times_scale(omega)))


@register_distribution
class StudentT(_Independent):
    """Student's t noise, with heavy tails: independent coordinates c_i·t_ν, variance c_i²ν/(ν − 2).

    t_ν is a draw of the t distribution with ν degrees of freedom. `bounds.known_covariance` needs
    the fourth moment, which is finite for ν > 4 only. There is no closed form of the characteristic
    function: `log_characteristic` returns `None`, and `worlds` of this noise raise
    ValueError.

    Args:
        df: ν > 2, `[]`; for ν ≤ 2 the variance is infinite.
        scale: c > 0, in the unit of x: `[]` (the same for all d coordinates) or `[d]`.
        mean: `[]` or `[d]`, the known mean; 0 by default.

    Example:
        >>> import noisy_jax as nj
        >>> float(nj.noise.StudentT(df=4.0, scale=1.0).cov)
        2.0
    """

    df: ArrayLike = parameter(
        between, 2, np.inf, scalar=True,
        hint="with fewer the variance is infinite, and infinite ν is Gaussian noise",
    )  # fmt: skip
    scale: ArrayLike = parameter(_scale)
    mean: ArrayLike = 0.0

    @property
    def cov(self):
        """The variances c²ν/(ν − 2), of the shape of `scale`."""
        return self.scale**2 * self.df / (self.df - 2)

    @property
    def excess_kurtosis(self):
        """6/(ν − 4) for ν > 4, else infinite."""
        return jnp.where(self.df > 4, 6 / jnp.where(self.df > 4, self.df - 4, 1), jnp.inf)

    def _standard(self, key, shape, dtype):
        return student_t(key, self.df, shape, dtype)


@register_distribution
class Product(Noise):
    """Noise with independent coordinates, each with a distribution of its own.

    Args:
        columns: d distributions with scalar parameters, one for each coordinate, as a tuple or a
            list: `noise.Gaussian(0.0)` for a coordinate without noise, and
            `noise.Misclassified(matrix)` for one that is 0 or 1.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.noise.Product([nj.noise.Laplace(0.5), nj.noise.Gaussian(0.1)]).cov)
        [0.5 0.1]
    """

    columns: tuple[Noise, ...]

    def __post_init__(self) -> None:
        columns = collected(self.columns)
        if isinstance(columns, Noise) or not isinstance(columns, Sequence) or not columns:
            raise ValueError(
                "Product.columns must be a list of scalar distributions, such as "
                f"[noise.Laplace(0.1), noise.Gaussian(0.2)], got {given(columns)}"
            )
        object.__setattr__(self, "columns", tuple(columns))
        self.check(stacked=False)

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        for j, column in enumerate(self.columns):
            instance(f"Product.columns[{j}]", column, Noise, "such as noise.Laplace(0.1)")
            shapes = [np.shape(leaf) for leaf in jax.tree.leaves(column)]
            rank = 2 * isinstance(column, Misclassified) + stacked
            composed = isinstance(column, Attributes | Product)
            if composed or any(len(shape) > rank for shape in shapes):
                raise ValueError(
                    f"Product.columns[{j}] must be a scalar distribution, got "
                    f"{type(column).__name__} with parameters of shapes {shapes}"
                )
            if isinstance(column, Misclassified) and shapes[0][-1] > 2:
                raise ValueError(
                    f"Product.columns[{j}] must be of two categories, got {shapes[0][-1]}: a "
                    "column of more becomes several indicators, as in nj.table"
                )

    def _stacked(self, name: str):
        values = [getattr(column, name) for column in self.columns]
        np_or_jnp = array_module(*values)
        return np_or_jnp.stack(np_or_jnp.broadcast_arrays(*values), axis=-1)

    @property
    def depends_on_x(self):
        """True if the variance of a coordinate depends on x; `cov` is NaN there."""
        return any(column.depends_on_x for column in self.columns)

    @property
    def cov(self):
        """Variances, `[d]`."""
        return self._stacked("cov")

    def estimated_cov(self, copy: Any) -> Any:
        """Returns variances `[d]`, estimated from the copy `[d]` where they depend on x."""
        pairs = zip(self.columns, copy, strict=True)
        variances = [column.estimated_cov(value) for column, value in pairs]
        return jnp.stack([jnp.asarray(variance, copy.dtype) for variance in variances])

    def covariance_at(self, x: Any) -> Any:
        """Returns the covariance matrix `[d, d]` of the noise in a copy of the clean x `[d]`."""
        variances = [
            column.covariance_at(x[j : j + 1])[0, 0] for j, column in enumerate(self.columns)
        ]
        return jnp.diag(jnp.stack(variances))

    def square_fourth_moment(self, x: Any) -> Any:
        """Returns E‖x̃‖⁴ for a clean x `[d]`, or a bound on it (see `Noise.square_fourth_moment`).

        It is (Σ_i E x̃_i²)² + Σ_i (E x̃_i⁴ − (E x̃_i²)²).
        """
        second = x**2 + jnp.diag(self.covariance_at(x))
        single = [
            column.square_fourth_moment(x[j : j + 1]) for j, column in enumerate(self.columns)
        ]
        return jnp.sum(second) ** 2 + jnp.sum(jnp.stack(single) - second**2)

    @property
    def mean(self):
        """The known means, `[d]`."""
        return self._stacked("mean")

    @property
    def characteristic_vanishes(self):
        """True if the characteristic function of a coordinate has zeros."""
        return any(column.characteristic_vanishes for column in self.columns)

    @property
    def excess_kurtosis(self):
        """Excess kurtosis of each coordinate, `[d]`."""
        return self._stacked("excess_kurtosis")

    def check_dimension(self, shape: tuple[int, ...]) -> None:
        """Raises ValueError unless this shape, `(..., d)`, has as many features as columns."""
        check_dimension("Product.columns", self.columns, shape)

    def _copies(self, key, x):
        keys = jax.random.split(key, len(self.columns))
        draws = [column.centred(keys[j], x[..., j]) for j, column in enumerate(self.columns)]
        return jnp.stack(draws, axis=-1)

    def log_characteristic(self, omega: Any) -> Any:
        """Returns Σ_i log φ_i(ω_i), `[...]`, with the characteristic function φ_i of coordinate i.

        `None` if one of them is not known (see `Noise.log_characteristic`).
        """
        omega = jnp.asarray(omega)
        self.check_dimension(omega.shape)
        total = jnp.zeros(omega.shape[:-1]) + 0j
        for j, column in enumerate(self.columns):
            log = column.log_characteristic(omega[..., j : j + 1])
            if log is None:
                return None
            total = total + log
        return total
