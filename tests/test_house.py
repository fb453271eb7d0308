"""The order of the rooms: a room imports only from the floors below its own."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = (
    ("validation", "running", "xla", "version", "gone", "varying", "warning"),
    ("base", "series", "linalg", "tabular", "reports", "features", "draws"),
    ("noise", "kernels", "plots"),
    ("losses", "worlds", "privacy"),
    ("unbiased",),
    ("moments", "engine", "robust"),
    ("learners",),
    ("observed", "simulated"),
    ("sklearn",),
    ("command",),
)
"""Rooms of `noisy_jax/`, from the ground up. Rooms of a floor do not import each other."""

TESTED_IN = {
    "base": "learners/test_contract",
    "command/regret": "command/test_linear",
    "command/stated": "command/test_fit",
    "engine/windows": "engine/test_memory",
    "kernels/distances": "kernels/test_kernel",
    "learners/corrected_leader": "learners/test_corrected_ftrl",
    "learners/known_covariance": "learners/test_gradient_descent",
    "learners/perceptron": "learners/test_norma",
    "learners/several_copies": "learners/test_two_copies",
    "learners/wrappers/assuming": "learners/wrappers/test_noiseless",
    "learners/wrappers/dependence": "learners/wrappers/test_mixture",
    "learners/wrappers/paired": "learners/wrappers/test_mixture",
    "learners/wrappers/swept": "learners/wrappers/test_mixture",
    "observed/fits/black_boxes": "observed/fits/test_simex",
    "observed/fits/characteristics": "observed/fits/test_fourier",
    "observed/fits/choices": "observed/fits/test_hidden",
    "observed/fits/clean_errors": "observed/test_cross_fitting",
    "observed/fits/doubts": "observed/fits/test_assumptions",
    "observed/fits/features": "observed/fits/test_fit",
    "observed/fits/functions": "observed/fits/test_fourier",
    "observed/fits/groups": "observed/fits/test_parts_jackknife",
    "observed/fits/judged": "observed/test_cross_fitting",
    "observed/fits/linear_equations": "observed/fits/test_linear",
    "observed/fits/model_minimum": "observed/fits/test_model",
    "observed/fits/result": "observed/fits/test_estimates",
    "observed/fits/template": "observed/fits/test_fit",
    "observed/fits/replicates": "observed/fits/test_assumptions",
    "observed/fits/trials": "observed/fits/test_fourier",
    "observed/fits/units": "observed/fits/test_linear",
    "noise/characteristic": "noise/test_base",
    "observed/observations/errors": "observed/observations/test_tables_of_incomplete_replicates",
    "observed/observations/known": "observed/observations/test_described",
    "observed/observations/labels": "observed/observations/test_arrays",
    "observed/observations/measured": "observed/observations/test_tables",
    "observed/observations/pooled": "observed/observations/test_tables_of_incomplete_replicates",
    "observed/observations/rows": "observed/observations/test_tables",
    "observed/learned": "observed/test_learning",
    "robust/subquantile/starts": "robust/subquantile/test_fits",
    "simulated/adversaries/ascent": "simulated/adversaries/test_search",
    "simulated/bounds/as_printed": "simulated/bounds/test_linear",
    "simulated/configuration": "simulated/test_results",
    "simulated/entries": "simulated/test_programs",
    "simulated/estimates": "simulated/test_montecarlo",
    "unbiased/continuation": "unbiased/test_entire",
    "unbiased/control": "unbiased/test_entire",
    "unbiased/rules": "unbiased/test_entire",
    "unbiased/truncation/cutoffs": "unbiased/truncation/test_gradients",
    "unbiased/truncation/worlds": "unbiased/truncation/test_maps",
    "tabular/texts": "tabular/test_columns",
    "version": "test_package",
    "worlds/mixtures": "worlds/test_radial_kernels",
}
"""Modules without a file of tests of their name, and the file that tests them."""

WHOLE_ROOM = {
    "engine/test_arguments",
    "learners/test_arguments",
    "learners/test_contents",
    "learners/test_contract",
    "learners/test_portability",
    "losses/test_arguments",
    "observed/test_coverage",
    "observed/test_public_cases",
}
"""Files of tests that run through all modules of a room."""

FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def rooms_and_imports() -> Iterator[tuple[str, str, str]]:
    """Each import inside the package: the room, the room that it imports from, and the place."""
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
                    yield parts[0], below, f"{'/'.join(parts)}.py:{node.lineno}"


def test_every_room_has_a_floor():
    folder = ROOT / "noisy_jax"
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    rooms |= {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    assert rooms == {*FLOOR}


def test_a_room_imports_only_from_the_floors_below():
    upward = [
        f"{place}: {room} imports {other}"
        for room, other, place in rooms_and_imports()
        if room != other and FLOOR.get(other, len(FLOORS)) >= FLOOR[room]
    ]
    assert upward == []


def test_contributing_shows_the_floors():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text.split("## Where things are")[1].split("Beside the package")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = [sorted({*re.findall(r"`(\w+)(?:/|\.py)`", row)}) for row in rows]
    assert shown == [sorted(rooms) for rooms in FLOORS]


def test_files_that_guides_name_exist():
    """Files of the package also by their paths inside it; examples may be missing."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
    lacking = {n for n in named if not any((ROOT / at / n).exists() for at in ("", "noisy_jax"))}
    examples = {re.sub("^test_", "", Path(name).stem) for name in lacking}
    assert examples == {"both_orders", "waves", "shrinkage"}


@pytest.mark.parametrize("folder", ["observed/fits", "observed/observations"])
def test_a_folder_of_many_files_says_where_to_read(folder):
    folder = ROOT / "noisy_jax" / folder
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules <= {*re.findall(r"`(\w+)`", text)}


def paths(folder: str, pattern: str) -> set[str]:
    """Python files in a folder and below, as paths without their ending."""
    found = [path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob(pattern)]
    return {str(path.with_suffix("")) for path in found if not path.name.startswith("__")}


MODULES, FILES = paths("noisy_jax", "*.py"), paths("tests", "test_*.py")
NAMES = {module: re.sub(r"(\w+)$", r"test_\1_", module) for module in MODULES}
"""`room/module` -> `room/test_module_`."""


def test_every_module_has_a_file_of_tests():
    """Of its name, also with more words after it, or the one in `TESTED_IN`."""
    without = {m for m in MODULES if not any(f"{file}_".startswith(NAMES[m]) for file in FILES)}
    assert without == {*TESTED_IN}
    assert {*TESTED_IN.values()} <= FILES


def test_every_file_of_tests_in_a_room_has_a_module():
    rooms = {file for file in FILES if "/" in file and not file.startswith("papers/")}
    names = tuple(NAMES.values())
    assert {file for file in rooms if not f"{file}_".startswith(names)} == WHOLE_ROOM
