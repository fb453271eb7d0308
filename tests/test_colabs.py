"""The notebooks: as they are stored, and executed in their fast mode.

Executing them takes minutes: deselected by default, `pytest -m notebook tests/test_colabs.py` does.
"""

import re
from pathlib import Path

import jax
import nbformat
import pytest

import noisy_jax as nj

FOLDER = Path(__file__).parent.parent / "colabs"
EXECUTED = {
    "quickstart",
    "noisy_measurements",
    "worst_case",
    "errata",
    "kernels",
    "which_learner",
    "unknown_noise",
    "private_features",
}
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
ADDRESS = "https://colab.research.google.com/github/noisy-jax/noisy_jax/blob/main/colabs/{}.ipynb"


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def notebook(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert {"quickstart", "which_learner", "kernels", "unknown_noise"} | EXECUTED <= set(NAMES)


def test_stored_in_the_format_without_outputs(name, notebook):
    """Or, where readers should see results without running it, with those of one full run."""
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)  # cells have ids
    outputs = [output for cell in _code(notebook) for output in cell.outputs]
    counts = [cell.execution_count for cell in _code(notebook)]
    if name not in EXECUTED:
        assert outputs == []
        assert set(counts) == {None}
        return
    assert counts == list(range(1, len(counts) + 1))
    assert {output.output_type for output in outputs} <= {
        "stream",
        "display_data",
        "execute_result",
    }
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    pictures = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    assert bool(pictures) == (name != "errata")  # which draws nothing
    assert max(map(len, pictures), default=0) < 200_000


def test_head_has_a_title_the_badge_and_the_run_time(name, notebook):
    head = notebook.cells[0].source
    assert head.startswith("# ")
    assert re.findall(r"\]\((https://colab[^)]*/blob/[^)]*)\)", head) == [ADDRESS.format(name)]
    assert "*Run time: " in head


def test_install_cell_leaves_jax_alone(notebook):
    installs = [cell.source for cell in _code(notebook) if "pip install" in cell.source]
    assert installs == [_code(notebook)[0].source]
    assert 'if importlib.util.find_spec("noisy_jax") is None:' in installs[0]
    _, words = installs[0].split("%pip install ")
    assert "--no-deps" in words.split()
    assert not [word for word in words.split() if word.startswith("jax")]


def test_links_lead_to_notebooks(notebook):
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    linked = {link for text in texts for link in re.findall(r"\]\((\w+)\.ipynb\)", text)}
    assert linked <= set(NAMES)


@pytest.mark.notebook
def test_runs(notebook, tmp_path, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.setenv("NOISY_JAX_FAST", "1")
    assert any("NOISY_JAX_FAST" in cell.source for cell in _code(notebook))
    kernel = {"kernel_name": "python3", "resources": {"metadata": {"path": tmp_path}}}
    NotebookClient(notebook, timeout=300, **kernel).execute()
    outputs = [output for cell in _code(notebook) for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    printed = "".join(output.text for output in outputs if output.get("name") == "stdout")
    versions = f"noisy_jax {nj.__version__}, jax {jax.__version__}, "
    (line,) = (line for line in printed.splitlines() if versions in line)
    assert line.endswith(f"on {jax.devices()[0].device_kind}")
