import ast
import dataclasses
import inspect
import os
import pkgutil
import re
import tempfile
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.reports.saving import writable_folder
from noisy_jax.simulated.configuration import versions
from noisy_jax.version import LOWEST_JAX, WRONG_SUMS
from tests.errors import disk_full, raises
from tests.running import printed

MODULES = [value for name in nj.__all__ if inspect.ismodule(value := getattr(nj, name))]


def test_tab_completion_shows_what_is_public_and_no_module_that_is_imported():
    assert dir(nj) == sorted([*nj.__all__, "__version__"])
    assert {"kernels", "series", "monte_carlo"} <= {*dir(nj)}
    rooms = nj.fits, nj.methods, nj.noise, nj.observations, nj.observed, nj.plots
    for room in (*rooms, nj.privacy, nj.series):
        assert dir(room) == sorted(room.__all__)


def test_a_name_is_what_type_checkers_see():
    block, _ = (node for node in ast.parse(inspect.getsource(nj)).body if isinstance(node, ast.If))
    seen = {}
    for node in block.body:
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                seen[name.name] = pkgutil.resolve_name(f"{node.module}.{name.name}")
    assert {name: getattr(nj, name) for name in nj.__all__} == seen
    with pytest.raises(AttributeError, match="module 'noisy_jax' has no attribute 'kernal'"):
        nj.kernal  # noqa: B018


@pytest.mark.slow
def test_an_import_of_the_package_imports_no_room_and_one_of_all_rooms_computes_nothing():
    code = """
import sys, noisy_jax
print(sorted(m for m in sys.modules if m.startswith(("jax", "noisy_jax"))))
from noisy_jax import *
"""
    # A computation would start JAX's backend, which raises for a platform that does not exist.
    own = ["noisy_jax", "noisy_jax.gone", "noisy_jax.version"]
    expected = f"{['jaxlib', 'jaxlib.version', *own]}\n"
    assert printed("-c", code, JAX_PLATFORMS="none") == expected


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_modules_say_what_is_public_with_signatures_without_unions_of_the_types_of_jax(module):
    shown = 0
    assert sorted({*module.__all__}) == sorted(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            assert value.__module__.startswith(module.__name__), name
        try:
            text = str(inspect.signature(value))
        except (TypeError, ValueError):  # of what cannot be called, such as an alias of a type
            assert not dataclasses.is_dataclass(value), name
            continue
        shown += 1
        assert not re.search(r"Union\[|jaxlib|ForwardRef", text), name
    assert shown


@pytest.mark.parametrize("wing", [nj.observed, nj.simulated])
def test_no_function_of_a_wing_hides_a_module(wing):
    modules = {module.name for module in pkgutil.iter_modules(wing.__path__) if not module.ispkg}
    assert modules
    assert not modules & {*wing.__all__}


def test_the_version_is_that_of_the_configuration_files():
    assert versions()["noisy_jax"] == nj.__version__
    for file, line in {
        "CITATION.cff": f"\nversion: {nj.__version__}\n",
        "CHANGELOG.md": f"\n## [{nj.__version__}] - 20",
    }.items():
        assert line in (Path(__file__).parent.parent / file).read_text("utf-8"), file


@pytest.mark.parametrize("version", ["0.7.2", "0.8.0"])
def test_a_jax_that_is_too_old_is_named_at_the_import(version, tmp_path):
    """Before anything of it is imported; of version 0.8.0 there is only what the import reads."""
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib" / "__init__.py").touch()
    (tmp_path / "jaxlib" / "version.py").write_text(f"__version__ = {version!r}\n")
    code = """
try:
    import noisy_jax
    print("imported")
except ImportError as error:
    print(error)
"""
    root = str(Path(nj.__file__).parents[1])
    found = printed("-c", code, PYTHONPATH=f"{tmp_path}{os.pathsep}{root}")
    if version == "0.8.0":
        assert found == "imported\n"
    else:
        assert found.startswith(f"noisy_jax needs JAX 0.8 or newer, but {version} is installed: ")
        assert 'pip install --upgrade "jax>=0.8"' in found


@pytest.mark.parametrize(("dtype", "rows"), [(np.float64, 16_385), (np.float32, 40_000)])
def test_sums_beside_a_product_are_those_of_their_own_rows(rng, dtype, rows):
    """Those of jaxlib 0.10.2 are not, from 128 KiB on (https://github.com/jax-ml/jax/issues/39103)."""
    x, z = (rng.normal(size=(n, 3)).astype(dtype) for n in (3, rows))
    with jax.enable_x64(dtype == np.float64):
        gram = jax.jit(nj.kernels.gaussian(length_scale=1.0))(x, z)
        scaled = jax.jit(jax.vmap(lambda row: jnp.sum((x @ row) ** 2)))(z)
    assert gram.dtype == dtype
    expected = np.exp(-np.sum((x[:, None] - z[None]) ** 2, axis=-1) / 2)
    np.testing.assert_allclose(gram, expected, atol=1e-5)
    np.testing.assert_allclose(scaled, np.sum((z @ x.T) ** 2, axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("version", WRONG_SUMS)
def test_a_jaxlib_with_wrong_sums_is_excluded_and_an_import_warns_of_it(version):
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    needed = next(n for n in project["project"]["dependencies"] if n.startswith("jaxlib"))
    assert f"!={version}" in needed
    code = f"""
import jaxlib.version, os, warnings
jaxlib.version.__version__ = {version!r}
before = os.environ.get("XLA_FLAGS")
with warnings.catch_warnings(record=True) as found:
    import noisy_jax
print([str(w.message).partition(" (")[0] for w in found], os.environ.get("XLA_FLAGS") == before)
"""
    told = [f"jaxlib {version} computes wrong sums on CPUs"]
    assert printed("-c", code, XLA_FLAGS="") == f"{told} True\n"
    flags = "--xla_cpu_experimental_ynn_fusion_type=-reduce"
    assert printed("-c", code, XLA_FLAGS=flags) == "[] True\n"


def test_the_lowest_versions_that_are_tested_are_those_that_are_promised():
    root = Path(__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    known = *project["dependencies"], *extras["demo"], *extras["test"][1:]
    wanted = dict(each.split(",")[0].split(">=") for each in known)
    lines = (root / "tests" / "lowest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {each.split(">=")[0] for each in project["dependencies"]} <= {*tested}
    for name, version in tested.items():
        assert (version + ".0").startswith(wanted[name] + "."), name
    assert wanted["jax"] == wanted["jaxlib"] == ".".join(map(str, LOWEST_JAX))


@pytest.mark.parametrize("taken", [".writable", "moments.unfinished"])
def test_a_trial_of_writing_leaves_the_files_of_a_folder_alone(tmp_path, taken):
    (tmp_path / taken).write_text("precious")
    assert writable_folder(tmp_path) == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "precious"


def test_a_folder_on_a_full_disk_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", disk_full)
    raises(r"^cannot write to the folder .*: No space left on device$", writable_folder, tmp_path)
