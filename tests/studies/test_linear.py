import json

import numpy as np
import pytest

from noisy_jax.__main__ import main
from noisy_jax.commands.linear import LEARNERS

QUICK = ["--horizons", "64", "256", "1024", "--seeds", "4"]


def test_main_job_on_bundled_data(tmp_path, capsys):
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "diabetes: 442 rows, 10 features; gaussian noise of variance 0.1" in printed
    for name in ("known_covariance", "two_copies", "as_printed", "uncorrected"):
        assert printed.count(f"\n{name} ") == 4  # three horizons and the exponent
    assert "Regret on clean data grows" in printed
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.csv",
        "config.json",
        "regret.png",
    }
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["command"]["variance"] == 0.1
    assert list(config["learners"]) == list(LEARNERS)
    assert "as_printed" in config["learners"]["as_printed"]


def test_csv_file_with_other_noise_and_learners(tmp_path, capsys, rng):
    lines = [f"{a},{b},{a - b}" for a, b in rng.normal(size=(30, 2))]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["left,right,gap", *lines]))
    status = main(
        [
            *(*QUICK, "--data", str(table), "--target", "gap", "--noise", "laplace"),
            *("--variance", "0.05", "--learners", "two_copies", "--out", str(tmp_path / "out")),
        ]
    )
    assert status == 0
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
    assert main([*resumable, "--seeds", "16", "--variance", "0.2"]) == 2
    assert "made by another configuration" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "boston"], "unknown data 'boston'; known are diabetes, breast_cancer, digits"),
        (["--data", "missing.csv", "--target", "y"], "there is no file missing.csv"),
        (["--data", "diabetes", "--target", "y"], "--target goes with a CSV file"),
        (["--variance", "-1"], "--variance must be positive, got -1.0; what learning from clean"),
        (["--seeds", "0"], "--seeds must be a whole number of at least 1, got 0"),
        (
            ["--horizons", "64", "32"],
            "--horizons must be at least one and increasing, got [64, 32]",
        ),
        (["--radius", "0"], "--radius must be positive and finite, got 0.0"),
        (["--out", f"{__file__}/below"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["--horizons", "64", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error


@pytest.mark.parametrize("seed", ["-1", str(2**32), "99999999999999999999"])
def test_seeds_that_would_be_others_are_refused(capsys, seed):
    with pytest.raises(SystemExit) as ended:
        main([f"--seed={seed}"])
    assert ended.value.code == 2
    assert f"--seed: must be at least 0 and below 2**32, got {seed}" in capsys.readouterr().err


def test_csv_without_its_target_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert main(["--data", "table.csv"]) == 2
    assert "name the target's column of table.csv: --target COLUMN" in capsys.readouterr().err
