import itertools

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.command import regret
from tests.files import config_of, rows_of
from tests.papers import main, printed_by
from unknown_noise_corrections import ESTIMATES, mean_copies
from unknown_noise_gradients import base_for, measured


def check_regrets(rows):
    """They are below the bounds; gradients of the uncorrected learner are biased."""
    for row in rows:
        assert float(row["regret"]) > 0
        if row["learner"] == "uncorrected_kernel":
            assert row["bound"] == "nan"
        else:
            assert float(row["regret"]) < float(row["bound"])


@pytest.mark.long
def test_both_kernels_are_run_measured_and_saved(tmp_path, capsys):
    arguments = ["--data", "teacher", "--horizons", "64", "--seeds", "3", "--out", str(tmp_path)]
    assert main("unknown_noise", "--show", "truncation", *arguments) == 0
    assert "and the theorem's bounds" in capsys.readouterr().out
    folder = tmp_path / "teacher"
    kinds = "polynomial", "gaussian"
    truncations = ["optimal_truncation", "geometric_truncation"]
    names = [*truncations, "uncorrected_kernel", "clean"], ["parallel_worlds", truncations[0]]
    for kind, learners in zip(kinds, names, strict=True):
        rows = rows_of(folder / kind / "results.csv")
        assert [row["learner"] for row in rows] == learners
        check_regrets(rows)
        copies = config_of(folder / kind)["copies"]
        assert [name for name in learners if name != "clean"] == list(copies)

    rows = rows_of(folder / "estimates.csv")
    named = [(row["kernel"], row["learner"]) for row in rows]
    assert named == [*itertools.product(kinds, truncations)]
    for optimal, geometric in zip(rows[::2], rows[1::2], strict=True):
        expected = float(optimal["copies"])
        assert float(geometric["copies"]) == pytest.approx(expected, rel=1e-9)
        for row in (optimal, geometric):
            used, error = float(row["copies_used"]), float(row["copies_std_error"])
            assert 0 < error < 0.1
            assert abs(used - expected) < 10 * error
            assert 0 < float(row["variance"]) < float(row["second_moment"])
        assert float(optimal["bound"]) < float(geometric["bound"])


@pytest.mark.long
def test_another_loss_is_judged_against_its_own_comparator(tmp_path, capsys, monkeypatch):
    """Labels are whether the target is above its mean; regret is that of the smoothed hinge."""
    judged = []

    def kept(learners, stream, *arguments, comparator, loss, **options):
        judged.append((stream, comparator(stream), loss))
        return nj.study(learners, stream, *arguments, comparator=comparator, loss=loss, **options)

    monkeypatch.setattr(regret, "study", kept)
    arguments = ["--data", "diabetes", "--loss", "smoothed_hinge", "--radius", "0.5"]
    sizes = ["--horizons", "32", "--seeds", "2", "--out", str(tmp_path)]
    assert main("unknown_noise", "--show", "truncation", *arguments, *sizes) == 0
    assert len(judged) == 2  # both truncations share the study of a kernel
    for stream, best, loss in judged:
        assert repr(loss) == "smoothed_hinge(sharpness=0.5)"
        assert set(np.unique(stream.y)) == {-1.0, 1.0}
        assert best.converged
        assert best.norm <= 0.5 * (1 + 1e-6)
        assert best.loss < np.sum(loss(np.zeros(32), stream.y))
    for kind in ("polynomial", "gaussian"):
        rows = rows_of(tmp_path / "diabetes" / kind / "results.csv")
        assert [row["learner"] for row in rows] == ["optimal_truncation", "geometric_truncation"]
        check_regrets(rows)
    assert "geometric with p = 2 takes" in capsys.readouterr().out


@pytest.mark.long
def test_exponents_stand_beside_bounds_that_are_informative(tmp_path):
    """Theorems 1, 2 and 4 at horizons where their bounds are below the loss of predicting zero."""
    arguments = ["--data", "diabetes", "--radius", "0.5", "--rate-factor", "1", "--seeds", "4"]
    arguments += ["--horizons", "128", "256", "512", "--out", str(tmp_path)]
    assert main("unknown_noise", "--show", "truncation", *arguments) == 0
    rows = rows_of(tmp_path / "diabetes" / "exponents.csv")
    assert [row["kernel"] for row in rows] == ["polynomial"] * 2 + ["gaussian"] * 2
    for row in rows:
        numbers = {name: float(row[name]) for name in list(row)[2:] if name != "informative"}
        assert row["informative"] == str(numbers["horizon"] > numbers["informative_from"])
        assert (row["informative"] == "True") == (numbers["bound"] < numbers["idle"])
        assert 0 < numbers["regret"] < numbers["bound"]
        assert numbers["low"] < numbers["exponent"] < numbers["high"]
        if row["learner"] == "geometric_truncation":
            assert numbers["regret"] < numbers["closed_form"]
    assert [row["informative"] for row in rows] == ["True"] * 4
    assert all(float(row["exponent"]) < 1 for row in rows)


@pytest.mark.long
def test_corrections_are_compared_with_means_and_saved(tmp_path):
    """Over rounds and over copies; on the moons, where the noise is Laplace's, without pairs."""
    arguments = ["--show", "whole", "averaging", "--data", "teacher", "--noise-variance", "0.1"]
    sizes = ["--horizons", "16", "32", "64", "128", "--seeds", "3", "--out", str(tmp_path)]
    printed = printed_by("unknown_noise", *arguments, *sizes)
    assert "the whole gradient from one set of copies" in printed
    assert "variance costs more than bias" in printed
    for name, estimates in (("teacher", {*ESTIMATES}), ("moons", {*ESTIMATES} - {"pair"})):
        folder = tmp_path / name / "whole_gradient"
        rows = rows_of(folder / "results.csv")
        assert {row["learner"] for row in rows} == {*estimates, "clean"}
        for row in rows:
            assert float(row["regret"]) > 0
        copies = config_of(folder)["copies"]
        assert copies == {each: mean_copies(ESTIMATES[each]) for each in estimates}


def test_estimates_take_as_many_copies_as_their_means():
    counts = {name: mean_copies(options) for name, options in ESTIMATES.items()}
    of_two = {name for name, count in counts.items() if count == 2}
    assert of_two == {"mean_of_2", "replicates_of_2", "pair"}
    assert 2.3 < counts["multilevel"] < 2.5
    assert 4.5 < counts["multilevel_of_base_2"] < 4.8
    assert regret.NOISES["laplace"](0.02).cov == pytest.approx(0.02)


@pytest.mark.slow
def test_measured_gradients_are_those_of_the_function_that_was_learnt():
    # A linear kernel without noise draws nothing at random: the estimate is the gradient.
    rate, rounds = 0.3, 20
    stream = nj.streams.linear(jax.random.key(0), rounds, 3, label_noise=0.5)
    kernel, loss = nj.kernels.linear(), nj.losses.squared()
    estimator = nj.unbiased.kernel_gradient(kernel, loss, radius=5.0, x_second_moment=1.0)
    key = jax.random.key(1)
    result = measured(estimator, rate, stream, nj.noise.Gaussian(0.0), key, num_seeds=1).mean
    x, y = (np.asarray(leaf, float) for leaf in stream)
    weights = np.zeros(3)
    for t in range(rounds):
        weights -= 2 * rate * (weights @ x[t] - y[t]) * x[t]
    squares = 4 * np.sum(x**2, axis=1) * np.array([(x @ weights - y) ** 2, y**2])
    after, before = squares.mean(axis=1)
    assert abs(after - before) > 0.1 * before
    assert float(result["second_moment"]) == pytest.approx(after, rel=1e-4)
    assert abs(float(result["variance"])) < 1e-4 * after
    assert float(result["copies"]) == 2


def test_base_for_finds_the_geometric_distribution_of_a_budget():
    def mean_copies(p):
        return nj.unbiased.truncation.geometric([1.0, 0.0, 2.0, 1.0], p=p).mean

    assert base_for(mean_copies, mean_copies(2.5)) == pytest.approx(2.5, rel=1e-12)
