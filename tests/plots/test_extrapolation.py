import numpy as np
import pytest

import noisy_jax as nj


@pytest.mark.parametrize("estimator", ["linear", lambda x, y: {"a": y @ x[:, 0], "b": y @ x[:, 1]}])
def test_extrapolation_draws_estimates_the_curve_and_the_interval(rng, estimator):
    x = rng.normal(size=(200, 2))
    y = x.sum(axis=1) + rng.normal(size=200)
    table = nj.observations.from_arrays(x, y, noise=[0.2, 0.0], names=["a", "b"])
    fit = nj.fit(table, nj.methods.SIMEX(estimator, levels=[0.5, 1, 3], draws=20))
    axes = fit.plot()
    low, high = fit.interval()
    for j, ax in enumerate(axes):
        within, beyond, points, corrected = ax.lines
        np.testing.assert_array_equal(points.get_xdata(), [0, 0.5, 1, 3])
        np.testing.assert_array_equal(points.get_ydata(), fit.estimates[:, 1 + j])
        assert corrected.get_xydata().tolist() == [[-1, fit.coefficients[j]]]
        for line, ends in ((within, (0, 3)), (beyond, (-1, 0))):
            assert (line.get_xdata()[0], line.get_xdata()[-1]) == ends
            np.testing.assert_allclose(line.get_ydata(), fit.curve(line.get_xdata())[:, 1 + j])
        np.testing.assert_allclose(beyond.get_ydata()[0], fit.coefficients[j])
        (segment,) = ax.collections[0].get_segments()
        np.testing.assert_allclose(segment, [[-1, low[j]], [-1, high[j]]])
        what = "coefficient of " if estimator == "linear" else ""
        assert ax.get_ylabel() == what + "ab"[j]
    texts = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert texts == ["quadratic curve", "extended", "with added noise", "corrected"]
