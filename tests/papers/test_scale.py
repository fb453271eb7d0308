import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
import scale


@pytest.mark.slow
def test_regret_is_the_sum_over_parts_of_one_run(monkeypatch):
    """By hand, on the rows and noise of the same keys; every part continues the state."""
    monkeypatch.setattr(scale, "_PART", 16)
    table, noise = nj.streams.linear(jax.random.key(0), 50, 3), nj.noise.Gaussian(0.1)
    learner, best = nj.learners.two_copies(radius=1.0), 0.1 * table.x[:, 0]
    key, seen = jax.random.key(1), []
    (found,) = scale.play(lambda t: learner, table, best, noise, 48, [key], seen.append)
    state, total = learner.init(3), 0.0
    for number in range(3):
        row_key, noise_key = jax.random.split(jax.random.fold_in(key, number))
        rows = jax.random.randint(row_key, (16,), 0, 50)
        stream = nj.Stream(table.x[rows], table.y[rows])
        run = nj.rollout(learner, stream, noise, noise_key, state=state)
        state, errors = run.state, jnp.stack([run.predictions, best[rows]]) - stream.y[None]
        total += float(jnp.sum(errors[0] ** 2 - errors[1] ** 2))
    np.testing.assert_allclose(found.regret, total, rtol=1e-4)
    assert seen == [16, 16, 16]
    assert found.seconds >= 0
    assert found.memory >= 3 * 4  # the weights


def test_the_best_learner_changes_where_regrets_cross():
    """Regrets √T and 5 T^(1/4) are equal at T = 625; one that did not run is not compared."""
    rows = [
        {"knows": "all", "learner": name, "horizon": t, "regret": regret(t)}
        for name, regret in {"a": lambda t: t**0.5, "b": lambda t: 5 * t**0.25}.items()
        for t in (16, 100, 10_000, 10**6)
    ]
    rows.append({"knows": "all", "learner": "short", "horizon": 16, "regret": 1.0})
    rows.append({"knows": "some", "learner": "c", "horizon": 16, "regret": 1e9})
    found = [tuple(row.values()) for row in scale.best_of(rows).rows]
    assert found == [("all", "short", 16), ("all", "a", 100), ("all", "b", 625), ("some", "c", 16)]
    assert [scale.solve_every(t) for t in (16, 1024, 2**20)] == [4, 32, 1024]
