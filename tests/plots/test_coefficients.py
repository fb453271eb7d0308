import numpy as np
import pytest

import noisy_jax as nj
from tests.errors import raises


def test_coefficients_and_intervals_are_those_of_one_standard_deviation(rng):
    """Of columns whose standard deviations are 1, 10 and 0.1."""
    clean = rng.normal(size=(400, 3)) * [1.0, 10.0, 0.1]
    noise = np.diag([0.1, 10.0, 0.001])
    x = clean + rng.multivariate_normal(np.zeros(3), noise, size=400)
    y = clean @ [2.0, -0.1, 30.0] + rng.normal(size=400)
    fit = nj.fit(nj.observations.from_arrays(x, y, noise=noise, names=list("abc")))
    axes = nj.plots.coefficients(fit)
    spread = x.std(axis=0)
    both = (fit, fit.uncorrected)
    for one, middles, ends in zip(both, axes.lines, axes.collections, strict=False):
        np.testing.assert_allclose(middles.get_xdata(), one.coefficients * spread, rtol=1e-6)
        low, high = (end[1:] * spread for end in one.interval())
        segments = np.array(ends.get_segments())
        np.testing.assert_allclose(segments[:, :, 0], np.stack([low, high], axis=1), rtol=1e-6)
        np.testing.assert_array_equal(segments[:, 0, 1], middles.get_ydata())
    names = [text.get_text() for text in axes.get_yticklabels()]
    places = dict(zip(names, axes.get_yticks(), strict=True))
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [places[n] + 0.12 for n in "abc"])


@pytest.mark.parametrize(("model", "words"), [("logistic", "log odds"), ("poisson", "log rate")])
def test_coefficients_of_other_models_have_their_units(rng, model, words):
    x = rng.normal(size=(400, 1)) * 10
    y = (x[:, 0] + 10 * rng.normal(size=400) > 0) * 1.0
    fit = nj.fit(nj.observations.from_arrays(x, y, noise=5.0), model=model)
    axes = fit.plot()
    assert f"change of the {words} of y for one standard" in axes.get_xlabel()
    np.testing.assert_allclose(axes.lines[0].get_xdata(), fit.coefficients * x.std())


def test_numbers_of_a_function_are_drawn_as_they_are(rng):
    x, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    method = nj.methods.SIMEX(lambda x, y: {"a": x[:, 0] @ y, "b": y.sum(), "c": 1.0}, draws=2)
    fit = nj.fit(nj.observations.from_arrays(x, y, noise=0.1), method)
    axes = fit.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c"]
    np.testing.assert_allclose(axes.lines[0].get_xdata(), fit.values)
    assert axes.get_xlabel() == "estimate"


def test_a_curve_has_another_picture(rng):
    x, y = rng.normal(size=(300, 1)), rng.normal(size=300)
    method = nj.methods.Model(lambda p, x: p[0] + p[1] * x[0], np.zeros(2))
    fit = nj.fit(nj.observations.from_arrays(x, y + x[:, 0], noise=0.01), method)
    raises(r"nj.plots.function\(fit, table\) draws it", nj.plots.coefficients, fit)
