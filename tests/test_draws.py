"""Draws are the same ones, to rounding, with and without x64: of all that draws in the package.

All rooms draw by `noisy_jax.draws`, but for Gaussian noise, which is made of random bits.
"""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import draws
from tests.keys import key
from tests.noise.cases import DISTRIBUTIONS

SHAPE = 5, 8
ARGUMENTS = {
    "normal": [SHAPE],
    "uniform": [SHAPE],
    "laplace": [SHAPE],
    "exponential": [SHAPE],
    "gamma": [1.3, SHAPE],
    "student_t": [3.5, SHAPE],
    "bernoulli": [0.3, SHAPE],
    "rademacher": [SHAPE],
    "poisson": [np.full(SHAPE, 3.7)],
    "categorical": [np.tile(np.log(np.arange(1.0, 5.0)), (40, 1))],
    "integers": [SHAPE, -3, 1000],
}
"""Of each function behind the key, also of that of JAX."""
OF_JAX = {"student_t": "t", "integers": "randint"}
"""Functions that have another name in `jax.random`."""
KEYS = {"typed": key(3), "raw": jax.random.key_data(key(3)), "rbg": jax.random.key(3, impl="rbg")}


def same(draw):
    """The draws in both precisions, which differ by rounding only, and are not all alike."""
    with jax.enable_x64(False):
        single = jax.jit(draw)()
    with jax.enable_x64(True):
        double = jax.jit(draw)()
    for one, other in zip(*map(jax.tree.leaves, (single, double)), strict=True):
        if jnp.issubdtype(other.dtype, jnp.floating):
            assert (one.dtype, other.dtype) == (jnp.float32, jnp.float64)
        one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(other).max())
        assert one.size == 1 or np.ptp(one) > 0
    return single


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "typed") for name in ARGUMENTS), ("normal", "raw"), ("gamma", "rbg")],
)
def test_draws_are_those_of_jax_and_do_not_depend_on_x64(name, kind):
    found = same(lambda: getattr(draws, name)(KEYS[kind], *ARGUMENTS[name]))
    of_jax = getattr(jax.random, OF_JAX.get(name, name))
    np.testing.assert_allclose(found, of_jax(KEYS[kind], *ARGUMENTS[name]), rtol=1e-5)


X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
NOISES = {
    "of bits": DISTRIBUTIONS["gaussian_full"],
    "of columns": nj.noise.Product([nj.noise.Laplace(0.1), nj.noise.Gaussian(1.0)] * 2),
    "of categories": nj.noise.Misclassified([[0.9, 0.1], [0.2, 0.8]]),
    "of attributes": nj.noise.Attributes(2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISES)
def test_noisy_copies_do_not_depend_on_x64(name):
    dim = 4 if name == "of columns" else 3
    x = np.resize(X > 0 if name == "of categories" else X, (20, dim))

    def draw():  # of own arrays: JAX keeps a constant in the precision in which it met it first
        noise = jax.tree.map(np.array, NOISES[name])
        return noise.centred(key(1), jnp.asarray(x, float))

    same(draw)


@pytest.mark.slow
def test_rollouts_do_not_depend_on_x64():
    learner = nj.learners.norma(
        nj.kernels.linear(), nj.losses.flipped(nj.losses.logistic(), rate=0.2),
        regularization=0.1, buffer=20,
    )  # fmt: skip

    def run():
        rows = nj.Stream(jnp.asarray(X, float), jnp.sign(jnp.asarray(X[:, 0], float)))
        noise = nj.noise.Gaussian(0.1)
        return nj.rollout(learner, rows, noise, key(2), y_noise=nj.noise.Flip(0.2)).predictions

    same(run)


@pytest.mark.slow
def test_random_features_of_a_world_do_not_depend_on_x64():
    noise = nj.noise.Laplace(0.2)

    def features():
        world = nj.worlds.gaussian(dim=3, length_scale=1.0, noise=noise)
        return nj.worlds.fourier(key(4), world, 20).noisy(jnp.asarray(X, float))

    same(features)


ALLOWED = {"key", "split", "fold_in", "bits", "key_data", "key_impl", "wrap_key_data", "clone"}


def test_no_other_module_draws():
    """Of `jax.random`, whose numbers depend on x64; keys and bits do not."""
    root = Path(nj.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "jax.random":
                assert node.attr in ALLOWED or path.name == "draws.py", f"{path}:{node.lineno}"
            if isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                assert not any(name.startswith("jax.random") for name in names), path
