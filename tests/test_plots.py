import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import noisy_jax as nj
from noisy_jax.regret import Growth
from noisy_jax.results import Row, Study

matplotlib.use("agg")


@pytest.fixture
def study():
    rows = [
        Row(
            name,
            t,
            t**power,
            0.1,
            t**power - 0.2,
            t**power + 0.2,
            5 * t**0.5,
            5.0,
            0.0,
            0.0,
            0.1,
            0.0,
        )
        for name, power in {"corrected": 0.5, "blind": 1.0}.items()
        for t in (16, 64, 256)
    ]
    return Study(tuple(rows), {"corrected": Growth(0.5, 0.4, 0.6), "blind": Growth(1, 1, 1)}, {})


def test_regret_draws_what_the_study_holds(study):
    ax = nj.plots.regret(study)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert "rounds" in ax.get_xlabel()
    assert "regret on clean data" in ax.get_ylabel()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["corrected ~ $T^{0.50}$", "blind ~ $T^{1.00}$", "guaranteed or claimed bound"]
    assert list(ax.lines[0].get_ydata()) == [4.0, 8.0, 16.0]
    assert list(ax.lines[1].get_ydata()) == [20.0, 40.0, 80.0]


def test_regret_draws_on_given_axes(study):
    ax = Figure().add_subplot()
    assert nj.plots.regret(study, ax) is ax


def test_worlds_draws_the_three_kernels_of_each():
    made = {
        f"c = {c}": nj.worlds.rational(dim=4, noise=nj.noise.Gaussian(0.36), cutoff=c / 4)
        for c in (1.0, 2.0)
    }
    axes = nj.plots.worlds(made, nj.kernels.rational(m=4.0), distances=np.array([0, 1.25**0.5]))
    assert [ax.get_title() for ax in axes] == ["c = 1.0", "c = 2.0"]
    assert axes[0].get_ylabel() == "kernel"
    assert all("distance" in ax.get_xlabel() for ax in axes)
    labels = [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert labels == ["asked for, $g$", "clean, $k$", r"surrogate, $\hat{k}$"]
    assert [line.get_linestyle() for line in axes[0].lines] == ["-", "--", "-."]
    g, k, surrogate = (line.get_ydata() for line in axes[1].lines)
    np.testing.assert_allclose(g, [1, 1 / 1.3125], rtol=1e-6)
    np.testing.assert_allclose(k, [1 - np.exp(-2), 0.7067125660691417], rtol=1e-5)
    np.testing.assert_allclose(surrogate, [1.1714357833666746, 0.8698979821417705], rtol=1e-5)


def test_worlds_draws_on_given_axes():
    world = nj.worlds.gaussian(dim=1, squared_width=1.0, noise=nj.noise.Gaussian(0.1))
    axes = [Figure().add_subplot()]
    assert nj.plots.worlds({"": world}, world.kernel, axes=axes) is axes
    assert axes[0].lines[2].get_ydata()[0] == pytest.approx(0.8**-0.5)
