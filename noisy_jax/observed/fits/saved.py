"""Results that are saved as JSON with their kind and a digest, and read again.

JSON with a wrong digit is still JSON. So a file has the SHA-256 digest of its contents, and a file
that was damaged or edited is an error, never another result.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from noisy_jax.reports.saving import path_of, replace_file
from noisy_jax.version import __version__

FORMAT = 4
"""The version 0.n of the library in which files took their form."""


class Saved:
    """A dataclass of numbers, arrays, names and such dataclasses, which can be saved as JSON.

    Attributes:
        kind: the name of the class in a file.
        functions: fields that a file does not hold, and that are given again to read it.
    """

    kind: ClassVar[str]
    functions: ClassVar[tuple[str, ...]] = ()

    def save(self, path: str | Path) -> None:
        """Writes the result to a file as JSON.

        `nj.load_fit(path)` reads a fit, and `nj.load_learned(path, learner)` a `Learned`.
        """
        head = {"kind": self.kind, "format": FORMAT, "version": __version__}
        values = {**head, **self._written()}
        values = json.loads(json.dumps(values, default=lambda array: array.tolist()))
        text = json.dumps(values | {"sha256": digest_of(values)}, indent=1)
        replace_file(path, f"{text}\n".encode())

    def _written(self) -> dict[str, Any]:
        """The fields that a file holds."""
        return _plain(self)


def places_of(dim: int) -> np.ndarray:
    """Returns `[8, d]`, standardized rows where functions are compared with the saved ones."""
    return 1.5 * np.cos(np.arange(1.0, 9)[:, None] * np.arange(1.0, dim + 1))


def digest_of(values: dict[str, Any]) -> str:
    """Returns the SHA-256 digest of the content, whatever the spaces and the order of the names."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def loaded(
    path: str | os.PathLike[str], kinds: Sequence[type], what: str = "a fit", **functions: Any
) -> Any:
    """The result in a file, which is of one of these classes, with the fields `functions`."""
    file = path_of("path", path)
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        if "kind" not in values:
            raise ValueError("it has no kind; a fit that version 0.2 saved must be made anew")
        if values.get("format") != FORMAT:
            raise ValueError(
                f"version {values.get('version', 'unknown')} of noisy_jax saved it, and this is "
                f"version {__version__}, which reads files of another format: fit the table anew"
            )
        if (name := values["kind"]) not in (classes := {kind.kind: kind for kind in kinds}):
            raise ValueError(f"its kind is {name!r}")
        if values.pop("sha256", None) != digest_of(values):
            raise ValueError(
                "its content is not what was saved (by its sha256 digest): it is damaged or edited"
            )
        del values["kind"], values["format"], values["version"]
        return _made(classes[name], values | functions)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        text = " ".join(str(error).split())  # one line
        text = text if len(text) <= 200 else f"{text[:200]}…"
        raise ValueError(f"{path} does not hold {what}: {text}") from None


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries, without their functions."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return [_plain(item) for item in value] if isinstance(value, tuple) else value
    left_out = getattr(value, "functions", ())
    names = [field.name for field in dataclasses.fields(value) if field.name not in left_out]
    return {name: _plain(getattr(value, name)) for name in names}


def _made(hint: Any, value: Any) -> Any:
    """The value with this annotation, from JSON."""
    if hint is Any:
        return value
    kinds = typing.get_args(hint) or (hint,)
    if isinstance(value, dict):
        kind: Any = next(item for item in kinds if dataclasses.is_dataclass(item))
        hints = typing.get_type_hints(kind)
        return kind(**{name: _made(hints[name], item) for name, item in value.items()})
    if typing.get_origin(hint) is tuple:
        return tuple(_made(kinds[0], item) for item in value)
    array = hint is np.ndarray or isinstance(value, list)
    return np.asarray(value, np.float64) if array else value
