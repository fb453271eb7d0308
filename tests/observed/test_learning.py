"""Learning from observed rows: no noise is added, and the risk is that on clean data."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import noisy_jax as nj
from tests.keys import SHIFT, key


def table(copies=1, noise=1.0):
    rng = np.random.default_rng(1000 * SHIFT)
    x = rng.normal(size=(6000, 2))
    y = 5 + x @ [2.0, -1.0] + 0.1 * rng.normal(size=6000)
    noisy = 100 + 10 * (x[:, None] + rng.normal(size=(6000, copies, 2)))
    return x, y, nj.observations.from_arrays(noisy, y, noise=None if noise is None else 100.0)


@pytest.mark.statistical
@pytest.mark.parametrize("copies", [1, 2])
def test_the_leader_predicts_clean_rows_and_knows_its_error(copies):
    x, y, observed = table(copies, 1.0 if copies == 1 else None)
    moments = nj.moments.known_covariance() if copies == 1 else nj.moments.two_copies()
    learned = nj.learn(nj.learners.corrected_ftrl(moments), observed, key(0))
    error = np.mean((learned.predict(100 + 10 * x) - y) ** 2)
    assert error < 0.05
    # The early predictions are worse than the last: the progressive risk is above its error.
    assert -5 * learned.risk_std_error < learned.risk - error < 0.3


def test_the_risk_and_its_standard_error_are_in_the_units_of_y(rng):
    """In NumPy: scales of the first quarter, centres of all rows before, and what is judged."""
    x, y = rng.normal(size=(40, 2)), 7 + 3 * rng.normal(size=40)
    learner, key = nj.learners.known_covariance(radius=1.0), jax.random.key(0)
    learned = nj.learn(learner, nj.observations.from_arrays(x, y, noise=0.2), key)
    scale, y_scale = x[:10].std(axis=0), y[:10].std()
    np.testing.assert_allclose([*learned.scale, learned.y_scale], [*scale, y_scale], rtol=1e-12)
    state, errors = learner.init(2), []
    for t in range(40):
        before = slice(max(t, 10))
        row, target = (x[t] - x[before].mean(axis=0)) / scale, (y[t] - y[before].mean()) / y_scale
        sample = nj.Sample(jnp.asarray(row[None]), jnp.asarray(target), jnp.diag(0.2 / scale**2))
        value, square = learner.read(state, sample, key)
        errors.append(square - 2 * target * value + target**2)
        state = learner.step(state, sample, key)
    errors = y_scale**2 * np.asarray(errors, np.float64)[10:]
    np.testing.assert_allclose(learned.risk, errors.mean(), rtol=1e-4)
    np.testing.assert_allclose(learned.risk_std_error, errors.std(ddof=1) / 30**0.5, rtol=1e-4)
    np.testing.assert_allclose(learned.variance, y.var(), rtol=1e-12)
    assert np.abs(learned.center - x.mean(axis=0)).max() < 1e-12
    assert abs(learned.y_center - y.mean()) < 1e-12


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", ["one copy", "one copy, not scaled", "two copies"])
@pytest.mark.parametrize("first", [12, 7])
def test_each_error_has_the_mean_of_the_error_on_the_clean_row(rng, kind, first):
    """Exactly, over all noise of the last of 12 rows, also in a second chunk.

    The sum of judged errors grows by the last row's, since the units of the 11 rows before it stay
    as they are. Of the noise, +-.8 in the first column and +-.6 in y, 3/4 have the same sign; that
    of a second copy is independent. Centres that contain it give 2(Var wn + Var y)/n less.
    """
    copies = 2 if kind == "two copies" else 1
    clean, targets = 30 + rng.normal(size=(12, 2)) * [1, 4], 5 + rng.normal(size=12)
    noisy = np.repeat(clean[:, None], copies, axis=1)
    noisy[:, :, 0] += 0.8 * rng.choice([-1.0, 1.0], size=(12, copies))
    known = {"cross_cov": [0.24, 0.0], "noise": [0.64, 0.0] if copies == 1 else None}
    make = nj.learners.known_covariance if copies == 1 else nj.learners.two_copies
    learner = make(radius=2.0, learning_rate=0.1)

    def learned(x, y):
        rows = nj.observations.from_arrays(x, y, **known)
        number = np.arange(len(y))
        parts = [rows.rows(part) for part in (number < first, number >= first) if part.any()]
        standardize = kind != "one copy, not scaled"
        return nj.learn(learner, parts, jax.random.key(0), standardize=standardize)

    before = learned(noisy[:11], targets[:11])
    judged = 12 - -(-first // 4)
    mean = 0.0
    for signs in itertools.product([-1, 1], repeat=copies + 1):
        share = (0.375 if signs[0] == signs[-1] else 0.125) / 2 ** (copies - 1)
        x, y = noisy.copy(), targets.copy()
        x[-1, :, 0], y[-1] = clean[-1, 0] + 0.8 * np.array(signs[:-1]), y[-1] + 0.6 * signs[-1]
        mean += share * judged * learned(x, y).risk
    error = (before.predict(clean[-1]) - targets[-1]) ** 2 + 0.36
    np.testing.assert_allclose(mean - (judged - 1) * before.risk, error, rtol=1e-9)


def test_no_two_rows_have_the_same_key():
    """The state of this learner holds the keys of two chunks, and the number of rows."""

    def step(state, sample, key):
        keys, count = state
        return keys.at[count].set(jax.random.key_data(key)), count + 1

    learner = nj.learners.known_covariance(radius=1.0)._replace(
        init=lambda dim: (jnp.zeros((20, 2), jnp.uint32), 0), step=step,
        predict=lambda state, x: x[..., 0], unroll=None, read=None,
    )  # fmt: skip
    _, _, rows = table()
    chunks = [rows.rows(np.arange(10) + start) for start in (0, 10)]
    keys, count = nj.learn(learner, chunks, jax.random.key(0)).state
    assert count == 20
    assert len(np.unique(keys, axis=0)) == 20


def test_a_learner_without_readings_has_no_risk():
    x, y, observed = table()
    kernel = nj.kernels.gaussian(length_scale=1.0)
    learner = nj.learners.uncorrected_kernel(kernel, horizon=len(y), radius=2.0)
    learned = nj.learn(learner, observed, jax.random.key(0))
    assert np.isnan(learned.risk)
    replicates = nj.observations.from_arrays(np.stack([x, x + 0.1], axis=1), y)
    unknown = nj.learn(nj.learners.uncorrected(radius=2.0), replicates, jax.random.key(0))
    assert np.isnan(unknown.risk)
    assert np.isfinite(learned.predict([[100.0, 100.0]])).all()


def test_too_few_replicates_are_an_error():
    _, _, observed = table()
    learner = nj.learners.two_copies(radius=2.0, learning_rate=0.01)
    with pytest.raises(ValueError, match="needs 2 noisy copies of each row, but there are 1"):
        nj.learn(learner, observed, jax.random.key(0))


def test_noise_beyond_the_rows_own_variance_is_an_error_and_chance_is_not(rng):
    """Rows of pure noise vary less than it in half of all tables; a fifth less is no chance."""
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    x, y = rng.normal(size=(2000, 2)), rng.normal(size=2000)

    def learned(variances, names=("dose", "age")):
        observed = nj.observations.from_arrays(x, y, noise=variances, names=names)
        return nj.learn(learner, observed, jax.random.key(0))

    assert np.isfinite(learned([1.02, 1.0]).risk)
    with pytest.raises(ValueError, match=r"'age' is not identified: its noise variance, 1.5,"):
        learned([0.5, 1.5])
    with pytest.raises(ValueError, match=r"combination .* is not identified"):
        learned([[0.9, 0.5], [0.5, 0.9]])


def test_errors_that_covary_more_than_one_copy_allows_are_an_error(rng):
    """cross_cov is of one copy: |c| ≤ √(Σ Var ỹ) with the Σ of one of the four."""
    x, y = 3 * rng.normal(size=(4000, 4, 1)), rng.normal(size=4000)

    def learned(cross):
        rows = nj.observations.from_arrays(x, y, noise=1.0, cross_cov=[cross])
        return nj.learn(nj.learners.two_copies(radius=1.0), rows, jax.random.key(0))

    assert np.isfinite(learned(0.9).risk)
    with pytest.raises(ValueError, match=r"cross_cov of 'x1' is .* times what is possible"):
        learned(1.2)


def test_the_error_is_printed_with_its_interval():
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    learned = nj.learn(learner, table()[2], jax.random.key(0))
    low, high = learned.risk_interval
    half = scipy.stats.t(learned.num_rows - 1).ppf(0.975) * learned.risk_std_error
    np.testing.assert_allclose([low, high], [learned.risk - half, learned.risk + half], rtol=1e-9)
    few = dataclasses.replace(learned, num_rows=4).risk_interval[1] - learned.risk
    np.testing.assert_allclose(few, 3.182446305 * learned.risk_std_error, rtol=1e-9)
    assert f"clean data {learned.risk:.4g} (95% interval {low:.4g} to {high:.4g})" in str(learned)
    assert len(str(learned)) < 200


@pytest.mark.statistical
def test_rows_after_the_last_block_are_used():
    """127 rows in blocks of 128: the learner would predict the mean."""
    x, y, _ = table()
    observed = nj.observations.from_arrays(x[:127], y[:127], noise=0.0)
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=128)
    learned = nj.learn(learner, observed, key(0))
    assert np.mean((learned.predict(x) - y) ** 2) < 0.02


def wide_rows(laplace=3.0):
    rng = np.random.default_rng(1 + 1000 * SHIFT)
    clean = rng.uniform(-20, 20, size=(6000, 1))
    y = np.sin(0.2 * clean[:, 0])
    noise = nj.noise.Laplace(laplace)
    noisy = clean + rng.laplace(size=clean.shape) * laplace
    return clean, y, nj.observations.from_arrays(noisy, y, noise=noise)


def fourier_leader(length_scale, noise):
    frequencies = nj.moments.gaussian_frequencies(
        key(2), 32, dim=1, length_scale=length_scale, characteristic=noise
    )
    return nj.learners.corrected_ftrl(nj.moments.fourier(frequencies), solve_every=64)


@pytest.mark.statistical
@pytest.mark.slow
def test_fourier_features_need_the_noise_in_the_units_of_the_rows():
    clean, y, observed = wide_rows()
    scale = observed.x[:1500].std()
    in_raw_units = fourier_leader(6.0, nj.noise.Laplace(3.0))
    with pytest.raises(ValueError, match="other Laplace noise than the rows have: x is divided by"):
        nj.learn(in_raw_units, observed, key(0))
    for learner, standardize in (
        (in_raw_units, False),
        (fourier_leader(6.0 / scale, nj.noise.Laplace(3.0 / scale)), True),
    ):
        learned = nj.learn(learner, observed, key(0), standardize=standardize)
        assert np.mean((learned.predict(clean) - y) ** 2) < 0.02 < 0.1 * y.var()
    other = fourier_leader(6.0, nj.noise.Gaussian(18.0))  # the same variance
    with pytest.raises(ValueError, match="other Gaussian noise than the rows have: build it for"):
        nj.learn(other, observed, key(0), standardize=False)
    stream = nj.Stream(jnp.asarray(clean[:8], float), jnp.asarray(y[:8], float))
    with pytest.warns(UserWarning, match="built for other noise"):
        nj.rollout(in_raw_units, stream, nj.noise.Laplace(1.0), key(0))


def test_noise_of_the_same_variance_and_another_distribution_is_an_error(rng):
    """Where the learner was built for one distribution, not for a variance only."""
    x, y = 2 * rng.normal(size=(300, 1)), rng.normal(size=300)
    rows = nj.observations.from_arrays(x, y, noise=nj.noise.Laplace(0.5))
    learner = nj.learners.known_covariance(radius=1.0)

    def learned(noise):
        built = learner._replace(needs=nj.Needs(noise=noise, targets="any"))
        return nj.learn(built, rows, jax.random.key(0), standardize=False)

    assert np.isfinite(learned(nj.noise.Laplace(0.5)).risk)
    for noise in (nj.noise.Gaussian(0.5), nj.noise.Laplace(0.6)):
        with pytest.raises(ValueError, match=r"built for other .* noise than the rows have"):
            learned(noise)


def test_fourier_features_take_no_covariance_of_each_row():
    x, y, _ = table()
    noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(np.linspace(0.1, 0.3, len(y))))
    observed = nj.observations.from_arrays(x[:, :1], y, noise=noise)
    learner = fourier_leader(1.0, nj.noise.Gaussian(0.2))
    with pytest.raises(ValueError, match="covariance of its own in each row"):
        nj.learn(learner, observed, jax.random.key(0), standardize=False)


def test_replicates_of_unknown_noise_do_not_serve_a_learner_that_reads_the_covariance():
    _, _, observed = table(copies=2, noise=None)
    known = nj.moments.known_covariance()
    for learner in (
        nj.learners.corrected_ftrl(known),
        nj.learners.known_covariance(radius=2.0, learning_rate=0.01),
    ):
        with pytest.raises(ValueError, match="use two_copies"):
            nj.learn(learner, observed, jax.random.key(0))


def test_constant_columns_are_named():
    x = np.column_stack([np.arange(10.0), np.full(10, 0.1)])
    observed = nj.observations.from_arrays(x, np.arange(10.0), noise=0.0, names=("age", "dose"))
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    with pytest.raises(ValueError, match="'dose' is constant"):
        nj.learn(learner, observed, jax.random.key(0))


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", ["parallel_worlds", "fourier_worlds"])
def test_readings_in_worlds_are_unbiased(kind):
    """By quadrature over Gaussian noise, in a state after 20 rounds."""
    noise = nj.noise.Gaussian(0.2)
    world = nj.worlds.gaussian(dim=1, length_scale=1.0, noise=noise)
    rate = {"radius": 5.0, "learning_rate": 0.2}
    learner = nj.learners.parallel_worlds(world, horizon=20, **rate)
    if kind == "fourier_worlds":
        features = nj.worlds.fourier(jax.random.key(0), world, 16)
        learner = nj.learners.fourier_worlds(features, **rate)
    rng = np.random.default_rng(0)
    samples = nj.Sample(jnp.asarray(rng.normal(size=(20, 2, 1))), jnp.ones(20), jnp.full(20, 0.2))
    x, keys = jnp.zeros((20, 1)), jax.random.split(jax.random.key(0), 20)
    state, *_ = jax.jit(learner.unroll)(learner.init(1), samples, x, keys)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    clean, weights = 0.7, weights / weights.sum()
    first, second = (a.ravel() for a in np.meshgrid(*2 * [clean + 0.2**0.5 * nodes]))
    pairs = nj.Sample(jnp.stack([first, second], 1)[..., None], jnp.ones(1600), jnp.full(1600, 0.2))
    value, square = jax.vmap(learner.read, (None, 0, None))(state, pairs, keys[0])
    expected = float(learner.predict(state, jnp.asarray([clean])))
    mass = np.outer(weights, weights).ravel()
    np.testing.assert_allclose(mass @ np.asarray(value), expected, rtol=1e-9)
    np.testing.assert_allclose(mass @ np.asarray(square), expected**2, rtol=1e-9)
