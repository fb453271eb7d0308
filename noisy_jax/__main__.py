"""The command line: `python -m noisy_jax [STUDY]`."""

import argparse
import sys
from collections.abc import Sequence

from noisy_jax.command import fit, kernel, linear, runner
from noisy_jax.command.compiled import prepare

STUDIES = {"linear": linear, "fit": fit, "kernel": kernel}
"""Studies by name; the first one runs if none is named."""

PAPERS = (
    "contamination",
    "drift",
    "leader",
    "networks",
    "novelty",
    "one_copy",
    "paid_features",
    "scale",
    "tightness",
    "tuning",
    "unknown_noise",
    "worlds",
)
"""Scripts in colabs/papers/ of the repository: figures and tables of the papers."""

SCRIPTS = f"""figures and tables of the papers are scripts of the repository:
  python colabs/papers/NAME.py
  {", ".join(PAPERS)}
  https://github.com/noisy-jax/noisy_jax/tree/main/colabs/papers"""


def parser() -> argparse.ArgumentParser:
    """The command line's parser: a sub-command for each study, whose options are its settings."""
    width = max(map(len, STUDIES))
    some = STUDIES["linear"].Settings.examples() + STUDIES["fit"].Settings.examples()[:1]
    examples = (f"  {line}" for line in some)
    every = argparse.ArgumentParser(
        prog="python -m noisy_jax",
        description="Learning from noisy data, judged on clean data.",
        epilog="\n".join(
            ("More on a study: python -m noisy_jax STUDY --help\n\nexamples:", *examples)
        )
        + f"\n\n{SCRIPTS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    lines = (f"{name:<{width}}  {study.Settings.summary()}" for name, study in STUDIES.items())
    studies = every.add_subparsers(
        dest="study",
        required=True,
        metavar="STUDY",
        title="studies",
        description="\n".join(lines),  # argparse's own list breaks the line after long names
    )
    for name, study in STUDIES.items():
        runner.add_options(studies.add_parser(name), study.Settings)
    return every


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a study; returns the exit status: 1 if results could not be saved, 2 for bad input."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments = [next(iter(STUDIES)), *arguments]
    if arguments[0] not in STUDIES and not arguments[0].startswith("-"):
        known = ", ".join(STUDIES)
        print(f"error: unknown study {arguments[0]!r}; known are {known}", file=sys.stderr)
        print(SCRIPTS, file=sys.stderr)
        return 2
    options = parser().parse_args(arguments)
    study = STUDIES[options.study]
    return runner.main(options.study, study.run, study.Settings, options)


if __name__ == "__main__":
    prepare()
    sys.exit(main())
