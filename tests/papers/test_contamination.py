import json

import pytest

import contamination
import contamination_fits as fits
from contamination_adversaries import gross
from tests.files import names_in, rows_of
from tests.keys import key
from tests.papers import main


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of a small run by (data, adversary, method, told), and its folder."""
    folder = tmp_path_factory.mktemp("contamination")
    arguments = ["--fast", "--data", "synthetic", "--out", str(folder)]
    assert main("contamination", *arguments) == 0
    table = rows_of(folder / "contamination.csv")
    found = {
        (row["data"], row["adversary"], row["method"], float(row["told"])): row for row in table
    }
    assert len(found) == len(table)
    return found, folder


@pytest.mark.slow
def test_every_adversary_and_method_is_there(rows):
    found, folder = rows
    methods = {key[2] for key in found if key[0] == "synthetic"}
    assert methods == set(fits.METHODS)
    adversaries = {key[1] for key in found if key[0] == "synthetic"}
    assert adversaries == {*fits.ADVERSARIES, "told"}
    assert names_in(folder) == {"contamination.csv", "config.json", "synthetic.png"}
    assert json.loads((folder / "config.json").read_text())["command"]["rows"] == 60


@pytest.mark.slow
def test_without_corruption_trimmed_fit_and_oracle_are_ridge(rows):
    found, _ = rows
    for adversary in ("gross", "region", "far covariate"):
        ridge = float(found["synthetic", adversary, "ridge", 0.0]["error"])
        for method in ("subquantile", "oracle"):
            error = float(found["synthetic", adversary, method, 0.0]["error"])
            assert error == pytest.approx(ridge, rel=0.02)


@pytest.mark.slow
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


@pytest.mark.slow
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
    uncorrected = float(found["noisy inputs", "shift", "uncorrected ridge", 0.0]["error"])
    assert uncorrected == float(found["noisy inputs", "gross", "uncorrected ridge", 0.0]["error"])


@pytest.mark.slow
@pytest.mark.statistical
def test_scikit_learns_rivals_on_linear_data():
    table = fits.linear().draw(key(0))
    made = gross(key(1), table.x, table.y, 0.2)
    x, y = made.x[None], made.y[None]
    errors = contamination.rival_errors(table.test_x, table.test_y, x, y)
    assert errors.shape == (1, 3)
    assert errors.max() < 0.2  # ridge is off by more than one
