import jax
import numpy as np
import pytest

import contamination
import contamination_fits as fits
import noisy_jax as nj
from contamination_adversaries import gross
from tests.files import rows_of
from tests.keys import key
from tests.papers import main


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of a small run by (data, adversary, method, told)."""
    folder = tmp_path_factory.mktemp("contamination")
    assert main("contamination", "--fast", "--data", "synthetic", "--out", str(folder)) == 0
    table = rows_of(folder / "contamination.csv")
    names = "data", "adversary", "method"
    found = {(*(row[name] for name in names), float(row["told"])): row for row in table}
    assert len(found) == len(table)
    return found


@pytest.mark.long
def test_without_corruption_trimmed_fit_and_oracle_are_ridge(rows):
    for adversary in ("gross", "region", "far covariate"):
        ridge = float(rows["synthetic", adversary, "ridge", 0.0]["error"])
        for method in ("subquantile", "oracle"):
            error = float(rows["synthetic", adversary, method, 0.0]["error"])
            assert error == pytest.approx(ridge, rel=0.02)


@pytest.mark.long
def test_trimming_finds_gross_rows_where_told_enough(rows):
    methods = "subquantile", "ridge", "oracle"
    fit, ridge, oracle = (rows["synthetic", "gross", method, 0.3] for method in methods)
    assert float(fit["error"]) < 1.1 * float(oracle["error"])
    assert float(ridge["error"]) > 5 * float(oracle["error"])
    assert float(fit["precision"]) == float(fit["recall"]) == 1
    told = [rows["synthetic", "told", "subquantile", share] for share in (0.0, 0.3)]
    assert [row["share"] for row in told] == ["0.2", "0.2"]
    assert float(told[0]["precision"]) == pytest.approx(0.8)
    assert float(told[0]["error"]) > 3 * float(told[1]["error"])
    assert float(told[1]["precision"]) == 1
    assert float(told[1]["recall"]) == pytest.approx(0.7 / 0.8)


@pytest.mark.long
def test_noisy_instances_are_reported(rows):
    methods = "surrogate", "surrogate ridge", "oracle"
    fit, ridge, oracle = (rows["noisy inputs", "gross", method, 0.3] for method in methods)
    assert float(fit["precision"]) == 1
    assert float(fit["error"]) < 1.1 * float(oracle["error"])
    assert float(ridge["error"]) > 5 * float(oracle["error"])
    small = rows["noisy inputs", "small shift", "surrogate", 0.3]
    assert 0.6 < float(small["precision"]) < 1
    uncorrected = float(rows["noisy inputs", "shift", "uncorrected ridge", 0.0]["error"])
    assert uncorrected == float(rows["noisy inputs", "gross", "uncorrected ridge", 0.0]["error"])


@pytest.mark.slow
@pytest.mark.statistical
def test_scikit_learns_rivals_on_linear_data():
    table = fits.linear().draw(key(0))
    made = gross(key(1), table.x, table.y, 0.2)
    tested = table.test_x, table.test_y
    errors = contamination.rival_errors(*tested, made.x[None], made.y[None])
    assert errors.shape == (1, 3)
    assert errors.max() < 0.2  # ridge is off by more than one


@pytest.mark.slow
def test_real_data_are_split_and_scaled():
    stream = nj.Stream(np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]] * 5), np.arange(15.0))
    table = fits.real(stream, length_scale=1.0, alpha=1.0).draw(jax.random.key(0))
    every = np.sort(np.concatenate([table.y, table.test_y]))
    np.testing.assert_allclose(every, np.arange(15) / np.arange(15).std(), rtol=1e-5)
    assert table.x.shape == (10, 2)
    assert np.isfinite(table.x).all()
