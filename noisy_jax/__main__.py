"""The command line: `python -m noisy_jax [STUDY]`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

STUDIES = ("linear", "fit")
"""Names of studies; the first one runs if none is named."""

PAPERS = (
    "contamination",
    "drift",
    "kernel",
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


def study(name: str) -> Any:
    """The module of a study, which is imported, and JAX with it, when it is asked for."""
    return importlib.import_module(f"noisy_jax.command.{name}")


def parser(names: Sequence[str] = STUDIES) -> argparse.ArgumentParser:
    """The command line's parser: a sub-command for each study, whose options are its settings."""
    from noisy_jax.command import runner

    width, settings = max(map(len, names)), {name: study(name).Settings for name in names}
    some = [example for own in settings.values() for example in own.examples()][:4]
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
    lines = (f"{name:<{width}}  {own.summary()}" for name, own in settings.items())
    studies = every.add_subparsers(
        dest="study",
        required=True,
        metavar="STUDY",
        title="studies",
        description="\n".join(lines),  # argparse's own list breaks the line after long names
    )
    for name, own in settings.items():
        runner.add_options(studies.add_parser(name), own)
    return every


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a study; returns the exit status: 1 if results could not be saved, 2 for bad input."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments = [STUDIES[0], *arguments]
    if arguments[0] in PAPERS:
        script = f"python colabs/papers/{arguments[0]}.py"
        print(f"error: {arguments[0]} is a script of the repository: {script}", file=sys.stderr)
        return 2
    if arguments[0] not in STUDIES and not arguments[0].startswith("-"):
        known = ", ".join(STUDIES)
        print(f"error: unknown study {arguments[0]!r}; known are {known}", file=sys.stderr)
        print(SCRIPTS, file=sys.stderr)
        return 2
    from noisy_jax.command import runner

    named = [name for name in STUDIES if name == arguments[0]]
    options = parser(named or STUDIES).parse_args(arguments)
    chosen = study(options.study)
    return runner.main(options.study, chosen.run, chosen.Settings, options)


if __name__ == "__main__":
    print("Importing JAX …", file=sys.stderr, flush=True)
    # Why, says noisy_jax.command.compiled. A process that has imported JAX hands down its "1".
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") == "1":
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    from noisy_jax.command.compiled import prepare

    prepare()
    sys.exit(main())
