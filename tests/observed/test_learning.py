"""Learning from observed rows: no noise is added, and the risk is that on clean data."""

import itertools
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import noisy_jax as nj
from noisy_jax.base import unrolled
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import SHIFT, key
from tests.observed.rows import CLEAN, LEARNER, NOISE, X, Y


def measured():
    rng = np.random.default_rng(1000 * SHIFT)
    x = rng.normal(size=(6000, 2))
    y = 5 + x @ [2.0, -1.0] + 0.1 * rng.normal(size=6000)
    noisy = 100 + 10 * (x[:, None] + rng.normal(size=(6000, 1, 2)))
    return from_arrays(noisy, y, noise=100.0)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("kind", "first"), [("one copy", 12), ("one copy, not scaled", 7), ("two copies", 7)]
)
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


def smoothed_hinge_learners():
    hinge = nj.losses.smoothed_hinge(sharpness=0.5)
    return {
        "known_covariance": nj.learners.known_covariance(radius=1.0, loss=hinge),
        "model": nj.learners.model(lambda w, x: w @ x, jnp.zeros(2), hinge, radius=1.0,
            estimate=partial(nj.unbiased.replicates, order=0)),
        "norma": nj.learners.norma(
            nj.kernels.linear(), hinge, regularization=0.1, buffer=nj.engine.weight_vector()),
    }  # fmt: skip


@pytest.mark.parametrize("name", smoothed_hinge_learners())
def test_labels_stay_labels_and_others_are_an_error(name):
    rng = np.random.default_rng(0)
    clean, center, scale = rng.normal(size=(400, 2)), np.array([50.0, -3.0]), np.array([9.0, 1.0])
    y = np.where(clean[:, 0] > -0.5, 1.0, -1.0)
    x = center + scale * (clean + 0.1 * rng.normal(size=clean.shape))
    table, learner = from_arrays(x, y, noise=0.01 * scale**2), smoothed_hinge_learners()[name]
    learned = nj.learn(learner, table, key(0))
    # Of a line through the middle of the columns: the shares of labels are 0.69 and 0.31.
    margins = y * learned.predict(center + scale * clean)
    assert np.mean(margins > 0) > 0.8
    assert (learned.y_center, learned.y_scale) == (0, 1)
    halves = table.rows(np.arange(200)), table.rows(np.arange(200, 400))
    zeros = from_arrays(x, (y + 1) / 2, noise=0.01 * scale**2)
    raises(r"y must be labels −1 and \+1, got 0; 2y − 1 turns", nj.learn, learner, zeros, key(0))
    chunks = [halves[0], zeros.rows(np.arange(200, 400))]
    raises(r"y must be labels −1 and \+1, got 0", nj.learn, learner, chunks, key(0))


def test_a_table_is_no_key():
    learner = nj.learners.uncorrected(radius=1.0)
    for wrong in None, jax.random.key(0):
        raises("observations must be an Observations", nj.learn, learner, wrong, key(0))


@pytest.mark.slow
def test_columns_of_different_sizes_are_a_warning_where_one_rate_serves_all():
    rng = np.random.default_rng(0)
    x, sizes = rng.normal(size=(400, 2)), np.array([1000.0, 1.0])
    table = from_arrays(x * sizes, x @ [1.0, 1.0], noise=[0.0, 0.0], names=["income", "age"])
    blind = nj.learners.uncorrected(radius=1.0)
    with pytest.warns(UserWarning, match=r"from 1 \(.*'age'\) to 1e\+03 \(.*'income'\)") as caught:
        nj.learn(blind, table, key(0), standardize=False)
    assert [one.filename for one in caught] == [__file__]
    nj.learn(blind, table, key(0))
    leader = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    learned = nj.learn(leader, table, key(0), standardize=False)
    np.testing.assert_allclose(learned.coefficients * sizes, [1, 1], atol=0.01)


@pytest.mark.slow
def test_a_learner_without_readings_has_no_risk():
    x, y = CLEAN[:200], Y[:200]
    kernel = nj.kernels.gaussian(length_scale=1.0)
    learner = nj.learners.uncorrected_kernel(kernel, horizon=200, radius=2.0)
    learned = nj.learn(learner, from_arrays(x, y, noise=0.1), jax.random.key(0))
    assert np.isnan(learned.risk)
    apart = 0.1 * (-1.0) ** np.arange(len(y))[:, None]
    replicates = from_arrays(np.stack([x, x + apart], axis=1), y)
    unknown = nj.learn(nj.learners.uncorrected(radius=2.0), replicates, jax.random.key(0))
    assert np.isnan(unknown.risk)
    assert np.isfinite(learned.predict([[1.0, 1.0]])).all()


def test_the_error_is_printed_with_its_interval():
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    learned = nj.learn(learner, measured(), jax.random.key(0))
    low, high = learned.risk_interval
    half = scipy.stats.t(learned.num_rows - 1).ppf(0.975) * learned.risk_std_error
    np.testing.assert_allclose([low, high], [learned.risk - half, learned.risk + half], rtol=1e-9)
    assert f"clean data {learned.risk:.4g} (95% interval {low:.4g} to {high:.4g})" in repr(learned)
    assert len(repr(learned)) < 200
    row = f"mean squared error on clean data    {learned.risk:.4g}  [{low:.4g}, {high:.4g}]"
    assert " ".join(row.split()) in " ".join(str(learned).split())


@pytest.mark.statistical
def test_the_leader_on_a_table_has_the_coefficients_of_the_fit():
    """As nothing is regularized, up to the units, which are of the rows seen before."""
    observed = measured()
    leader = nj.learners.corrected_ftrl(nj.moments.known_covariance(), regularization=1e-6)
    learned, fit = nj.learn(leader, observed, key(0)), nj.fit(observed)
    assert np.all(np.abs(learned.coefficients - fit.coefficients) < 0.5 * fit.std_error[1:])
    assert abs(learned.intercept - fit.intercept) < 0.5 * fit.std_error[0]
    places = np.array([[100.0, 90.0], [113.0, 100.0]])
    line = learned.intercept + places @ learned.coefficients
    np.testing.assert_allclose(learned.predict(places), line, rtol=1e-4)
    frame = learned.to_frame().set_index("name")
    np.testing.assert_allclose(frame.estimate[["x1", "x2"]], learned.coefficients)


CURVED = nj.kernels.gaussian(length_scale=1.0)
CURVED = nj.learners.norma(CURVED, nj.losses.huber(), regularization=0.1, buffer=50)


@pytest.mark.slow
def test_what_was_saved_predicts_as_before_with_its_learner_alone(tmp_path):
    learned = nj.learn(CURVED, from_arrays(X[:200], Y[:200], noise=NOISE), jax.random.key(0))
    path = tmp_path / "learned.json"
    learned.save(path)
    again = nj.load_learned(path, CURVED)
    np.testing.assert_array_equal(again.predict(X), learned.predict(X))
    chex.assert_trees_all_equal(again.state, learned.state)
    assert learned.coefficients is None
    shapes = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    predictions = CURVED._replace(predict=lambda state, x: 1.1 * CURVED.predict(state, x))
    for other in (shapes, predictions):
        raises(r"learned.json has the state of another learner: bui", nj.load_learned, path, other)
    raises("does not hold a fit: ", nj.load_fit, path)
    path.write_text("{}")
    raises("does not hold what nj.learn returned: it has no k", nj.load_learned, path, CURVED)


@pytest.mark.parametrize("chunked", [False, True])
def test_the_first_rows_give_the_units_and_all_errors_are_merged(table, monkeypatch, chunked):
    """By hand: the scale of a quarter, centres of all rows before, and the errors of the rest."""
    for module in ("learning", "suitability"):  # a chunk is centred and checked in parts
        monkeypatch.setattr(f"noisy_jax.observed.{module}._ROWS", 64)
    rows, first = (table, 50) if chunked else (from_arrays(X, Y, noise=NOISE), 200)
    learned = nj.learn(LEARNER, rows, jax.random.key(0))
    units = [*learned.center, *learned.scale, learned.y_center, learned.y_scale, learned.variance]
    wanted = [*X.mean(axis=0), *X[:first].std(axis=0), Y.mean(), Y[:first].std(), Y.var()]
    np.testing.assert_allclose(units, wanted, rtol=1e-12)
    before = [slice(max(t, first)) for t in range(800)]
    x = (X - np.array([X[rows].mean(axis=0) for rows in before])) / learned.scale
    y = (Y - np.array([Y[rows].mean() for rows in before])) / learned.y_scale
    observed = from_arrays(x, y, noise=NOISE / learned.scale**2)
    samples = nj.Sample(x[:, None].astype("f4"), y.astype("f4"), np.tile(observed.cov, (800, 1, 1)))
    keys = jax.random.split(jax.random.key(0), 800)
    state, _, (value, square) = jax.jit(unrolled(LEARNER))(
        LEARNER.init(2), jax.tree.map(np.float32, samples), x.astype("f4"), keys
    )
    errors = ((square - 2 * y * value + y**2) * learned.y_scale**2)[first:]
    std_error = errors.std(ddof=1) / len(errors) ** 0.5
    np.testing.assert_allclose(learned.risk, errors.mean(), rtol=1e-4)
    np.testing.assert_allclose(learned.risk_std_error, std_error, rtol=1e-4)
    chex.assert_trees_all_close(learned.state, state, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:the sizes of columns differ")
def test_a_column_that_begins_constant_takes_more_rows():
    """The scale is that of the rows up to the first that differs, and the risk judges the rest."""
    x = X.copy()
    x[:300, 1] = 7.0
    learned = nj.learn(LEARNER, from_arrays(x, Y, noise=[NOISE, 0]), jax.random.key(0))
    np.testing.assert_allclose(learned.scale, x[:301].std(axis=0), rtol=1e-12)
    x[:799, 1] = 7.0
    learned = nj.learn(LEARNER, from_arrays(x, Y, noise=[NOISE, 0]), jax.random.key(0))
    assert np.isnan(learned.risk)
    assert "noisy rows do not show it of this learner" in str(learned)


def keyed():
    """A learner whose state is the sum of what its keys draw."""
    return LEARNER._replace(
        init=lambda dim: jax.numpy.zeros(2),
        step=lambda state, sample, key: state + jax.random.normal(key, (2,)),
        predict=lambda state, x: x @ state,
        unroll=None,
        clean_estimates=None,
    )


def test_chunk_c_uses_the_key_folded_with_c(table):
    learned = nj.learn(keyed(), table, jax.random.key(5))
    keys = [jax.random.split(jax.random.fold_in(jax.random.key(5), c), 200) for c in range(4)]
    draws = [jax.vmap(lambda key: jax.random.normal(key, (2,)))(own) for own in keys]
    np.testing.assert_allclose(learned.state, np.sum(draws, axis=(0, 1)), rtol=1e-4, atol=1e-4)


def with_noise(noise):
    def change(parts):
        later = [from_arrays(part.x, part.y, noise=noise) for part in parts[1:]]
        return [parts[0], *later]

    return change


def constant_at_first(parts):
    return [from_arrays(X[:50] * [1, 0], Y[:50], noise=[NOISE, 0]), *parts]


def with_room(horizon):
    return keyed()._replace(needs=nj.Needs(horizon=horizon))


@pytest.mark.parametrize(
    ("change", "learner", "message"),
    [
        (with_noise(nj.noise.Laplace((NOISE / 2) ** 0.5)), LEARNER, "must have the same noise"),
        (constant_at_first, LEARNER, "the first chunk, of 50 rows: column 'x2' is constant"),
        (lambda parts: from_arrays(X * [1, 0], Y, noise=0), LEARNER, "'x2' is constant: drop it"),
        (list, with_room(300), "at least 400 rows, but the learner has room for 300: build it"),
        (lambda parts: [], LEARNER, "at least one chunk, got none"),
        (lambda parts: CLEAN, LEARNER, "observations must be an Observations, got an array"),
        (lambda parts: pd.DataFrame({"x": Y}), LEARNER, "got DataFrame: nj.table makes one of a"),
        (lambda parts: {"x": Y}, LEARNER, "got dict: nj.table makes one of a data frame"),
    ],
)
def test_wrong_chunks_give_one_clear_line(table, change, learner, message):
    raises(message, nj.learn, learner, change(list(table)), jax.random.key(0))
