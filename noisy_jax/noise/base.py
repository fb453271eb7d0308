"""The interface of noise distributions.

Every distribution is a pytree of its parameters, so that `jax.vmap` sweeps over them. It may have a
known mean, which `observe` subtracts, because the learners assume noise of mean zero.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from noisy_jax.linalg.matrices import check_covariance
from noisy_jax.validation.arrays import check_dimension, real, real_array, shape_of
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.numbers import number, whole
from noisy_jax.validation.values import Array, ArrayLike, at_least_float32, collected

_T = TypeVar("_T", bound=type)


def parameter(
    parser: Callable[..., Any],
    *bounds: float,
    scalar: bool = False,
    matrix: bool = False,
    hint: str = "",
) -> Any:
    """A field of a distribution, checked by one of the parsers of `validation.numbers`.

    Args:
        parser: called as `parser(name, value, *bounds, hint, shape=None)`; returns the value kept.
        *bounds: of the values.
        scalar: for a parameter `[]`; by default `[]` or `[d]`.
        matrix: for a covariance, which may also be `[d, d]`.
        hint: ends the message of an error.
    """
    check = {"parser": parser, "bounds": bounds, "scalar": scalar, "matrix": matrix, "hint": hint}
    return dataclasses.field(metadata={"check": check})


@dataclass_transform(frozen_default=True, field_specifiers=(parameter,))
def register_distribution(cls: _T) -> _T:
    """Decorator that makes a subclass of `noise.Noise` a frozen dataclass and a pytree.

    The parameters are the class's annotated fields, and become leaves of the pytree. So
    distributions pass through `jax.jit` and `jax.vmap`, which may batch a parameter. When a user
    constructs one, it is checked that `mean` is a number `[]` or `[d]`, and that all parameters
    have one d. To check more, define `__post_init__` and call `super().__post_init__()` in it.
    Nothing is checked when JAX builds the pytree again, so that leaves may be tracers or arrays
    stacked over rounds.

    A field with the metadata `static` is no leaf. `jax.export` can serialize functions of the
    distribution, if such fields are numbers, texts and tuples of them.

    Args:
        cls: the class, with `mean`, `cov` and a method `centred` (see `noise.Noise`). Without
            `mean` or `cov` it raises ValueError.

    Returns:
        The class, changed to a dataclass.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> @nj.noise.register_distribution
        ... class Exponential(nj.noise.Noise):
        ...     scale: float = 1.0
        ...     mean: float = 0.0
        ...     cov = property(lambda self: self.scale**2)
        ...     def centred(self, key, x):
        ...         return x + self.scale * (jax.random.exponential(key, x.shape) - 1)
        >>> print(jax.vmap(lambda scale: Exponential(scale).cov)(jnp.array([1.0, 2.0])))
        [1. 4.]
    """
    if not isinstance(cls, type):
        raise ValueError(f"register_distribution takes a subclass of Noise, got {given(cls)}")
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(cls)
    kind: Any = cls
    has = {field.name for field in fields}.union(dir(cls))
    lacking = [name for name in ("mean", "cov") if name not in has]
    if lacking and Noise in kind.mro():
        raise ValueError(
            f"{kind.__name__} must have {listed(lacking)}, as fields, class attributes or "
            "properties: the known mean, and the covariance of the noise"
        )
    names = tuple(field.name for field in fields if not field.metadata.get("static"))
    fixed = tuple(field.name for field in fields if field.name not in names)

    def flatten_with_keys(noise):
        leaves = [(jax.tree_util.GetAttrKey(name), getattr(noise, name)) for name in names]
        return leaves, tuple(getattr(noise, name) for name in fixed)

    def unflatten(values, leaves):
        noise = object.__new__(cls)
        for name, leaf in zip(names + fixed, (*leaves, *values), strict=True):
            object.__setattr__(noise, name, leaf)
        return noise

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten)
    with contextlib.suppress(ValueError):  # a class of this name was defined before
        jax.export.register_pytree_node_serialization(
            cls,
            serialized_name=f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}",
            serialize_auxdata=lambda values: json.dumps(values).encode(),
            deserialize_auxdata=lambda data: _tuples(json.loads(data)),
        )
    return cls


def _tuples(value: Any) -> Any:
    """Tuples in place of the lists that JSON has for them."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


class Noise:
    """The interface of every noise distribution.

    A noisy copy of x `[d]` is x̃ = x + mean + n, where `mean` is known and the random n has mean
    zero. Learners receive x + n: `noise.observe` and `nj.rollout` leave the mean out.

    For a distribution of your own, write a subclass with the decorator
    `noise.register_distribution`. It needs

    - a dataclass field for each parameter, of any shape;
    - `mean` and `cov`, as fields, class attributes or properties, for the same number d of
      features;
    - a method `centred(self, key, x)` that returns x + n in the shape of x. Learners' copies are
      drawn with one x `[d]`; draw x.shape numbers, and `sample` takes several rows as well.

    Optional are

    - `excess_kurtosis`, which bounds of linear learners with one copy, `bounds.unknown_noise` and
      `bounds.multilevel` need;
    - a method `square_fourth_moment(self, x)`, for the bounds of linear learners with one copy, if
      the third moments of n are not 0;
    - a method `log_characteristic`, written in JAX's functions, which Fourier features and
      `worlds.fourier_gaussian` need;
    - `characteristic_vanishes = True`, if the characteristic function E exp(i⟨ω, n⟩) has zeros.

    Attributes:
        mean: `[]` or `[d]`, the known mean.
        cov: covariance Σ of n, in the squared unit of x: `[]` (the same variance for all features),
            `[d]` (variances) or `[d, d]`; NaN if it depends on x, where `estimated_cov` estimates
            it.
        excess_kurtosis: E n_i⁴/σ⁴ − 3 for a coordinate n_i of variance σ², `[]` or `[d]`; NaN, the
            default, if unknown.
        characteristic_vanishes: True if the characteristic function has zeros; False by default. At
            these frequencies noisy copies carry no information on x, and worlds raise ValueError.
        depends_on_x: True if the covariance depends on x, as under `noise.Missing`; False by
            default.

    Example:
        >>> import jax, noisy_jax as nj
        >>> @nj.noise.register_distribution
        ... class Logistic(nj.noise.Noise):
        ...     mean: float = 0.0
        ...     cov = jax.numpy.pi**2 / 3
        ...     excess_kurtosis = 1.2
        ...     def centred(self, key, x):
        ...         return x + jax.random.logistic(key, x.shape)
        >>> print(f"{Logistic().fourth_moment(dim=1):.4f}")
        45.4576
    """

    mean: Any
    cov: Any
    excess_kurtosis: Any = np.nan
    characteristic_vanishes = False
    depends_on_x = False

    def __init__(self, *values: Any, **options: Any) -> None:
        if values or options:
            name = type(self).__name__
            raise TypeError(
                f"{name} takes parameters if it is registered: write @nj.noise."
                f"register_distribution above class {name}"
            )

    def __post_init__(self) -> None:
        for name, field in self._fields().items():
            if field.metadata.get("static"):
                continue
            # A column of a data frame keeps the labels of its rows, which tables compare.
            if isinstance(value := collected(getattr(self, name)), (list, tuple)):
                value = real_array(f"{type(self).__name__}.{name}", value)
                object.__setattr__(self, name, value)
        self.check(stacked=False)

    def _fields(self) -> dict[str, dataclasses.Field[Any]]:
        return getattr(self, "__dataclass_fields__", {})

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong.

        With `stacked=True` each parameter has a leading axis of T rounds, as in `noise.PerRound`.
        """
        fields = self._fields()
        checks: dict[str, Any] = {"mean": {"parser": number}} if "mean" in fields else {}
        checks |= {name: f.metadata["check"] for name, f in fields.items() if "check" in f.metadata}
        for name, options in checks.items():
            self._parse(name, stacked, **options)
        if stacked:  # each was checked where `jax.vmap` made it
            return
        shapes = {name: list(np.shape(getattr(self, name))) for name in ("cov", *checks, "mean")}
        shapes = {name: shape for name, shape in shapes.items() if shape}
        if len({shape[-1] for shape in shapes.values()}) > 1:
            name = type(self).__name__
            raise ValueError(f"{name} must have parameters of one dimension d, got {shapes}")

    def _parse(
        self, parameter, stacked, parser, bounds=(), scalar=False, matrix=False, hint=""
    ) -> None:
        """Replaces a parameter by what the parser returns."""
        name, value = f"{type(self).__name__}.{parameter}", getattr(self, parameter)
        rank = len(shape_of(name, value)) - stacked
        if not np.size(value):
            raise ValueError(f"{name} must have at least one number, got none")
        if matrix and rank > 1:
            return check_covariance(name, value, stacked=stacked)
        if scalar and rank > 0:
            raise ValueError(f"{name} must be one number, got shape {list(np.shape(value))}")
        if rank > 1:
            raise ValueError(f"{name} must have shape [] or [d], got {list(np.shape(value))}")
        hint = hint or ("jax.vmap gives NaN where a parameter is out of range" if stacked else "")
        object.__setattr__(self, parameter, parser(name, value, *bounds, hint, shape=None))

    def check_dimension(self, shape: tuple[int, ...]) -> None:
        """Raises ValueError unless the parameters fit data of this shape, `(..., d)`."""
        for name in self._fields():
            check_dimension(f"{type(self).__name__}.{name}", getattr(self, name), shape)

    def sample(self, key: jax.Array, x: Array) -> jax.Array:
        """Returns a noisy copy x + mean + n, in the shape of `x`.

        Args:
            key: a random key for n.
            x: clean instances `[..., d]`, each with noise of its own; or a clean target `[]`, for a
                distribution with scalar parameters.
        """
        check_drawable(self, mean=True)
        copy = self.checked(self.centred(parsed_key(key), x), x)
        return copy + jnp.broadcast_to(self.mean, copy.shape)

    def centred(self, key: jax.Array, x: Array) -> jax.Array:
        """Returns a noisy copy x + n without the known mean, as learners receive it.

        The arguments and the result are as for `sample`. With the same key, n is the same.
        """
        key, x = parsed_key(key), jnp.asarray(real_array("x", x))
        check_drawable(self)
        self.check_dimension(x.shape)
        return self._copies(key, x.astype(at_least_float32(x.dtype)))

    def checked(self, copy: jax.Array, x: Array) -> jax.Array:
        """Returns the copy that a custom `centred` made; ValueError if x has another shape."""
        if jnp.shape(copy) != jnp.shape(x):
            raise ValueError(
                f"{type(self).__name__}.centred must return x + n in the shape of x, "
                f"{list(jnp.shape(x))}, got {list(jnp.shape(copy))}"
            )
        return copy

    def _copies(self, key: jax.Array, x: jax.Array) -> jax.Array:
        """x + n, with independent rows, which `centred` of a custom distribution need not draw."""
        raise NotImplementedError(
            f"{type(self).__name__} must define centred(self, key, x), which returns x + n"
        )

    def covariance(self, dim: int) -> jax.Array:
        """Returns the full covariance matrix Σ of n, `[dim, dim]`, for `dim` features."""
        whole("dim", dim)
        check_dimension(f"{type(self).__name__}.cov", self.cov, (dim,))
        cov = _floating(self.cov)
        return cov if cov.ndim == 2 else jnp.diag(jnp.broadcast_to(cov, (dim,)))

    def fourth_moment(self, dim: int) -> jax.Array:
        """Returns E‖n‖⁴, `[]`, of noise in `dim` features that are independent or jointly Gaussian.

        It is (tr Σ)² + 2‖Σ‖²_F + Σ_i κ_i Σ_ii², with the excess kurtosis κ_i of a coordinate and
        the Frobenius norm ‖Σ‖_F. Other distributions must override it.
        """
        cov = self.covariance(dim)
        variances = jnp.diag(cov)
        gaussian = jnp.sum(variances) ** 2 + 2 * jnp.sum(cov**2)
        kurtosis = jnp.where(variances > 0, jnp.asarray(self.excess_kurtosis), 0)
        return gaussian + jnp.sum(kurtosis * variances**2)

    def estimated_cov(self, copy: jax.Array) -> ArrayLike:
        """Returns an unbiased estimate of the covariance of the noise in a copy `[d]`, given its x.

        It is `cov`, except for distributions whose covariance depends on x: these estimate it from
        the copy. `noise.observe` puts it into `Sample.cov`.
        """
        return self.cov

    def covariance_at(self, x: jax.Array) -> jax.Array:
        """Returns the covariance matrix `[d, d]` of the noise in a copy of the clean x `[d]`."""
        return self.covariance(x.size)

    def square_fourth_moment(self, x: jax.Array) -> jax.Array:
        """Returns E‖x + n‖⁴, `[]`, for a clean x `[d]` and noise whose third moments are zero.

        It is ‖x‖⁴ + 2‖x‖² tr Σ + 4xᵀΣx + E‖n‖⁴. Distributions whose covariance depends on x return
        a number that also bounds E‖x̃x̃ᵀ − Σ̂‖², with Σ̂ of `estimated_cov`.
        """
        cov = self.covariance(x.size)
        square, trace = jnp.sum(x**2), jnp.trace(cov)
        return square**2 + 2 * square * trace + 4 * x @ cov @ x + self.fourth_moment(x.size)

    def log_characteristic(self, omega: Array) -> jax.Array | None:
        """Returns log E exp(i⟨ω, n⟩), `[...]` complex, at frequencies ω `[..., d]`.

        The real part is the log of the modulus, −∞ at a zero of the characteristic function, and
        the imaginary part its argument. `None` if no closed form is known.
        """
        return None


def _floating(cov: Any) -> jax.Array:
    """A covariance in floats of at least 32 bits, whose squares do not overflow like integers.

    As everywhere, a Python number does not change the type of what it is multiplied with.
    """
    if type(cov) in (int, float):
        return jnp.asarray(float(cov))
    array = real_array("cov", cov)
    return jnp.asarray(array, at_least_float32(jnp.result_type(array, float)))


def check_drawable(noise: Any, *, mean: bool = False) -> None:
    """Raises ValueError if a parameter is a column of a data frame, whose labels only tables read.

    JAX draws noise from arrays. With `mean` only the mean is looked at, else all other parameters.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(noise):
        place = jax.tree_util.keystr(path)
        if hasattr(leaf, "to_numpy") and place.endswith(".mean") == mean:
            name = f"{type(noise).__name__}{place}"
            raise ValueError(
                f"{name} must be an array where noise is drawn, got {given(leaf)}: only tables "
                "read columns of data frames; give it as column.to_numpy()"
            )


def covariance_times(cov: ArrayLike, vectors: Array) -> jax.Array:
    """Returns Σv `[..., d]` for a covariance Σ and vectors v `[..., d]`, without building Σ.

    Args:
        cov: Σ as `[]` (the same variance for all features), `[d]` (variances) or `[d, d]`.
        vectors: v, `[..., d]`. Another d than in `cov` raises ValueError.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> print(nj.noise.covariance_times(jnp.array([0.5, 2.0]), jnp.ones(2)))
        [0.5 2. ]
    """
    cov, vectors = real("cov", cov), real("vectors", vectors)
    if np.ndim(cov) > 2:
        raise ValueError(f"cov must be [], [d] or [d, d], got {list(np.shape(cov))}")
    check_dimension("cov", cov, np.shape(vectors))
    if np.ndim(cov) == 2:
        return jnp.matmul(vectors, cov, precision="highest")
    return jnp.broadcast_to(cov, np.shape(vectors)) * vectors
