import numpy as np
import pytest

from tests.files import config_of, is_png, rows_of
from tests.papers import printed_by


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
