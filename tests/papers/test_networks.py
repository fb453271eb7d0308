from functools import partial

import jax
import numpy as np
import pytest

from networks import LAWS, Settings, clean_error, ways
from tests.files import names_in, rows_of
from tests.papers import main


@pytest.mark.long
def test_corrected_networks_are_better_than_the_mean_of_their_copies(tmp_path):
    """With few rows and steps; the uncorrected networks of one copy are far worse."""
    arguments = "--rows=10000 --steps=1000 --seeds=2 --law=Laplace --activation=tanh --out"
    assert main("networks", *arguments.split(), str(tmp_path)) == 0
    assert names_in(tmp_path) == {"networks.csv", "config.json"}
    error = {row["way"]: float(row["error"]) for row in rows_of(tmp_path / "networks.csv")}
    assert not error.keys() & {"pair", "gaussian"}
    assert error["clean inputs"] < error["replicates of 4, order 2"] < 0.85 * error["mean of 4"]
    assert error["multilevel, 4.8 copies on average"] < 0.85 * error["mean of 4"]
    assert error["replicates of 2"] < 0.6 * error["mean of 2"]
    assert error["mean of 6"] < error["mean of 2"] < 0.6 * error["one copy, uncorrected"]


@pytest.mark.long
def test_each_way_starts_from_the_same_network_and_data():
    """After one small step of Adam all errors on clean inputs are alike."""
    settings = Settings(rows=300, steps=1)

    def error(settings, way):
        return float(jax.jit(partial(clean_error, settings, *way))(jax.random.key(0)))

    every = list(ways(settings).values())
    errors = [error(settings, way) for way in every]
    np.testing.assert_allclose(errors, errors[0], rtol=0.05)
    anew = [error(Settings(rows=300, steps=1, measured="always"), way) for way in every[:2]]
    assert anew[0] == pytest.approx(errors[0], rel=1e-5)
    assert anew[1] not in (pytest.approx(errors[1], rel=1e-5), pytest.approx(anew[0], rel=1e-5))
    assert anew[1] == pytest.approx(errors[1], rel=0.05)
    assert set(ways(Settings(law="Laplace"))) < set(ways(settings))
    assert LAWS["Laplace"](0.5).covariance(1)[0, 0] == pytest.approx(0.5)
