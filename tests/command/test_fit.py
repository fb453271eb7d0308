"""The study fit: a noisy table from the shell to corrected coefficients."""

import numpy as np
import pytest

from noisy_jax.__main__ import main
from tests.files import names_in, rows_of, written
from tests.keys import SHIFT

TRUTH = {"x1": 1.5, "x2": -2.0, "x3": 0.8}


@pytest.fixture
def noisy(tmp_path):
    rng = np.random.default_rng(1000 * SHIFT)
    x = rng.normal(size=(1500, 3))
    y = 10 + x @ list(TRUTH.values()) + 0.6 * rng.normal(size=1500)  # far from an error below 0
    spread = np.sqrt([0.2, 0.4, 0.0])
    first, second = (x + spread * rng.normal(size=x.shape) for _ in range(2))
    columns = dict(zip(TRUTH, first.T, strict=True))
    one = written(tmp_path / "one.csv", **columns, y=y)
    np.savetxt(tmp_path / "sigma.csv", np.diag([0.2, 0.4, 0.0]), delimiter=",")
    both = written(tmp_path / "noisy.csv", **columns, x1b=second[:, 0], x2b=second[:, 1], y=y)
    return both, one, tmp_path / "sigma.csv"


@pytest.fixture
def fitted(tmp_path, capsys):
    """Runs the study with these words: its coefficients by name, and what it prints."""

    def run(path, *options, target="y", status=0):
        words, out = " ".join(options).split(), tmp_path / "out"
        given = ["--data", str(path), "--target", target, "--out", str(out)]
        assert main(["fit", *given, *words]) == status  # of an option that is given twice the last
        printed, errors = capsys.readouterr()
        table = out / "coefficients.csv"
        rows = rows_of(table) if table.exists() else []
        found = {row.pop("name"): {k: float(v) for k, v in row.items()} for row in rows}
        return found, errors if status else printed

    return run


def check_covers(found, **truths):
    for name, truth in truths.items():
        assert found[name]["low"] - 0.05 < truth < found[name]["high"] + 0.05


@pytest.mark.statistical
@pytest.mark.parametrize(
    "known",
    [
        "--variance x1=0.2 x2=0.4",
        "--variance 0.2 0.4 0",
        "--covariance",
        "--replicates x1:x1b x2:x2b",
    ],
    ids=["by name", "in order", "matrix", "replicates"],
)
def test_the_coefficients_are_corrected(noisy, fitted, known, tmp_path):
    with_replicates, one, sigma = noisy
    data = with_replicates if known.startswith("--replicates") else one
    found, printed = fitted(data, f"{known} {sigma}" if known == "--covariance" else known)
    check_covers(found, **TRUTH)
    assert abs(found["x2"]["uncorrected"]) < abs(found["x2"]["low"])
    assert "the correction helps" in printed
    files = {"coefficients.csv", "coefficients.png", "config.json", "predictions.csv"}
    assert names_in(tmp_path / "out") == files


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "state the error in the features, by --variance"),
        ("--variance x9=1", "has no feature 'x9'"),
        ("--variance a b", "--variance must be numbers"),
        ("--replicates x1", "such as x1:x1b:x1c"),
        ("--variance x1=9", "'x1' varies no more than its error"),
        ("--variance x1=.1 x1=.2", "--variance names 'x1' twice"),
        ("--variance x1=.1 --noise laplace", "--noise is for --kernel"),
        ("--sd x1", "--sd must be A=S, got 'x1'"),
        ("--sd x1=0.4 --variance x1=0.2", "the error of 'x1' is stated twice, also by --sd"),
        ("--sd x1=0.4 --variance 0.2", "beside other columns --variance must be COLUMN=NUMBER"),
        ("--misclassified x1=0.9", "--misclassified must be A=SENSITIVITY,SPECIFICITY, got x1=0.9"),
        ("--sd x1=0.4 --flips 0.1", "--flips is for --model logistic"),
        ("--std-error x1=x2 --kernel", "leave out --std-error"),
        ("--data no.csv --variance 1", "there is no file no.csv"),
        ("--variance .1 --model logistic --kernel", "leave out --model with --kernel"),
    ],
)
def test_wrong_input_is_one_clear_line(noisy, fitted, options, message):
    (line,) = fitted(noisy[1], options, status=2)[1].strip().splitlines()
    assert message in line


def test_a_table_must_be_named(tmp_path, capsys):
    assert main(["fit", "--target", "y", "--variance", "0.1", "--out", str(tmp_path)]) == 2
    assert "name the table and its target" in capsys.readouterr().err


def test_it_says_which_columns_it_used(fitted, tmp_path):
    """A file as people have it: row numbers, text, semicolons, decimal commas, a missing code."""
    rng = np.random.default_rng(1)
    x, sd = rng.normal(size=(400, 2)), rng.choice([0.3, 0.6], 400)
    y = 1 + x @ [2.0, -1.0] + 0.1 * rng.normal(size=400)
    noisy = x[:, 0] + sd * rng.normal(size=400)
    columns = [np.arange(400), noisy, sd, 1000 * rng.permutation(400), x[:, 1], y]
    lines = [f"p{row[0]:.0f};" + ";".join(map(str, row)) for row in np.column_stack(columns)]
    lines[7] = lines[7].replace(str(x[7, 1]), "-999")
    text = "\n".join(["name;id;dose;dose_sd;zip;age;y", *lines]).replace(".", ",")
    (tmp_path / "euro.csv").write_text(text)
    form = "--sep ; --decimal , --std-error dose=dose_sd"
    assert "'id' of" in fitted(tmp_path / "euro.csv", form, "--drop name", status=2)[1]
    found, printed = fitted(tmp_path / "euro.csv", form, "--drop name id --missing -999")
    assert "euro.csv, 399 rows\ntarget: y\n" in printed
    used = "dose (standard deviation of the error dose_sd), zip (exact), age (exact)"
    assert f"\nfeatures: {used}\nleft out: name, id\nnote: " in printed
    rows = [row["row"] for row in rows_of(tmp_path / "out" / "predictions.csv")]
    assert rows == [str(k) for k in range(1, 401) if k != 8]
    assert "1 of 400 rows are left out, as they have missing values, of 'age'\n" in printed
    assert "note: zip has a different whole number in each row: if these are labels" in printed
    assert {*found} == {"intercept", "dose", "zip", "age"}
    check_covers(found, dose=2, age=-1)
    assert found["dose"]["uncorrected"] < found["dose"]["low"]
    found, printed = fitted(tmp_path / "euro.csv", form, "--features dose age --missing -999")
    assert "deviation of the error dose_sd), age (exact)\nnote: " in printed
    assert {*found} == {"intercept", "dose", "age"}


def test_it_says_what_is_known_of_each_column(noisy, fitted):
    _, printed = fitted(noisy[1], "--variance x1=0.2")
    assert "features: x1 (variance of the error 0.2), x2 (exact), x3 (" in printed
    _, printed = fitted(noisy[0], "--replicates x1:x1b --sd x1=0.4 --drop x2b")
    known = "replicates x1b, standard deviation of the error 0.4"
    assert f"features: x1 ({known}), x2 (exact), x3 (exact)\nleft out: x2b\n" in printed
    _, printed = fitted(noisy[0], "--replicates x2:x2b --variance x2=0.4 --drop x1b")
    assert "x2 (replicates x2b, variance of the error 0.4)" in printed


@pytest.mark.parametrize("target", ["corrected", "=1+1"])
def test_the_names_of_predictions_are_safe(fitted, tmp_path, target):
    x = np.random.default_rng(0).normal(size=(100, 2))
    path = written(tmp_path / "t.csv", x=x[:, 0], **{target: x[:, 1] + 3})
    fitted(path, "--variance 0.1", target=target)
    (row, *_) = rows_of(tmp_path / "out" / "predictions.csv")
    name = {"corrected": "corrected (observed)", "=1+1": "'=1+1"}[target]
    assert [*row] == ["row", name, "corrected", "uncorrected"]
    assert float(row[name]) == pytest.approx(x[0, 1] + 3)


@pytest.mark.parametrize("copies", [1, 2])
def test_predictions_are_at_the_recorded_categories(fitted, tmp_path, copies):
    """As `predict` of the table's own columns, which are not the recodings that fits read."""
    rng, n = np.random.default_rng(9), 500
    smoker, x = 1.0 * (rng.random(n) < 0.4), rng.normal(size=n)
    wrong = rng.random((copies, n)) < np.where(smoker > 0, 0.2, 0.1)
    recorded = dict(zip(["smoker", "again"], np.where(wrong, 1 - smoker, smoker), strict=False))
    path = written(tmp_path / "rows.csv", x=x, **recorded, y=x + 2 * smoker)
    more = "--replicates smoker:again" if copies == 2 else ""
    found, _ = fitted(path, "--misclassified smoker=0.8,0.9", more)
    rows = rows_of(tmp_path / "out" / "predictions.csv")
    share = np.mean([*recorded.values()], axis=0)
    for name, column in (("corrected", "estimate"), ("uncorrected", "uncorrected")):
        slopes = {one: row[column] for one, row in found.items()}
        wanted = slopes["intercept"] + slopes["x"] * x + slopes["smoker"] * share
        np.testing.assert_allclose([float(row[name]) for row in rows], wanted, atol=1e-8)


@pytest.mark.slow
def test_a_kernel_fit_takes_default_length_scales_and_exact_columns(noisy, fitted, tmp_path):
    _, printed = fitted(noisy[1], "--variance x1=0.2 x2=0.4 --noise laplace --kernel")
    assert "\ndifference -0." in printed
    assert names_in(tmp_path / "out") == {"candidates.csv", "config.json", "predictions.csv"}
    rows = rows_of(tmp_path / "out" / "candidates.csv")
    assert {float(row["length_scale"]) for row in rows} == {0.5, 1, 2}


@pytest.mark.slow
def test_a_kernel_fit_of_one_feature_draws_its_function(fitted, tmp_path):
    """Also where replicates are incomplete."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    first, second, third = x + 0.3 * rng.normal(size=(3, 500))
    third[::4] = np.nan
    path = written(tmp_path / "one.csv", x=first, x2=second, x3=third, y=np.sin(x))
    _, printed = fitted(path, "--replicates x:x2:x3", "--kernel 1")
    assert "noisy rows" in printed
    assert (tmp_path / "out" / "function.png").stat().st_size > 10_000


@pytest.mark.statistical
def test_what_is_stated_of_columns_together(fitted, tmp_path):
    """As `nj.table` does, by one flag for each kind of knowledge; what it takes is printed."""
    rng, n = np.random.default_rng(7 + 1000 * SHIFT), 6000
    a, b, c = rng.normal(size=(3, n))
    smoker = 1.0 * (rng.random(n) < 0.4)
    recorded = np.where(rng.random(n) < np.where(smoker > 0, 0.2, 0.1), 1 - smoker, smoker)
    path = written(
        tmp_path / "rows.csv",
        a=a + 0.5 * rng.normal(size=n),
        b1=b + 0.6 * rng.normal(size=n),
        b2=b + 0.6 * rng.normal(size=n),
        c=c + 0.5 * rng.normal(size=n),
        smoker=recorded,
        y=a - b + 0.5 * c + smoker + 0.7 * a * smoker + 0.3 * rng.normal(size=n),
    )
    known = "--sd a=0.5 --replicates b:b1:b2 --reliability c=0.8"
    found, printed = fitted(path, known, "--misclassified smoker=0.8,0.9 --products a:smoker")
    assert (
        "features: a (standard deviation of the error 0.5), b (replicates b1, b2), "
        "c (reliability 0.8), smoker (misclassified 0.8,0.9)\nproducts: a * smoker\n" in printed
    )
    check_covers(found, **{"a": 1, "b": -1, "c": 0.5, "smoker": 1, "a * smoker": 0.7})
    assert abs(found["b"]["uncorrected"]) < 0.9


@pytest.mark.statistical
def test_rows_of_subjects_and_flipped_labels(fitted, tmp_path):
    rng, n = np.random.default_rng(8 + 1000 * SHIFT), 4000
    x = rng.normal(size=n)
    sick = rng.random(n) < 1 / (1 + np.exp(-1.5 * x))
    label = 1.0 * np.where(rng.random(n) < 0.1, ~sick, sick)
    who = np.tile(np.arange(n), 2)
    dose = x[who] + 0.5 * rng.normal(size=2 * n)
    path = written(tmp_path / "long.csv", who=who, dose=dose, sick=label[who])
    known = "--subject who --replicates dose --model logistic --flips 0.1"
    found, printed = fitted(path, known, target="sick")
    assert "features: dose (replicates in rows of a subject)" in printed
    rows = rows_of(tmp_path / "out" / "predictions.csv")
    assert [row["who"] for row in rows] == [str(k) for k in range(n)]
    check_covers(found, dose=1.5)
    assert found["dose"]["uncorrected"] < 1.2
