import doctest
import importlib
import pkgutil

import pytest

import noisy_jax
from tests.running import printed

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(noisy_jax.__path__, "noisy_jax.")
    if "__main__" not in found.name
)

WITHOUT_JIT = """
import jax, noisy_jax as nj
learner = nj.learners.two_copies(radius=1.0, learning_rate=0.1)
found = nj.adversaries.worst(learner, nj.noise.Gaussian(0.1), 2, key=jax.random.key(0), radius=1.0,
                             steps=1, draws=2, held_out=2)
print(found.stream.x.shape)
"""


@pytest.mark.slow
@pytest.mark.long  # 40 seconds of a processor; test_no_learner_needs_jit shows it of the learners
def test_worst_streams_are_found_without_jit():
    assert printed("-c", WITHOUT_JIT, JAX_DISABLE_JIT="1") == "(2, 1)\n"


def test_the_rooms_have_examples():
    finder = doctest.DocTestFinder()
    tests = [t for name in MODULES for t in finder.find(importlib.import_module(name))]
    assert sum(bool(test.examples) for test in tests) > 150
