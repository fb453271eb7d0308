import numpy as np

import noisy_jax as nj


def test_sensitivity_draws_the_fits_and_marks_those_that_are_none(rng):
    x = rng.normal(size=(200, 2))
    noisy = x + [0.7, 0.1] * rng.normal(size=(200, 2))
    table = nj.observations.from_arrays(noisy, x.sum(axis=1), noise=[0.49, 0.01], names=["a", "b"])
    variance, error = noisy[:, 0].var(), noisy[:, 0].var() * (2 / 200) ** 0.5
    weak = (variance - 0.2 * error) / 0.49  # the clean variance is nearly 0
    multiples = [0.0, 1.0, weak, 9.0]
    found = nj.fits.sensitivity(table, multiples=multiples)
    assert found.shares[2] < found.shares[1] == 1
    axes = found.plot()
    fits = [found.fits[0], found.fits[1]]
    for j, ax in enumerate(axes):
        curve, part, none = ax.lines[:3]
        np.testing.assert_array_equal(curve.get_xdata(), multiples)
        np.testing.assert_array_equal(curve.get_ydata()[:2], [one.coefficients[j] for one in fits])
        assert np.isnan(curve.get_ydata()[2:]).all()
        assert part.get_xydata().tolist() == [[weak, found.fits[2].coefficients[j]]]
        assert none.get_xdata().tolist() == [9.0]
        band = ax.collections[0].get_paths()[0].vertices
        for x_value, one in zip(multiples, fits, strict=False):
            ends = band[band[:, 0] == x_value, 1]
            expected = [one.interval()[0][j], one.interval()[1][j]]
            np.testing.assert_allclose([ends.min(), ends.max()], expected)
    texts = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert texts == ["coefficient", "part of the noise", "no fit", "noise as stated"]
