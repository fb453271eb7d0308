import csv
import json

import numpy as np
import pytest

from noisy_jax.__main__ import main


@pytest.mark.claim("DA-Fig1")
def test_saves_the_kernels_and_says_what_they_cost(tmp_path, capsys):
    assert (
        main(["worlds", "--variance", "0.36", "--cutoffs", "2", "1", "--out", str(tmp_path)]) == 0
    )
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split() == ["c", "limit", "of", "c", "sup|g", "−", "k|", "R²", "=", "k̂(0)"]
    assert printed[2].split() == ["2", "2.778", "0.135", "1.171"]
    assert "from c = 1 to 2 the largest error goes from 0.368 to 0.135" in printed[5]
    assert "this noise allows c below 2.778." in printed[5]
    with open(tmp_path / "worlds.csv", newline="") as file:
        table = np.array(list(csv.reader(file))[1:], float)
    c, r, g, k, surrogate = table.T
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
    assert main(["worlds", "--variance", "0", "--cutoffs", "3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "within 0.0498 of g, and noisy copies have squared norm 0.95; this" in printed
    assert "this noise allows any c." in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cutoffs", "2", "6"], "--cutoffs must be below d/(4σ²) = 5, got 6"),
        (["--cutoffs", "-1"], "--cutoffs must be positive and finite, got [-1.0]"),
        (["--dim", "0"], "--dim must be a whole number of at least 1, got 0"),
        (["--variance", "-0.1"], "--variance must be finite and >= 0, got -0.1"),
        (["--out", f"{__file__}/below"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["worlds", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
