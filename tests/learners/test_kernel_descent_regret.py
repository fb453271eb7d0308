"""What the theory promises, measured: √T with the surrogate, linear regret without it."""

import jax.numpy as jnp
import pytest

import noisy_jax as nj
from tests import keys

HORIZONS = [1024, 4096]
RADIUS = 1.8
RATE_FACTOR = 4.0
TABLE = nj.Stream(jnp.array([[-0.4], [0.4]]), jnp.array([-1.0, 1.0]))


def tuned(world, stream):
    """Parallel worlds whose radius is that of the comparator, at four times the theorem's rate.

    With η = mη₀, W²/(2η) + ηGT/2 = ½(m + 1/m) W√(GT) is a bound as well.
    """

    def make(horizon):
        past = nj.Stream(stream.x[:horizon], stream.y[:horizon])
        radius = float(nj.comparators.world_ball(past, world, RADIUS).lifted_norm)
        guarantee = scaled(world.diagonal, horizon, radius)
        learner = nj.learners.parallel_worlds(
            world, horizon=horizon, radius=radius, learning_rate=guarantee.learning_rate
        )
        return learner, guarantee

    return make


def scaled(diagonal, horizon, radius):
    bound = nj.bounds.parallel_worlds(diagonal, horizon=horizon, radius=radius, y_second_moment=1.0)
    return bound._replace(
        learning_rate=RATE_FACTOR * bound.learning_rate,
        regret=(RATE_FACTOR + 1 / RATE_FACTOR) / 2 * bound.regret,
    )


def blind(kernel):
    def make(horizon):
        guarantee = scaled(1.0, horizon, RADIUS)
        learner = nj.learners.uncorrected_kernel(
            kernel, horizon=horizon, radius=RADIUS, learning_rate=guarantee.learning_rate
        )
        return learner, guarantee

    return make


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.claim("DA-Thm3")
def test_regret_keeps_its_bound_where_that_of_uncorrected_is_linear():
    stream, noise = nj.streams.resampled(keys.key(0), TABLE, HORIZONS[-1]), nj.noise.Gaussian(0.35)
    world = nj.worlds.gaussian(dim=1, length_scale=0.5**0.5, noise=noise)
    result = nj.study(
        {"learner": tuned(world, stream), "blind": blind(world.kernel)}, stream, noise, keys.key(1),
        num_seeds=16, horizons=HORIZONS,
        comparator=nj.comparators.world_ball(world=world, radius=RADIUS),
    )  # fmt: skip
    rows = {(row.learner, row.horizon): row for row in result.rows}
    assert all(rows["learner", t].high < rows["learner", t].bound for t in HORIZONS)
    assert result.growth["learner"].high < 0.75 < result.growth["blind"].low
    last = HORIZONS[-1]
    assert rows["blind", last].low > 1.5 * rows["learner", last].high
