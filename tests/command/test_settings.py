import argparse
import dataclasses

import pytest

from noisy_jax.command.settings import SeededSettings, at_least, option
from noisy_jax.validation.numbers import positive


@dataclasses.dataclass(frozen=True)
class Example(SeededSettings):
    """An example.

    Examples:
      python -m noisy_jax example
    """

    width: float = option(2.0, "100% of the width", metavar="W", check=positive)
    names: tuple[str, ...] = option(("a",), "which", choices=("a", "b"))
    rounds: tuple[int, ...] | None = option(None, "how many", check=None, fast=(4, 8))
    seeds: int = option(3, "draws", check=at_least(2))


def parsed(*words):
    parser = argparse.ArgumentParser()
    Example.add_options(parser)
    return Example.parsed(parser.parse_args(words)), parser.format_help()


def test_options_are_the_fields_with_their_types_and_defaults():
    settings, text = parsed()
    assert settings == Example()
    settings, _ = parsed("--width", "3", "--names", "b", "a", "--rounds", "4", "5", "--seed", "7")
    assert settings == Example(width=3.0, names=("b", "a"), rounds=(4, 5), seed=7)
    assert "100% of the width (default: 2)" in text
    assert "which (default: a)" in text
    assert text.index("--width") < text.index("--seed ")  # the study's own come first
    assert parsed("--width", "2", "--seed", "0")[0] == Example()
    assert Example.summary() == "An example"
    assert Example.examples() == ["python -m noisy_jax example"]


def test_the_fast_mode_replaces_what_is_not_given():
    assert Example.fast() == {"rounds": (4, 8)}
    settings, text = parsed("--fast", "--seed", "7")
    assert settings == Example(rounds=(4, 8), seed=7)
    assert "use small settings: --rounds 4 8" in text
    assert parsed("--rounds", "16", "--fast")[0] == Example(rounds=(16,))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": 0.0}, "--width must be positive and finite, got 0.0"),
        ({"names": ("c",)}, "--names must be 'a' or 'b', got 'c'"),
        ({"seeds": 1}, "--seeds must be a whole number of at least 2, got 1"),
        ({"seed": 2**32}, "--seed must be a whole number from 0"),
    ],
)
def test_settings_made_in_python_are_checked_as_well(values, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        Example(**values)
