"""Curves and losses of users that JAX cannot trace, or that read what is not there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.callables import check_callables
from tests.errors import raises

LIST = [np.zeros(()), np.ones(())]
BEYOND = r"index -?\d is out of bounds .*\); it is called as curve\(params, x\), with params as in "
BEYOND += r"start \(2: 'a', 'b'\) and x the vector of features \(2: 'dose', 'age'\), counted from 0"


def check(curve, start=LIST, loss=jnp.subtract):
    names = ("a", "b"), ("dose", "age")
    check_callables(curve, loss, jax.tree.map(np.asarray, start), np.array([0.0, 1.0]), *names)


@pytest.mark.parametrize(
    ("message", "curve", "start"),
    [
        (f"x out of range .{BEYOND}", lambda p, x: p["a"] + p["b"] * x[2], {"a": 0.0, "b": 1.0}),
        (f"params out of range .{BEYOND}", lambda p, x: p[0] + p[2] * x[0], np.ones(2)),
        ("reads what is not there .list index", lambda p, x: p[2] * x[0], LIST),
        ("reads what is not there .'c'", lambda p, x: p["c"] * x[0], {"a": 0.0, "b": 1.0}),
        ("string indexing.* the vector of features .2: 'dose'", lambda p, x: x["dose"], LIST),
        ("curve must be written with jax.numpy", lambda p, x: np.sin(x[0]), LIST),
        ("jnp.where in place of if", lambda p, x: p[0] if x[0] > 0 else p[1], LIST),
        (r"result must be one number for one row x\[d\], got \[2\]", lambda p, x: p[0] * x, LIST),
        (r"two arguments, curve.params, x., but is curve.x.: params are all", lambda x: x[0], LIST),
    ],
)
def test_wrong_curves_give_one_clear_line(message, curve, start):
    raises(message, check, curve, start)


def test_a_start_that_is_a_list_gives_the_curve_a_list():
    check(lambda p, x: p[0] + p[1] * x[0])
    raises("params as start has them, a list: .* give start as an array", check, lambda p, x: x @ p)
    check(lambda p, x: x @ p, np.zeros(2))


def test_wrong_losses_and_other_errors():
    raises("loss must be written with jax.numpy", check, lambda p, x: p[0], LIST, np.logaddexp)
    raises("is called as loss.prediction, y.", check, lambda p, x: p[0], LIST, lambda p, y: p[0])
    one = lambda error: error**2  # noqa: E731
    raises(
        "loss must take two .* loss.prediction, y., but is loss.error.$", check, np.dot, LIST, one
    )
    with pytest.raises(AttributeError) as caught:
        check(lambda p, x: x.dose)
    assert "curve raised this; it is called as curve(params, x)" in caught.value.__notes__[-1]


def test_what_numpy_arrays_lack_is_no_error():
    check(lambda p, x, power=1: p[0] * x[0] ** power)
    check(lambda p, x: p[0] / x[0] + x.at[0].set(1.0)[1])
    check(lambda p, x: jax.lax.fori_loop(0, 2, lambda i, s: s + p[i] * x[i], 0.0), np.ones(2))


def test_a_model_checks_its_curve(rng):
    table = nj.observations.from_arrays(rng.normal(size=(99, 2)), rng.normal(size=99), noise=0.1)
    method = nj.methods.Model(lambda p, x: p[0] + jnp.sin(p[1] * x[1]) * x[2], [0.0, 1.0])
    raises("curve reads x out of range.*2: 'params.0.', 'params.1.'. and", nj.fit, table, method)
