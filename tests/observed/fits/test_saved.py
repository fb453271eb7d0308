"""A file of a fit is read bit for bit, or is one clear error."""

import json

import jax
import numpy as np
import pytest

import noisy_jax as nj

X = np.random.default_rng(0).normal(size=(300, 2))
NOISE = nj.noise.Gaussian(0.1)
TABLE = nj.observations.from_arrays(X, X[:, 0] - X[:, 1] ** 2, noise=NOISE, names=("dose", "âge"))
LEARNER = nj.learners.known_covariance(radius=2.0)


def line(params, x):
    return params["a"] + x @ params["w"]


MODEL = nj.methods.Model(line, {"a": 0.0, "w": np.zeros(2)})
SAVED = {
    "linear": (lambda: nj.fit(TABLE), nj.load_fit),
    "kernel": (lambda: nj.fit(TABLE, nj.fourier(length_scale=1.0, num_features=8)), nj.load_fit),
    "model": (lambda: nj.fit(TABLE, MODEL), lambda path: nj.load_fit(path, MODEL)),
    "learned": (
        lambda: nj.learn(LEARNER, TABLE, jax.random.key(0)),
        lambda path: nj.load_learned(path, LEARNER),
    ),
}


def check_holds(path, load, whole):
    load(path).save(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("kind", SAVED)
def test_a_flipped_bit_is_one_clear_error_or_changes_nothing(tmp_path, rng, kind):
    """A wrong digit of a number is still JSON."""
    made, load = SAVED[kind]
    path = tmp_path / "fit.json"
    made().save(path)
    whole = path.read_bytes()
    check_holds(path, load, whole)
    errors = []
    for place in rng.integers(len(whole), size=100):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            check_holds(path, load, whole)
        except ValueError as error:
            errors.append(str(error))
    assert len(errors) > 80
    assert all(one.startswith(f"{path} does not hold ") and "\n" not in one for one in errors)


def test_another_digit_is_named_and_other_spaces_are_not_damage(tmp_path):
    path = tmp_path / "fit.json"
    nj.fit(TABLE).save(path)
    whole = path.read_bytes()
    values = json.loads(whole)
    path.write_text(json.dumps(dict(sorted(values.items())), ensure_ascii=False), encoding="utf-8")
    check_holds(path, nj.load_fit, whole)
    values["coefficients"][0] += 1e-9
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"fit\.json does not hold a fit: its digest .* damaged"):
        nj.load_fit(path)
