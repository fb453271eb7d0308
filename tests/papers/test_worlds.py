import numpy as np
import pytest

import noisy_jax as nj
from tests.files import config_of, is_png, rows_of
from tests.papers import main, printed_by
from worlds_picture import draw_worlds


@pytest.mark.slow
@pytest.mark.claim("DA-Fig1")
def test_saves_the_kernels_and_prints_what_they_cost(tmp_path):
    options = ["--noise-variance", "0.36", "--cutoffs", "2", "1"]
    printed = printed_by("worlds", *options, "--out", str(tmp_path)).splitlines()
    assert printed[2].split() == ["c", "limit", "of", "c", "sup|g", "−", "k|", "R²", "=", "k̂(0)"]
    assert printed[3].split() == ["2", "5.556", "0.135", "1.171"]
    assert printed[4].split() == ["1", "5.556", "0.368", "0.7461"]
    rows = rows_of(tmp_path / "worlds.csv")
    c, r, g, k, surrogate = np.array([list(row.values()) for row in rows], float).T
    np.testing.assert_allclose(g, 1 / (1 + r**2 / 4), rtol=1e-5)
    np.testing.assert_allclose(k, g * (1 - np.exp(-c / g)), rtol=1e-5)
    np.testing.assert_allclose(surrogate[0], 1.1714357833666746, rtol=1e-5)
    between = np.interp(np.sqrt(1.25), r[c == 2], surrogate[c == 2])
    np.testing.assert_allclose(between, 0.8698979821417705, atol=1e-4)
    assert config_of(tmp_path)["command"]["cutoffs"] == [2.0, 1.0]
    assert is_png(tmp_path / "worlds.png")


def test_cutoffs_above_the_range_of_the_paper_have_worlds(tmp_path, capsys):
    """d/(4σ²) = 5, d/(2σ²) = 10, and at 0 the kernel has the value 1 − e^(−c), here with c = 8."""
    assert main("worlds", "--cutoffs", "8", "--out", str(tmp_path)) == 0
    c, limit, lost, _ = map(float, capsys.readouterr().out.splitlines()[3].split())
    assert (c, limit) == (8, 10)
    np.testing.assert_allclose(lost, np.exp(-8), rtol=1e-2)
    rows = rows_of(tmp_path / "worlds.csv")
    np.testing.assert_allclose(float(rows[0]["k"]), 1 - np.exp(-8), rtol=1e-5)
    assert all(np.isfinite(float(row["surrogate"])) for row in rows)


def test_the_picture_has_the_three_kernels_of_each_world():
    options = {"dim": 4, "noise": nj.noise.Gaussian(0.36)}
    made = {f"c = {c}": nj.worlds.rational(cutoff=c / 4, **options) for c in (1.0, 2.0)}
    kernel, distances = nj.kernels.rational(length_scale=2**0.5), np.array([0, 1.25**0.5])
    axes = draw_worlds(made, kernel, distances=distances)
    assert [ax.get_title() for ax in axes] == ["c = 1.0", "c = 2.0"]
    assert [line.get_linestyle() for line in axes[0].lines] == ["-", "--", "-."]
    g, k, surrogate = (line.get_ydata() for line in axes[1].lines)
    np.testing.assert_allclose(g, [1, 1 / 1.3125], rtol=1e-6)
    np.testing.assert_allclose(k, [1 - np.exp(-2), 0.7067125660691417], rtol=1e-5)
    np.testing.assert_allclose(surrogate, [1.1714357833666746, 0.8698979821417705], rtol=1e-5)
