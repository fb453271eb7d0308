import json

import pytest

import noisy_jax as nj
from kernel import LEARNERS
from tests.files import names_in, rows_of, written
from tests.papers import main

pytestmark = pytest.mark.slow

QUICK = ["--horizons", "32", "64", "--seeds", "2"]


def test_all_learners_under_gaussian_noise(tmp_path, capsys, monkeypatch):
    found, world_ball = [], nj.comparators.world_ball

    def counted(past, world, radius):
        found.append((len(past.y), float(world.noise.cov)))
        return world_ball(past, world, radius)

    monkeypatch.setattr(nj.comparators, "world_ball", counted)
    quick = [*QUICK, "--data", "teacher", "--rate-factor", "8"]
    assert main("kernel", *quick, "--out", str(tmp_path)) == 0
    # Each comparator once: that of the noise, which is the study's, and that of twice as much.
    assert len(found) == len(set(found)) == 4
    printed = capsys.readouterr().out
    assert "teacher: 500 rows, 2 features; gaussian noise of variance 0.3 on each" in printed
    assert "regret grows like T^a" in printed
    assert "(no interval)" in printed
    folder = tmp_path / "teacher"
    assert names_in(folder) == {"results.csv", "config.json", "regret.png"}
    config = json.loads((folder / "config.json").read_text())
    assert config["command"]["length_scale"] == 1.0
    assert config["comparator"].startswith("functools.partial(<function ")
    assert list(config["learners"]) == list(LEARNERS)

    rows = rows_of(folder / "results.csv")
    assert [row["learner"] for row in rows[::2]] == list(LEARNERS)
    for row in rows:
        clean = row["learner"] == "clean"
        assert (float(row["std_error"]) == 0) == clean
        assert float(row["regret"]) > 0
        if row["learner"] == "uncorrected_kernel":  # its gradients are biased
            assert row["bound"] == row["bound_over_regret"] == "nan"
            (same,) = (r for r in rows if (r["learner"], r["horizon"]) == ("clean", row["horizon"]))
            assert row["learning_rate"] == same["learning_rate"]
            continue
        assert float(row["regret"]) < float(row["bound"])
        # η · bound = ½(m² + 1)W² shows the radius: B of the kernel's own space, W of a surrogate's.
        radius = (float(row["bound"]) * float(row["learning_rate"]) / 32.5) ** 0.5
        if clean:
            assert radius == pytest.approx(1.2)
        else:
            assert 1.3 < radius < 1.5 if row["learner"] == "parallel_worlds" else 1.6 < radius < 2


def test_several_data_sets_under_laplace_noise_which_has_no_clones(tmp_path, capsys, rng):
    """One is in `...csv`, of the stem "..": its results would be written beside the folder."""
    left, right = rng.normal(size=(20, 2)).T
    table = written(tmp_path / "...csv", left=left, right=right, product=left * right)
    out = tmp_path / "above" / "out"
    arguments = ["--noise", "laplace", "--horizons", "32", "--seeds", "2", "--out", str(out)]
    assert main("kernel", *arguments, "--data", "teacher", str(table), "--target", "product") == 0
    printed = capsys.readouterr().out
    assert "teacher: 500 rows, 2 features; laplace noise of variance 0.3 on each" in printed
    assert "20 rows, 2 features; laplace noise of variance 0.1 on each" in printed
    assert names_in(out.parent) == {"out"}
    assert names_in(out) == {"teacher", "data"}
    for name in ("teacher", "data"):
        names = [row["learner"] for row in rows_of(out / name / "results.csv")]
        assert names == ["parallel_worlds", "uncorrected_kernel", "clean"]


def test_a_radial_world_goes_through_the_learners(tmp_path, capsys):
    """Theorem 5: against the cut-off rational kernel, regret is below the bound."""
    arguments = ["--kernel", "rational", "--learners", "parallel_worlds", "--data", "teacher"]
    assert main("kernel", *QUICK, *arguments, "--out", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert "kernel 1/(1 + r²/2), cut off at u = 0.333; functions of norm at most 1.2" in printed
    for row in rows_of(tmp_path / "teacher" / "results.csv"):
        assert 0 < float(row["regret"]) < float(row["bound"])
