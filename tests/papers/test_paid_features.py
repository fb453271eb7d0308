import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
import paid_features
from paid_features import known, problem_of, unknown
from tests.files import rows_of
from tests.keys import key
from tests.papers import main


def problem(rows=200):
    table = nj.streams.linear(jax.random.key(0), rows, 3)
    return problem_of(table, variance=0.2, price=0.002, largest=0.064)


@pytest.mark.slow
def test_losses_are_those_of_all_rows_and_signs_of_the_noise(rng):
    """Enumerated; the best predictor at each payment is a ridge regression."""
    made, w, payment = problem(), np.array([0.4, -0.2, 0.7]), 0.006
    scale = (0.2 / 4) ** 0.5
    signs = np.stack(np.meshgrid(*3 * [[-1, 1]]), -1).reshape(-1, 3)
    x, y = np.asarray(made.table.x, float), np.asarray(made.table.y, float)
    errors = (y[:, None] - (x[:, None] + scale * signs) @ w) ** 2
    np.testing.assert_allclose(made.loss(w, payment), errors.mean() + payment, rtol=1e-5)
    payments, losses = made.best()
    for index in (0, 50):
        noise = 0.2 / (1 + payments[index] / 0.002)
        best = np.linalg.solve(x.T @ x + len(y) * noise * np.eye(3), x.T @ y)
        steps = 0, *rng.normal(size=(5, 3))
        found = [made.loss(best + 0.1 * step, payments[index]) for step in steps]
        np.testing.assert_allclose(losses[index], found[0], rtol=1e-5)
        assert min(found) == found[0]


@pytest.mark.slow
@pytest.mark.statistical
def test_who_knows_the_variance_pays_the_best_and_has_less_regret():
    made = problem()
    keys = jax.random.split(key(), 6)
    payments, losses = made.best()
    (regret, paid), (blind, _) = (
        jax.jit(jax.vmap(functools.partial(play, made, 4096)))(keys) for play in (known, unknown)
    )
    best = payments[np.argmin(losses)]
    assert abs(paid.mean() - best) < 0.1 * best
    assert regret.mean() < 0.15 * blind.mean()
    # Less than by the best predictor that pays nothing, or as much as it may.
    assert blind.mean() < 4096 * (max(losses[0], losses[-1]) - losses.min())
    assert np.all(regret > 0)
    dear = made._replace(price=jnp.float32(1.0))  # less noise is not worth its price
    assert jax.jit(functools.partial(known, dear, 1024))(keys[0])[1] < 0.01 * made.largest


def test_the_table_has_the_mean_regret_and_its_own_standard_error(monkeypatch):
    """Of learners whose payments vary a hundred times as much as their regret."""

    def play(_, horizon, key):
        return horizon + jax.random.normal(key), 100 * jax.random.normal(jax.random.fold_in(key, 1))

    monkeypatch.setattr(paid_features, "LEARNERS", {"known": play, "unknown": play})
    (report,) = paid_features.run(paid_features.Settings(horizons=(64,), seeds=4))
    own = jax.random.fold_in(jax.random.key(0), 64)
    played = [play(None, 64, jax.random.fold_in(own, seed)) for seed in range(4)]
    regrets, paid = np.array(played, np.float64).T
    for row in report.tables["paid_features"].rows:
        np.testing.assert_allclose(row["regret"], regrets.mean(), rtol=1e-5)
        np.testing.assert_allclose(row["std_error"], regrets.std(ddof=1) / 2, rtol=1e-3)
        np.testing.assert_allclose(row["payment"], paid.mean(), rtol=1e-4)
        assert row["num_seeds"] == 4


@pytest.mark.long
def test_regret_of_the_study_grows_as_slowly_as_is_promised(tmp_path, capsys):
    words = ["paid_features", "--horizons", "1024", "8192", "--seeds", "4", "--out"]
    assert main(*words, str(tmp_path)) == 0
    rows = rows_of(tmp_path / "paid_features.csv")
    assert [row["variance"] for row in rows] == ["known"] * 2 + ["unknown"] * 2
    regrets = [float(row["regret"]) for row in rows]
    assert regrets[1] < 2**1.5 * 1.3 * regrets[0]
    assert regrets[1] < 0.2 * regrets[3]
    assert "The best payment is 0.0122" in capsys.readouterr().out
    assert main("paid_features", "--horizons", "100", "--out", str(tmp_path)) == 2
