import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.__main__ import main
from noisy_jax.studies import tightness
from tests.studies.files import names_in, rows_of

CASE = tightness.Case("two_copies", "corrected", nj.bounds.two_copies)
NOISY_KERNEL = tightness.families(2.0)[0].cases[-1]


def two(radius, rate, told):
    return nj.learners.two_copies(radius=radius, learning_rate=rate)


@pytest.mark.slow
def test_rows_of_one_family_agree_with_worst():
    """The horizon is padded: 4 of 6 rounds count, and the rows are those of a stream of 4."""
    settings = tightness.Settings(horizons=(4, 6), variances=(0.0, 1.0), steps=40, seeds=16)
    family = tightness.Family(two, [CASE, NOISY_KERNEL._replace(radius=0.05)])
    rows = tightness.found(settings, family, 4)
    assert [(row["variance"], row["bound"]) for row in rows] == [
        (0.0, "corrected"), (0.0, "printed"), (1.0, "corrected"), (1.0, "printed"),
    ]  # fmt: skip
    bound = nj.bounds.two_copies(nj.bounds.Moments(1.0, 1.0, 4.0, 0.0), horizon=4, radius=1.0)
    found = nj.adversaries.worst(
        two(1.0, float(bound.learning_rate), None), nj.noise.Gaussian(0.0), 4,
        key=jax.random.key(0), radius=1.0, y_size=2.0, guarantee=bound, held_out=2,
    )  # fmt: skip
    assert rows[0]["ratio"] == pytest.approx(found.ratio, rel=0.02)
    assert rows[0]["guarantee"] == pytest.approx(float(bound.regret))
    assert rows[1]["ratio"] > 1.5 > 1 > rows[2]["ratio"]


def test_moments_of_the_limits_are_exact():
    values = [float(tightness.limit(CASE._replace(guarantee=g), 4.0, 9, 2.0).regret)
              for g in (nj.bounds.two_copies, nj.bounds.known_covariance)]  # fmt: skip
    stream = nj.Stream(jnp.ones((1, 1)), jnp.full(1, 2.0))
    moments = nj.bounds.moments(stream, nj.noise.Rademacher(2.0))
    expected = [g(moments, horizon=9, radius=1.0).regret
                for g in (nj.bounds.two_copies, nj.bounds.known_covariance)]  # fmt: skip
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_the_picture_shows_the_largest_ratio_of_each_bound():
    row = {"learner": "a", "bound": "corrected", "radius": 1.0, "horizon": 16, "ratio": 0.25}
    rows = [row, row | {"ratio": 0.5}, row | {"horizon": 32}, row | {"bound": "after the run"}]
    left, right = nj.plots.tightness([*rows, row | {"bound": "printed", "ratio": 2.0}])
    np.testing.assert_allclose(left.lines[0].get_ydata(), [0.5, 0.25])
    assert len(left.lines) == 2
    assert right.lines[0].get_ydata()[0] == 2.0


@pytest.mark.slow
@pytest.mark.claim("EXT-WorstStream")
def test_printed_bounds_are_beaten_and_those_of_the_library_are_not(tmp_path, capsys):
    options = ["--horizons", "16", "2048", "--variances", "4", "--steps", "20", "--seeds", "32"]
    assert main(["tightness", *options, "--out", str(tmp_path)]) == 0
    assert "worst regret" in capsys.readouterr().out
    assert names_in(tmp_path) == {"tightness.csv", "config.json", "tightness.png"}
    rows = rows_of(tmp_path / "tightness.csv")
    ratios = {(row["learner"], row["bound"], row["radius"], row["horizon"]): float(row["ratio"])
              for row in rows}  # fmt: skip
    assert ratios["two_copies", "corrected", "1.0", "2048"] > 0.5
    assert ratios["known_covariance, Σw", "printed", "1.0", "2048"] > 1.5
    # Of the corrected leader without a ball, few draws of the noise decide the mean.
    low = [(float(row["regret"]) - float(row["half_width"])) / float(row["guarantee"])
           for row in rows if row["bound"] != "printed"]  # fmt: skip
    assert max(low) < 1
