"""Breaks the package in one place for each of many claims, whose tests must then fail.

    python -m tests.mutants                    # all of tests/mutants.txt
    python -m tests.mutants DA-Lemma1 NK-Sub5  # those of some claims
    python -m tests.mutants --some             # six of them, as the slow tests do

Each mutant is a copy of the package, the scripts and their tests in a temporary folder, with one
change; the tests that carry the mark of the mutant's claim run there, and at least one of them must
fail. On the unchanged copy all of them must pass; `--some` leaves this to the run of all tests, and
takes other mutants whenever the package changes.
"""

import io
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
import zlib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PRELOADED = ["jax", "jax.numpy", "optax", "chex", "scipy.stats", "sklearn.linear_model"]
"""Imported once, by the process that all others are forked from."""


class Mutant(NamedTuple):
    """One change of the package."""

    claim: str  # the row of CLAIMS.md that it makes false
    place: str  # file or folder below noisy_jax/
    old: str  # is there exactly once, whatever the spaces and line ends between its words
    new: str


def mutants(text: str) -> list[Mutant]:
    """The mutants of a text in the format of tests/mutants.txt."""
    return [Mutant(*found) for found in re.findall(r"^(\S+)  (\S+)\n- (.*)\n\+ (.*)$", text, re.M)]


ALL = mutants((ROOT / "tests" / "mutants.txt").read_text("utf-8"))


def changed(mutant: Mutant, package: Path) -> tuple[Path, str]:
    """The file of `package` and its new text; a ValueError if the old one is not there once."""
    words = re.findall(r"\w+|[^\w\s]", mutant.old)
    pattern = re.compile(r"\s*".join(map(re.escape, words)))
    place = package / mutant.place
    texts = {
        file: file.read_text("utf-8") for file in ([place] if place.suffix else place.rglob("*.py"))
    }
    found = [(file, match) for file, text in texts.items() for match in pattern.finditer(text)]
    if len(found) != 1:
        raise ValueError(f"{mutant.claim}: {len(found)} places in {mutant.place}: {mutant.old}")
    ((file, match),) = found
    return file, texts[file][: match.start()] + mutant.new + texts[file][match.end() :]


def some(package: Path = ROOT / "noisy_jax") -> list[Mutant]:
    """Every twentieth mutant, of twenty sets the one that the code of the package selects."""
    code = b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))
    return ALL[zlib.crc32(code) % 20 :: 20]


def run(mutant: Mutant | None, tests: list[str], cache: str) -> tuple[int, float, str]:
    """pytest's exit status, seconds and output for some tests of a copy; `None` changes nothing."""
    start, output = time.monotonic(), io.StringIO()
    with tempfile.TemporaryDirectory() as name:
        for folder in ("noisy_jax", "tests", "colabs/papers"):
            shutil.copytree(ROOT / folder, Path(name, folder))
        shutil.copy(ROOT / "pyproject.toml", name)
        try:
            if mutant is not None:
                file, text = changed(mutant, Path(name, "noisy_jax"))
                file.write_text(text, "utf-8")
        except (ValueError, OSError) as error:
            return -1, 0.0, str(error)
        os.chdir(name)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = cache
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        here = (ROOT, ROOT / "tests", Path())
        sys.path[:] = [name, *(path for path in sys.path if Path(path) not in here)]
        for module in [m for m in sys.modules if m.split(".")[0] in ("noisy_jax", "tests")]:
            del sys.modules[module]
        import pytest

        options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
        with redirect_stdout(output), redirect_stderr(output):
            status = pytest.main([*options, "-o", "addopts=--strict-markers", *tests])
        os.chdir(ROOT)
    return int(status), time.monotonic() - start, output.getvalue()


def main(chosen: list[Mutant], unchanged: bool = True) -> int:
    """Runs these mutants, and the unchanged copy if told so; how many went wrong."""
    from tests.test_claims import marked_tests

    tests = {}
    for file, test, shown in marked_tests():
        for claim in shown:
            tests.setdefault(claim, []).append(f"tests/{file}::{test}")
    files = {}  # of the tests that must pass without a change
    for test in sorted({test for mutant in chosen for test in tests[mutant.claim]}):
        files.setdefault(test.split("::")[0], []).append(test)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    wrong, cache = 0, tempfile.mkdtemp()
    with context.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        copies = files.values() if unchanged else []
        jobs = [(None, pool.apply_async(run, (None, own, cache))) for own in copies]
        jobs += [(m, pool.apply_async(run, (m, tests[m.claim], cache))) for m in chosen]
        for mutant, job in jobs:
            status, seconds, output = job.get()
            name = "no change" if mutant is None else f"{mutant.claim}: {mutant.old}"
            good = status == (0 if mutant is None else 1)
            wrong += not good
            failed = re.findall(r"^FAILED tests/(\S+)", output, re.M)
            shown = "passes" if status == 0 else f"fails {failed[0]}" if failed else "cannot run"
            print(f"{seconds:6.1f} s  {'' if good else 'WRONG '}{name}: {shown}", flush=True)
            if not good:
                print(output[-3000:], flush=True)
    shutil.rmtree(cache)
    print(f"{len(chosen)} mutants, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    names = sys.argv[1:]
    if names == ["--some"]:
        sys.exit(main(some(), unchanged=False) > 0)
    sys.exit(main([mutant for mutant in ALL if not names or mutant.claim in names]) > 0)
