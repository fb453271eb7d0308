"""What a claim is, and the page of claims."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

REPRODUCED = "reproduced"
CORRECTED = "corrected"
CONTRADICTED = "contradicted"
NOT_COMPUTABLE = "not computable"
DERIVED = "derived here"

STATUSES = {
    REPRODUCED: "right as printed, but for harmless slips",
    CORRECTED: "wrong or incomplete as printed; what is shown is right",
    CONTRADICTED: "false, and nothing is put in its place",
    NOT_COMPUTABLE: "the paper leaves out what a computation would need",
    DERIVED: "in no paper; found for this library",
}
"""What each status says."""


class Claim(NamedTuple):
    """One claim of a paper, or of this library.

    Attributes:
        id: its name, of the paper and the place.
        source: paper and place, with a comma between them.
        status: one of `STATUSES`.
        statement: what is claimed, in one sentence.
        shown_by: the tests, as pytest names them, and the sections of notebooks, such as
            `colabs/errata.ipynb::8`, that show it, from the repository's root.
        reason: what is wrong as printed, or left open; empty where there is nothing to say.
    """

    id: str
    source: str
    status: str
    statement: str
    shown_by: tuple[str, ...]
    reason: str = ""


def counts(claims: Iterable[Claim]) -> list[tuple[str, int]]:
    """(status, number of claims) of each status that occurs, in the order of `STATUSES`.

    Args:
        claims: to be counted.

    Returns:
        The pairs.

    Example:
        >>> claim = Claim("A-1", "A, Theorem 1", "corrected", "1 + 1 = 2.", ("a.py::test_a",))
        >>> counts([claim, claim])
        [('corrected', 2)]
    """
    found = Counter(claim.status for claim in claims)
    return [(status, found[status]) for status in STATUSES if status in found]


def page(claims: Iterable[Claim]) -> str:
    """The claims as a page in Markdown: how many there are of each status, and a table a paper.

    Args:
        claims: in the order of the page, those of a paper together.

    Returns:
        The text of the page.

    Example:
        >>> claim = Claim("A-1", "A, Theorem 1", "reproduced", "1 + 1 = 2.", ("a.py::test_a",))
        >>> print(page([claim]).splitlines()[-1])
        | A-1 | Theorem 1 | reproduced | 1 + 1 = 2. | `a.py::test_a` |
    """
    claims = list(claims)
    lines = ["# Claims", "", "| status | claims | which are |", "|---|---|---|"]
    lines += [f"| {status} | {count} | {STATUSES[status]} |" for status, count in counts(claims)]
    last = None
    for claim in claims:
        paper, place = claim.source.split(", ", 1)
        if paper != last:
            lines += ["", f"## {paper}", ""]
            lines += ["| id | where | status | claim | shown by |", "|---|---|---|---|---|"]
        last = paper
        statement = f"{claim.statement} {claim.reason}".strip()
        shown = "<br>".join(f"`{name}`" for name in claim.shown_by)
        cells = [claim.id, place, claim.status, statement, shown]
        escaped = (cell.replace("|", r"\|") for cell in cells)
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines) + "\n"
