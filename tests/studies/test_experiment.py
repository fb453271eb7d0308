import math

import pytest

from noisy_jax.commands.experiment import conclusion
from noisy_jax.evaluate.regrets import growth
from noisy_jax.evaluate.results import Row, Study


def table(**regrets):
    """A study of two horizons: of each learner its regrets, standard error and divergence."""
    rows, fits = [], {}
    for name, (regret, error, diverged) in regrets.items():
        for horizon, value in zip((100, 400), regret, strict=True):
            rows.append(
                Row(name, horizon, value, error, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.1, diverged)
            )
        fits[name] = growth((100, 400), regret, (error, error))
    return Study(tuple(rows), fits, {})


@pytest.mark.parametrize(
    ("study", "sentence"),
    [
        (
            table(a=((10, 20), 0.01, 0), b=((10, 40), 0.01, 0)),
            "Regret on clean data grows like √T or slower: a (T^0.50); nearly like T: b (T^1.00); "
            "after 400 rounds b has paid 2.0 times the regret of a.",
        ),
        (
            table(a=((10, 20), 5.0, 0)),  # too wide an interval for a verdict
            "Regret on clean data grows at a rate that its interval leaves open: a (T^0.50).",
        ),
        (
            table(a=((10, 27), 0.01, 0)),
            "Regret on clean data grows between √T and T: a (T^0.72).",
        ),
        (
            table(a=((10, 20), math.nan, 0)),
            "Too few seeds or horizons to say how regret on clean data grows.",
        ),
        (
            table(a=((10, 20), 0.01, 0), b=((math.nan, math.nan), math.nan, 1)),
            "Regret on clean data grows like √T or slower: a (T^0.50); b diverged.",
        ),
        (
            table(a=((-1, -2), 0.1, 0), b=((1, 2), 0.1, 0)),
            "Regret on clean data grows at a rate that its interval leaves open: b (T^0.50).",
        ),
    ],
)
def test_conclusion_says_what_the_table_shows(study, sentence):
    assert conclusion(study) == sentence
