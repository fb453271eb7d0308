"""Rules of loops and branches, of which some arguments are `Continued` (see `rules`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax.unbiased.continuation import Continued


def _scan(operation: Any, *args: Any) -> list[Any]:
    params, walk = operation.params, operation.walk
    jaxpr, (constants, carried) = params["jaxpr"], _counts(params)
    consts, start, stacked = _split(args, constants, carried)

    def rounds(carry, inputs):
        results = walk(jaxpr.jaxpr, jaxpr.consts, [*consts, *carry, *inputs])
        return _like(results[:carried], _marks(carry)), results[carried:]

    inputs = jax.tree.map(lambda leaf: jax.typeof(leaf).update(shape=leaf.shape[1:]), stacked)
    start = _fixed_point(lambda carry, inputs: rounds(carry, inputs)[0], start, inputs)
    options = {name: params[name] for name in ("length", "reverse", "unroll")}
    carry, outputs = jax.lax.scan(rounds, start, stacked, **options)
    return [*carry, *outputs]


def _counts(params: dict[str, Any]) -> tuple[int, int]:
    """Returns how many arguments of a scan are constants, and how many are the carry."""
    if "ft_in" in params:  # from jax 0.12 on
        constants, carried, _ = map(len, params["ft_in"].unpack())
        return constants, carried
    return params["num_consts"], params["num_carry"]


def _while(operation: Any, *args: Any) -> list[Any]:
    params, walk = operation.params, operation.walk
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    consts, body_consts, start = _split(args, params["cond_nconsts"], params["body_nconsts"])

    def goes_on(carry):
        return walk(condition.jaxpr, condition.consts, [*consts, *carry])[0]

    def rounds(carry):
        results = walk(body.jaxpr, body.consts, [*body_consts, *carry])
        return _like(results, _marks(carry))

    return jax.lax.while_loop(goes_on, rounds, _fixed_point(rounds, start))


def _cond(operation: Any, index: Any, *operands: Any) -> list[Any]:
    def continued(branch):
        return lambda *operands: operation.walk(branch.jaxpr, branch.consts, operands)

    branches = [continued(branch) for branch in operation.params["branches"]]
    marks = [_dependence(branch, *operands) for branch in branches]
    depends = [any(of_branches) for of_branches in zip(*marks, strict=True)]
    alike = [
        lambda *operands, branch=branch: _like(branch(*operands), depends) for branch in branches
    ]
    return jax.lax.switch(index, alike, *operands)


def _checkpoint(operation: Any, *args: Any) -> list[Any]:
    params = operation.params

    def inside(*args):
        return operation.walk(params["jaxpr"], (), args)

    options = {name: params[name] for name in ("policy", "prevent_cse")}
    return jax.checkpoint(inside, **options)(*args)  # pyright: ignore[reportPrivateImportUsage]


CONTROL: dict[str, Callable[..., Any]] = {
    "checkpoint": _checkpoint,
    "cond": _cond,
    "remat": _checkpoint,
    "remat2": _checkpoint,
    "scan": _scan,
    "while": _while,
}
"""Rules by primitive: `(operation, *args) -> results`."""


def _split(args: Any, first: int, second: int) -> list[list[Any]]:
    """The first arguments, the second ones, as many as these numbers say, and the rest."""
    return [list(args[:first]), list(args[first:][:second]), list(args[first:][second:])]


def _like(values: Any, depends: list[bool]) -> list[Any]:
    """The values, where those that may come to depend on x have an imaginary part of zero."""
    return [
        Continued(value, jnp.zeros_like(value))
        if mark and not isinstance(value, Continued)
        else value
        for value, mark in zip(values, depends, strict=True)
    ]


def _marks(values: Any) -> list[bool]:
    return [isinstance(value, Continued) for value in values]


def _dependence(function: Callable[..., Any], *args: Any) -> list[bool]:
    """Which results depend on x."""
    marks = []

    def marked(*args):
        results = function(*args)
        marks[:] = _marks(results)
        return results

    jax.eval_shape(marked, *args)
    return list(marks)


def _fixed_point(body: Callable[..., Any], carry: list[Any], *args: Any) -> list[Any]:
    """The carry of a loop, with imaginary parts where it depends on x in some round."""
    while True:
        after = _dependence(body, carry, *args)
        if after == _marks(carry):
            return carry
        carry = _like(carry, after)
