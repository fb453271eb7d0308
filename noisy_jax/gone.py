"""Names that version 0.4.0 no longer has, and what to write in their place."""

GONE: dict[str, dict[str, str]] = {
    "noisy_jax": {
        "evaluate": "its name is nj.simulated",
    },
}
"""By module, then by name: what an error says about it. CHANGELOG.md has code for each."""


def refuse(module: str, name: str) -> None:
    """Raises an AttributeError that says what to write in place of a name that is gone.

    Raises:
        AttributeError: always; for other names with the text that Python itself gives.
    """
    instead = GONE.get(module, {}).get(name)
    if instead is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise AttributeError(f"{module}.{name} left in version 0.4.0: {instead}")
