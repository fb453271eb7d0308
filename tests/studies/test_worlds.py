import json

import numpy as np
import pytest

from noisy_jax.__main__ import main
from tests.studies.files import rows_of


@pytest.mark.claim("DA-Fig1")
def test_saves_the_kernels_and_prints_what_they_cost(tmp_path, capsys):
    options = ["--noise-variance", "0.36", "--cutoffs", "2", "1"]
    assert main(["worlds", *options, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].split() == ["c", "limit", "of", "c", "sup|g", "−", "k|", "R²", "=", "k̂(0)"]
    assert printed[3].split() == ["2", "2.778", "0.135", "1.171"]
    assert printed[4].split() == ["1", "2.778", "0.368", "0.7461"]
    rows = rows_of(tmp_path / "worlds.csv")
    c, r, g, k, surrogate = np.array([list(row.values()) for row in rows], float).T
    np.testing.assert_allclose(g, 1 / (1 + r**2 / 4), rtol=1e-5)
    np.testing.assert_allclose(k, g * (1 - np.exp(-c / g)), rtol=1e-5)
    np.testing.assert_allclose(surrogate[0], 1.1714357833666746, rtol=1e-5)
    at = np.sqrt(1.25)
    np.testing.assert_allclose(
        np.interp(at, r[c == 2], surrogate[c == 2]), 0.8698979821417705, atol=1e-4
    )
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["command"]["cutoffs"] == [2.0, 1.0]
    assert (tmp_path / "worlds.png").read_bytes().startswith(b"\x89PNG")


def test_one_world_without_noise(tmp_path, capsys):
    assert main(["worlds", "--noise-variance", "0", "--cutoffs", "3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[3].split() == ["3", "inf", "0.0498", "0.9502"]
