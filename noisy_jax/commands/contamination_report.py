"""What the command `contamination` says of its results: rows, tables, conclusions."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One method on one kind of corrupted table.

    Attributes:
        data: name of the data set.
        adversary: who corrupted it.
        method: what was fitted.
        share: ε, true share of corrupted rows.
        told: the share that the trimmed fit was told.
        error: mean over seeds of the root mean squared error on clean test rows.
        low: lower end of its 95% interval.
        high: upper end.
        precision: share of the rows kept that are honest; NaN for methods that keep all.
        recall: share of the honest rows that are kept; NaN likewise.
    """

    data: str
    adversary: str
    method: str
    share: float
    told: float
    error: float
    low: float
    high: float
    precision: float
    recall: float


def curves(rows: Sequence[Row]) -> Mapping[str, Mapping[str, list[tuple[float, float, float]]]]:
    """(error, low, high) by adversary and method, in the order of shares."""
    found: dict = {}
    for row in rows:
        curve = found.setdefault(row.adversary, {}).setdefault(row.method, [])
        curve.append((row.error, max(row.low, 1e-6), row.high))
    return found


def table(rows: Sequence[Row]) -> str:
    """Errors, a line for each adversary and method, a column for each share."""
    shares = list(dict.fromkeys(row.told for row in rows))
    lines = [f"{rows[0].data}: error on clean data (RMSE), by ε"]
    lines.append(" " * 32 + "".join(f"{share:>8g}" for share in shares))
    for first in rows[:: len(shares)]:
        line = [row for row in rows if row[1:3] == first[1:3]]
        head = f"{first.adversary:<15} {first.method:<16}"
        lines.append(head + "".join(f"{row.error:>8.3f}" for row in line))
        if not math.isnan(first.precision):
            head = " " * 16 + f"{'  honest, kept':<16}"
            lines.append(head + "".join(f"{row.precision:>8.0%}" for row in line))
    return "\n".join(lines)


def conclusion(rows: Sequence[Row]) -> str:
    """One paragraph that says where the trimmed fit wins and where it loses, from the numbers."""
    adversaries = list(dict.fromkeys(row.adversary for row in rows if row.adversary != "told"))
    by_name = {(row.adversary, row.method, row.told): row for row in rows}
    shares = sorted({row.told for row in rows})

    def ratios(adversary, rival):
        """Error of the trimmed fit over the rival's by share; NaN where the intervals meet."""
        for share in shares:
            ours = by_name[adversary, "subquantile", share]
            theirs = by_name[adversary, rival, share]
            apart = ours.low > theirs.high or ours.high < theirs.low
            yield share, ours.error / theirs.error if apart else math.nan

    as_good = [
        name
        for name in adversaries
        if all(
            by_name[name, "subquantile", share].error <= 1.1 * by_name[name, "oracle", share].error
            for share in shares
        )
    ]
    words = [
        f"Within 10% of the oracle at every share: {', '.join(as_good) or 'under no adversary'}."
    ]
    for rival in ("ridge", "huber", "zero start"):
        losses = []
        for name in adversaries:
            worse = [(ratio, share) for share, ratio in ratios(name, rival) if ratio > 1]
            if worse:
                ratio, share = max(worse)
                first = min(share for _, share in worse)
                losses.append(
                    f"{name} from ε = {first:g} (at worst {ratio:.1f}-fold, at {share:g})"
                )
        words.append(f"Worse than {rival}: {'; '.join(losses) or 'never'}.")
    largest = shares[-1]
    beyond = [
        f"{name} ({by_name[name, 'oracle', largest].error:.2g} against "
        f"{by_name[name, 'oracle', shares[0]].error:.2g})"
        for name in adversaries
        if by_name[name, "oracle", largest].error > 2 * by_name[name, "oracle", shares[0]].error
    ]
    if beyond:
        words.append(
            f"At ε = {largest:g} more than twice the oracle's own error: {', '.join(beyond)}."
        )
    told = [row for row in rows if row.adversary == "told" and row.method == "subquantile"]
    errors = ", ".join(f"{row.told:g}: {row.error:.3f}" for row in told)
    words.append(f"With {told[0].share:.0%} gross rows, told ε = {errors}.")
    return " ".join(words)


def noisy_conclusion(rows: Sequence[Row], variance: float) -> str:
    """One paragraph that says whether trimming still finds the bad rows, from the numbers."""
    words = [f"Where the honest instances have noise of variance {variance:g} as well:"]
    largest = max(row.share for row in rows)
    for adversary in dict.fromkeys(row.adversary for row in rows):
        last = {
            row.method: row for row in rows if (row.adversary, row.share) == (adversary, largest)
        }
        kept = ", ".join(
            f"{name} keeps {last[name].precision:.1%} honest rows (error {last[name].error:.3f})"
            for name in ("blind", "surrogate", "second copy")
        )
        oracle, blind = last["oracle"].error, last["blind ridge"].error
        words.append(
            f"under {adversary} at ε = {largest:g}, {kept}; oracle {oracle:.3f}, untrimmed and "
            f"blind {blind:.3f}."
        )
    return " ".join(words)
