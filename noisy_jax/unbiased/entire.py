"""The continuation of a JAX function to the complex plane, if it is entire.

An entire function is one that is analytic in the whole complex plane. JAX evaluates max and abs of
complex numbers without a word, and tanh or a quotient may pass close to a pole: the estimates of
`pair` and `gaussian` would be biased. So f is traced at a real x, and its operations are walked:
each one whose arguments depend on x must have a rule (see `rules`), by which it is linear or entire
in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Primitive
from jax.extend.source_info_util import summarize

from noisy_jax.unbiased import rules
from noisy_jax.unbiased.continuation import Continued, with_parts
from noisy_jax.unbiased.rules import CALLS, CONTROL, LOOKS, REASONS, RULES, Operation
from noisy_jax.validation.messages import given
from noisy_jax.validation.objects import choice

_HERE = str(Path(__file__).parent)
_WAY_OUT = "multilevel and replicates take any smooth function (tanh, softplus, gelu by tanh)"


def register(primitive: Primitive, kind: str) -> None:
    """Tells `pair` and `gaussian` how a primitive of your own continues to complex numbers.

    These transformations evaluate a function f at complex points, operation by operation. JAX's own
    primitives have rules; a primitive that you define yourself needs one, or f raises ValueError.

    Args:
        primitive: a `jax.extend.core.Primitive`. It is known by its name; a second call replaces
            the rule.
        kind: one of "linear": the primitive is linear jointly in all arguments that are numbers of
            floating point, and is called with real parts, and then with imaginary parts. "entire":
            it is analytic in the whole complex plane; it is called with complex numbers, and must
            be right for them. "poles" (like division) or "not analytic" (like abs): f raises a
            ValueError that says so.

    Raises:
        ValueError: the primitive is one of JAX's, or the kind is none of these.

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
    rules.add(primitive.name, choice("kind", kind, rules.KINDS))


def continued(f: Callable[..., Any], z: Continued, name: str) -> Continued:
    """f(z) of a function with one array as its result; `name` names the transformation.

    Raises:
        ValueError: f is not entire, or a result is complex or no number of floating point.
    """
    (result,) = continued_program(jax.make_jaxpr(f)(z.re), z, name)
    return with_parts(result)


def continued_program(program: ClosedJaxpr, z: Continued, name: str) -> list[Any]:
    """The results at z of a function that was traced: `Continued`, if they depend on z."""
    results = _checked(_Walk(name)(program.jaxpr, program.consts, [z]))
    for result in results:
        if isinstance(result, Continued) and jnp.iscomplexobj(result.re):
            raise ValueError(
                f"{name} estimates real functions, but a result of f is of type {result.re.dtype}: "
                "return real and imaginary parts one by one"
            )
    return results


class _Refused(NamedTuple):
    """A result of an operation that is not entire: it may be checked or printed, but not returned.

    Attributes:
        value: at the real part.
        error: of the operation.
    """

    value: Any
    error: ValueError


def _checked(values: list[Any]) -> list[Any]:
    """The values; raises ValueError if one of them depends on x through what is not entire."""
    for value in values:
        if isinstance(value, _Refused):
            raise value.error
    return values


@dataclasses.dataclass(frozen=True)
class _Walk:
    """Evaluates a jaxpr where some of its variables are `Continued`.

    Attributes:
        name: of the transformation, for messages.
        caller: name and place of the function whose jaxpr this is, if it was called.
    """

    name: str
    caller: tuple[str, str] | None = None

    def __call__(self, jaxpr: Jaxpr, consts: Any, args: Any) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))

        def read(atom):
            if isinstance(atom, Literal):
                aval: Any = atom.aval
                return jnp.asarray(atom.val, aval.dtype)
            return values[atom]

        for eqn in jaxpr.eqns:
            results = self._results(eqn, [read(atom) for atom in eqn.invars])
            results = results if eqn.primitive.multiple_results else [results]
            values.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _results(self, eqn, inputs) -> Any:
        name = eqn.primitive.name
        calls = name in CALLS or name in CONTROL
        operation = Operation(eqn, self._inside(eqn) if calls else self)
        if not any(isinstance(value, Continued | _Refused) for value in inputs):
            return operation(*inputs)
        error = next((value.error for value in inputs if isinstance(value, _Refused)), None)
        if error is None and name in RULES:
            results = RULES[name](operation, *inputs)
            if results is not None:
                return results
        if name in LOOKS:
            return operation(*map(_at_real_part, inputs))
        error = error or self._error(eqn)
        if eqn.effects:  # it may keep the numbers
            raise error
        values = operation(*map(_at_real_part, inputs))
        several = eqn.primitive.multiple_results
        return [_Refused(value, error) for value in values] if several else _Refused(values, error)

    def _inside(self, eqn) -> Callable[..., list[Any]]:
        """The walk through a function that an operation calls, or through a loop or branch."""
        name = eqn.primitive.name
        inner = eqn.params.get(CALLS.get(name))
        function = name if inner is None else inner.jaxpr.debug_info.func_name
        walk = _Walk(self.name, (function, self._place(eqn)))
        return walk if name in CALLS else lambda *args: _checked(walk(*args))

    def _place(self, eqn) -> str:
        """The line of f, or the call of a function of JAX's in f, which may be traced only once."""
        place = summarize(eqn.source_info)
        if place.startswith(_HERE):  # f itself is a function of JAX's
            return ""
        if self.caller is None or place.endswith(f"({self.caller[0]})"):
            return place
        return self.caller[1]

    def _error(self, eqn) -> ValueError:
        name = eqn.primitive.name
        where = f" in {self.caller[0]}" if self.caller else ""
        place = self._place(eqn)
        operation = f"{name!r}{where}" + (f" ({place})" if place else "")
        if name not in REASONS:
            return ValueError(
                f"{self.name} needs an entire function of x, and does not know whether {operation} "
                "is one: say so by unbiased.register(primitive, kind), or use multilevel or "
                "replicates"
            )
        advice = f"{rules.ADVICE[name]}; " if name in rules.ADVICE else ""
        return ValueError(
            f"{self.name} needs an entire function of x, but {operation} {REASONS[name]}: "
            f"{advice}{_WAY_OUT}"
        )


def _at_real_part(arg: Any) -> Any:
    if isinstance(arg, Continued):
        return arg.re
    return arg.value if isinstance(arg, _Refused) else arg
