"""The tests of claims can fail: each mutant makes a test of its claim fail."""

import subprocess
import sys

import pytest

from tests.errors import raises
from tests.mutants import ALL, ROOT, Mutant, changed, mutants, some
from tests.test_claims import marked_tests


@pytest.mark.slow
def test_some_of_the_mutants_are_found():
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants", "--some"], cwd=ROOT, capture_output=True, text=True
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_each_mutant_is_of_a_claim_of_its_own_and_fits_the_package():
    claims = [mutant.claim for mutant in ALL]
    assert len(set(claims)) == len(claims) <= 120
    assert set(claims) <= {claim for _, _, shown in marked_tests() for claim in shown}
    for mutant in ALL:
        assert mutant.old != mutant.new
        changed(mutant, ROOT / "noisy_jax")


def test_the_code_selects_one_of_twenty_sets_of_mutants(tmp_path):
    chosen = [ALL[k::20] for k in range(20)]
    found = []
    for number in range(200):
        (tmp_path / "a.py").write_text(f"number = {number}\n")
        found.append(some(tmp_path))
    assert all(found.count(own) > 0 for own in chosen)
    assert some() == some() in chosen


def test_each_paragraph_is_a_mutant():
    """Behind the head of the file; one that is not written like a mutant would never run."""
    text = (ROOT / "tests" / "mutants.txt").read_text("utf-8")
    assert len(text.strip().split("\n\n")) == len(ALL) + 1


def test_the_text_is_there_once(tmp_path):
    (one,) = mutants("A  a.py\n- f(x, y)\n+ f(y, x)\n")
    assert one == Mutant("A", "a.py", "f(x, y)", "f(y, x)")
    file = tmp_path / "a.py"
    file.write_text("z = f(\n    x, y)\n")
    assert changed(one, tmp_path) == (file, "z = f(y, x)\n")
    for text, places in (("z = f(y, x)", 0), ("f(x, y) + f(x, y)", 2)):
        file.write_text(text)
        raises(f"A: {places} places", changed, one, tmp_path)
