"""The continuation of a JAX function to the complex plane, if it is entire.

An entire function is one that is analytic in the whole complex plane. JAX evaluates max and abs of
complex numbers without a word, and tanh or a quotient may pass close to a pole: the estimates of
`pair` and `gaussian` would be biased. So f is traced at a real x, and its operations are walked:
each one whose arguments depend on x must be linear or entire in them.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, Literal, Primitive
from jax.extend.source_info_util import summarize

from noisy_jax import features
from noisy_jax.unbiased import continuation
from noisy_jax.unbiased.continuation import Continued
from noisy_jax.unbiased.control import CALLS, CONTROL
from noisy_jax.validation import choice, given

KINDS = ("linear", "entire", "poles", "not analytic")
"""What a primitive may be in the arguments that depend on x."""

_NAMES = {
    "linear": (
        "add add_any all_gather all_gather_invariant all_to_all broadcast_in_dim complex "
        "concatenate conj convert_element_type copy cumsum device_put dynamic_slice "
        "dynamic_update_slice fft gather imag name neg optimization_barrier pad pbroadcast "
        "ppermute psum psum_invariant pvary real reduce_precision reduce_scatter reduce_sum "
        "reduce_window_sum reshape rev scatter scatter-add scatter-sub select_n "
        "sharding_constraint slice split squeeze stack stop_gradient sub tile transpose unstack"
    ),
    "entire": "cumprod reduce_prod",
    "poles": (
        "acos acosh asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt cholesky "
        "cholesky_update cumlogsumexp custom_linear_solve digamma div eig eigh erf_inv geqrf "
        "hessenberg householder_product igamma igamma_grad_a igammac integer_pow lgamma log log1p "
        "logistic lu ormqr polygamma pow qr random_gamma regularized_incomplete_beta rem rsqrt "
        "schur sqrt svd tan tanh triangular_solve tridiagonal tridiagonal_solve zeta"
    ),
    "not analytic": (
        "abs approx_top_k argmax argmin bitcast_convert_type ceil clamp cummax cummin eq eq_to "
        "floor ge gt is_finite le le_to lt lt_to max min ne nextafter pmax pmin reduce_max "
        "reduce_min reduce_window_max reduce_window_min round scatter-max scatter-min "
        "select_and_gather_add select_and_scatter_add sign sort top_k"
    ),
}
_TABLE: dict[str, str] = {name: kind for kind, names in _NAMES.items() for name in names.split()}

# (apply, *arguments) -> result, where `apply` is the primitive with its parameters.
_RULES: dict[str, Callable[..., Any]] = {
    "conv_general_dilated": continuation.product,
    "dot_general": continuation.product,
    "mul": continuation.product,
}
_FUNCTIONS = ("cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "sin", "sinh", "square")
_LOOKS = ("check", "debug_callback", "debug_print")  # at the real parts
_OTHERS = (*_LOOKS, "scatter-mul")

# Linear in the other arguments, if these ones do not depend on x.
_LINEAR_BUT = {
    "div": [1],
    "select_and_gather_add": [1],
    "select_and_scatter_add": [1],
    "triangular_solve": [0],
}

_REASONS = {
    "poles": "has poles or branch points",
    "not analytic": "is not analytic",
    "in place": "applies a function in place",
}
_JAX = {*_TABLE, *_RULES, *_FUNCTIONS, *_OTHERS, *CALLS, *CONTROL}
_ADVICE = {
    "div": "divide by what does not depend on x",
    "pow": "take a whole exponent that is at least 0, such as x**2",
    "integer_pow": "take an exponent that is at least 0",
    "abs": "write x**2, not abs(x)**2 or a norm",
    "scatter": "write x.at[i].set(fn(x[i])), not x.at[i].apply(fn)",
    "tanh": "gelu without its approximation is entire, jax.nn.gelu(x, approximate=False)",
}
_WAY_OUT = "multilevel and replicates take any smooth function (tanh, softplus, gelu by tanh)"


# Functions of this library that are entire, but not all that they call.
_WAVES = f"cosine_and_sine at {features.__file__}:"
_HYPERBOLIC = f"cosh_and_sinh at {continuation.__file__}:"  # of an estimate of an estimate
_HERE = str(Path(__file__).parent)


def register(primitive: Primitive, kind: str) -> None:
    """Registers how a primitive that you define depends on its arguments.

    Args:
        primitive: from `jax.extend.core.Primitive`.
        kind: "linear", jointly in all arguments that are numbers of floating point: real and
            imaginary parts are passed to it one by one. "entire": it is called with complex
            numbers, and must be right for them. "poles" or "not analytic": it raises an error that
            says so.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> from jax.extend.core import Primitive
        >>> twice = Primitive("twice")
        >>> _ = twice.def_impl(lambda x: 2 * x), twice.def_abstract_eval(lambda x: x)
        >>> nj.unbiased.register(twice, "linear")
        >>> print(nj.unbiased.pair(lambda x: twice.bind(x) ** 2)(jnp.array([1.0, 3.0])))
        12.0
    """
    if not isinstance(primitive, Primitive):
        raise ValueError(f"primitive must be a jax.extend.core.Primitive, got {given(primitive)}")
    name = primitive.name
    if name in _JAX:
        raise ValueError(f"the kind of JAX's own primitive {name!r} is known")
    _TABLE[name] = choice("kind", kind, KINDS)


def continued(f: Callable[..., Any], real: jax.Array, imaginary: jax.Array, name: str) -> Any:
    """Re f(real + j imaginary), a pytree like f(real); `name` names the transformation.

    Raises:
        ValueError: f is not entire, or a result is complex or no number of floating point.
    """
    results, structure = _both_parts(f, Continued(real, imaginary), name)
    reals = [each.re if isinstance(each, Continued) else each for each in results]
    return jax.tree.unflatten(structure, reals)


def continued_number(f: Callable[..., Any], z: Continued, name: str) -> Continued:
    """f(z) of a function with one array as its result; else as `continued`."""
    ((result,), _) = _both_parts(f, z, name)
    if isinstance(result, Continued):
        return result
    return Continued(result, jnp.zeros_like(result))


def _both_parts(f: Callable[..., Any], z: Continued, name: str) -> tuple[list[Any], Any]:
    """The results of f(z), those that depend on z as `Continued`, and their structure."""
    closed, shape = jax.make_jaxpr(f, return_shape=True)(z.re)
    results = _known(_Walk(name)(closed.jaxpr, closed.consts, [z]))
    for each in results:
        if isinstance(each, Continued) and jnp.iscomplexobj(each.re):
            raise ValueError(
                f"{name} estimates real functions, but a result of f is of type {each.re.dtype}: "
                "return real and imaginary parts one by one"
            )
    return results, jax.tree.structure(shape)


class _Seen(NamedTuple):
    """A truth value or whole number that depends on x: it may be checked or printed, not used.

    Attributes:
        value: at the real part.
        error: of the operation that it comes from.
    """

    value: Any
    error: ValueError


def _known(values: list[Any]) -> list[Any]:
    """The values; raises ValueError if one of them depends on x through what is not analytic."""
    for each in values:
        if isinstance(each, _Seen):
            raise each.error
    return values


class _Walk:
    """Evaluates a jaxpr where some of its variables are `Continued`.

    Args:
        name: of the transformation, for messages.
        caller: name and place of the function whose jaxpr this is, if it was called.
    """

    def __init__(self, name: str, caller: tuple[str, str] | None = None):
        self._name, self._caller = name, caller

    def __call__(self, jaxpr: Jaxpr, consts: Any, args: Any) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))

        def read(atom):
            if isinstance(atom, Literal):
                aval: Any = atom.aval
                return jnp.asarray(atom.val, aval.dtype)
            return values[atom]

        for eqn in jaxpr.eqns:
            inputs = [read(atom) for atom in eqn.invars]
            if any(isinstance(each, Continued | _Seen) for each in inputs):
                results = self._continued(eqn, inputs)
            else:
                results = _bind(eqn)(*inputs)
            results = results if eqn.primitive.multiple_results else [results]
            values.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _continued(self, eqn, inputs) -> Any:
        name = eqn.primitive.name
        if name in CALLS or name in CONTROL:
            inner = eqn.params.get(CALLS.get(name))
            function = name if inner is None else inner.jaxpr.debug_info.func_name
            if inner is not None:
                source = inner.jaxpr.debug_info.func_src_info
                if source.startswith(_WAVES):
                    return list(continuation.cosine_and_sine(*inputs))
                if source.startswith(_HYPERBOLIC):
                    return [continuation.cosh(*inputs), continuation.sinh(*inputs)]
            walk = _Walk(self._name, (function, self._place(eqn)))
            if inner is None:
                known = lambda *args: _known(walk(*args))  # noqa: E731
                return CONTROL[name](known, eqn.params, _known(inputs))
            return walk(inner.jaxpr, inner.consts, inputs)
        if name in _LOOKS:
            return _bind(eqn)(*map(_at_real_part, inputs))
        seen = [each for each in inputs if isinstance(each, _Seen)]
        if seen:
            return self._seen(eqn, inputs, seen[0].error)
        kind = _TABLE.get(name)
        if name == "convert_element_type":
            kept = jnp.issubdtype(eqn.params["new_dtype"], jnp.inexact)
            kind = "linear" if kept else "not analytic"
        if name == "scatter" and not _sets(eqn.params["update_jaxpr"]):
            kind = "in place"
        rule = _RULES.get(name) or _special(eqn, inputs)
        if rule is not None:
            return rule(_bind(eqn), *inputs)
        if kind == "linear":
            return continuation.linear(_bind(eqn), *inputs)
        if kind == "entire":
            return continuation.by_complex(_bind(eqn), *inputs)
        return self._seen(eqn, inputs, self._error(eqn, kind))

    def _seen(self, eqn, inputs, error: ValueError) -> Any:
        """The results, if they are truth values or whole numbers; else raises the error."""
        kinds = [each.aval.dtype for each in eqn.outvars]
        if not kinds or any(jnp.issubdtype(kind, jnp.inexact) for kind in kinds):
            raise error
        values = _bind(eqn)(*map(_at_real_part, inputs))
        several = eqn.primitive.multiple_results
        return [_Seen(each, error) for each in values] if several else _Seen(values, error)

    def _place(self, eqn) -> str:
        """The line of f, or the call of a function of JAX's in f, which may be traced only once."""
        place = summarize(eqn.source_info)
        if place.startswith(_HERE):  # f itself is a function of JAX's
            return ""
        if self._caller is None or place.endswith(f"({self._caller[0]})"):
            return place
        return self._caller[1]

    def _error(self, eqn, kind) -> ValueError:
        name = eqn.primitive.name
        where = f" in {self._caller[0]}" if self._caller else ""
        place = self._place(eqn)
        what = f"{name!r}{where}" + (f" ({place})" if place else "")
        if kind is None:
            return ValueError(
                f"{self._name} needs an entire function of x, and does not know whether {what} is "
                "one: say so by unbiased.register(primitive, kind), or use multilevel or replicates"
            )
        reason = _REASONS[kind]
        advice = f"{_ADVICE[name]}; " if name in _ADVICE else ""
        return ValueError(
            f"{self._name} needs an entire function of x, but {what} {reason}: {advice}{_WAY_OUT}"
        )


def _at_real_part(arg: Any) -> Any:
    if isinstance(arg, Continued):
        return arg.re
    return arg.value if isinstance(arg, _Seen) else arg


def _special(eqn, inputs) -> Callable[..., Any] | None:
    """The rule of a primitive that is entire in some arguments, or for some parameters, only."""
    name = eqn.primitive.name
    depends = [isinstance(each, Continued) for each in inputs]
    if name in _FUNCTIONS:
        return lambda apply, z: getattr(continuation, name)(z)
    if name == "integer_pow" and eqn.params["y"] >= 0:
        return lambda apply, z: continuation.power(z, eqn.params["y"])
    if name == "pow" and not depends[0]:
        return lambda apply, base, z: continuation.exponential(base, z)
    if name == "pow" and isinstance(eqn.invars[1], Literal):
        exponent = complex(eqn.invars[1].val)
        if exponent == abs(exponent) and exponent.real.is_integer():
            return lambda apply, z, _: continuation.power(z, int(exponent.real))
    if name == "gather":  # what is out of range gets the fill value, and no imaginary part
        without = _bind(eqn.replace(params={**eqn.params, "fill_value": 0}))
        return lambda apply, z, i: Continued(apply(z.re, i), without(z.im, i))
    if name == "scatter-mul":  # its function of two numbers is traced anew, for complex ones
        names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
        kept = {each: eqn.params[each] for each in names}
        times: Any = functools.partial(jax.lax.scatter_mul, **kept)
        return lambda apply, *args: continuation.by_complex(
            times, *map(continuation.with_parts, args)
        )
    matrix = _LINEAR_BUT.get(name)
    if name == "custom_linear_solve":
        constants = sum(eqn.params["const_lengths"])
        only_solutions = len(eqn.outvars) == len(inputs) - constants  # and no has_aux
        matrix = range(constants if only_solutions else len(inputs))
    if matrix is not None and not any(depends[i] for i in matrix):
        return continuation.apart
    return None


def _sets(update: Jaxpr | None) -> bool:
    """Whether a scatter sets numbers: its function of the old and the new one returns the new."""
    return update is None or (not update.eqns and update.outvars[0] is update.invars[1])


def _bind(eqn) -> Callable[..., Any]:
    """The primitive with its parameters, as a function of its arguments."""
    functions, params = (), eqn.primitive.get_bind_params(eqn.params)
    if isinstance(params, tuple):  # as before JAX 0.10
        functions, params = params
    return lambda *args: eqn.primitive.bind(*functions, *args, **params)
