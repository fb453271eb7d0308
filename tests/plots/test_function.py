from typing import Any

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.reports.intervals import half_width
from tests.errors import raises
from tests.plots.checks import check_draws_on_given_axes

CURVED: Any = nj.methods.Fourier(length_scale=2.0, num_features=8)


def fitted(rng, dim):
    x = rng.normal(size=(300, dim))
    names = ["dose", "age"][:dim]
    table = nj.observations.from_arrays(x, np.sin(x[:, 0]), noise=0.0, names=names, target="dose")
    return nj.fit(table, CURVED), table


@pytest.mark.slow
def test_one_column_with_its_rows_curves_and_bands(rng):
    fit, table = fitted(rng, 1)
    axes = nj.plots.function(fit, table, level=0.8)
    rows, corrected, uncorrected = axes.lines
    np.testing.assert_array_equal(rows.get_xydata(), np.column_stack([table.x[:, 0], table.y]))
    places = corrected.get_xdata()
    np.testing.assert_allclose([places[0], places[-1]], np.quantile(table.x, [0.05, 0.95]))
    for line, one in ((corrected, fit), (uncorrected, fit.uncorrected)):
        np.testing.assert_allclose(line.get_ydata(), one.predict(places[:, None]))
    for band, simultaneous in zip(axes.collections, (True, False), strict=True):
        path = band.get_paths()[0].vertices
        low, high = fit.band(places[:, None], 0.8, simultaneous=simultaneous)
        for k in (0, 60, 200):
            drawn = path[path[:, 0] == places[k], 1]
            np.testing.assert_allclose([drawn.min(), drawn.max()], [low[k], high[k]])
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    bands = ["80% for the whole curve", "80% at each point"]
    assert texts == ["noisy rows", *bands, "corrected", "uncorrected"]
    check_draws_on_given_axes(lambda axes: fit.plot(table, axes=axes), 0)


@pytest.mark.slow
def test_other_columns_are_at_their_means_or_at_given_values(rng):
    fit, table = fitted(rng, 2)
    for at, age in ((None, table.x[:, 0, 1].mean()), ({"age": 2.0}, 2.0)):
        corrected = nj.plots.function(fit, table, at=at).lines[0]
        places = corrected.get_xdata()
        clean = np.column_stack([places, np.full(len(places), age)])
        np.testing.assert_allclose(corrected.get_ydata(), fit.predict(clean))
    axes = nj.plots.function(fit, table, "age", at={"dose": -1})
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age, at dose = -1", "dose")


@pytest.mark.slow
def test_a_model_has_one_band(rng):
    x = rng.normal(size=(300, 2))
    table = nj.observations.from_arrays(x, x[:, 0] + 0.1 * rng.normal(size=300), noise=0.01)

    def line(params, x):
        return params[0] + params[1:] @ x

    fit = nj.fit(table, nj.methods.Model(line, np.zeros(3)))
    axes = fit.plot(table, "x2")
    corrected, plain = axes.lines
    clean = np.column_stack([np.full(201, x[:, 0].mean()), corrected.get_xdata()])
    np.testing.assert_allclose(corrected.get_ydata(), fit.predict(clean))
    np.testing.assert_allclose(plain.get_ydata(), fit.uncorrected.predict(clean))
    (band,) = axes.collections
    path, half = band.get_paths()[0].vertices, np.subtract(*fit.predict(clean, interval=True)[:2])
    freedom = np.min(fit.degrees_of_freedom)
    design = np.column_stack([np.ones(201), clean])
    errors = np.sqrt(np.einsum("ni,ij,nj->n", design, fit.covariance, design))
    np.testing.assert_allclose(half, half_width(errors, freedom), rtol=1e-4)
    drawn = path[path[:, 0] == clean[0, 1], 1]
    np.testing.assert_allclose(np.ptp(drawn), 2 * half[0], rtol=1e-6)


@pytest.mark.slow
def test_wrong_input_is_one_clear_line(rng):
    fit, table = fitted(rng, 2)
    for arguments, message in (
        ({"column": "sex"}, "column must be 'dose' or 'age', got 'sex'"),
        ({"at": {"dose": 1.0}}, "each name in at must be 'age', got 'dose'"),
        ({"at": {"age": np.nan}}, r"at\['age'\] must be finite, got nan"),
        ({"at": 3}, "at must map names to numbers, got 3"),
        ({"level": 95}, "level must be above 0 and below 1, got 95"),
    ):
        raises(f"^{message}$", nj.plots.function, fit, table, **arguments)
    one, its_table = fitted(rng, 1)
    raises(r"columns of the fit, 'dose', got 'dose', 'age'$", nj.plots.function, one, table)
    raises("fit must be a FourierFit, got type", nj.plots.function, type(one), its_table)
    with pytest.raises(ValueError, match="fit must be a FourierFit, got LinearFit"):
        nj.plots.function(nj.fit(its_table), its_table)
