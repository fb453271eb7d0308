"""The tests of claims can fail: each mutant makes a test of its claim fail."""

import subprocess
import sys

import pytest

from tests.errors import raises
from tests.mutants import ALL, ROOT, Mutant, apply, mutants, some
from tests.test_claims import marked_tests


@pytest.mark.slow
def test_a_tenth_of_the_mutants_is_found():
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants", "--some"], cwd=ROOT, capture_output=True, text=True
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_mutants_are_of_many_claims_and_each_fits_the_package(tmp_path):
    named = {mutant.claim for mutant in ALL if "::" in mutant.claim}
    claims = {mutant.claim for mutant in ALL} - named
    assert len(claims) >= 40
    assert claims <= {claim for _, _, shown in marked_tests() for claim in shown}
    for file, test in (one.split("::") for one in named):
        assert f"def {test}(" in (ROOT / "tests" / file).read_text("utf-8")
    for mutant in ALL:
        assert mutant.old != mutant.new
        place = ROOT / "noisy_jax" / mutant.place
        for file in [place] if place.suffix else place.rglob("*.py"):
            copy = tmp_path / file.relative_to(ROOT / "noisy_jax")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(file.read_text("utf-8"), "utf-8")
        apply(mutant, tmp_path)


def test_the_code_selects_one_of_ten_sets_of_mutants(tmp_path):
    chosen = [ALL[k::10] for k in range(10)]
    found = []
    for number in range(100):
        (tmp_path / "a.py").write_text(f"number = {number}\n")
        found.append(some(tmp_path))
    assert all(found.count(own) > 0 for own in chosen)
    assert some() == some() in chosen
    assert min(map(len, chosen)) >= 12


def test_each_paragraph_is_a_mutant():
    """Behind the head of the file; one that is not written like a mutant would never run."""
    text = (ROOT / "tests" / "mutants.txt").read_text("utf-8")
    assert len(text.strip().split("\n\n")) == len(ALL) + 1


def test_text_that_is_not_there_once_is_reported(tmp_path):
    (one,) = mutants("A  a.py\n- f(x, y)\n+ f(y, x)\n")
    assert one == Mutant("A", "a.py", "f(x, y)", "f(y, x)")
    (tmp_path / "a.py").write_text("z = f(\n    x, y)\n")
    apply(one, tmp_path)
    assert (tmp_path / "a.py").read_text() == "z = f(y, x)\n"
    raises("A: 0 places", apply, one, tmp_path)
    (tmp_path / "a.py").write_text("f(x, y) + f(x, y)\n")
    raises("A: 2 places", apply, one, tmp_path)
