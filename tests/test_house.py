"""The order of the rooms: a room imports only from the floors below its own."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = (
    ("validation", "intervals", "running", "sums", "processes", "version"),
    ("base", "series", "matrices", "ball", "columns", "csv_files", "saving", "features"),
    ("noise", "kernels", "checkpoints", "tables"),
    ("losses", "worlds", "privacy"),
    ("unbiased",),
    ("moments", "engine", "robust"),
    ("learners",),
    ("observed", "simulated"),
    ("plots",),
    ("command",),
)
"""Rooms of `noisy_jax/`, from the ground up. Rooms of a floor do not import each other."""

FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def rooms_and_imports() -> list[tuple[str, str, str]]:
    """Each import inside the package: the room, the room that it imports from, and the place."""
    found = []
    for path in sorted((ROOT / "noisy_jax").rglob("*.py")):
        parts = path.relative_to(ROOT / "noisy_jax").with_suffix("").parts
        if parts[0] in ("__init__", "__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name.name}" for name in node.names]
            for name in names:
                if name.split(".")[0] == "noisy_jax":
                    below = [*name.split("."), ""][1]
                    found.append((parts[0], below, f"{'/'.join(parts)}.py:{node.lineno}"))
    return found


def test_every_room_has_a_floor():
    folder = ROOT / "noisy_jax"
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    rooms |= {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    assert rooms == {*FLOOR}


@pytest.mark.parametrize("floor", range(len(FLOORS)))
def test_a_room_imports_only_from_the_floors_below(floor):
    upward = [
        f"{place}: {room} imports {other}"
        for room, other, place in rooms_and_imports()
        if FLOOR[room] == floor and room != other and FLOOR.get(other, len(FLOORS)) >= floor
    ]
    assert upward == []


def test_contributing_shows_the_floors():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text.split("## Where things are")[1].split("Beside the package")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = [sorted({*re.findall(r"`(\w+)(?:/|\.py)`", row)}) for row in rows]
    assert shown == [sorted(rooms) for rooms in FLOORS]
