import csv
import json
from pathlib import Path

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.__main__ import main
from noisy_jax.commands.gradients import Figures, base_for, measured, table
from noisy_jax.commands.unknown_noise import conclusion
from noisy_jax.evaluate.results import Row, Study


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_both_kernels_are_run_measured_and_saved(tmp_path, capsys, monkeypatch):
    found, world_ball = [], nj.comparators.world_ball

    def counted(past, world, radius):
        found.append(world.kernel)
        return world_ball(past, world, radius)

    monkeypatch.setattr(nj.comparators, "world_ball", counted)
    arguments = ["--data", "teacher", "--horizons", "64", "--seeds", "3", "--out", str(tmp_path)]
    done = tmp_path / "done"
    assert main(["unknown-noise", *arguments, "--checkpoint", str(done)]) == 0
    assert len(found) == 2  # one a kernel
    printed = capsys.readouterr().out
    assert "teacher: 500 rows, 2 features; gaussian noise of variance 0.2 on each" in printed
    assert "times the variance of those by the optimal one." in printed
    assert "times the regret of knowing it" in printed
    assert "At T = 64 the theorem's bound is vacuous for polynomial optimal_truncation" in printed

    folder = tmp_path / "teacher"
    kinds = "polynomial", "gaussian"
    stored = {file.relative_to(done) for file in done.rglob("*.npz")}
    assert stored == {Path("teacher", kind, "horizon_64", "moments.npz") for kind in kinds}
    assert {path.name for path in folder.iterdir()} == {*kinds, "estimates.csv", "price.png"}
    truncations = ["optimal_truncation", "geometric_truncation"]
    names = [*truncations, "uncorrected_kernel", "clean"], ["parallel_worlds", truncations[0]]
    for kind, learners in zip(kinds, names, strict=True):
        rows = rows_of(folder / kind / "results.csv")
        assert [row["learner"] for row in rows] == learners
        assert all(0 < float(row["regret"]) < float(row["bound"]) for row in rows)
        assert (folder / kind / "regret.png").is_file()
        copies = json.loads((folder / kind / "config.json").read_text())["copies"]
        assert [name for name in learners if name != "clean"] == list(copies)

    rows = rows_of(folder / "estimates.csv")
    assert [(row["kernel"], row["learner"]) for row in rows] == [
        (kind, name) for kind in kinds for name in truncations
    ]
    for optimal, geometric in zip(rows[::2], rows[1::2], strict=True):
        expected = float(optimal["copies"])
        assert float(geometric["copies"]) == pytest.approx(expected, rel=1e-9)
        for row in (optimal, geometric):
            used, error = float(row["copies_used"]), float(row["copies_std_error"])
            assert 0 < error < 0.1
            assert abs(used - expected) < 10 * error
            assert 0 < float(row["variance"]) < float(row["second_moment"])
        assert float(optimal["bound"]) < float(geometric["bound"])


def test_measured_gradients_are_those_of_the_function_that_was_learnt():
    # A linear kernel without noise draws nothing at random: the estimate is the gradient.
    rate, rounds = 0.3, 20
    stream = nj.streams.linear(jax.random.key(0), rounds, 3, misfit=0.5)
    estimator = nj.estimators.gradient(
        nj.kernels.linear(), nj.losses.squared(), squared_radius=25.0, x_second_moment=1.0
    )
    key = jax.random.key(1)
    result = measured(estimator, rate, stream, nj.noise.Gaussian(0.0), key, num_seeds=1).mean
    x, y = (np.asarray(leaf, float) for leaf in stream)
    weights = np.zeros(3)
    for t in range(rounds):
        weights -= 2 * rate * (weights @ x[t] - y[t]) * x[t]
    squares = 4 * np.sum(x**2, axis=1) * np.array([(x @ weights - y) ** 2, y**2])
    after, before = squares.mean(axis=1)
    assert abs(after - before) > 0.1 * before
    assert float(result.second_moment) == pytest.approx(after, rel=1e-4)
    assert abs(float(result.variance)) < 1e-4 * after
    assert float(result.copies) == 2


def test_base_for_finds_the_geometric_law_of_a_budget():
    def mean_copies(p):
        return nj.estimators.geometric([1.0, 0.0, 2.0, 1.0], p=p).mean

    assert base_for(mean_copies, mean_copies(2.5)) == pytest.approx(2.5, rel=1e-12)


def figures(kernel, learner, variance, informative_from):
    return Figures(
        kernel, learner, 1.5, 1.4, 0.1, 9.0, 0.5, variance, 0.5, 30.0, 70.0, informative_from
    )


def test_conclusion_says_what_the_tables_show():
    rows = [
        Row(name, 100, regret, 0.0, regret, regret, 1.0, 1.0, 0.0, 0.0, 0.1, 0.0)
        for name, regret in {"parallel_worlds": 4.0, "optimal_truncation": 10.0}.items()
    ]
    price = Study(tuple(rows), {}, {})
    first = figures("polynomial", "optimal", 4.0, 99.0)
    second = figures("polynomial", "geometric", 5.0, 100.0)
    assert conclusion([first, second], price).splitlines() == [
        "Polynomial kernel: at 1.50 copies a round, gradient estimates by the geometric distribution have "
        "1.25 ± 0.39 times the variance of those by the optimal one.",
        "Not knowing the distribution of the noise costs 2.5 times the regret of knowing it: 10.0 against "
        "4.0 after 100 rounds.",
        "At T = 100 the theorem's bound is vacuous for polynomial geometric.",
    ]
    informed = [first, second._replace(informative_from=99.0)]
    assert "bound is vacuous for none." in conclusion(informed, price)
    head, line = table([first]).splitlines()
    assert head.split()[:4] == ["kernel", "learner", "copies", "used"]
    expected = ["polynomial", "optimal", "1.500", "1.400", "9", "0.98", "4", "0.98", "30", "99"]
    assert line.split() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--variance", "0.5"],
            "It holds 2 times the variance, for as many features: less would do",
        ),
        (["--offset", "1.2"], "--offset must be above the largest E‖x̃‖² = 1.3"),
        (["--data", "boston"], "unknown data 'boston'; known are teacher, diabetes,"),
        (["--data", "teacher", "teacher"], "--data must differ in name, got teacher teacher"),
        (["--variance", "0"], "--variance must be positive, got 0.0"),
        (["--length-scale", "0.3"], "length_scale must be above √‖Σ‖ = 0.447214"),
        (["--rate-factor", "0"], "--rate-factor must be positive and finite, got 0.0"),
        (["--radius", "-1"], "--radius must be positive and finite, got -1.0"),
        (
            ["--horizons", "0", "64"],
            "each of --horizons must be a whole number of at least 1, got 0",
        ),
        (["--out", f"{__file__}/below"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["unknown-noise", "--data", "teacher", "--horizons", "32", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
