import csv
import json

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.__main__ import main
from noisy_jax.commands import contamination_report as report
from noisy_jax.commands import robustness
from noisy_jax.commands.contamination_report import Row

QUICK = ["contamination", "--shares", "0", "0.3", "--seeds", "2"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of a small run by (data, adversary, method, told), and its folder."""
    folder = tmp_path_factory.mktemp("contamination")
    arguments = [*QUICK, "--data", "synthetic", "--rows", "60", "--out", str(folder)]
    assert main(arguments) == 0
    with open(folder / "contamination.csv", newline="") as file:
        table = list(csv.DictReader(file))
    found = {
        (row["data"], row["adversary"], row["method"], float(row["told"])): row for row in table
    }
    assert len(found) == len(table)
    return found, folder


def test_every_adversary_and_method_is_there(rows):
    found, folder = rows
    methods = {key[2] for key in found if key[0] == "synthetic"}
    assert methods == set(robustness.METHODS)
    adversaries = {key[1] for key in found if key[0] == "synthetic"}
    assert adversaries == {*robustness.ADVERSARIES, "told"}
    assert {path.name for path in folder.iterdir()} == {
        "contamination.csv",
        "config.json",
        "synthetic.png",
    }
    assert json.loads((folder / "config.json").read_text())["command"]["rows"] == 60


def test_without_corruption_trimmed_fit_and_oracle_are_ridge(rows):
    found, _ = rows
    for adversary in ("gross", "region", "far covariate"):
        ridge = float(found["synthetic", adversary, "ridge", 0.0]["error"])
        for method in ("subquantile", "oracle"):
            error = float(found["synthetic", adversary, method, 0.0]["error"])
            assert error == pytest.approx(ridge, rel=0.02)


def test_trimming_finds_gross_rows_where_told_enough(rows):
    found, _ = rows
    fit, ridge, oracle = (
        found["synthetic", "gross", method, 0.3] for method in ("subquantile", "ridge", "oracle")
    )
    assert float(fit["error"]) < 1.1 * float(oracle["error"])
    assert float(ridge["error"]) > 5 * float(oracle["error"])
    assert float(fit["precision"]) == float(fit["recall"]) == 1
    told = [found["synthetic", "told", "subquantile", share] for share in (0.0, 0.3)]
    assert [row["share"] for row in told] == ["0.2", "0.2"]
    assert float(told[0]["precision"]) == pytest.approx(0.8)
    assert float(told[0]["error"]) > 3 * float(told[1]["error"])
    assert float(told[1]["precision"]) == 1
    assert float(told[1]["recall"]) == pytest.approx(0.7 / 0.8)


def test_noisy_instances_are_reported(rows):
    found, _ = rows
    fit, ridge, oracle = (
        found["noisy inputs", "gross", method, 0.3]
        for method in ("surrogate", "surrogate ridge", "oracle")
    )
    assert float(fit["precision"]) == 1
    assert float(fit["error"]) < 1.1 * float(oracle["error"])
    assert float(ridge["error"]) > 5 * float(oracle["error"])
    small = float(found["noisy inputs", "small shift", "surrogate", 0.3]["precision"])
    assert 0.6 < small < 1
    blind = float(found["noisy inputs", "shift", "blind ridge", 0.0]["error"])
    assert blind == float(found["noisy inputs", "gross", "blind ridge", 0.0]["error"])


def test_real_data_are_split_and_scaled():
    stream = nj.Stream(np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]] * 5), np.arange(15.0))
    setting = robustness.real(stream, length_scale=1.0, regularization=1.0)
    table = setting.draw(jax.random.key(0))
    every = np.sort(np.concatenate([table.y, table.test_y]))
    np.testing.assert_allclose(every, np.arange(15) / np.arange(15).std(), rtol=1e-5)
    assert table.x.shape == (10, 2)
    assert np.isfinite(table.x).all()


def test_scikit_learns_rivals_on_linear_data():
    from noisy_jax.commands import contamination

    table = robustness.linear().draw(jax.random.key(0))
    made = nj.robust.contaminations.gross(jax.random.key(1), table.x, table.y, 0.2)
    stacked = jax.tree.map(lambda leaf: leaf[None], made)
    everything = robustness.Contaminations(table, {"gross": stacked}, {})
    errors = contamination._rival_errors(everything)["gross"]
    assert errors.shape == (1, 3)
    assert errors.max() < 0.2  # ridge is off by more than one


def rows_of(errors):
    """Rows of one adversary: errors by method and share, intervals of 1%."""
    return [
        Row("made", adversary, method, share, share, e, 0.99 * e, 1.01 * e, 1.0, 1.0)
        for adversary, by_method in errors.items()
        for method, row in by_method.items()
        for share, e in zip((0.1, 0.4), row, strict=True)
    ]


def test_conclusion_says_where_it_loses():
    rivals = {"ridge": [1, 2], "huber": [1, 1], "zero start": [0.1, 1], "oracle": [0.1, 0.1]}
    fine = rivals | {"subquantile": [0.1, 0.105]}
    small = rivals | {"ridge": [0.2, 0.3], "subquantile": [0.2, 0.6]}
    hole = rivals | {"ridge": [9, 9], "huber": [9, 9], "zero start": [1, 9]}
    hole |= {"subquantile": [0.1, 3], "oracle": [0.1, 3]}
    told = {"subquantile": [5.0, 0.1]}
    text = report.conclusion(
        rows_of({"gross": fine, "small shift": small, "region": hole, "told": told})
    )
    assert "Within 10% of the oracle at every share: gross, region." in text
    assert "Worse than ridge: small shift from ε = 0.4 (at worst 2.0-fold, at 0.4)." in text
    assert "Worse than huber: never." in text
    assert "Worse than zero start: small shift from ε = 0.1 (at worst 2.0-fold, at 0.1)." in text
    assert "twice the oracle's own error: region (3 against 0.1)." in text
    assert "told ε = 0.1: 5.000, 0.4: 0.100." in text


def test_picture_has_a_panel_an_adversary():
    points = [(0.1, 1e-6, 0.11), (0.2, 0.19, 0.21)]
    errors = {name: {"ridge": points, "oracle": points} for name in ("gross", "shift")}
    axes = nj.plots.contamination([0.0, 0.1], errors)
    assert [ax.get_title() for ax in axes] == ["gross", "shift"]
    assert axes[0].get_yscale() == "log"
    assert 0.01 < axes[0].get_ylim()[0] < 0.1  # not by the interval that reaches zero
    assert [line.get_linestyle() for line in axes[1].lines] == ["-", "--"]
    assert list(axes[0].lines[0].get_ydata()) == [0.1, 0.2]
    assert nj.plots.contamination([0.0, 0.1], errors, axes=axes) is axes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shares", "0.2", "0.1"], "--shares must increase within [0, 0.5), got [0.2, 0.1]"),
        (["--shares", "0.5"], "--shares must increase within [0, 0.5), got [0.5]"),
        (["--seeds", "1"], "--seeds must be a whole number of at least 2, got 1"),
        (["--rows", "5"], "--rows must be a whole number of at least 10, got 5"),
        (["--variance", "0.25"], "--variance must be in [0, 0.25), got 0.25"),
        (["--regularization", "0"], "--regularization must be positive and finite, got 0.0"),
        (["--out", f"{__file__}/below"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["contamination", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
