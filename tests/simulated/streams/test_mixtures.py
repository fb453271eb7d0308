import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest, norm

import noisy_jax as nj
from noisy_jax.simulated.streams import DIFFICULTIES, drifting, switching
from noisy_jax.simulated.streams import mixtures as module
from noisy_jax.simulated.streams.mixtures import Difficulty, drifting_mixtures, switching_mixtures
from tests.errors import raises
from tests.keys import key

KEY = key(3)
STREAMS = {
    "drifting": (drifting, drifting_mixtures, 10),
    "switching": (switching, switching_mixtures, 1000),
}


@functools.cache
def made(name, difficulty="A", horizon=2005):
    """The stream, and its mixtures, of one schedule, by one compiled function each."""
    stream, mixtures, period = STREAMS[name]
    setting = DIFFICULTIES[difficulty]
    periods = -(-horizon // period)

    def both(key):  # the stream splits its key, and draws its classes from the first part
        classes = mixtures(jax.random.split(key)[0], periods, setting)
        return stream(key, horizon, difficulty=setting), classes

    return jax.device_get(jax.jit(both)(KEY))


def log_odds(x, means, deviations):
    """log p₊ − log p₋ in float64, from the densities themselves: x [T, 2], means [T, 2, K, 2]."""
    x, means, deviations = map(np.float64, (x[:, None, None], means, deviations[..., None]))
    classes = logsumexp(norm.logpdf(x, means, deviations).sum(axis=-1), axis=-1)
    return classes[:, 1] - classes[:, 0]


@pytest.mark.slow
@pytest.mark.claim("NORMA-Fig2")
@pytest.mark.parametrize(("name", "difficulty"), [("drifting", "A"), ("switching", "B")])
def test_examples_agree_with_the_bayes_rule_of_their_period_by_the_margin(name, difficulty):
    stream, mixtures = made(name, difficulty)
    assert set(np.unique(stream.y)) == {-1.0, 1.0}
    period = np.arange(len(stream.y)) // STREAMS[name][2]
    margins = stream.y * log_odds(stream.x, *(a[period] for a in mixtures))
    margin = DIFFICULTIES[difficulty].margin
    assert margin - 1e-3 < margins.min() < margin + 0.1
    # It is the rule of this period, not of the one before.
    stale = stream.y * log_odds(stream.x, *(a[np.maximum(period - 1, 0)] for a in mixtures))
    assert stale.min() < margin - 0.1


@pytest.mark.statistical
def test_examples_have_the_densities_of_their_classes():
    """Moments of what is kept, against integrals of the densities where the margin allows it."""
    deviations = np.array([[0.4, 0.9], [0.6, 0.5]])
    means = np.array([[[-1.0, 0.0], [1.0, 1.0]], [[0.5, -0.5], [2.0, 0.0]]])
    size, margin = 20_000, 0.3
    axis = np.arange(-5, 6, 0.02)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    squares = np.sum((grid[:, None, None] - means) ** 2, axis=-1) / deviations**2
    densities = (np.exp(-squares / 2) / deviations**2).sum(axis=-1)
    odds = np.log(densities[:, 1] / densities[:, 0])
    weights = np.ravel(densities.T * [odds < -margin, odds > margin])
    mixtures = module.Mixtures(jnp.asarray(means, float), jnp.asarray(deviations, float))
    (x, y), found = jax.jit(lambda key: module.examples(key, mixtures, size, margin))(key(3))
    assert found == size

    def statistics(x, y):
        x, y = np.asarray(x, float), np.asarray(y, float)[:, None]
        products = np.column_stack([x**2, x[:, :1] * x[:, 1:]])
        return np.hstack([y, x, y * x, products, y * products])

    signs = np.repeat([-1.0, 1.0], len(grid))
    exact = np.average(statistics(np.tile(grid, (2, 1)), signs), axis=0, weights=weights)
    ours = statistics(x, y)
    errors = ours.std(axis=0) / size**0.5
    assert np.all(errors < 0.03)
    assert np.all(np.abs(ours.mean(axis=0) - exact) < 5 * errors)


@pytest.mark.slow
@pytest.mark.claim("NORMA-Fig2")
def test_drift_is_of_its_size_every_ten_rounds_and_stays_in_the_box():
    _, (means, deviations) = made("drifting")
    assert means.shape == (201, 2, 3, 2)
    assert np.abs(means).max() <= 3
    np.testing.assert_array_equal(deviations, np.broadcast_to(deviations[:1], deviations.shape))
    inside = np.abs(means[:-1]) < 2  # farther than 5 standard deviations of a step from the sides
    steps = np.diff(means, axis=0)[inside]
    assert kstest(steps, norm(0, DIFFICULTIES["A"].drift).cdf).pvalue > 6e-7
    assert np.abs(np.diff(means, axis=0)).max() < 1.2  # reflected, and not moved to the other side
    assert np.abs(means).max() > 2.8  # so that the box was tried


@pytest.mark.statistical
def test_folding_the_walk_reflects_it():
    """The walk of large steps keeps the distribution that reflection keeps: uniform in the box."""
    setting = Difficulty(50, 0.4, 0.9, margin=0.0, drift=1.5)
    means, _ = jax.jit(lambda key: drifting_mixtures(key, 20, setting))(KEY)
    assert kstest(np.ravel(means[-1]), "uniform", args=(-3, 6)).pvalue > 6e-7


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("NORMA-Fig2")
def test_a_switch_draws_everything_again():
    _, (means, deviations) = made("switching")
    assert means.shape == (3, 2, 3, 2)
    assert np.abs(np.diff(means, axis=0)).min() > 0
    assert np.abs(np.diff(deviations, axis=0)).min() > 0
    many = jax.jit(lambda key: switching_mixtures(key, 300, DIFFICULTIES["A"]))(KEY)
    assert kstest(np.ravel(many.means), "uniform", args=(-3, 6)).pvalue > 6e-7
    assert kstest(np.ravel(many.deviations), "uniform", args=(0.4, 0.5)).pvalue > 6e-7


@jax.jit
def drifting_with(key, margin):
    return drifting(key, 37, difficulty=DIFFICULTIES["A"]._replace(margin=margin))


@pytest.mark.slow
def test_vmap_over_keys_and_numbers_equals_singles():
    keys, margins = jax.random.split(KEY, 2), jnp.array([0.2, 1.0])
    both = jax.vmap(drifting_with)(keys, margins)
    assert not np.allclose(both.x[0], both.x[1])
    singles = [drifting_with(*pair) for pair in zip(keys, margins, strict=True)]
    np.testing.assert_allclose(both.x, [single.x for single in singles], atol=1e-5)
    np.testing.assert_array_equal(both.y, [single.y for single in singles])


@pytest.mark.slow
def test_a_longer_stream_begins_with_the_shorter():
    for ours, theirs in zip(drifting_with(KEY, 0.5), made("drifting")[0], strict=True):
        np.testing.assert_allclose(ours, theirs[:37], atol=1e-4)


@pytest.mark.slow
def test_a_margin_that_keeps_nothing_raises_or_gives_nan():
    wide = DIFFICULTIES["A"]._replace(margin=1e4)
    message = "margin or deviations keep only 0 of 2560 draws of period 0"
    raises(message, drifting, KEY, 10, difficulty=wide)
    stream = drifting_with(KEY, 1e4)
    assert np.isnan(stream.x).all()
    assert np.isnan(stream.y).all()
    raises(r"x\[0, 0\] is nan", nj.streams.from_arrays, *stream)


@pytest.mark.slow
def test_the_number_of_examples_found_is_returned(x64):
    mixtures = module.Mixtures(jnp.array([[[-0.5, 0.0]], [[0.5, 0.0]]]), jnp.ones((2, 1)))
    # y log(p₊/p₋) = y x₀ is N(½, 1) under both classes.
    margin = 3.4  # 1 in 537 is kept of 2560
    stream, found = module.examples(KEY, mixtures, 10, margin)
    assert 0 < found < 10
    assert np.isfinite(stream.x[:found]).all()
    assert (stream.y * stream.x[:, 0])[:found].min() > margin
    assert np.isnan(stream.x[found:]).all()


@pytest.mark.slow
def test_log_odds_hold_far_from_all_means():
    mixtures = module.Mixtures(jnp.array([[[-1.0, 0.0]], [[1.0, 0.0]]]), jnp.ones((2, 1)))
    x = jnp.array([40.0, 0.0])  # both densities underflow
    np.testing.assert_allclose(mixtures.log_odds(x), 80, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (drifting, {"horizon": 0}, "horizon must be a whole number of at least 1"),
        (drifting, {"difficulty": "A"}, "difficulty must be a .*, got 'A': .* names A, B, C"),
        (switching, {"period": 0}, "period must be a whole number of at least 1"),
        (drifting, {"smallest_deviation": 0.0}, "smallest_deviation must be positive"),
        (
            drifting,
            {"smallest_deviation": 1.0, "largest_deviation": 0.5},
            "largest_deviation - smallest_deviation must be finite and >= 0, got -0.5",
        ),
        (switching, {"margin": -0.5}, "margin must be finite and >= 0"),
        (drifting, {"drift": -0.2}, "drift must be finite and >= 0"),
        (drifting, {"key": 0}, "key must be a key .* got 0"),
    ],
)
def test_bad_input_raises(make, wrong, message):
    if wrong.keys() <= set(Difficulty._fields):
        wrong = {"difficulty": DIFFICULTIES["A"]._replace(**wrong)}
    raises(message, make, **{"key": KEY, "horizon": 5} | wrong)
