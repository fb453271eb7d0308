"""The door of fits: what `nj.fit` makes of its arguments, and what a file holds of a fit."""

import json

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays

METHODS = nj.methods


def table(rng, model="linear"):
    x = rng.normal(size=(200, 2))
    y = x @ [1.0, -0.5] + rng.normal(size=200)
    y = {"linear": y, "logistic": 1.0 * (y > 0), "poisson": 1.0 * rng.poisson(np.exp(y / 2))}[model]
    return from_arrays(x + 0.3 * rng.normal(size=x.shape), y, noise=nj.noise.Gaussian(0.09))


def same(method, rows, *arguments, **options):
    found = [nj.fit(rows, method), method.fitted(rows), nj.fit(rows, *arguments, **options)]
    assert len({str(one) for one in found}) == 1
    return found[0]


def test_keywords_are_methods(rng):
    rows, weights, clusters = table(rng), rng.uniform(1, 2, size=200), np.arange(200) % 40
    plain = same(METHODS.Linear(), rows)
    for options in ({"weights": weights}, {"clusters": clusters}, {"errors": "jackknife"}):
        other = same(METHODS.Linear(**options), rows, **options)
        assert str(other) != str(plain)
    for model, method in (("logistic", METHODS.Logistic()), ("poisson", METHODS.Poisson())):
        same(method, table(rng, model), model=model, errors="jackknife")
    one = nj.fourier(length_scale=1.0, num_features=8)
    assert isinstance(one, METHODS.Fourier)
    same(one, rows, features=one)
    both = [one, nj.fourier(length_scale=2.0, num_features=8)]
    assert len(same(METHODS.OneOf(both), rows, both).candidates) == 2


def test_chunks_and_their_checkpoint_are_options_of_a_linear_fit(rng, tmp_path):
    rows = table(rng)
    chunks = [rows.rows(np.arange(100)), rows.rows(np.arange(100, 200))]
    method = METHODS.Linear(checkpoint=tmp_path / "a")
    same(method, chunks, checkpoint=tmp_path / "b")
    with pytest.raises(ValueError, match=r"nj.methods.Fourier takes one table"):
        nj.fit(chunks, nj.fourier(length_scale=1.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": np.ones(200)}, "leave out weights with the method Logistic: a method owns"),
        ({"model": "poisson", "errors": "jackknife"}, "leave out model, errors with the method"),
        ({"features": nj.fourier(length_scale=1.0)}, "leave out features with the method Logistic"),
    ],
)
def test_options_beside_a_method_say_where_they_belong(rng, options, message):
    with pytest.raises(ValueError, match=message):
        nj.fit(table(rng, "logistic"), METHODS.Logistic(), **options)


def test_files_say_what_they_hold(rng, tmp_path):
    path = tmp_path / "fit.json"
    fits = {
        "linear": nj.fit(table(rng)),
        "generalized": nj.fit(table(rng, "poisson"), METHODS.Poisson()),
        "kernel": nj.fit(table(rng), nj.fourier(length_scale=1.0, num_features=8)),
    }
    for kind, fit in fits.items():
        fit.save(path)
        values = json.loads(path.read_text())
        assert (values["kind"], values["version"]) == (kind, nj.__version__)
        again = nj.load_fit(path)
        assert type(again) is type(fit)
        assert str(again) == str(fit)
    for change, message in (
        ({"kind": "cubic"}, "'cubic'"),
        ({"kind": None}, "None"),
        ({"more": 1}, "'more'"),
        ({"candidates": 3}, "does not hold a fit"),
    ):
        path.write_text(json.dumps({**values, **change}))
        with pytest.raises(ValueError, match=message):
            nj.load_fit(path)
    del values["kind"]  # as version 0.2 wrote it
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"^.*a fit that version 0\.2 saved must be made anew$"):
        nj.load_fit(path)
