import itertools

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.command import regret
from tests.files import config_of, rows_of
from tests.papers import main


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
