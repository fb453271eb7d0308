"""Rules by which each primitive of JAX is continued to the complex plane.

A rule is called with an `Operation` and its arguments, of which some are `Continued`. It returns
the results, or `None` if the primitive is not entire in those arguments: then `REASONS` says why.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from noisy_jax import features
from noisy_jax.unbiased import continuation
from noisy_jax.unbiased.continuation import (
    Continued,
    apart,
    by_complex,
    linear,
    product,
    with_parts,
)
from noisy_jax.unbiased.control import CONTROL


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of f; it is called with other arguments as f calls it with its own.

    Attributes:
        eqn: of the jaxpr of f.
        walk: `(jaxpr, consts, args) -> results`, which continues a function inside of it.
    """

    eqn: Any
    walk: Callable[..., list[Any]]

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the primitive."""
        return self.eqn.params

    def __call__(self, *args: Any) -> Any:
        """The result at real arguments."""
        primitive = self.eqn.primitive
        functions, params = (), primitive.get_bind_params(self.params)
        if isinstance(params, tuple):  # as before JAX 0.10
            functions, params = params
        return primitive.bind(*functions, *args, **params)

    def having(self, **params: Any) -> Operation:
        """The operation with other parameters."""
        return dataclasses.replace(self, eqn=self.eqn.replace(params={**self.params, **params}))


Rule = Callable[..., Any]


def _linear_unless(*places: int) -> Rule:
    """Linear in the other arguments, if the ones in these places do not depend on x."""

    def rule(operation, *args):
        depends = any(isinstance(args[i], Continued) for i in places)
        return None if depends else apart(operation, *args)

    return rule


def _integer_pow(operation, z):
    return None if operation.params["y"] < 0 else by_complex(operation, z)


def _pow(operation, base, z):
    if not isinstance(base, Continued):
        return by_complex(jnp.exp, apart(lambda part: part * jnp.log(base), z))
    if not isinstance(operation.eqn.invars[1], Literal):
        return None
    exponent = complex(operation.eqn.invars[1].val)
    whole = exponent == abs(exponent) and exponent.real.is_integer()
    return by_complex(lambda z: z ** int(exponent.real), base) if whole else None


def _convert(operation, *args):
    floating = jnp.issubdtype(operation.params["new_dtype"], jnp.inexact)
    return linear(operation, *args) if floating else None


def _gather(operation, *args):
    """Numbers out of range get the fill value, and no imaginary part."""
    z, *indices = args
    without = operation.having(fill_value=0)
    return Continued(operation(z.re, *indices), without(z.im, *indices))


def _scatter(operation, *args):
    """Linear if it sets numbers: its function of the old and the new one returns the new."""
    update = operation.params["update_jaxpr"]
    sets = update is None or (not update.eqns and update.outvars[0] is update.invars[1])
    return linear(operation, *args) if sets else None


def _scatter_mul(operation, *args):
    """Its function of two numbers is traced anew, for complex ones."""
    names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
    options = {name: operation.params[name] for name in names}
    times: Any = functools.partial(jax.lax.scatter_mul, **options)
    return by_complex(times, *map(with_parts, args))


def _solve(operation, *args):
    """Linear in the right sides, if no other results stand beside the solutions."""
    constants = sum(operation.params["const_lengths"])
    only_solutions = len(operation.eqn.outvars) == len(args) - constants
    return _linear_unless(*range(constants if only_solutions else len(args)))(operation, *args)


_CONTINUATIONS = {"cosine_and_sine": (features.cosine_and_sine, continuation.cosine_and_sine)}
"""Functions that are entire, but not all that they call: by name, and their continuations."""


def _call(parameter: str) -> Rule:
    def rule(operation, *args):
        inner = operation.params[parameter]
        entry = _CONTINUATIONS.get(operation.params.get("name"))
        if entry and len(args) == 1:
            function, continued = entry
            program = jax.make_jaxpr(function)(*inner.in_avals).eqns[0].params[parameter]
            if str(program) == str(inner):  # and no function of a user's with this name
                return continued(*args)
        return operation.walk(inner.jaxpr, inner.consts, args)

    return rule


CALLS: dict[str, str] = {
    "call": "call_jaxpr",
    "closed_call": "call_jaxpr",
    "composite": "jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
}
"""Primitives that call a function, and the parameter that holds it."""

LOOKS = ("check", "debug_callback", "debug_print")
"""Primitives that look at numbers, at their real parts, and return none."""

_LINEAR = (
    "add add_any all_gather all_gather_invariant all_to_all broadcast_in_dim complex concatenate "
    "conj copy cumsum device_put dynamic_slice dynamic_update_slice fft imag name neg "
    "optimization_barrier pad pbroadcast ppermute psum psum_invariant pvary real reduce_precision "
    "reduce_scatter reduce_sum reduce_window_sum reshape rev scatter-add scatter-sub select_n "
    "sharding_constraint slice split squeeze stack stop_gradient sub tile transpose unstack"
)
_ENTIRE = "cos cumprod exp exp2 expm1 reduce_prod sin square"

RULES: dict[str, Rule] = {
    **dict.fromkeys(_LINEAR.split(), linear),
    **dict.fromkeys(("conv_general_dilated", "dot_general", "mul"), product),
    **dict.fromkeys(_ENTIRE.split(), by_complex),
    "convert_element_type": _convert,
    "cosh": lambda operation, z: continuation.cosh(z),
    "erf": lambda operation, z: continuation.erf(z),
    "erfc": lambda operation, z: continuation.erfc(z),
    "sinh": lambda operation, z: continuation.sinh(z),
    "custom_linear_solve": _solve,
    "div": _linear_unless(1),
    "gather": _gather,
    "integer_pow": _integer_pow,
    "pow": _pow,
    "scatter": _scatter,
    "scatter-mul": _scatter_mul,
    "select_and_gather_add": _linear_unless(1),
    "select_and_scatter_add": _linear_unless(1),
    "triangular_solve": _linear_unless(0),
    **{name: _call(parameter) for name, parameter in CALLS.items()},
    **CONTROL,
}

_REASONS = {
    "has poles or branch points": (
        "acos acosh asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt cholesky "
        "cholesky_update cumlogsumexp custom_linear_solve digamma div eig eigh erf_inv geqrf "
        "hessenberg householder_product igamma igamma_grad_a igammac integer_pow lgamma log log1p "
        "logistic lu ormqr polygamma pow qr random_gamma regularized_incomplete_beta rem rsqrt "
        "schur sqrt svd tan tanh triangular_solve tridiagonal tridiagonal_solve zeta"
    ),
    "is not analytic": (
        "abs approx_top_k argmax argmin bitcast_convert_type ceil clamp convert_element_type "
        "cummax cummin eq eq_to floor ge gt is_finite le le_to lt lt_to max min ne nextafter pmax "
        "pmin reduce_max reduce_min reduce_window_max reduce_window_min round scatter-max "
        "scatter-min select_and_gather_add select_and_scatter_add sign sort top_k"
    ),
    "applies a function in place": "scatter",
}
REASONS: dict[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
"""Why a primitive is not entire where its rule, if it has one, does not apply."""

ADVICE = {
    "div": "divide by what does not depend on x",
    "pow": "take a whole exponent that is at least 0, such as x**2",
    "integer_pow": "take an exponent that is at least 0",
    "abs": "write x**2, not abs(x)**2 or a norm",
    "scatter": "write x.at[i].set(fn(x[i])), not x.at[i].apply(fn)",
    "tanh": "gelu without its approximation is entire, jax.nn.gelu(x, approximate=False)",
}

KINDS = ("linear", "entire", "poles", "not analytic")
"""Kinds of primitives that a user may register."""

_JAX = {*RULES, *REASONS, *LOOKS}


def add(name: str, kind: str) -> None:
    """Adds the rule, or the reason, of a user's own primitive.

    Raises:
        ValueError: it is one of JAX's.
    """
    if name in _JAX:
        raise ValueError(f"the kind of JAX's own primitive {name!r} is known")
    RULES.pop(name, None)
    if kind in ("linear", "entire"):
        RULES[name] = linear if kind == "linear" else by_complex
    else:
        REASONS[name] = "has poles or branch points" if kind == "poles" else "is not analytic"
