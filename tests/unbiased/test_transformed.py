"""The transformations as functions: arguments, results, and JAX's own transformations."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import noisy_jax as nj
from tests.errors import raises, told

KEY = jax.random.key(0)
MAKERS = {
    "multilevel": functools.partial(nj.unbiased.multilevel, levels=2),
    "pair": nj.unbiased.pair,
    "gaussian": lambda f, argnum=0: nj.unbiased.gaussian(f, 0.1, argnum),
    "replicates": nj.unbiased.replicates,
}
EVERY = pytest.mark.parametrize("name", MAKERS)


def calls(name, f, argnum=0):
    """g without its key, and the number of copies."""
    g, draws = MAKERS[name](f, argnum), name in ("multilevel", "gaussian")
    return (functools.partial(g, key=KEY) if draws else g), g.copies


def loss(params, x, y, *, scale=1.0):
    """Of one row; the parameters are a pytree."""
    hidden = jnp.sin(x @ params["in"]) + x[:1] ** 2
    return scale * jnp.sum((hidden @ params["out"] - y) ** 2)


PARAMS = {"in": jnp.array([[0.5, -0.3], [0.2, 0.8]]), "out": jnp.array([0.7, -0.4])}


def copies_of(count, *shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(count, *shape)), float)


@pytest.mark.slow
@EVERY
def test_copies_without_noise_give_the_function_itself(name):
    """Also if f returns a pytree, and for inputs of any shape; all weights sum to one."""

    def f(x):
        return {"a": x**2, "b": (jnp.sum(jnp.cos(x)), jnp.ones(3) * 2.5)}

    for shape in ((), (2, 3)):
        x = copies_of(1, *shape)[0]
        g, count = calls(name, f)
        if name == "gaussian":  # its draws are added to the noise, so that only their mean is f
            g = functools.partial(nj.unbiased.gaussian(f, 0.0), key=KEY)
        found = jax.jit(g)(jnp.broadcast_to(x, (count, *shape)))
        chex.assert_trees_all_close(found, f(x), rtol=1e-4, atol=1e-5)


@EVERY
def test_other_arguments_and_keywords_are_left_as_they_are(name):
    g, count = calls(name, loss, 1)
    copies = copies_of(count, 2)
    fixed, _ = calls(name, lambda x: 3.0 * loss(PARAMS, x, 0.4))
    last, _ = calls(name, lambda y, x: loss(PARAMS, x, y), -1)
    values = jax.jit(
        lambda copies: (g(PARAMS, copies, 0.4, scale=3.0), fixed(copies), 3 * last(0.4, copies))
    )(copies)
    np.testing.assert_allclose(values, 3 * [values[1]], rtol=1e-5)


@pytest.mark.parametrize("name", ["pair", "replicates"])
def test_a_key_that_g_does_not_need_is_that_of_f(name):
    g = MAKERS[name](lambda x, *, key: x * jax.random.uniform(key))
    np.testing.assert_allclose(g(jnp.ones(2), key=KEY), jax.random.uniform(KEY), rtol=1e-6)
    positional = MAKERS[name](lambda x, key: x * key)
    assert positional(jnp.ones(2), 3.0, key=KEY) == 3
    assert MAKERS[name](jnp.sin)(jnp.zeros(2), key=KEY) == 0


@pytest.mark.slow
@EVERY
def test_it_works_under_jaxs_transformations(name, x64):
    """Derivatives are those of finite differences, in x too; `scan` and `vmap` agree."""
    g, count = calls(name, loss, 1)
    rows, y = copies_of(2 * count, 2).reshape(2, count, 2), jnp.arange(2.0)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), PARAMS)
    check_grads(lambda p, row: g(p, row, y[1]), (params, rows[1]), order=2, rtol=1e-3)
    kept = jax.checkpoint(g)  # pyright: ignore[reportPrivateImportUsage]

    @jax.jit
    def value_and_slope(params):
        return jax.value_and_grad(lambda p: jax.vmap(g, (None, 0, 0))(p, rows, y).mean())(params)

    @jax.jit
    def scanned(params):
        def total(params):
            values = jax.lax.scan(lambda c, row: (c, kept(params, *row)), 0, (rows, y))[1]
            return values.mean()

        return jax.value_and_grad(total)(params)

    chex.assert_trees_all_close(value_and_slope(params), scanned(params), rtol=1e-9)


@pytest.mark.slow
@EVERY
def test_types_are_kept(name):
    """Of 16 bits in `test_transformed_models.py`."""
    g, count = calls(name, lambda x, w: (x @ w) ** 2)
    with jax.enable_x64(True):
        assert jax.eval_shape(g, np.ones((count, 2)), np.ones(2)).dtype == np.float64
    with jax.numpy_dtype_promotion("strict"):
        assert jax.eval_shape(g, copies_of(count, 2), jnp.ones(2)).dtype == jnp.float32


@EVERY
def test_wrong_copies_give_one_clear_line(name):
    g, count = calls(name, loss, 1)
    raises(f"V of at least {count}, got \\[0, 2\\] of float32", g, PARAMS, jnp.zeros((0, 2)), 0.4)
    with pytest.raises(ValueError, match=r"noisy copies .* floating point, .* of int32"):
        g(PARAMS, jnp.zeros((count, 2), int), 0.4)
    raises("argnum is 1, but there are 1 positional arguments", g, PARAMS)
    raises("f must be a function, got 3", MAKERS[name], 3)
    raises("got a list of arrays: jnp.stack makes", g, PARAMS, [jnp.ones(2)] * 4, 0.4)
    raises("argnum must be .* one whole number, got tuple", MAKERS[name], loss, (0, 1))
    raises("got object: argnum is the place of x", g, PARAMS, object(), 0.4)


def test_errors_of_f_say_which_x_it_got():
    g = nj.unbiased.replicates(lambda w, x: w @ x, 1)
    with pytest.raises(TypeError) as found:  # V and d are swapped
        g(jnp.ones(3), jnp.ones((3, 2)))
    assert "x of shape [2], one of the copies [3, 2], which are [V" in found.value.__notes__[0]


def test_bad_options_give_one_clear_line():
    multilevel, gaussian = nj.unbiased.multilevel, nj.unbiased.gaussian
    raises("levels must be a whole number of at least 1, got 0", multilevel, loss, levels=0)
    raises("continue_with must be above 0", multilevel, loss, continue_with=0.0)
    raises("ratio must be", multilevel, loss, ratio=1.0)
    raises(r"multilevel draws .* pass a key, g\(..., key=key\)", multilevel(jnp.sin), jnp.zeros(32))
    raises(r"gaussian draws .* pass a key", gaussian(jnp.sin, 0.1), jnp.zeros(1))
    keyed = multilevel(lambda x, *, key: x)
    raises("key is reserved by the estimator, .*: rename", keyed, jnp.zeros(32), key=KEY)
    raises(r"one key, got keys \[2\]", multilevel(loss), copies_of(32), key=jax.random.split(KEY))
    raises("gaussian needs Gaussian noise, got Laplace", gaussian, jnp.sin, nj.noise.Laplace(0.1))
    raises("noise must be", gaussian, jnp.sin, -0.1)
    raises("order must be a whole number of at least 0", nj.unbiased.replicates, loss, order=-1)
    whole = nj.unbiased.replicates(lambda x: jnp.round(x).astype(int))
    raises("a result of type int32 depends on x, .*: leave it out", whole, jnp.zeros(2))


@pytest.mark.slow
def test_copies_that_are_not_needed_are_not_read():
    """They are NaN; the number is known from the key alone."""
    options = {"levels": 3, "base": 2, "continue_with": 0.7}
    g = nj.unbiased.multilevel(jnp.sin, **options)
    keys = jax.random.split(KEY, 32)
    needed = jax.vmap(g.copies_needed)(keys)
    assert set(needed.tolist()) == {2, 4, 8, 16}
    assert g.copies == 16
    copies = copies_of(16)
    value = jax.jit(jax.value_and_grad(lambda copies, key: g(copies, key=key)))
    for key, count in zip(keys, needed, strict=True):
        found, slope = value(jnp.where(jnp.arange(16) < count, copies, jnp.nan), key)
        np.testing.assert_allclose(found, value(copies, key)[0], rtol=1e-6)
        assert np.isfinite(slope).all()
        assert (np.asarray(slope) != 0).sum() == count


@pytest.mark.slow
def test_gaussian_takes_another_covariance_in_each_row():
    covs, keys, copies = jnp.array([0.1, 0.9]), jax.random.split(KEY), copies_of(2, 1)

    def estimate(copies, cov, key):
        return nj.unbiased.gaussian(jnp.square, cov)(copies[None], key=key)

    each = [estimate(*row) for row in zip(copies, covs, keys, strict=True)]
    np.testing.assert_allclose(jax.vmap(estimate)(copies, covs, keys), each, rtol=1e-5)


def test_f_is_evaluated_at_four_points_at_most():
    """It is traced once, for all points; sines of 7 numbers are computed at each."""
    for name, points in {"multilevel": 4, "gaussian": 4, "replicates": 3, "pair": 1}.items():
        calls_of_f = []

        def f(x, calls_of_f=calls_of_f):
            calls_of_f.append(x.shape)
            return jnp.sin(x @ jnp.ones((2, 7)))

        g, count = calls(name, f)
        program = jax.make_jaxpr(g)(jnp.zeros((count, 2)))
        sizes = [e.outvars[0].aval.size for e in program.eqns if e.primitive.name == "sin"]
        assert sum(sizes) == 7 * points
        assert len(calls_of_f) == 1


def test_wrappers_that_copy_attributes_keep_their_own():
    """As those of flax do, by `functools.update_wrapper`: f must stay the estimate, not its f."""

    class Wrapper:
        def __init__(self, f):
            self.f = f
            functools.update_wrapper(self, f)

    for make in MAKERS.values():
        estimate = make(loss, argnum=1)
        assert Wrapper(estimate).f is estimate


def test_an_estimate_of_an_estimate_and_results_that_are_no_numbers_are_errors():
    inner = nj.unbiased.replicates(lambda x, z: jnp.sum(x * z))
    with told("f is an estimate already, by replicates, of the same argument 0"):
        nj.unbiased.replicates(inner)
    assert nj.unbiased.pair(inner, 1)(jnp.ones((2, 3)), jnp.ones((2, 3))) == 3
    with told("argnum must be"):
        nj.unbiased.replicates(jnp.sum, True)
    with told("f must return numbers of floating point, got a text"):
        nj.unbiased.replicates(lambda x: "a")(jnp.ones((2, 2)))
    with pytest.raises(jax.errors.TracerArrayConversionError) as error:
        nj.unbiased.replicates(lambda x: np.sin(np.asarray(x)))(jnp.ones((2, 2)))
    assert "write it in jax.numpy" in str(error.value.__notes__)
