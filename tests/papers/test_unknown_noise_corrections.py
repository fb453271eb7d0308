import pytest

from noisy_jax.command import regret
from tests.files import config_of, rows_of
from tests.papers import printed_by
from unknown_noise_corrections import ESTIMATES, mean_copies


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
