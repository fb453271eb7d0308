import numpy as np

import noisy_jax as nj


def test_worlds_draws_the_three_kernels_of_each():
    options = {"dim": 4, "noise": nj.noise.Gaussian(0.36)}
    made = {f"c = {c}": nj.worlds.rational(cutoff=c / 4, **options) for c in (1.0, 2.0)}
    kernel, distances = nj.kernels.rational(length_scale=2**0.5), np.array([0, 1.25**0.5])
    axes = nj.plots.worlds(made, kernel, distances=distances)
    assert [ax.get_title() for ax in axes] == ["c = 1.0", "c = 2.0"]
    assert axes[0].get_ylabel() == "value of the kernel"
    assert all("distance" in ax.get_xlabel() for ax in axes)
    labels = [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert labels == ["asked for, $g$", "clean, $k$", r"surrogate, $\hat{k}$"]
    assert [line.get_linestyle() for line in axes[0].lines] == ["-", "--", "-."]
    g, k, surrogate = (line.get_ydata() for line in axes[1].lines)
    np.testing.assert_allclose(g, [1, 1 / 1.3125], rtol=1e-6)
    np.testing.assert_allclose(k, [1 - np.exp(-2), 0.7067125660691417], rtol=1e-5)
    np.testing.assert_allclose(surrogate, [1.1714357833666746, 0.8698979821417705], rtol=1e-5)
