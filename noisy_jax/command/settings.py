"""Settings of studies: dataclasses whose fields are the options of the command line."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from noisy_jax.validation.numbers import whole
from noisy_jax.validation.objects import choice

EXAMPLES = "python -m noisy_jax", "python colabs/papers/"
"""The start of the commands in docstrings."""


def option(
    default: Any,
    help: str,
    metavar: str | None = None,
    check: Callable[[str, Any], Any] | None = None,
    choices: Collection[str] | None = None,
    may_be_empty: bool = False,
    fast: Any = None,
) -> Any:
    """A field of `BaseSettings`, which becomes an option of the same name with hyphens.

    Args:
        default: value if the option is not given. The help does not show it if it is `None` or ().
        help: meaning of the option, a sentence for the help.
        metavar: name of the value in the help.
        check: `(name, value)`, raises ValueError if the value is wrong, such as
            `validation.numbers.positive`.
        choices: the values that are allowed; any by default.
        may_be_empty: whether an option of several values may be given without a value.
        fast: value in the fast mode of a script, if it differs from the default.
    """
    metadata = {"help": help, "metavar": metavar, "check": check, "choices": choices}
    metadata |= {"nargs": "*" if may_be_empty else "+", "fast": fast}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class BaseSettings:
    """Settings without fields; the fields of a subclass are checked when it is created."""

    def __post_init__(self) -> None:
        """Raises ValueError if a value is wrong, with the name of its option."""
        for field in dataclasses.fields(self):
            value, name = getattr(self, field.name), flag(field.name)
            if value is None:
                continue
            if field.metadata["choices"]:
                for element in value if isinstance(value, (tuple, list)) else [value]:
                    choice(name, element, field.metadata["choices"])
            if field.metadata["check"]:
                field.metadata["check"](name, value)

    @classmethod
    def summary(cls) -> str:
        """Returns the first line of the docstring, for the list of studies."""
        return (inspect.getdoc(cls) or cls.__name__).splitlines()[0].rstrip(".")

    @classmethod
    def examples(cls) -> list[str]:
        """Returns the commands in the docstring."""
        lines = map(str.strip, (inspect.getdoc(cls) or "").splitlines())
        return [line for line in lines if line.startswith(EXAMPLES)]

    @classmethod
    def fast(cls) -> dict[str, Any]:
        """Returns the values of the fast mode, for the fields that have one."""
        fields = dataclasses.fields(cls)
        return {f.name: f.metadata["fast"] for f in fields if f.metadata["fast"] is not None}

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds an option for each field, the study's own first, and `--fast` if it has one."""
        kinds = typing.get_type_hints(cls)
        for field in sorted(
            dataclasses.fields(cls), key=lambda f: f.name not in cls.__annotations__
        ):
            kind, several = _element(kinds[field.name])
            words = field.metadata["help"]
            if field.default not in (None, ()):
                words += f" (default: {_words(field.default)})"
            parser.add_argument(
                flag(field.name),
                type=kind,
                nargs=field.metadata["nargs"] if several else None,
                default=argparse.SUPPRESS,
                choices=field.metadata["choices"],
                metavar=field.metadata["metavar"],
                help=words.replace("%", "%%"),
            )
        if cls.fast():
            words = " ".join(f"{flag(name)} {_words(value)}" for name, value in cls.fast().items())
            parser.add_argument("--fast", action="store_true", help=f"use small settings: {words}")

    @classmethod
    def parsed(cls, options: argparse.Namespace):
        """Returns the settings that the parsed options give."""
        given = vars(options)
        values = cls.fast() if given.get("fast") else {}
        values |= {f.name: given[f.name] for f in dataclasses.fields(cls) if f.name in given}
        return cls(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})


def flag(name: str) -> str:
    """The command-line option of a field: `--noise-variance` for `noise_variance`."""
    return f"--{name.replace('_', '-')}"


def _words(value) -> str:
    """Returns a value, or several, as they are written on the command line."""
    values = value if isinstance(value, tuple) else [value]
    return " ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)


def _element(kind) -> tuple[type, bool]:
    """Returns the type of one value and if there are several: (int, True) for `tuple[int, ...]`."""
    if isinstance(kind, types.UnionType):
        (kind,) = (member for member in typing.get_args(kind) if member is not types.NoneType)
    several = typing.get_origin(kind) is tuple
    return (typing.get_args(kind)[0] if several else kind), several


def at_least(least: int, hint: str = "") -> Callable[[str, Any], Any]:
    """Returns a check for `option`: a whole number of at least `least`."""
    return partial(whole, least=least, hint=hint)


INTERVALS = at_least(2, "one seed has no interval")
"""A check for `option`: a number of seeds that gives intervals."""


def _seed(name, value) -> None:
    if not (isinstance(value, int) and 0 <= value < 2**32):  # JAX would take it modulo 2³²
        raise ValueError(f"{name} must be a whole number from 0 to 2**32 − 1, got {value}")


@dataclasses.dataclass(frozen=True)
class SeededSettings(BaseSettings):
    """Settings of studies that draw at random."""

    seed: int = option(0, "seed of all randomness", metavar="N", check=_seed)
