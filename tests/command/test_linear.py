import json

import numpy as np
import pytest

from noisy_jax.__main__ import main
from noisy_jax.command.linear import LEARNERS
from tests.files import names_in, written

pytestmark = pytest.mark.slow

QUICK = ["--horizons", "64", "128", "256", "--seeds", "4"]


def test_main_job_on_bundled_data(tmp_path, capsys):
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "diabetes: 442 rows, 10 features; gaussian noise of variance 0.1" in printed
    for name in LEARNERS:
        assert printed.count(f"\n{name} ") == 4  # three horizons and the exponent
    assert "regret grows like T^a" in printed
    assert names_in(tmp_path) == {"results.csv", "config.json", "regret.png"}
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["command"]["noise_variance"] == 0.1
    assert list(config["learners"]) == list(LEARNERS)
    assert "as_printed" in config["learners"]["as_printed"]


def test_csv_file_with_other_noise_and_learners(tmp_path, capsys, rng):
    left, right = rng.normal(size=(30, 2)).T
    table = written(tmp_path / "table.csv", left=left, right=right, gap=left - right)
    data = ["--data", str(table), "--target", "gap", "--noise", "laplace"]
    options = [*data, "--noise-variance", "0.05", "--learners", "two_copies"]
    assert main([*QUICK, *options, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "30 rows, 2 features; laplace noise of variance 0.05" in printed
    assert "uncorrected" not in printed


def test_goes_on_from_a_checkpoint_with_more_seeds(tmp_path, capsys):
    arguments = ["--horizons", "64", "--learners", "two_copies", "--out", str(tmp_path / "out")]
    resumable = [*arguments, "--checkpoint", str(tmp_path / "done")]
    assert main([*resumable, "--seeds", "8"]) == 0
    assert main([*resumable, "--seeds", "16"]) == 0
    resumed = (tmp_path / "out" / "results.csv").read_text()
    assert main([*arguments, "--seeds", "16"]) == 0
    through = (tmp_path / "out" / "results.csv").read_text()
    first, second = (np.genfromtxt(text.splitlines()[1:], delimiter=",")[1:-3]
                     for text in (resumed, through))  # fmt: skip
    np.testing.assert_allclose(first, second, rtol=1e-5)
    assert main([*resumable, "--seeds", "16", "--noise-variance", "0.2"]) == 2
    assert "made by another run" in capsys.readouterr().err
