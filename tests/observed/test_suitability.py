"""Learners that cannot learn from a table, since they are built for other rows or other noise."""

import jax
import numpy as np

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import key
from tests.observed.rows import CLEAN, NOISE, X, Y, gaussians


def test_too_few_replicates_are_an_error():
    learner = nj.learners.two_copies(radius=2.0, learning_rate=0.01)
    rows = from_arrays(X, Y, noise=NOISE)
    raises("needs 2 noisy copies of each row, but there are 1", nj.learn, learner, rows, key(0))


def test_noise_beyond_the_rows_own_variance_is_an_error_and_chance_is_not(rng):
    """Rows of pure noise vary less than it in half of all tables; a fifth less is no chance."""
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    x, y = rng.normal(size=(2000, 2)), rng.normal(size=2000)

    def learned(variances, names=("dose", "age")):
        return nj.learn(learner, from_arrays(x, y, noise=variances, names=names), jax.random.key(0))

    assert np.isfinite(learned([1.02, 1.0]).risk)
    raises("'age' varies no more than its error.*error 1.5. Is 1.5 a standard", learned, [0.5, 1.5])
    raises("cannot be told apart, as .* varies no more", learned, [[0.9, 0.5], [0.5, 0.9]])


def test_errors_that_covary_more_than_one_copy_allows_are_an_error(rng):
    """cross_cov is of one copy: |c| ≤ √(Σ Var ỹ) with the Σ of one of the four."""
    x, y = 3 * rng.normal(size=(4000, 4, 1)), rng.normal(size=4000)

    def learned(cross):
        rows = nj.observations.from_arrays(x, y, noise=1.0, cross_cov=[cross])
        return nj.learn(nj.learners.two_copies(radius=1.0), rows, jax.random.key(0))

    assert np.isfinite(learned(0.9).risk)
    raises(r"cross_cov of 'x1' is .* times what is possible", learned, 1.2)


def fourier_leader(length_scale, noise):
    law = {"length_scale": length_scale, "characteristic": noise}
    frequencies = nj.moments.gaussian_frequencies(key(2), 16, dim=1, **law)
    return nj.learners.corrected_ftrl(nj.moments.fourier(frequencies), solve_every=64)


def test_fourier_features_need_the_noise_in_the_units_of_the_rows(rng):
    x = rng.uniform(-20, 20, size=(200, 1))
    table = from_arrays(x, np.sin(0.2 * x[:, 0]), noise=nj.noise.Laplace(3.0))
    scale = x[:50].std()  # of the rows that give the units
    in_raw_units = fourier_leader(6.0, nj.noise.Laplace(3.0))
    scaled = fourier_leader(6.0 / scale, nj.noise.Laplace(3.0 / scale))
    for learner, standardize in ((in_raw_units, False), (scaled, True)):
        learned = nj.learn(learner, table, key(0), standardize=standardize)
        assert np.isfinite(learned.predict(x)).all()
    message = "other Laplace noise than the rows have: x is divided by"
    raises(message, nj.learn, in_raw_units, table, key(0))


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
        raises("built for other .* noise than the rows have: build it for theirs", learned, noise)


def test_fourier_features_take_no_covariance_of_each_row():
    rows = from_arrays(X[:, :1], Y, noise=gaussians(np.linspace(0.1, 0.3, len(Y))))
    learner = fourier_leader(1.0, nj.noise.Gaussian(0.2))
    raises("covariance of its own in each row", nj.learn, learner, rows, key(0), standardize=False)


def test_replicates_of_unknown_noise_do_not_serve_a_learner_that_reads_the_covariance():
    rows = from_arrays(CLEAN[:, None] + 0.5 * np.random.default_rng(0).normal(size=(800, 2, 2)), Y)
    leader = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    for learner in (leader, nj.learners.known_covariance(radius=2.0, learning_rate=0.01)):
        raises("use two_copies", nj.learn, learner, rows, jax.random.key(0))
