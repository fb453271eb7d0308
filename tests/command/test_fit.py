"""The study fit: what the command line says of a table, which `nj.fit` says as well."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.__main__ import main
from tests.files import names_in, rows_of, written

FEATURES = ("x1", "x2", "x3")
SIGMA = np.diag([0.2, 0.4, 0.0])


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """A file with two rows a subject: x1 and x2 are measured in each, and once more beside it."""
    rng, who = np.random.default_rng(0), np.repeat(np.arange(150), 2)
    x, smoker = rng.normal(size=(150, 3)), rng.random(150) < 0.4
    y = 10 + x @ [1.5, -2.0, 0.8] + smoker + 0.6 * rng.normal(size=150)
    first, second = (x[who] + rng.normal(size=(300, 3)) @ np.sqrt(SIGMA) for _ in range(2))
    recorded = smoker[who] != (rng.random(300) < np.where(smoker[who], 0.2, 0.1))
    columns = dict(zip(FEATURES, first.T, strict=True))
    columns |= {"x1b": second[:, 0], "x2b": second[:, 1], "e": rng.uniform(0.3, 0.6, 300)}
    columns |= {"smoker": 1.0 * recorded, "who": who, "sick": 1.0 * (y > 10)[who]}
    columns |= {"y": y[who] + 0.1 * rng.normal(size=300)}
    columns |= {"x1c": x[who, 0] + 0.4 * rng.normal(size=300)}
    folder = tmp_path_factory.mktemp("noisy")
    np.savetxt(folder / "sigma.csv", SIGMA, delimiter=",")
    return written(folder / "noisy.csv", **columns)


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


WRONG = nj.noise.Misclassified([[0.9, 0.1], [0.2, 0.8]], categories=[0, 1])
VARIANCES = "x1 (variance of the error 0.2), x2 (variance of the error 0.4), x3 (exact)"
CASES = {
    "--features x1 x2 x3 --variance x1=0.2 x2=0.4": (
        VARIANCES, {"features": FEATURES, "noise": {"x1": 0.2, "x2": 0.4}}, {}),
    "--features x1 x2 x3 --variance 0.2 0.4 0": (
        VARIANCES, {"features": FEATURES, "noise": [0.2, 0.4, 0.0]}, {}),
    "--features x1 x2 x3 --covariance SIGMA": (
        VARIANCES, {"features": FEATURES, "noise": SIGMA}, {}),
    "--features x1 x2 --replicates x1:x1b:x1c x2:x2b --sd x1=0.4 --variance x2=0.4": (
        "x1 (replicates x1b, x1c, standard deviation of the error 0.4), "
        "x2 (replicates x2b, variance of the error 0.4)",
        {"features": ["x1", "x2"], "replicates": {"x1": ["x1", "x1b", "x1c"], "x2": ["x2", "x2b"]},
         "noise": {"x1": nj.sd(0.4), "x2": 0.4}}, {}),
    "--drop x1b x1c x2b e sick who --sd x1=0.4 --reliability x2=0.9"
    " --misclassified smoker=0.8,0.9 --products x1:smoker": (
        "x1 (standard deviation of the error 0.4), x2 (reliability 0.9), x3 (exact), "
        "smoker (misclassified 0.8,0.9)\n"
        "products: x1 * smoker\nleft out: x1b, x1c, x2b, e, sick, who",
        {"features": [*FEATURES, "smoker"], "products": [("x1", "smoker")],
         "noise": {"x1": nj.sd(0.4), "x2": nj.reliability(0.9), "smoker": WRONG}}, {}),
    "--features x1 x3 --std-error x1=e": (
        "x1 (standard deviation of the error e), x3 (exact)",
        {"features": ["x1", "x3"], "noise": {"x1": nj.sd(column="e")}}, {}),
    "--features x1 x3 --subject who --replicates x1 --target sick --model logistic --flips 0.1": (
        "x1 (replicates in rows of a subject), x3 (exact)",
        {"features": ["x1", "x3"], "replicates": ["x1"], "subject": "who", "target": "sick"},
        {"method": nj.methods.Logistic(flips=0.1)}),
}  # fmt: skip


@pytest.mark.parametrize("words", CASES)
def test_it_is_the_fit_of_the_table(noisy, fitted, tmp_path, words):
    """Each case states the errors by other flags; the command prints how it reads them."""
    said, options, how = CASES[words]
    options = {"target": "y"} | options
    wanted = nj.fit(nj.csv(noisy, **options), **how)
    sigma = words.replace("SIGMA", str(noisy.parent / "sigma.csv"))
    found, printed = fitted(noisy, sigma)
    assert f"\nfeatures: {said}\n" in printed
    rows = {row["name"]: row for row in wanted.summary().rows}
    assert [*found] == [*rows]
    for name, row in found.items():
        for column in ("estimate", "low", "high", "uncorrected"):
            np.testing.assert_allclose(row[column], rows[name][column], rtol=1e-9)
    predictions = rows_of(tmp_path / "out" / "predictions.csv")
    subject = options.get("subject")
    labels = [row[subject or "row"] for row in predictions]
    assert labels == [str(k) for k in (range(150) if subject else range(1, 301))]
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
    (line,) = fitted(noisy, f"--features x1 x2 x3 {options}", status=2)[1].strip().splitlines()
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
    stated = "--features x1 x2 x3 --variance x1=0.2 x2=0.4 --noise laplace --kernel"
    _, printed = fitted(noisy, stated)
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
