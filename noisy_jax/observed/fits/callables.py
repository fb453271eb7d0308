"""The curve and the loss that users write, checked before anything is compiled."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from noisy_jax.validation.messages import given, listed

_NOT_JAX = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def check_callables(
    curve: Callable[..., Any],
    loss: Callable[..., Any],
    start: Any,
    x: np.ndarray,
    names: Sequence[str],
    features: Sequence[str],
) -> None:
    """Raises ValueError if JAX cannot trace the curve or the loss, or they read missing entries.

    In place of an entry out of range JAX takes the nearest one. NumPy raises IndexError, so that
    the curve is also called with NumPy arrays.

    Args:
        curve: `(params, x[d]) -> []`.
        loss: `(prediction, y) -> []`.
        start: the parameters, a pytree of NumPy arrays.
        x: `[d]`, the features of a row.
        names: of the numbers in `start`.
        features: d names.
    """
    called = (
        f"it is called as curve(params, x), with params as in start ({len(names)}: {listed(names)})"
        f" and x the vector of features ({len(features)}: {listed(features)}), counted from 0"
    )
    _check_signature("curve", curve, "params, x")
    _check_signature("loss", loss, "prediction, y")
    value = _traced("curve", curve, called, start, x)
    if getattr(value, "shape", None) != ():
        got = list(value.shape) if hasattr(value, "shape") else given(value)
        raise ValueError(f"curve's result must be one number for one row x[d], got {got}")
    _traced("loss", loss, "it is called as loss(prediction, y), with two numbers", value, 0.0)
    jitted = isinstance(curve, jax.stages.Wrapped)
    plain = getattr(curve, "__wrapped__", curve) if jitted else curve
    _check_range("x", lambda params: plain(params, x), start, called)
    _check_range("params", lambda x: plain(start, x), x, called)


def _check_signature(name: str, f: Callable[..., Any], wanted: str) -> None:
    """Raises ValueError if f cannot be called with two arguments."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # of a function that is not in Python
        return
    try:
        signature.bind(None, None)
    except TypeError:
        example = ", such as def curve(params, x): return params['a'] * x[0] + params['b']"
        raise ValueError(
            f"{name} must take two arguments, {name}({wanted}), but is {name}{signature}"
            + (f": params are all parameters together, as in start{example}" * (name == "curve"))
        ) from None


def _traced(name: str, f: Callable[..., Any], called: str, *args: Any) -> Any:
    """The shape of the result."""
    try:
        return jax.eval_shape(lambda args: f(*args), args)  # f need not be weakly referable
    except Exception as error:
        if isinstance(error, _NOT_JAX):
            raise ValueError(
                f"{name} must be written with jax.numpy, such as jnp.sin in place of np.sin and "
                "math.sin, and jnp.where in place of if"
            ) from error
        if isinstance(error, LookupError) or "string index" in str(error):
            raise ValueError(f"{name} reads what is not there ({error}); {called}") from error
        if isinstance(error, TypeError) and isinstance(args[0], list | tuple):
            first_line = str(error).partition("\n")[0]
            raise ValueError(
                f"{name} takes params as start has them, a {type(args[0]).__name__}: {first_line}; "
                "for `x @ params` give start as an array, such as np.zeros(2)"
            ) from error
        error.add_note(f"{name} raised this; {called}")
        raise


def _check_range(which: str, f: Callable[..., Any], traced: Any, called: str) -> None:
    """Raises ValueError if f reads a NumPy array out of range."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), jax.disable_jit():
            warnings.simplefilter("ignore")
            jax.eval_shape(f, traced)
    except Exception as error:  # others are of what NumPy arrays lack, such as `.at`
        if isinstance(error, IndexError) and "out of bounds" in str(error):
            raise ValueError(f"curve reads {which} out of range ({error}); {called}") from error
