"""The command line: `python -m noisy_jax [STUDY]`."""

import argparse
import inspect
import sys
from collections.abc import Sequence

from noisy_jax.studies import (
    contamination,
    drift,
    fit,
    kernel,
    leader,
    linear,
    novelty,
    one_copy,
    paid_features,
    runner,
    tightness,
    tuning,
    unknown_noise,
    worlds,
)
from noisy_jax.studies.compiled import collect_seldom, inline_loops, keep_compiled, use_all_cores

STUDIES = {
    "linear": linear,
    "fit": fit,
    "leader": leader,
    "kernel": kernel,
    "tuning": tuning,
    "worlds": worlds,
    "drift": drift,
    "novelty": novelty,
    "one-copy": one_copy,
    "tightness": tightness,
    "paid-features": paid_features,
    "unknown-noise": unknown_noise,
    "contamination": contamination,
}
"""Studies by name; the first one runs if none is named."""


def parser() -> argparse.ArgumentParser:
    """The command line's parser: a sub-command for each study, whose options are its settings."""
    layout = argparse.RawDescriptionHelpFormatter
    width = max(map(len, STUDIES))
    some = STUDIES["linear"].Settings.examples() + STUDIES["fit"].Settings.examples()[:1]
    examples = (f"  {line}" for line in some)
    every = argparse.ArgumentParser(
        prog="python -m noisy_jax",
        description="Learning from noisy data, judged on clean data.",
        epilog="\n".join(
            ("More on a study: python -m noisy_jax STUDY --help\n\nexamples:", *examples)
        ),
        formatter_class=layout,
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
        options = studies.add_parser(
            name, description=inspect.getdoc(study.Settings), formatter_class=layout
        )
        study.Settings.add_options(options)
        options.add_argument(
            "--out",
            default="noisy_jax_results",
            metavar="FOLDER",
            help="folder for the results (default: noisy_jax_results)",
        )
    return every


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a study; returns the exit status: 1 if results could not be saved, 2 for bad input."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments = [next(iter(STUDIES)), *arguments]
    options = parser().parse_args(arguments)
    study = STUDIES[options.study]
    try:
        return runner.run(options.study, study, study.Settings.parsed(options), options.out)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
    except ImportError as error:
        print(f"error: {error}; studies need: pip install 'noisy_jax[demo]'", file=sys.stderr)
    return 2


if __name__ == "__main__":
    collect_seldom()
    keep_compiled()
    use_all_cores()
    inline_loops()
    sys.exit(main())
