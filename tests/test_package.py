"""The package's public names: what tab completion and `import *` show."""

import inspect

import pytest

import noisy_jax as nj

MODULES = [value for value in map(nj.__dict__.get, nj.__all__) if inspect.ismodule(value)]


def test_tab_completion_shows_what_is_public_and_nothing_else():
    assert dir(nj) == sorted([*nj.__all__, "__version__"])
    assert {"kernels", "series", "monte_carlo"} <= {*dir(nj)}
    assert "montecarlo" not in dir(nj)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_modules_say_what_is_public(module):
    assert sorted({*module.__all__}) == sorted(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            assert value.__module__.startswith(module.__name__), name
