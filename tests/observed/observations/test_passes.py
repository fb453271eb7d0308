"""`fit` and `learn` over chunks of a table: the numbers of the whole."""

import chex
import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import unrolled
from noisy_jax.observed.observations import from_arrays
from tests.observed.observations.rows import CLEAN, LEARNER, NOISE, X, Y, run


def test_a_fit_to_chunks_is_that_of_the_table(table):
    whole = nj.fit(from_arrays(X, Y, noise=NOISE))
    fit = nj.fit(table)
    np.testing.assert_allclose(fit.coefficients, whole.coefficients, rtol=1e-8)
    np.testing.assert_allclose(fit.intercept, whole.intercept, rtol=1e-8)
    assert fit.num_rows == 800


def test_one_chunk_is_learned_as_a_table(table):
    """The learner uses no key."""
    observed = from_arrays(X, Y, noise=NOISE)
    whole, one = run("learn", observed), run("learn", [observed])
    chex.assert_trees_all_close(one, whole, rtol=1e-6)
    np.testing.assert_allclose(one["variance"], Y.var(), rtol=1e-12)
    np.testing.assert_allclose(one["center"], X.mean(axis=0), rtol=1e-12)


def test_chunks_are_standardized_as_the_first_says_and_their_errors_are_merged(table):
    """By hand: the scale of 50 rows, centres of all rows before, and the errors of 750 rows."""
    learned = nj.learn(LEARNER, table, jax.random.key(0))
    np.testing.assert_allclose(learned.center, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(learned.scale, X[:50].std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(learned.variance, Y.var(), rtol=1e-12)
    before = [slice(max(t, 50)) for t in range(800)]
    x = (X - np.array([X[rows].mean(axis=0) for rows in before])) / learned.scale
    y = (Y - np.array([Y[rows].mean() for rows in before])) / Y[:50].std()
    observed = from_arrays(x, y, noise=NOISE / learned.scale**2)
    samples = nj.Sample(x[:, None].astype("f4"), y.astype("f4"), np.tile(observed.cov, (800, 1, 1)))
    keys = jax.random.split(jax.random.key(0), 800)
    state, _, (value, square) = jax.jit(unrolled(LEARNER))(
        LEARNER.init(2), jax.tree.map(np.float32, samples), x.astype("f4"), keys
    )
    errors = ((square - 2 * y * value + y**2) * learned.y_scale**2)[50:]
    np.testing.assert_allclose(learned.risk, errors.mean(), rtol=1e-3)
    np.testing.assert_allclose(learned.risk_std_error, errors.std(ddof=1) / 750**0.5, rtol=1e-3)
    chex.assert_trees_all_close(learned.state, state, rtol=1e-3)


def test_a_column_that_begins_constant_takes_more_rows():
    """The scale is that of the rows up to the first that differs, and the risk judges the rest."""
    x = X.copy()
    x[:300, 1] = 7.0
    learned = nj.learn(LEARNER, from_arrays(x, Y, noise=[NOISE, 0]), jax.random.key(0))
    np.testing.assert_allclose(learned.scale, x[:301].std(axis=0), rtol=1e-12)
    x[:799, 1] = 7.0
    learned = nj.learn(LEARNER, from_arrays(x, Y, noise=[NOISE, 0]), jax.random.key(0))
    assert np.isnan(learned.risk)
    assert "no row with unbiased readings was judged" in str(learned)


def keyed():
    """A learner whose state is the sum of what its keys draw."""
    return LEARNER._replace(
        init=lambda dim: jax.numpy.zeros(2),
        step=lambda state, sample, key: state + jax.random.normal(key, (2,)),
        predict=lambda state, x: x @ state,
        unroll=None,
        read=None,
    )


def test_chunk_c_uses_the_key_folded_with_c(table):
    learned = nj.learn(keyed(), table, jax.random.key(5))
    keys = [jax.random.split(jax.random.fold_in(jax.random.key(5), c), 200) for c in range(4)]
    draws = [jax.vmap(lambda key: jax.random.normal(key, (2,)))(own) for own in keys]
    np.testing.assert_allclose(learned.state, np.sum(draws, axis=(0, 1)), rtol=1e-4, atol=1e-4)


def with_noise(noise, **options):
    def change(parts):
        later = [from_arrays(part.x, part.y, noise=noise, **options) for part in parts[1:]]
        return [parts[0], *later]

    return change


def test_chunks_must_have_the_same_uncertainty_of_the_noise():
    def part(rows, std_error):
        noise = nj.noise.CovarianceEstimate(NOISE * np.eye(2), np.full((2, 2), std_error))
        return from_arrays(X[rows], Y[rows], noise=noise)

    first, same, other = part(slice(400), 0.1), part(slice(400, 800), 0.1), part(slice(400), 0.2)
    assert nj.fit([first, same]).num_rows == 800
    with pytest.raises(ValueError, match="must have the same uncertainty"):
        nj.fit([first, other])


@pytest.mark.parametrize(
    ("change", "learner", "message"),
    [
        (with_noise(NOISE + 1), LEARNER, "must have the same noise, or a covariance a row"),
        (with_noise(nj.noise.Laplace((NOISE / 2) ** 0.5)), LEARNER, "must have the same noise"),
        (with_noise(NOISE, cross_cov=[0.1, 0.1]), LEARNER, "must have a cross_cov, or none"),
        (with_noise(NOISE, target="z"), LEARNER, "all chunks must have the columns"),
        (
            lambda parts: [from_arrays(X[:50] * [1, 0], Y[:50], noise=[NOISE, 0]), *parts],
            LEARNER,
            "the first chunk, of 50 rows: column 'x2' is constant",
        ),
        (
            list,
            keyed()._replace(needs=nj.Needs(horizon=300)),
            "has at least 400 rows, but the learner has room for 300: build it with horizon=the n",
        ),
        (
            list,
            keyed()._replace(needs=nj.Needs(horizon=100)),
            "at least 200 rows, but the learner has room for 10",
        ),
        (lambda parts: [], LEARNER, "at least one chunk, got none"),
        (lambda parts: 3, LEARNER, "observations must be an Observations, got 3"),
        (lambda parts: CLEAN, LEARNER, "observations must be an Observations, got an array"),
    ],
)
def test_wrong_chunks_give_one_clear_line(table, change, learner, message):
    with pytest.raises(ValueError, match=message) as caught:
        nj.learn(learner, change(list(table)), jax.random.key(0))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": 3}, "checkpoint must be a folder's path, got 3"),
        ({"weights": np.ones(800)}, "without weights and clusters"),
        ({"model": "logistic"}, "takes one table"),
    ],
)
def test_wrong_arguments_of_fit_give_one_clear_line(table, options, message):
    with pytest.raises(ValueError, match=message):
        nj.fit(table, **options)
    with pytest.raises(ValueError, match=r"checkpoint is for chunks, as nj\.obs"):
        nj.fit(from_arrays(X, Y, noise=NOISE), checkpoint="folder")
