"""A file of a fit is read bit for bit, or is one clear error."""

import json

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import noisy_jax as nj

X = np.random.default_rng(0).normal(size=(300, 2))
Y = X[:, 0] - X[:, 1] ** 2
NOISE, NAMES = nj.noise.Gaussian(0.1), ["dose", "âge"]
SPREAD = np.linspace(0.1, 0.5, 300)
SEEN = X + np.random.default_rng(1).normal(size=(300, 1)) * np.stack([SPREAD, 0 * SPREAD], axis=1)
LEARNER, KEY = nj.learners.known_covariance(radius=2.0), jax.random.key(0)


def table(y=Y, x=X, noise=NOISE, **options):
    return nj.observations.from_arrays(x, y, noise=noise, names=NAMES, **options)


def line(params, x):
    return params["a"] + x @ params["w"]


def slope(x, y):
    return {"a": y @ x[:, 0]}


MODEL = nj.methods.Model(line, {"a": 0.0, "w": np.zeros(2)})
ESTIMATE = nj.noise.CovarianceEstimate(0.1 * np.eye(2), 0.01 * np.eye(2))
TABLE, LABELS = table(), table(1.0 * (Y > 0))
PARTS = [table(Y[p], X[p], ESTIMATE) for p in (slice(99), slice(99, 300))]
FITS = {
    "linear": lambda: nj.fit(TABLE),
    "weighted by row": lambda: nj.fit(table(X[:, 0], SEEN, {"dose": nj.sd(SPREAD)})),
    "products": lambda: nj.fit(table(noise=0.1, products=[NAMES])),
    "chunks of uncertain noise": lambda: nj.fit(PARTS),
    "logistic": lambda: nj.fit(LABELS, model="logistic"),
    "calibration": lambda: nj.fit(LABELS, nj.methods.RegressionCalibration("logistic")),
    "quadratic": lambda: nj.fit(TABLE, nj.methods.SIMEX(LinearRegression(), draws=2)),
    "rational": lambda: nj.fit(TABLE, nj.methods.SIMEX(slope, draws=5, extrapolation="rational")),
    "kernel": lambda: nj.fit(TABLE, nj.methods.Fourier(length_scale=1.0, num_features=8)),
}
SAVED = {kind: (fit, nj.load_fit) for kind, fit in FITS.items()} | {
    "model": (lambda: nj.fit(TABLE, MODEL), lambda path: nj.load_fit(path, MODEL)),
    "learned": (lambda: nj.learn(LEARNER, TABLE, KEY), lambda path: nj.load_learned(path, LEARNER)),
}


def contents(result):
    """All that a result and its parts hold."""
    if isinstance(result, tuple):
        return [contents(part) for part in result]
    if hasattr(result, "__dict__") and not callable(result):
        return {name: contents(part) for name, part in vars(result).items()}
    return None if np.size(result) == 0 else result  # of no noise, in any shape


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAVED)
def test_a_file_holds_the_whole_result(tmp_path, kind):
    make, load = SAVED[kind]
    made = make()
    made.save(tmp_path / "fit.json")
    again = load(tmp_path / "fit.json")
    np.testing.assert_equal(contents(again), contents(made))
    if kind not in ("quadratic", "rational"):
        turned = pd.DataFrame(X, columns=NAMES)[NAMES[::-1]]
        np.testing.assert_allclose(again.predict(turned), made.predict(X), rtol=1e-6)
    assert (str(again), again._repr_html_()) == (str(made), made._repr_html_())


@pytest.mark.parametrize(
    ("kind", "form", "version"),
    [("logistic", None, "0.3.0"), ("learned", 9, "7.1.0"), ("logistic", None, None)],
)
def test_a_file_of_another_version_is_told_with_the_version(tmp_path, kind, form, version):
    make, load = SAVED[kind]
    path = tmp_path / "fit.json"
    make().save(path)
    values = json.loads(path.read_text("utf-8"))
    changed = values | {"format": form, "version": version, "kind": "generalized"}
    path.write_text(json.dumps({k: one for k, one in changed.items() if one is not None}))
    said = f"version {version or 'unknown'} of noisy_jax saved it"
    with pytest.raises(ValueError, match=rf"fit\.json does not hold .*: {said}"):
        load(path)


def check_holds(path, load, whole):
    load(path).save(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("kind", ["kernel", "learned"])
def test_a_flipped_bit_is_one_clear_error_or_changes_nothing(tmp_path, rng, kind):
    """A wrong digit of a number is still JSON."""
    made, load = SAVED[kind]
    path = tmp_path / "fit.json"
    made().save(path)
    whole = path.read_bytes()
    check_holds(path, load, whole)
    errors = []
    for place in rng.integers(len(whole), size=60):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            check_holds(path, load, whole)
        except ValueError as error:
            errors.append(str(error))
    assert len(errors) > 45
    assert all(one.startswith(f"{path} does not hold ") and "\n" not in one for one in errors)


def test_another_digit_is_named_and_other_spaces_are_not_damage(tmp_path):
    path = tmp_path / "fit.json"
    nj.fit(TABLE).save(path)
    whole = path.read_bytes()
    values = json.loads(whole)
    path.write_text(json.dumps(dict(sorted(values.items())), ensure_ascii=False), encoding="utf-8")
    check_holds(path, nj.load_fit, whole)
    values["values"][0] += 1e-9
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"fit\.json .* its content is not .* damaged or edited"):
        nj.load_fit(path)
