"""Parsers of arguments: concrete values raise one clear line, traced ones become NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
import noisy_jax.sklearn
from noisy_jax import validation
from noisy_jax.moments.fourier import gaussian_frequencies
from noisy_jax.noise import observe
from noisy_jax.unbiased.truncation.orders import geometric
from tests.errors import raises


@pytest.mark.parametrize(
    ("parse", "good", "bad"),
    [
        (validation.positive, [1e-9, 5.0], [0.0, -1.0]),
        (validation.non_negative, [0.0, 5.0], [-1e-9]),
        (lambda *a, **o: validation.between(*a, 0, 1, **o), [0.5], [0.0, 1.0]),
        (lambda *a, **o: validation.within(*a, 0, 1, **o), [0.0, 1.0], [-0.1, 1.1]),
    ],
    ids=["positive", "non_negative", "between", "within"],
)
def test_numbers_out_of_range_raise_and_become_nan_where_traced(parse, good, bad):
    for value in good:
        assert parse("rate", value) == value
    for value in [*bad, np.nan, np.inf]:
        raises(r"^rate must be .*, got ", parse, "rate", value)
    traced = jax.jit(lambda values: parse("rates", values, shape=None))(jnp.array(good + bad))
    np.testing.assert_array_equal(np.isnan(traced), [False] * len(good) + [True] * len(bad))
    np.testing.assert_allclose(traced[: len(good)], good, rtol=1e-6)


def test_an_array_names_the_first_bad_place_and_how_many_there_are():
    with pytest.raises(ValueError, match=r"sizes must be .*, but sizes\[1, 0\] is -2.0 \(2 in al"):
        validation.positive("sizes", np.array([[1.0, 3.0], [-2.0, 0.0]]), shape=None)
    with pytest.raises(ValueError, match=r"got shape \[2\]; use jax.vmap for several values"):
        validation.positive("size", [1.0, 2.0])


@pytest.mark.parametrize("value", [True, 2.0, "2", 0, None])
def test_whole_numbers_are_integers_from_the_least_on(value):
    assert validation.whole("count", np.int64(3)) == 3
    raises("count must be a whole number of at least 1, got ", validation.whole, "count", value)


def test_choices_and_classes_are_named():
    with pytest.raises(ValueError, match=r"^errors must be 'a', 'b' or 'c', got 'd'$"):
        validation.choice("errors", "d", ("a", "b", "c"))
    raises(r"^x must be an int, got 'd': write 1$", validation.instance, "x", "d", int, "write 1")


def test_long_values_are_shortened_in_messages():
    assert len(validation.given("x" * 10_000)) < 200
    assert validation.given(np.zeros((2, 3))) == "an array [2, 3] of float64"
    assert validation.listed([f"x{i}" for i in range(12)]).endswith("… (12 in all)")


def test_masked_numbers_are_nan():
    masked = np.ma.array([1, -999], mask=[False, True])
    np.testing.assert_array_equal(validation.unmasked(masked), [1.0, np.nan])


def test_keys_are_told_from_numbers():
    assert validation.is_key(jax.random.key(0))
    assert validation.is_key(jax.random.PRNGKey(0))
    assert not validation.is_key(3)
    raises("key must be a key such as", validation.parsed_key, 0)


TABLE = {"a": np.arange(12.0) ** 2, "y": np.arange(12.0)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: nj.table(TABLE, target="y", noise={"a": True}), "must be numbers, got True"),
        (lambda t: nj.fit(t, weights="a"), "'a' is a feature of this table: name it where"),
        (lambda t: nj.fit(t, weights=-t.y), r"weights must be .*, but weights\[1\] is -1"),
        (lambda t: nj.fit(t).predict("a"), "x must be numbers, got 'a'"),
        (lambda t: nj.fit(t, nj.methods.SIMEX(lambda x, y: "a")), "returns must be numbers"),
        (lambda t: nj.csv(3, target="y"), "path must be a CSV file's path, got 3"),
        (lambda t: nj.bounds.two_copies(t, horizon=8, radius=1.0), "moments must be a DataMom"),
        (lambda t: nj.bounds.self_bounding(t, horizon=8, radius=1.0), "moments must be a DataM"),
        (lambda t: nj.plots.regret(t), "study must be a Study, got Observations"),
        (lambda t: noisy_jax.sklearn.clean_score(t), "clean_score_ of a fitted estimator"),
    ],
)
def test_wrong_inputs_are_named(call, message):
    raises(message, call, nj.table(TABLE, target="y", noise={"a": 1e-6}))


KINDS = {
    "typed": lambda seed: jax.random.key(seed, impl="threefry2x32"),
    "raw": jax.random.PRNGKey,
    "rbg": lambda seed: jax.random.key(seed, impl="rbg"),
    "raw rbg": lambda seed: jax.random.PRNGKey(seed, impl="rbg"),
    "unsafe_rbg": lambda seed: jax.random.key(seed, impl="unsafe_rbg"),
}
ROWS, SIGNS = jnp.arange(12.0).reshape(6, 2), jnp.resize(jnp.array([1.0, -1.0]), 6)
STREAM = nj.Stream(ROWS, SIGNS)
KERNEL = nj.kernels.gaussian(length_scale=1.0)
WORLD = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.1))
DRAWS = {
    "Gaussian.sample": lambda key: nj.noise.Gaussian(0.1).sample(key, ROWS),
    "Laplace.centred": lambda key: nj.noise.Laplace(0.1).centred(key, ROWS),
    "Missing.centred": lambda key: nj.noise.Missing(0.5).centred(key, ROWS),
    "Flip.centred": lambda key: nj.noise.Flip(0.3).centred(key, SIGNS[0]),
    "observe": lambda key: observe(key, ROWS[0], 1.0, nj.noise.Uniform(0.1), copies=2).x,
    "copies_needed": lambda key: nj.unbiased.copies_needed(key),
    "multilevel": lambda key: nj.unbiased.multilevel(jnp.cos)(jnp.arange(32.0), key=key),
    "gaussian": lambda key: nj.unbiased.gaussian(jnp.cos, 0.3)(jnp.ones(1), key=key),
    "geometric": lambda key: geometric(jnp.ones(9), p=1.2).draw(key),
    "fourier_features": lambda key: nj.kernels.fourier_features(KERNEL, key, 4)(ROWS),
    "worlds.fourier": lambda key: nj.worlds.fourier(key, WORLD, 4).frequencies,
    "gaussian_frequencies": lambda key: gaussian_frequencies(
        key, 4, dim=2, length_scale=1.0, characteristic=nj.noise.Gaussian(0.1)
    ).omega,
    "streams.linear": lambda key: nj.streams.linear(key, 5, 2).x,
    "streams.resampled": lambda key: nj.streams.resampled(key, STREAM, 9).x,
    "contaminations": lambda key: nj.robust.contaminations.covariate(key, ROWS, SIGNS, 0.3).x,
    "rollout": lambda key: nj.rollout(
        nj.learners.two_copies(radius=1.0), STREAM, nj.noise.Gaussian(0.1), key,
        y_noise=nj.noise.Laplace(0.1),
    ).predictions,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_a_function_of_their_key_alone(name, kind):
    """Of each kind of keys, and inside `vmap` as outside: JAX draws other keys of "rbg" there."""
    draw, keys = DRAWS[name], [KINDS[kind](seed) for seed in range(12)]
    alone = [jax.jit(draw)(key) for key in keys]
    np.testing.assert_allclose(
        jax.vmap(draw)(jnp.stack(keys)), jnp.stack(alone), rtol=1e-4, atol=1e-5
    )
    assert any(not np.allclose(alone[0], other) for other in alone[1:])


def test_keys_of_other_kinds_give_way_to_keys_of_the_default_kind():
    for kind in ("typed", "raw"):
        key = KINDS[kind](3)
        assert validation.parsed_key(key) is key
    words = jnp.array([1, 2, 3, 4], jnp.uint32)
    found = [words.at[i].add(1) for i in range(4)] + [words]
    found = [jax.random.key_data(validation.parsed_key(each)).tolist() for each in found]
    assert len({tuple(each) for each in found}) == 5  # each word counts
    typed = jax.random.wrap_key_data(words, impl="rbg")
    assert jax.random.key_data(validation.parsed_key(typed)).tolist() == found[-1]
    with jax.default_prng_impl("rbg"):
        key = validation.parsed_key(jax.random.PRNGKey(3))
        assert jax.random.key_impl(key) == "threefry2x32"
        assert jax.random.key_impl(validation.parsed_key(KINDS["typed"](3))) == "threefry2x32"
    raises("a raw key has 2 or 4 numbers", validation.parsed_key, jnp.ones(3, jnp.uint32))
