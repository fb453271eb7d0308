"""The table of a fit, checked: for methods that do not have the template yet."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from noisy_jax.observed.fits.template import checked_table
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.beside import ROLES, with_roles
from noisy_jax.validation import collected


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
