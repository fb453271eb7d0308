"""Draws are the same ones, to rounding, with and without x64: of all that draws in the package."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import draws
from noisy_jax.noise import Attributes, Missing, Multiplicative, Poisson
from noisy_jax.unbiased.truncation.orders import OrderDistribution
from tests.keys import key
from tests.noise.cases import DISTRIBUTIONS

MAKE = {
    "normal": draws.normal,
    "uniform": draws.uniform,
    "laplace": draws.laplace,
    "exponential": draws.exponential,
    "gamma": lambda key, shape: draws.gamma(key, 1.3, shape),
    "student_t": lambda key, shape: draws.student_t(key, 3.5, shape),
    "bernoulli": lambda key, shape: draws.bernoulli(key, 0.3, shape),
    "rademacher": draws.rademacher,
    "poisson": lambda key, shape: draws.poisson(key, jnp.full(shape, 3.7)),
    "categorical": lambda key, shape: draws.categorical(key, jnp.log(jnp.arange(1.0, 5.0)), shape),
    "integers": lambda key, shape: draws.integers(key, shape, -3, 1000),
}
OF_JAX = {
    "normal": jax.random.normal,
    "uniform": jax.random.uniform,
    "laplace": jax.random.laplace,
    "exponential": jax.random.exponential,
    "gamma": lambda key, shape: jax.random.gamma(key, 1.3, shape),
    "student_t": lambda key, shape: jax.random.t(key, 3.5, shape),
    "bernoulli": lambda key, shape: jax.random.bernoulli(key, 0.3, shape),
    "rademacher": jax.random.rademacher,
    "poisson": lambda key, shape: jax.random.poisson(key, jnp.full(shape, 3.7)),
    "categorical": lambda key, shape: jax.random.categorical(
        key, jnp.log(jnp.arange(1.0, 5.0)), shape=shape
    ),
    "integers": lambda key, shape: jax.random.randint(key, shape, -3, 1000),
}
KEYS = {"typed": key(3), "raw": jax.random.key_data(key(3)), "rbg": jax.random.key(3, impl="rbg")}


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (17,), (5, 10)])
def test_normal_draws_are_those_of_jax(shape):
    found, expected = (draw(jax.random.key(3), shape) for draw in (draws.normal, jax.random.normal))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


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
    ("name", "kind"), [*((name, "typed") for name in MAKE), ("normal", "raw"), ("gamma", "rbg")]
)
def test_draws_are_those_of_jax_and_do_not_depend_on_x64(name, kind):
    found = same(lambda: MAKE[name](KEYS[kind], (40,)))
    np.testing.assert_allclose(found, OF_JAX[name](KEYS[kind], (40,)), rtol=1e-5)


X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
NOISES = {name: DISTRIBUTIONS[name] for name in ("gaussian_full", "contaminated", "student")} | {
    "product": nj.noise.Product(
        [nj.noise.Laplace(0.1), nj.noise.Uniform(1.0), nj.noise.Rademacher(0.3)]
    ),
    "multiplicative": Multiplicative(0.2),
    "poisson": Poisson(),
    "missing": Missing(0.7),
    "attributes": Attributes(2),
    "misclassified": nj.noise.Misclassified([[0.9, 0.1], [0.2, 0.8]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISES)
def test_noisy_copies_do_not_depend_on_x64(name):
    x = {"poisson": np.abs(10 * X), "misclassified": (X > 0).astype(np.float32)}.get(name, X)

    def draw():  # of own arrays: JAX keeps a constant in the precision in which it met it first
        noise = jax.tree.map(np.array, NOISES[name])
        return noise.centred(key(1), jnp.asarray(x, float))

    same(draw)


def rollouts(y_noise):
    stream = nj.Stream(X, np.sign(X[:, 0]))
    learner = nj.learners.two_copies(radius=1.0)
    if isinstance(y_noise, nj.noise.Flip):
        loss = nj.losses.flipped(nj.losses.logistic(), rate=0.2)
        kernel = nj.kernels.linear()
        learner = nj.learners.norma(kernel, loss, regularization=0.1, buffer=20)

    def run():
        rows = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), stream)
        return nj.rollout(learner, rows, nj.noise.Gaussian(0.1), key(2), y_noise=y_noise)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("y_noise", [nj.noise.Flip(0.2), nj.noise.Correlated(np.ones(3) / 2)])
def test_rollouts_do_not_depend_on_x64(y_noise):
    same(lambda: rollouts(y_noise)().predictions)


LAPLACE = nj.noise.Laplace(0.2)
POINTS = np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32)


def of_kernel(make, **options):
    return lambda: nj.kernels.fourier_features(make(length_scale=1.0, **options), key(4), 20)


def of_world(make, noise=LAPLACE, **options):
    def features():
        world = make(dim=2, length_scale=1.0, noise=noise, **options)
        return nj.worlds.fourier(key(4), world, 20).noisy

    return features


FEATURES = {
    "rational": of_kernel(nj.kernels.rational, alpha=1.5),
    "matern": of_kernel(nj.kernels.matern, nu=1.5),
    "world of Laplace noise": of_world(nj.worlds.gaussian),
    "radial world": of_world(nj.worlds.matern, nj.noise.Gaussian(0.1), nu=1.5, cutoff=3.0),
    "any noise": lambda: (
        nj.worlds.fourier_gaussian(key(4), 20, dim=2, length_scale=1.0, noise=LAPLACE).noisy
    ),
    "moments": lambda: (
        nj.moments.fourier(
            nj.moments.gaussian_frequencies(
                key(4), 20, dim=2, length_scale=1.0, characteristic=LAPLACE
            )
        ).features
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FEATURES)
def test_random_features_do_not_depend_on_x64(name):
    same(lambda: FEATURES[name]()(jnp.asarray(POINTS, float)))


STREAMS = {
    "teacher": lambda: nj.streams.teacher(
        key(5), 50, 3, kernel=nj.kernels.gaussian(length_scale=1.0), label_noise=0.2
    ),
    "drifting": lambda: nj.streams.drifting(key(5), 50, period=10),
    "adversaries": lambda: nj.streams.one_copy_adversaries(key(5), 50)[0].stream,
    "random starts": lambda: nj.simulated.adversaries.ascent.structured_starts(key(5), 50, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_streams_do_not_depend_on_x64(name):
    with jax.enable_x64(False):
        single = STREAMS[name]()
    with jax.enable_x64(True):
        double = STREAMS[name]()
    for one, other in zip(*map(jax.tree.leaves, (single, double)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def estimates():
    g = nj.unbiased.multilevel(lambda x: jnp.exp(-jnp.sum(x**2)), levels=4)
    copies = jnp.asarray(np.random.default_rng(2).normal(size=(50, g.copies, 3)), float)
    return jax.vmap(lambda copies, key: g(copies, key=key))(copies, jax.random.split(key(6), 50))


def test_estimates_do_not_depend_on_x64():
    same(estimates)


def test_orders_do_not_depend_on_x64():
    probabilities = np.log(np.arange(1.0, 6.0) / 15)
    orders = OrderDistribution(probabilities)
    same(lambda: jax.vmap(orders.draw)(jax.random.split(key(8), 50)))


def test_contaminated_rows_do_not_depend_on_x64():
    y = np.tile(X[:, 0], 3)
    same(lambda: nj.robust.contaminations.random_rows(key(7), jnp.asarray(y, float), 0.3))


ALLOWED = {"key", "split", "fold_in", "bits", "key_data", "key_impl", "wrap_key_data", "clone"}


def test_no_other_module_draws():
    """Of `jax.random`, whose numbers depend on x64; keys and bits do not."""
    root = Path(nj.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "jax.random":
                assert node.attr in ALLOWED or path.name == "draws.py", f"{path}:{node.lineno}"
            assert not (isinstance(node, ast.ImportFrom) and node.module == "jax.random")
