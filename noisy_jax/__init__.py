"""noisy_jax: learning from noisy data, judged on clean data.

A room is imported when one of its names is first used (PEP 562), so `import noisy_jax` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.version import __version__ as __version__
from noisy_jax.version import check_jax, warn_of_wrong_sums

check_jax()
warn_of_wrong_sums()

if TYPE_CHECKING:  # the same names for type checkers and editors
    from noisy_jax import (
        engine,
        kernels,
        learners,
        losses,
        moments,
        noise,
        observed,
        plots,
        privacy,
        robust,
        series,
        simulated,
        unbiased,
        worlds,
    )
    from noisy_jax.base import Learner, Needs, Sample, Stream
    from noisy_jax.learners import wrappers
    from noisy_jax.observed import (
        Learned,
        Selection,
        csv,
        fit,
        fits,
        learn,
        load_fit,
        load_learned,
        methods,
        observations,
        reliability,
        sd,
        select,
        table,
    )
    from noisy_jax.simulated import (
        Estimate,
        Rollout,
        Study,
        adversaries,
        bounds,
        comparators,
        monte_carlo,
        rollout,
        streams,
        study,
        tuned,
    )

__all__ = [
    "Estimate",
    "Learned",
    "Learner",
    "Needs",
    "Rollout",
    "Sample",
    "Selection",
    "Stream",
    "Study",
    "adversaries",
    "bounds",
    "comparators",
    "csv",
    "engine",
    "fit",
    "fits",
    "kernels",
    "learn",
    "learners",
    "load_fit",
    "load_learned",
    "losses",
    "methods",
    "moments",
    "monte_carlo",
    "noise",
    "observations",
    "observed",
    "plots",
    "privacy",
    "reliability",
    "robust",
    "rollout",
    "sd",
    "select",
    "series",
    "simulated",
    "streams",
    "study",
    "table",
    "tuned",
    "unbiased",
    "worlds",
    "wrappers",
]

_HOLDS = {
    "base": "Learner Needs Sample Stream",
    "observed": "Learned Selection csv fit fits learn load_fit load_learned methods "
    "observations reliability sd select table",
    "simulated": "Estimate Rollout Study adversaries bounds comparators monte_carlo rollout "
    "streams study tuned",
}
"""The public names that are not rooms, by the room that holds them."""

_ROOM = {name: room for room, names in _HOLDS.items() for name in names.split()}

_RENAMED = {"wrappers": "learners.wrappers"}
"""Modules whose public name is not their own."""

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """A public name at its first use; Python then finds it without this function."""
        if name not in __all__:
            refuse(__name__, name)
        room = _RENAMED.get(name) or _ROOM.get(name, name)
        module = importlib.import_module(f"noisy_jax.{room}")
        globals()[name] = value = getattr(module, name) if name in _ROOM else module
        return value


def __dir__() -> list[str]:
    """Names for tab completion: public names, and no modules that hold them."""
    return [*__all__, "__version__"]
