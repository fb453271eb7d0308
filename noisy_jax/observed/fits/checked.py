"""The table of a fit, checked: a message with the right call where something else stands for it."""

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any

from noisy_jax.observed.fits.parts import TableMoments
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.beside import ROLES, with_roles
from noisy_jax.validation import collected, given, instance


def read_once(method: Any) -> None:
    """Replaces options of a method that are iterators by tuples, as a fit may be called again."""
    for field in dataclasses.fields(method):
        object.__setattr__(method, field.name, collected(getattr(method, field.name)))


def one_table(method: Any, observations: Any) -> Observations:
    """The table of a method that takes no chunks, with its weights, clusters and exposure."""
    name = f"nj.methods.{type(method).__name__}"
    if isinstance(checked_table(observations), Iterable):
        raise ValueError(f"chunks are for nj.methods.Linear; {name} takes one table")
    options = {role: getattr(method, role) for role in ROLES if hasattr(method, role)}
    return with_roles(observations, options, name)


def checked_table(observations: Any) -> Any:
    """A table or chunks; ValueError with the right call if x, or a file's name, stands for one."""
    if isinstance(observations, str | os.PathLike):
        name = os.fspath(observations)
        call = f"nj.fit(nj.csv({name!r}, target=…, noise=…))"
        raise ValueError(f"fit takes a table, got the path {name!r}; read the file: {call}")
    call = "nj.fit(nj.observations.from_arrays(x, y, noise=…))"
    # A list may hold chunks; a list of rows, an array and a data frame are features alone.
    listed = observations[:1] if isinstance(observations, list | tuple) else []
    features = any(not isinstance(one, Observations | TableMoments) for one in listed)
    if features or hasattr(observations, "shape"):
        raise ValueError(
            "fit takes one table of x, y and what is known of the noise, got "
            f"{given(observations)}: {call}"
        )
    if isinstance(observations, Iterator):
        first = next(observations, None)
        rest = itertools.chain([] if first is None else [first], observations)
        return tuple(rest) if isinstance(first, TableMoments) else rest
    if isinstance(observations, Iterable):
        return observations
    return instance("observations", observations, Observations, f"as in {call}")
