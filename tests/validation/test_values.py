"""Masked arrays, and iterators, which are read once where they enter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.unbiased.truncation.orders import geometric
from noisy_jax.validation import values


def test_masked_numbers_are_nan():
    masked = np.ma.array([1, -999], mask=[False, True])
    np.testing.assert_array_equal(values.unmasked(masked), [1.0, np.nan])


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
