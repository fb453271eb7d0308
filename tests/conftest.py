"""One policy for all tests: eight faked devices, no silent broadcasting, warnings are errors."""

import gc
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

# Compiling takes longer than running in nearly every test, and these flags make it four times as
# fast. Of two equal flags the last one counts, so that the environment can override them.
# The last two flags are of some versions; others stop at flags that they do not know.
os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
    "--xla_cpu_parallel_codegen_split_count=1 "
    + "--xla_cpu_use_fusion_emitters=false "
    * (tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11))
    + "--xla_cpu_experimental_ynn_fusion_type=-reduce " * (version("jaxlib") == "0.10.2")
    + os.environ.get("XLA_FLAGS", "")
)
os.environ["MPLBACKEND"] = "agg"

import jax
import numpy as np
import pytest
from hypothesis import settings

from tests.keys import SHIFT

collect_ignore = ["typing"]  # programs, which test_typing.py runs
jax.config.update("jax_numpy_rank_promotion", "raise")
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("fixed")
# Traces and compiled programs are many objects, through which Python's collector goes in vain.
gc.set_threshold(100_000, 50, 1000)


@pytest.fixture
def x64():
    """Float64 for one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def rng():
    """A NumPy generator with the same seed in each test, another one for each shift."""
    return np.random.default_rng(20260101 + 1000 * SHIFT)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts a Python script on CPU in a folder; where `shared`, they compile things once."""
    cache = tmp_path_factory.mktemp("compiled")

    def start(script, folder, *arguments, devices=1, shared=True):
        (folder / "script.py").write_text(script, encoding="utf-8")
        options = {
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} "
            "--xla_backend_optimization_level=0",
            "PYTHONWARNINGS": "ignore:jaxlib",  # of a version with wrong sums
            # jaxlib logs 1.5 kB for each program from a cache, by which the pipe would be full.
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "JAX_ENABLE_COMPILATION_CACHE": str(shared),
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        return subprocess.Popen(
            [sys.executable, "script.py", *map(str, arguments)],
            cwd=folder,
            env=os.environ | options,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


@pytest.fixture(scope="module", autouse=True)
def _compiled_programs_are_dropped():
    """Each compiled program holds memory maps, of which a process may have 65,530: free them."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or len(maps.read_bytes().splitlines()) > 25_000:
        jax.clear_caches()


ALIKE = {
    # paired, which runs all but the last of these side by side
    *("two_copies", "known_covariance", "as_printed", "uncorrected", "several_copies", "adaptive"),
    # parallel_worlds
    *("cloned", "mixture", "uncorrected_kernel", "averaged_kernel", "adaptive kernel"),
    *("analytic_worlds", "adaptive random truncation"),  # random_truncation
    *("unknown_noise", "pair", "norma_in_a_world", "parameter_free_in_a_world"),
    *("perceptron", "alma"),  # norma
    *("leader", "leader of functions", "leader, multilevel", "assuming", "noiseless"),
}
"""Learners of `tests.learners.registry` that one of another name is like; a new one is not here."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """In a run of the whole suite doctests are slow tests; of a few files they always run.

    The mutants, which take longest, come first, so that another process runs the rest meanwhile.
    Tests `of_each_kind` are long for learners that are in `ALIKE`.
    """
    for item in items:
        if item.get_closest_marker("of_each_kind") and ALIKE & {*item.callspec.params.values()}:
            item.add_marker("long")
    items.sort(key=lambda item: item.path.name != "test_mutants.py")
    doubted = pytest.mark.filterwarnings(
        "ignore::noisy_jax.observed.fits.assumptions.AssumptionWarning"
    )
    for item in items:  # of many simulated tables, a few are doubted by chance
        if item.get_closest_marker("statistical") and "test_assumptions" not in item.path.name:
            item.add_marker(doubted)
    if len({item.path for item in items}) > 100:
        for item in items:
            if isinstance(item, pytest.DoctestItem):
                item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """Looks for garbage once; pytest would do it five times, and a process for another second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Examples run under strict promotion, too: a user may have chosen it."""
    strict = isinstance(item, pytest.DoctestItem)
    with jax.numpy_dtype_promotion("strict" if strict else "standard"):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that shows a claim fails where it is skipped or expected to fail."""
    report = (yield).get_result()
    if item.get_closest_marker("claim") and (report.skipped or hasattr(report, "wasxfail")):
        report.outcome, report.longrepr = "failed", "a test of a claim must run and pass"
        vars(report).pop("wasxfail", None)
