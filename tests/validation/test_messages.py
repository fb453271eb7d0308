"""Messages of the parsers, and of functions that call them."""

import functools

import jax
import numpy as np
import pytest

import noisy_jax as nj
import noisy_jax.sklearn
from noisy_jax.engine import growing
from noisy_jax.validation import messages
from tests.errors import raises


def test_long_values_are_shortened_in_messages():
    assert len(messages.given("x" * 10_000)) < 200
    assert messages.given(np.zeros((2, 3))) == "an array [2, 3] of float64"
    assert messages.listed([f"x{i}" for i in range(12)]).endswith("… (12 in all)")


KEY, RAGGED = jax.random.key(0), [[1.0], [1.0, 2.0]]
LEARNER, DRAW = nj.learners.two_copies(radius=1.0), jax.random.uniform
STILL = nj.bounds.Drift(norm=1.0, length=0.0, squared_length=0.0)
MISTAKES = functools.partial(
    nj.bounds.margin_errors, 1.0, STILL, horizon=8, margin=0.0, comparator_loss=0.0
)
ESTIMATOR = nj.unbiased.kernel_gradient(
    nj.kernels.linear(), nj.losses.squared(), radius=1.0, x_second_moment=1.0
)
MOMENTS = nj.bounds.DataMoments(1.0, 1.0, 1.0, 0.0)
BALL = {"horizon": 8, "radius": 1.0}
PRINTED = nj.bounds.as_printed
WORLD = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.1))
TABLE = {"a": np.arange(12.0) ** 2, "y": np.arange(12.0)}


def tabled(noise=None, **options):
    return nj.table(TABLE, target="y", noise=noise, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: tabled({"a": True}), "must be numbers, got True"),
        (lambda t: nj.fit(t, weights="a"), "'a' is a feature of this table: name it where"),
        (lambda t: nj.fit(t, weights=-t.y), r"weights must be .*, but weights\[1\] is -1"),
        (lambda t: nj.fit(t).predict("a"), "x must be numbers, got 'a'"),
        (lambda t: nj.fit(t, nj.methods.SIMEX(lambda x, y: "a")), "of <lambda> must be numbers"),
        (lambda t: nj.csv(3, target="y"), "path must be a CSV file's path, got 3"),
        (lambda t: nj.bounds.two_copies(t, horizon=8, radius=1.0), "moments must be a DataMom"),
        (lambda t: nj.bounds.self_bounding(t, horizon=8, radius=1.0), "moments must be a DataM"),
        (lambda t: PRINTED.two_copies(t, horizon=8, radius=1.0), "moments must be a DataMoments"),
        (lambda t: PRINTED.two_copies(MOMENTS, horizon=8, radius="a"), "radius must be numbers"),
        (lambda t: PRINTED.known_covariance(MOMENTS, horizon=8, radius="a"), "radius must be n"),
        (lambda t: PRINTED.parallel_worlds("a", **BALL, y_second_moment=1.0), "diagonal must be"),
        (lambda t: PRINTED.parallel_worlds(1.0, **BALL, y_second_moment="a"), "y_second_moment m"),
        (lambda t: PRINTED.surrogate_radius(WORLD, norm=1j, angle=1.0), "norm must be real"),
        (lambda t: PRINTED.surrogate_radius(WORLD, norm=1.0, angle="a"), "angle must be numbers"),
        (lambda t: nj.fit(t, model=np.ones(2)), "model must be 'linear', .*, got an array"),
        (lambda t: nj.methods.Fourier(length_scale=np.ones((2, 2))), "length_scale must be one"),
        (lambda t: tabled({"a": RAGGED}), r"noise\['a'\] must be one"),
        (lambda t: nj.observations.from_arrays(KEY, t.y, noise=0.1), "x must be numbers, got a k"),
        (lambda t: nj.streams.scaled(np.ones((2, 1)), KEY), "y must be numbers, got a key"),
        (lambda t: nj.streams.scaled(RAGGED, t.y), "x must have rows of equal length"),
        (
            lambda t: jax.jit(lambda e: growing(8, start=4, excess=e))(0.1),
            "excess must be concrete, got a tra",
        ),
        (lambda t: tabled({"a": 0.1}, drop=None), "drop must be names"),
        (lambda t: tabled(replicates=np.ones(2)), "replicates must be a map"),
        (lambda t: nj.select({"a": nj.fit}, t, KEY, standardize="no"), "standardize must be True"),
        (lambda t: nj.select(np.ones(2), t, KEY), "candidates must map .*, got an array"),
        (lambda t: nj.load_fit(3), "path must be a file's path, got 3"),
        (lambda t: nj.load_learned(None, LEARNER), "path must be a file's path, got None"),
        (lambda t: jax.jit(nj.reliability)(0.5), "reliability must be concrete, got a traced"),
        (lambda t: jax.jit(lambda v: nj.sd(v).value)(0.1), "sd must be concrete, got a traced"),
        (lambda t: jax.jit(lambda v: tabled({"a": v}).x)(0.1), "noise must be concrete, got a tra"),
        (lambda t: jax.jit(lambda k: nj.learn(LEARNER, t, k))(KEY), "key must be concrete, got"),
        (lambda t: jax.jit(lambda k: nj.select({"a": nj.fit}, t, k))(KEY), "key must be concrete"),
        (lambda t: jax.jit(lambda k: nj.monte_carlo(DRAW, 8, k))(KEY), "key must be concrete, got"),
        (lambda t: nj.sd(KEY), "sd must be numbers, got a key"),
        (lambda t: nj.sd(RAGGED), "sd must be one array, but has parts of unequal shapes"),
        (lambda t: nj.bounds.drift(np.ones((0, 2))), r"weights must have at least one number, got"),
        (lambda t: nj.fit(t, weights=KEY), "weights must be the name of a column or an array"),
        (lambda t: nj.fit(t, clusters=RAGGED), "clusters must be one array, but has parts of un"),
        (lambda t: jax.jit(lambda w: nj.fit(t, weights=w))(t.y), "weights must be concrete, got"),
        (lambda t: jax.jit(lambda r: nj.methods.Logistic(flips=r))(0.1), "flips must be concrete"),
        (lambda t: nj.bounds.surrogate_radius(WORLD, norm=1.0, angle=[1.0]), r"angle must be \[\]"),
        (
            lambda t: jax.jit(lambda p: PRINTED.random_truncation(ESTIMATOR, horizon=8, p=p))(2.0),
            "p must be concrete, got a traced one",
        ),
        (lambda t: MISTAKES(comparator_margin="a"), "comparator_margin must be numbers, got 'a'"),
        (lambda t: nj.plots.regret(t), "study must be a Study, got Observations"),
        (lambda t: noisy_jax.sklearn.clean_score(t), "clean_score_ of a fitted estimator"),
    ],
)
def test_wrong_inputs_are_named(call, message):
    raises(message, call, tabled({"a": 1e-6}))
