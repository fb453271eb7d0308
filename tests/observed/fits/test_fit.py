"""The door of fits: what `nj.fit` makes of its arguments, first tries, predictions, and files."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.saved import digest_of
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises, told
from tests.observed.rows import regression

METHODS = nj.methods


def table(rng, model="linear"):
    x, y = regression(rng, 200, model, np.array([1.0, -0.5]), 0.09)
    return from_arrays(x, y, noise=nj.noise.Gaussian(0.09))


def LINE(x, y):  # noqa: N802
    return y @ x / len(y)


def CURVE(params, x):  # noqa: N802
    return params[0] * x[0]


def same(method, rows, *arguments, **options):
    found = [nj.fit(rows, method), method.fitted(rows), nj.fit(rows, *arguments, **options)]
    assert len({str(one) for one in found}) == 1
    return found[0]


@pytest.mark.slow
def test_keywords_are_methods(rng):
    rows, weights, clusters = table(rng), rng.uniform(1, 2, size=200), np.arange(200) % 40
    plain = same(METHODS.Linear(), rows)
    for options in ({"weights": weights}, {"clusters": clusters}, {"errors": "jackknife"}):
        assert str(same(METHODS.Linear(**options), rows, **options)) != str(plain)
    for model, method in (("logistic", METHODS.Logistic()), ("poisson", METHODS.Poisson())):
        same(method, table(rng, model), model=model)
        same(method, table(rng, model), model)
    one = nj.methods.Fourier(length_scale=1.0, num_features=8)
    assert isinstance(one, METHODS.Fourier)
    same(one, rows, one)
    both = [one, nj.methods.Fourier(length_scale=2.0, num_features=8)]
    assert len(same(METHODS.OneOf(both), rows, both).candidates) == 2


def test_chunks_are_for_linear_fits(rng):
    rows = table(rng)
    same(METHODS.Linear(), [rows.rows(np.arange(100)), rows.rows(np.arange(100, 200))])


EVERY = [
    METHODS.Linear(),
    METHODS.Logistic(),
    METHODS.Poisson(),
    METHODS.RegressionCalibration(),
    METHODS.SIMEX(LINE, draws=2),
    METHODS.Fourier(length_scale=1.0, num_features=8),
    METHODS.Model(CURVE, [1.0]),
]


@pytest.mark.parametrize("method", EVERY, ids=lambda one: type(one).__name__)
def test_what_no_method_takes(rng, method):
    rows = table(rng, "logistic")  # labels are also counts, and numbers
    few, clusters = rows.rows(np.arange(3)), np.arange(200) % 7
    raises("rows, got 3$|3 rows are too few for the jackknife", nj.fit, few, method)
    clustered = dataclasses.replace(method, clusters=clusters)
    raises("at least 8 clusters, got 7", nj.fit, rows, clustered)
    if not isinstance(method, METHODS.Model):
        noisy = from_arrays(rows.x, rows.y, noise=nj.noise.Gaussian(9.0))
        raises("column 'x1' varies no more than its error", nj.fit, noisy, method)
    if not isinstance(method, METHODS.Linear):
        raises(
            f"for nj.methods.Linear; .*{type(method).__name__} takes one", nj.fit, [rows], method
        )


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (METHODS.Logistic, {}, r"method is a class: write nj.methods.Logistic\(\)$"),
        (METHODS.SIMEX, {}, r"write nj.methods.SIMEX\(estimator=…\)$"),
        ("probit", {}, "or 'linear', 'logistic' or 'poisson', got 'probit'"),
        ("logistic", {"model": "poisson"}, "the method 'logistic' or model='poisson', not both"),
        (
            METHODS.Poisson(),
            {"errors": "jackknife"},
            "leave out errors with Poisson: a method owns",
        ),
    ],
)
def test_a_method_that_is_none_says_what_to_write(rng, method, options, message):
    raises(message, nj.fit, table(rng, "logistic"), method, **options)


def test_predictions_at_replicates_say_that_their_mean_is_meant(rng):
    frame = {f"bp{k}": rng.normal(size=200) for k in (1, 2)} | {"y": rng.normal(size=200)}
    frame["bp2"] = frame["bp1"] + 0.1 * rng.normal(size=200)
    fit = nj.fit(nj.table(frame, target="y", replicates={"bp": ["bp1", "bp2"]}))
    message = r"column 'bp' is missing in x, .*several times, the mean of the copies is meant"
    raises(message, fit.predict, frame)
    mean = (frame["bp1"] + frame["bp2"]) / 2
    np.testing.assert_array_equal(fit.predict({"bp": mean}), fit.predict(mean[:, None]))


def test_pictures_say_whether_they_need_the_table(rng):
    rows = table(rng)
    raises(r"needs no table: fit\.plot\(\)", nj.fit(rows).plot, rows)
    curve = nj.fit(rows, METHODS.Fourier(length_scale=2.0, num_features=8))
    raises(r"needs its table: fit\.plot\(table\)", curve.plot)


def test_files_say_what_they_hold(rng, tmp_path):
    path = tmp_path / "fit.json"
    nj.fit(table(rng)).save(path)
    values = json.loads(path.read_text())
    assert (values["kind"], values["version"]) == ("linear", nj.__version__)
    del values["sha256"]
    for change, message in (
        ({"kind": "cubic"}, "its kind is 'cubic'"),
        ({"more": 1}, "'more'"),
        ({"kind": []}, "does not hold a fit"),
    ):
        changed = {**values, **change}
        path.write_text(json.dumps({**changed, "sha256": digest_of(changed)}))
        raises(message, nj.load_fit, path)
    del values["kind"]  # as version 0.2 wrote it
    path.write_text(json.dumps(values))
    raises(r"^.*a fit that version 0\.2 saved must be made anew$", nj.load_fit, path)


def predictors(rng):
    yield nj.fit(table(rng))
    yield nj.fit(table(rng, "logistic"), model="logistic")
    yield nj.fit(table(rng), METHODS.Fourier(length_scale=1.0, num_features=8))
    yield nj.learn(nj.learners.known_covariance(radius=3.0), table(rng), jax.random.key(0))


@pytest.mark.slow
def test_predictions_are_the_same_under_jit_vmap_and_grad(rng):
    x = rng.normal(size=(7, 2))
    for fit in predictors(rng):
        expected = fit.predict(x)
        assert expected.dtype == np.float64
        scale = np.abs(expected).max()
        for predict in (jax.jit(fit.predict), jax.vmap(fit.predict)):
            np.testing.assert_allclose(predict(jnp.asarray(x)), expected, atol=2e-5 * scale)
        slope = jax.grad(fit.predict)(jnp.asarray(x[0]))
        steps = 1e-3 * np.eye(2)
        change = [(fit.predict(x[0] + e) - fit.predict(x[0] - e)) / 2e-3 for e in steps]
        np.testing.assert_allclose(slope, change, rtol=1e-2, atol=1e-3 * scale)
        raises(r"x must be|could not be broadcast", jax.jit(fit.predict), jnp.zeros((4, 3)))


def test_other_things_than_a_table_get_the_right_call(rng):
    x, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    table = r"fit takes one table of .*: nj\.fit\(nj\.observations\.from_arrays\(x, y, noise=…\)\)"
    framed = r"got .*: nj\.fit\(nj\.table\(frame, target=…, noise=…\)\)"
    file = r"the path 'file\.csv'; read the file: nj\.fit\(nj\.csv\('file\.csv', target=…"
    for method in (y, None, METHODS.Logistic()):
        for given in (x, jnp.asarray(x), [1.0]):
            raises(table, nj.fit, given, method)
        for given in (pd.DataFrame(x), {"x1": y}):
            raises(framed, nj.fit, given, method)
    raises(file, nj.fit, "file.csv")


def test_fits_inside_jit_say_that_they_run_on_the_host(rng):
    rows = table(rng)
    x, y = rows.x[:, 0], rows.y
    raises("outside jit", jax.jit(lambda x: nj.fit(from_arrays(x, y, noise=0.1)).coefficients), x)
    features = nj.methods.Fourier(length_scale=1.0, num_features=8)
    raises("outside jit", jax.jit(lambda: nj.fit(rows, features).weights))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nj.methods.SIMEX(LINE, levels=[1.0, 1.0, 2.0]), "levels must be two or more"),
        (lambda: nj.methods.SIMEX(LINE, progress="bar"), "progress must be a function"),
        (lambda: nj.methods.Fourier(length_scale=1.0, seed=jax.random.key(0)), "seed must be"),
        (lambda: nj.methods.Fourier(length_scale="median"), "must be a positive number or 'auto'"),
        (lambda: nj.methods.Fourier(length_scale=-1.0), "must be positive and finite, got -1.0"),
        (lambda: nj.methods.Fourier(length_scale=1.0, num_features=3), "even"),
        (lambda: nj.methods.Fourier(length_scale=1.0, num_features=0), "at least 2"),
        (lambda: nj.methods.Model(CURVE, "zeros"), "start (params) must be numbers"),
        (lambda: nj.methods.Model(CURVE, [np.nan]), "start (params[0]) must be finite"),
        (lambda: nj.methods.Model(CURVE, [1.0], estimate=3), "estimate must be a function"),
        (lambda: nj.methods.Model(CURVE, [1.0], estimate=nj.unbiased.pair(CURVE)), "not what it"),
        (lambda: nj.sd(0.1, gaussian="yes"), "gaussian must be True or False"),
    ],
)
def test_options_are_checked_where_a_method_is_made(make, message):
    with told(message):
        make()
