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
from tests.errors import raises, told


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


@pytest.mark.parametrize("value", [3, np.int64(3), np.array(3), jnp.int32(3)])
def test_whole_numbers_of_any_kind_become_integers(value):
    assert type(validation.whole("count", value)) is int
    assert validation.whole("count", value) == 3


@pytest.mark.parametrize("value", [True, jnp.array(True), 2.0, jnp.float32(2), "2", 0, None, [3]])
def test_whole_numbers_are_integers_from_the_least_on(value):
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
        (lambda t: nj.fit(t, nj.methods.SIMEX(lambda x, y: "a")), "of <lambda> must be numbers"),
        (lambda t: nj.csv(3, target="y"), "path must be a CSV file's path, got 3"),
        (lambda t: nj.bounds.two_copies(t, horizon=8, radius=1.0), "moments must be a DataMom"),
        (lambda t: nj.bounds.self_bounding(t, horizon=8, radius=1.0), "moments must be a DataM"),
        (lambda t: nj.plots.regret(t), "study must be a Study, got Observations"),
        (lambda t: noisy_jax.sklearn.clean_score(t), "clean_score_ of a fitted estimator"),
    ],
)
def test_wrong_inputs_are_named(call, message):
    raises(message, call, nj.table(TABLE, target="y", noise={"a": 1e-6}))


POINTS, SIGNS = jnp.arange(12.0).reshape(6, 2), jnp.resize(jnp.array([1.0, -1.0]), 6)
LABELLED = nj.Stream(POINTS, SIGNS)
KERNEL = nj.kernels.gaussian(length_scale=1.0)
WORLD = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.1))
DRAWS = {
    "Gaussian.sample": lambda key: nj.noise.Gaussian(0.1).sample(key, POINTS),
    "Laplace.centred": lambda key: nj.noise.Laplace(0.1).centred(key, POINTS),
    "Missing.centred": lambda key: nj.noise.Missing(0.5).centred(key, POINTS),
    "Flip.centred": lambda key: nj.noise.Flip(0.3).centred(key, SIGNS[0]),
    "observe": lambda key: observe(key, POINTS[0], 1.0, nj.noise.Uniform(0.1), copies=2).x,
    "copies_needed": lambda key: nj.unbiased.multilevel(jnp.sum).copies_needed(key),
    "multilevel": lambda key: nj.unbiased.multilevel(jnp.cos)(jnp.arange(32.0), key=key),
    "gaussian": lambda key: nj.unbiased.gaussian(jnp.cos, 0.3)(jnp.ones(1), key=key),
    "geometric": lambda key: geometric(jnp.ones(9), p=1.2).draw(key),
    "fourier_features": lambda key: nj.kernels.fourier_features(KERNEL, key, 4)(POINTS),
    "worlds.fourier": lambda key: nj.worlds.fourier(key, WORLD, 4).frequencies,
    "gaussian_frequencies": lambda key: gaussian_frequencies(
        key, 4, dim=2, length_scale=1.0, characteristic=nj.noise.Gaussian(0.1)
    ).omega,
    "streams.linear": lambda key: nj.streams.linear(key, 5, 2).x,
    "streams.resampled": lambda key: nj.streams.resampled(key, LABELLED, 9).x,
    "contaminations": lambda key: nj.robust.contaminations.covariate(key, POINTS, SIGNS, 0.3).x,
    "rollout": lambda key: nj.rollout(
        nj.learners.two_copies(radius=1.0), LABELLED, nj.noise.Gaussian(0.1), key,
        y_noise=nj.noise.Laplace(0.1),
    ).predictions,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_a_function_of_their_key_alone(name):
    """Also of raw keys "rbg", and inside `vmap` as outside: JAX draws others of such keys there."""
    draw, keys = DRAWS[name], [jax.random.PRNGKey(seed, impl="rbg") for seed in range(12)]
    run = jax.jit(draw)
    alone = [run(key) for key in keys]
    together = jax.jit(jax.vmap(draw))(jnp.stack(keys))
    np.testing.assert_allclose(together, jnp.stack(alone), rtol=1e-4, atol=1e-5)
    assert any(not np.allclose(alone[0], other) for other in alone[1:])


def test_keys_of_other_kinds_give_way_to_keys_of_the_default_kind():
    for key in (jax.random.key(3), jax.random.PRNGKey(3)):
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
        typed = jax.random.key(3, impl="threefry2x32")
        assert validation.parsed_key(typed) is typed
    raises("a raw key has 2 or 4 numbers", validation.parsed_key, jnp.ones(3, jnp.uint32))


X = np.random.default_rng(0).normal(size=(40, 2))
FRAME = {name: X[:, k] for k, name in enumerate(["x1", "x2"])} | {"id": np.repeat(range(20), 2)}
FRAME |= {"more": X[:, 0] ** 3, "y": X @ [1.0, 2.0] + 0.1 * np.cos(9 * X[:, 0])}
ROWS = nj.observations.from_arrays(X, FRAME["y"], noise=0.01)
GAUSSIAN = nj.observations.from_arrays(X, FRAME["y"], noise=nj.noise.Gaussian(0.01))
PARTS = [ROWS.rows(slice(k, k + 20)) for k in (0, 20)]
LEARNER = nj.learners.two_copies(radius=1.0)
STREAM = nj.streams.linear(jax.random.key(0), 8, 2)
COPIES = X[:, None] + 0.1 * np.random.default_rng(1).normal(size=(40, 2, 2))


def table(**options):
    options = {"target": "y", "noise": {"x1": 0.01}, "drop": ["id", "more"]} | options
    return nj.table(FRAME, **options)


def named(some, **items):
    """Pairs of names and items, or a dict in place of a list of them."""
    return items if some is list else some(items.items())


def least_squares(x, y):
    return np.linalg.lstsq(x, y, rcond=None)[0]


def fitted(method):
    return nj.fit(ROWS, method), nj.fit(ROWS, method)  # an option is there the second time as well


def study(learners, **options):
    comparator = nj.comparators.linear_ball(radius=1.0)
    noise, key = nj.noise.Gaussian(0.1), jax.random.key(1)
    found = nj.study(learners, STREAM, noise, key, comparator=comparator, **options)
    return [row.regret for row in found.rows], [row.quantiles for row in found.rows]


@pytest.mark.parametrize(
    "call",
    {
        "products": lambda some: nj.fit(table(products=some([("x1", "x2")]))),
        "drop": lambda some: table(drop=some(["id", "more"])),
        "features": lambda some: table(features=some(["x1", "more"]), drop=()),
        "replicates": lambda some: table(noise=None, replicates={"x1": some(["x1", "x2"])}),
        "replicates of subjects": lambda some: nj.table(
            {"id": FRAME["id"], "x1": X[:, 0], "y": FRAME["id"] ** 2.0},
            target="y", subject="id", replicates=some(["x1"]),
        ),
        "columns": lambda some: nj.table(
            {name: some(column.tolist()) for name, column in FRAME.items()},
            target="y", noise={"x1": 0.01}, drop=["id"],
        ),
        "noise by name": lambda some: table(noise=dict(some([("x1", nj.sd(some([0.1] * 40)))]))),
        "noise": lambda some: nj.table(
            {name: FRAME[name] for name in ("x1", "x2", "y")}, target="y", noise=some([0.01, 0.02])
        ),
        "pairs of names and noise": lambda some: table(noise=named(some, x1=0.01, x2=0.02)),
        "cross_cov": lambda some: table(cross_cov=some([0.001, 0.0])),
        "arrays": lambda some: nj.observations.from_arrays(
            some(X.tolist()), some(FRAME["y"].tolist()), noise=some([0.01, 0.02]),
            names=some(["a", "b"]), products=some([("a", "b")]),
        ),
        "misclassified": lambda some: table(
            drop=["x2", "more"],
            noise={"id": nj.noise.Misclassified(
                some(np.eye(20).tolist()), categories=some(list(range(20)))
            )},
        ),
        "weights": lambda some: fitted(
            nj.methods.Linear(weights=some([1.0, 2.0] * 20), clusters=some(FRAME["id"].tolist()))
        ),
        "levels": lambda some: fitted(
            nj.methods.SIMEX(least_squares, levels=some([0.5, 1.0, 2.0]), draws=2)
        ),
        "methods": lambda some: nj.fit(GAUSSIAN, some(
            [nj.methods.Fourier(length_scale=s, num_features=8) for s in (1.0, 2.0)]
        )),
        "features of fit": lambda some: nj.fit(table(), weights=some([1.0, 2.0] * 20)),
        "chunks": lambda some: nj.fit(some(PARTS)),
        "moments": lambda some: nj.fit(some([nj.fits.moments(part) for part in PARTS])),
        "predict": lambda some: nj.fit(ROWS).predict(some([[1.0, 2.0]])),
        "candidates": lambda some: nj.select(
            named(some, fit=nj.fit, plain=lambda rows: nj.fit(rows).uncorrected),
            ROWS, jax.random.key(0), clusters=some(FRAME["id"].tolist()),
        ).risk,
        "study": lambda some: study(
            num_seeds=2, horizons=some([4, 8]), learners=named(some, a=LEARNER),
            quantiles=some([0.1, 0.9]),
        ),
        "quantiles": lambda some: nj.monte_carlo(
            jax.random.uniform, 8, jax.random.key(0), quantiles=some([0.1, 0.5])
        ),
        "growth": lambda some: nj.simulated.growth(
            some([4, 8, 16]), some([1.0, 1.5, 2.0]), some([0.1] * 3), 10
        ),
        "stream": lambda some: nj.streams.from_arrays(
            some(X.tolist()), some(FRAME["y"].tolist())
        ),
        "scaled": lambda some: nj.streams.scaled(some(X.tolist()), some(FRAME["y"].tolist())),
        "distributions": lambda some: [
            nj.noise.Gaussian(some([0.1, 0.2]), some([1.0, 2.0])).cov,
            nj.noise.Laplace(some([0.1, 0.2])).cov,
            nj.noise.Missing(some([0.5, 0.8])).keep,
            nj.noise.Product(some([nj.noise.Laplace(0.1), nj.noise.Gaussian(0.2)])).cov,
            nj.noise.Flip(some([0.1, 0.2])).rate,
            nj.noise.Correlated(some([0.1, 0.2])).slopes,
        ],
        "estimates of noise": lambda some: [
            nj.noise.estimate_covariance(some(COPIES.tolist())),
        ],
        "orders": lambda some: geometric(some([1.0, 0.5, 0.25]), p=2.0),
        "diagnose": lambda some: nj.unbiased.diagnose(
            nj.unbiased.pair(lambda w, x, y: (x @ w - y) ** 2, argnum=1),
            lambda w, x, y: (x @ w - y) ** 2,
            jnp.ones(2), some([jnp.asarray(COPIES), jnp.asarray(FRAME["y"])]), jax.random.key(0),
        ).risk,
    }.items(),
    ids=lambda pair: pair[0],
)  # fmt: skip
def test_iterators_are_read_once_where_they_enter(call):
    """Generators in place of lists: the same result, none of them is lost."""
    assert_same(call[1](lambda items: (item for item in items)), call[1](list))


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, list | tuple):
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    elif hasattr(one, "__dict__") and not hasattr(one, "shape"):
        assert vars(one).keys() == vars(other).keys()
        for name, value in vars(one).items():
            assert_same(value, vars(other)[name])
    elif isinstance(one, float | int | np.ndarray | jax.Array) and not isinstance(one, bool):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    elif not callable(one):
        assert one == other or one is other


@pytest.mark.parametrize("value", ["1", [[1.0], [1.0, 2.0]], ["a"], 1j, None, jax.random.key(0)])
def test_an_array_of_real_numbers_is_nothing_else(value):
    with told("value", "array"):
        validation.real_array("value", value)
    for parser in validation.number, validation.positive:
        with told("value", "must be"):
            parser("value", value, shape=None)


def test_arrays_of_real_numbers_may_be_lists_and_traced():
    for value in ([1, 2], iter([1, 2]), np.array([1, 2]), jnp.array([1, 2])):
        assert validation.real_array("value", value).tolist() == [1, 2]
    traced = jax.jit(lambda a: (validation.real_array("a", [a, 2 * a]), nj.noise.Gaussian([a, a])))
    assert traced(1.0)[0].tolist() == [1, 2]
    assert traced(1.0)[1].cov.tolist() == [1, 1]


@pytest.mark.parametrize("value", ["no", 1, None, np.ones(2)])
def test_switches_and_functions(value):
    with told("value", "True or False"):
        validation.switch("value", value)
    with told("value", "a function"):
        validation.function("value", value)
    with told("value", "'a' or 'b'"):
        validation.choice("value", value, ("a", "b"))
    assert validation.switch("value", np.True_) is True
