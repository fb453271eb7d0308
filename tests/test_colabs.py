"""The notebooks: as they are stored, and executed in their fast mode.

Executing them takes minutes: deselected by default, `pytest -m notebook tests/test_colabs.py` does.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import jax
import nbformat
import pytest

import noisy_jax as nj

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "colabs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
ADDRESS = "https://colab.research.google.com/github/noisy-jax/noisy_jax/blob/main/colabs/{}.ipynb"
BESIDE = {"jax", "noisy_jax", "numpy", "optax", "matplotlib", "sklearn"} | {
    path.stem for path in (FOLDER / "papers").glob("*.py")
}
"""What a runtime with JAX, or the library, brings; and the scripts beside the notebooks."""
LARGEST_PICTURE, LARGEST_NOTEBOOK = 200_000, 1_000_000  # bytes


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def notebook(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _markdown(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def test_the_readme_lists_all_notebooks_and_each_links_to_the_next():
    text = (ROOT / "README.md").read_text("utf-8")
    (line,) = re.findall(r"^\[Notebooks\]\(colabs\).*$", text, re.MULTILINE)
    order = re.findall(r"`(\w+)`", line)
    assert sorted(order) == NAMES
    assert order[0] == "quickstart"
    for name, after in zip(order, [*order[1:], None], strict=True):
        last = _markdown(nbformat.read(FOLDER / f"{name}.ipynb", as_version=4))[-1]
        expected = [] if after is None else [after]
        assert re.findall(r"^Next: \[`(\w+)`\]\(\1\.ipynb\)", last, re.MULTILINE) == expected, name


def test_stored_with_the_outputs_of_one_full_run(name, notebook):
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)  # cells have ids
    assert notebook.metadata.language_info == {"name": "python"}
    assert [cell.id for cell in notebook.cells if cell.metadata] == []
    outputs = [output for cell in _code(notebook) for output in cell.outputs]
    counts = [cell.execution_count for cell in _code(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    kinds = {output.output_type for output in outputs}
    assert kinds <= {"stream", "display_data", "execute_result"}
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    printed = "".join(output.get("text", "") for output in outputs)
    assert re.search(r"^noisy_jax [\d.]+, jax [\d.]+, on ", printed, re.MULTILINE)
    assert not re.search(r"Warning|/tmp/|/home/|/work/", printed)
    data = [output.get("data", {}) for output in outputs]
    pictures = [each["image/png"] for each in data if "image/png" in each]
    draws = any(re.search(r"plt\.|figure", cell.source) for cell in _code(notebook))
    assert bool(pictures) == draws
    assert max(map(len, pictures), default=0) < LARGEST_PICTURE
    assert (FOLDER / f"{name}.ipynb").stat().st_size < LARGEST_NOTEBOOK


def test_opens_with_a_question_and_ends_with_limits(name, notebook):
    title, badge, text, time = notebook.cells[0].source.split("\n\n")
    assert title.startswith("# ")
    assert re.findall(r"\]\((https://colab[^)]*/blob/[^)]*)\)", badge) == [ADDRESS.format(name)]
    assert "?" in text
    assert time.startswith("*Run time: ")
    last = notebook.cells[-1]
    assert last.cell_type == "markdown"
    assert last.source.startswith("## When not to use this\n")


def test_uses_public_names_only(notebook):
    for cell in _code(notebook):
        source = re.sub(r"^(\s*)[%!].*$", r"\1pass", cell.source, flags=re.MULTILINE)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found = [a.name for a in node.names if a.name.startswith("noisy_jax")]
                assert found in ([], ["noisy_jax"])
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("noisy_jax"):
                assert node.module == "noisy_jax.command"  # what `python -m noisy_jax` runs
            if isinstance(node, ast.Attribute):
                module = _module(node.value)
                if module is not None:
                    public = getattr(module, "__all__", dir(module))
                    assert node.attr in [*public, "__version__"], ast.unparse(node)
                assert not re.match("_[^_]", node.attr) or node.attr == "_replace"


def _module(node):
    """The public module of the library that an expression such as `nj.learners` is, or `None`."""
    if isinstance(node, ast.Name) and node.id == "nj":
        return nj
    if isinstance(node, ast.Attribute) and (parent := _module(node.value)) is not None:
        found = getattr(parent, node.attr, None)
        return found if isinstance(found, ModuleType) else None
    return None


def test_install_cell_leaves_jax_alone_and_installs_what_is_imported(notebook):
    installs = [cell.source for cell in _code(notebook) if "pip install" in cell.source]
    assert installs == [_code(notebook)[0].source]
    *others, words = installs[0].split("%pip install ")
    assert 'if importlib.util.find_spec("noisy_jax") is None:' in others[-1]
    assert "--no-deps" in words.split()
    packages = " ".join(re.findall("%pip install (.*)", installs[0])).split()
    assert not [package for package in packages if re.match(r"jax(lib)?\b", package)]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    colabs = " ".join(extras["optional-dependencies"]["colabs"])
    source = "\n".join(cell.source for cell in _code(notebook))
    imported = set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE))
    for name in imported - set(sys.stdlib_module_names) - BESIDE:
        assert re.search(rf"\b{name}\b", "".join(others)), name  # also where noisy_jax is there
        assert f"{name}>=" in colabs


def test_links_lead_to_notebooks(notebook):
    linked = re.findall(r"\]\((\w+)\.ipynb\)", "\n".join(_markdown(notebook)))
    assert set(linked) <= set(NAMES)


@pytest.mark.notebook
def test_runs(notebook, tmp_path, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.setenv("NOISY_JAX_FAST", "1")
    (tmp_path / "papers").symlink_to(FOLDER / "papers")
    assert any("NOISY_JAX_FAST" in cell.source for cell in _code(notebook))
    kernel = {"kernel_name": "python3", "resources": {"metadata": {"path": tmp_path}}}
    NotebookClient(notebook, timeout=300, **kernel).execute()
    outputs = [output for cell in _code(notebook) for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    printed = "".join(output.text for output in outputs if output.get("name") == "stdout")
    versions = f"noisy_jax {nj.__version__}, jax {jax.__version__}, "
    (line,) = (line for line in printed.splitlines() if versions in line)
    assert line.endswith(f"on {jax.devices()[0].device_kind}")
