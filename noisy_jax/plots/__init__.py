"""Pictures of results, by matplotlib, which is imported where a picture is made.

Each function draws on the axes that it is given, or on new ones, and returns them. It raises
ImportError if matplotlib is not installed. Learners differ by colour and by marker or line, so that
pictures can be read in grey. To save a picture::

    nj.plots.regret(study).figure.savefig("regret.png")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.plots.coefficients import coefficients
from noisy_jax.plots.function import function
from noisy_jax.plots.regret import regret
from noisy_jax.plots.risks import risks

__all__ = [
    "coefficients",
    "function",
    "regret",
    "risks",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError that says what to write in place of a name that is gone."""
        refuse(__name__, name)


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
