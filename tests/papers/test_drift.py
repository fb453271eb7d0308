import jax
import jax.numpy as jnp
import numpy as np
import pytest

import drift
import noisy_jax as nj
from tests.files import config_of, rows_of
from tests.papers import main

SEEDS, HORIZON = 3, 150


def kernel_of(tuned):
    return nj.kernels.gaussian(length_scale=(2 * tuned["gamma"]) ** -0.5)


def norma_of(tuned):
    """The learner with these parameters, and its loss."""
    loss = nj.losses.hinge(margin=tuned["margin"])
    options = {"learning_rate": 1.0, "regularization": tuned["decay"], "buffer": HORIZON}
    return nj.learners.norma(kernel_of(tuned), loss, **options), loss


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The folder of one small run for all tests."""
    folder = tmp_path_factory.mktemp("drift")
    quick = ["--horizon", str(HORIZON), "--seeds", str(SEEDS), "--tuning-seeds", "1"]
    assert main("drift", *quick, "--out", str(folder)) == 0
    return folder


@pytest.mark.long
def test_differences_are_those_of_the_means(small):
    last = {
        (row["schedule"], row["learner"]): float(row["mistakes"])
        for row in rows_of(small / "mistakes.csv")
        if int(row["round"]) == HORIZON
    }
    rows = rows_of(small / "differences.csv")
    assert len(last) == 10
    assert len(rows) == 20
    for row in rows:
        expected = last[row["schedule"], row["fewer"]] - last[row["schedule"], row["more"]]
        np.testing.assert_allclose(float(row["mean"]), expected, atol=1e-5)
        assert float(row["mean"]) <= 0


@pytest.mark.long
def test_curves_are_those_of_the_tuned_learners_on_their_streams(small):
    rows = rows_of(small / "mistakes.csv")
    tuned = config_of(small)["tuned"]
    key = jax.random.split(jax.random.key(0))[1]
    keys = [jax.random.fold_in(key, seed) for seed in range(SEEDS)]

    @jax.jit
    def wrong(key, drifts, norma, alma):
        """Mistakes of both learners with the parameters given, by plain rollouts."""
        streams = nj.streams.drifting(key, HORIZON), nj.streams.switching(key, HORIZON)
        stream = jax.tree.map(lambda a, b: jnp.where(drifts, a, b), *streams)
        sizes = {"threshold": alma["threshold"], "scale": alma["scale"], "buffer": HORIZON}
        both = nj.wrappers.paired(norma_of(norma)[0], nj.learners.alma(kernel_of(alma), **sizes))
        played = nj.rollout(both, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        return jnp.cumsum(stream.y[:, None] * played.predictions <= 0, axis=0)

    pair = "NORMA", "ALMA0"
    for schedule in ("drift", "switch"):
        numbers = [tuned[schedule][name] for name in pair]
        runs = np.array([wrong(key, schedule == "drift", *numbers) for key in keys], float)
        errors = runs.std(axis=0, ddof=1) / SEEDS**0.5
        assert np.all(errors[-1] > 0)
        for name, curve, error in zip(pair, runs.mean(axis=0).T, errors.T, strict=True):
            mine = [row for row in rows if (row["schedule"], row["learner"]) == (schedule, name)]
            names = "round", "mistakes", "std_error"
            rounds, counts, found = np.array([[row[n] for n in names] for row in mine], float).T
            np.testing.assert_allclose(counts, curve[rounds.astype(int) - 1], atol=1e-5)
            np.testing.assert_allclose(found, error[rounds.astype(int) - 1], atol=1e-4)
        between = np.diff(runs[:, -1], axis=1)
        apart = rows_of(small / "differences.csv")
        (row,) = (r for r in apart if {schedule, *pair} == {r["schedule"], r["fewer"], r["more"]})
        assert between.std() > 0
        half = 4.302653 * between.std(ddof=1) / SEEDS**0.5
        np.testing.assert_allclose(float(row["half_width"]), half, rtol=1e-3, atol=1e-3)
        assert row["significant"] == str(bool(abs(between.mean()) > half))


@pytest.mark.long
def test_no_function_of_the_ball_is_better_than_the_best_single_one(small, rng):
    """NORMA's own last function is in the ball, and its loss is above the best less the gap."""
    tuned = config_of(small)["tuned"]
    key = jax.random.fold_in(jax.random.split(jax.random.key(0))[1], 0)
    for row in rows_of(small / "regret.csv"):
        numbers = tuned[row["schedule"]]["NORMA"]
        stream = drift.SCHEDULES[row["schedule"]](key, HORIZON)
        learner, loss = norma_of(numbers)
        played = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        total = float(np.sum(loss(played.predictions, stream.y)))
        assert float(row["norma"]) == pytest.approx(total, rel=1e-3)
        last = learner.predict(played.state, stream.x)
        best, gap = float(row["best"]), float(row["gap"])
        assert best - gap <= float(np.sum(loss(last, stream.y)))
        assert float(row["regret"]) == pytest.approx(total - best, abs=1e-3 * total)
        assert int(row["norma_mistakes"]) == np.sum(stream.y * played.predictions <= 0)


def test_a_tie_and_nan_are_mistakes():
    predictions = jnp.array([1.0, -1.0, 0.0, jnp.nan])
    np.testing.assert_array_equal(drift.mistakes(predictions, jnp.ones(4)), [0, 1, 2, 3])


@pytest.mark.parametrize("name", drift.RIVALS)
def test_tuning_takes_the_fewest_mistakes_that_a_rival_may_make(name):
    family, fixed = drift.FAMILIES[drift.RIVALS[name][0]], drift.RIVALS[name][1]
    settings = family.settings()
    wanted = {n: float(v[-1]) for n, v in family.grid.items()} | dict(fixed)
    columns = np.moveaxis(settings, -1, 0)
    # Counts fall towards the wanted setting, and lower still where the rival may not go.
    wrong = (columns[i + 1] != wanted[n] for i, n in enumerate(family.grid))
    counts = (columns[0] != 2.0) + sum(wrong)
    for i, n in enumerate(family.grid):
        if n in fixed:
            counts = np.where(columns[i + 1] != fixed[n], -1, counts)
    assert drift.best(name, counts) == {"gamma": 2.0} | wanted
