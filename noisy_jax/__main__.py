"""The command line: `python -m noisy_jax [COMMAND]`."""

import argparse
import sys
from collections.abc import Sequence

from noisy_jax.commands import (
    contamination,
    drift,
    kernel,
    linear,
    novelty,
    one_copy,
    unknown_noise,
    worlds,
)

COMMANDS = {
    "linear": linear,
    "kernel": kernel,
    "worlds": worlds,
    "drift": drift,
    "novelty": novelty,
    "one-copy": one_copy,
    "unknown-noise": unknown_noise,
    "contamination": contamination,
}
"""Commands by name; the first runs where none is named."""


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    style = argparse.RawDescriptionHelpFormatter
    width = max(map(len, COMMANDS))
    lines = [f"{name:<{width}}  {command.SUMMARY}" for name, command in COMMANDS.items()]
    examples = "".join(command.EXAMPLES for command in COMMANDS.values())
    every = argparse.ArgumentParser(
        prog="python -m noisy_jax",
        description="Learning from noisy data, judged on clean data.",
        epilog=f"Options of a command: python -m noisy_jax COMMAND --help\n\nexamples:\n{examples}",
        formatter_class=style,
    )
    commands = every.add_subparsers(
        dest="name",
        required=True,
        metavar="COMMAND",
        title="commands",
        description="\n".join(lines),  # argparse's own list breaks the line after long names
    )
    for name, command in COMMANDS.items():
        options = commands.add_parser(
            name,
            description=command.DESCRIPTION,
            epilog=f"examples:\n{command.EXAMPLES}",
            formatter_class=style,
        )
        command.add_options(options)
    return every


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status, 2 for bad input."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments = [next(iter(COMMANDS)), *arguments]
    options = parser().parse_args(arguments)
    command = COMMANDS[options.name]
    try:
        command.run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"error: {error}; the command needs: pip install 'noisy_jax[demo]'", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
