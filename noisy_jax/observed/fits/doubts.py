"""Doubts about a table: an assumption that its rows contradict, and how that is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from noisy_jax.warning import warn

LEVEL = 0.01
"""Probability of a doubt about a table that obeys the assumptions."""
BELOW = (
    "the error on clean data is estimated below 0 by more than chance: the stated noise may be too "
    "large (a standard deviation in place of a variance?), depend on the target (state cross_cov), "
    "or have heavy tails"
)
"""Text of a doubt about the stated noise, in any fit by squared errors."""


class AssumptionWarning(UserWarning):
    """Warning about the rows of a table, which `nj.fit`, `nj.learn` and `nj.select` give.

    The rows contradict an assumption of the correction (such as noise that is independent of the
    clean value), some rows are left out, or a part of the error of measurement is not taken away.
    Its text says what to do, and names the columns if it is about some of them. A fit has the same
    texts in `remarks`.

    Example:
        >>> import warnings, numpy as np, noisy_jax as nj
        >>> x = np.random.default_rng(0).integers(0, 2, size=(200, 1))  # noisy, but of two values
        >>> table = nj.observations.from_arrays(x, 2.0 * x[:, 0], noise=0.05)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = nj.fit(table)
        >>> print(caught[0].category.__name__)
        AssumptionWarning
    """


class Doubt(NamedTuple):
    """An assumption that a table contradicts."""

    text: str  # what contradicts it and what to do, in one line
    spoils: bool = True  # whether the correction is wrong without the assumption


class Finding(NamedTuple):
    """A column that contradicts an assumption."""

    name: str
    how: str = ""

    def __str__(self) -> str:
        """The name of the column, with the evidence in brackets."""
        return f"{self.name!r} ({self.how})" if self.how else repr(self.name)


class Check(NamedTuple):
    """An assumption that columns may contradict, and the sentence that then tells it."""

    find: Callable[..., Sequence[Finding]]
    text: str  # with the findings in place of its first …, the name of the first one for {first}
    spoils: bool = True  # as in `Doubt`

    def doubts(self, *checked: Any) -> list[Doubt]:
        """Returns a doubt about the columns that `find` finds, the first three by name."""
        findings = self.find(*checked)
        if not findings:
            return []
        more = f" and {len(findings) - 3} more" if len(findings) > 3 else ""
        text = self.text.replace("{first}", repr(findings[0].name))
        # Names, in which anything may stand, are behind the first … only.
        return [Doubt(text.replace("…", ", ".join(map(str, findings[:3])) + more, 1), self.spoils)]


def with_warnings(doubts: Sequence[Doubt]) -> Sequence[Doubt]:
    """Returns the same doubts, each also a warning."""
    for doubt in doubts:
        warn(doubt.text, AssumptionWarning)
    return doubts
