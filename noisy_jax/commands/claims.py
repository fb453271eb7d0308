"""The command `claims`: what the papers claim, whether it holds, and which test shows it."""

import argparse
from pathlib import Path

from noisy_jax import claims
from noisy_jax.commands import experiment
from noisy_jax.validation import writable_folder

SUMMARY = "every claim of the papers: whether it holds, and what shows it"

DESCRIPTION = """\
Which of the papers' claims hold as printed, which had to be corrected, and where is that shown?

Prints all claims, or those of the statuses named, and writes the same with the tests that show
them to claims.md.
"""

EXAMPLES = """\
  python -m noisy_jax claims
  python -m noisy_jax claims --status contradicted "not computable"
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    known = ", ".join(claims.STATUSES)
    parser.add_argument(
        "--status", nargs="+", metavar="STATUS", help=f"any of: {known} (default: all)"
    )
    experiment.add_out(parser)


def run(options: argparse.Namespace) -> Path:
    """Prints the claims asked for, and writes the page of them."""
    wanted = claims.STATUSES if options.status is None else options.status
    unknown = [status for status in wanted if status not in claims.STATUSES]
    if unknown:
        raise ValueError(
            f"--status must be any of {', '.join(claims.STATUSES)}, got {', '.join(unknown)}"
        )
    folder = writable_folder(options.out)
    chosen = [claim for claim in claims.CLAIMS if claim.status in wanted]
    (folder / "claims.md").write_text(claims.page(chosen), encoding="utf-8")
    width = max(len(claim.id) for claim in chosen)
    for claim in chosen:
        print(f"{claim.id:<{width}}  {claim.status:<14}  {claim.statement} {claim.reason}".rstrip())
    totals = ", ".join(f"{count} {status}" for status, count in claims.counts(chosen))
    print(f"\n{len(chosen)} claims: {totals}.\n\nSaved in {folder}/")
    return folder
