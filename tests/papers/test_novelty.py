import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import novelty
from novelty_detection import FALLING, Rate, Rule, auc, effective_terms
from tests.files import rows_of
from tests.papers import main

TRAIN, ROUNDS, SEEDS, NU = 128, 512, 2, 0.1
KEYS = jax.random.split(jax.random.key(0))
FIELDS = {
    "digits": ("alarms", "unseen", "support_vectors"),
    "clusters": ("inliers", "outliers", "auc", "support_vectors"),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The folder of one small run for all tests."""
    folder = tmp_path_factory.mktemp("novelty")
    sizes = {"--train": TRAIN, "--rounds": ROUNDS, "--seeds": SEEDS, "--nu": NU}
    quick = [str(word) for pair in sizes.items() for word in pair]
    assert main("novelty", *quick, "--out", str(folder)) == 0
    return folder


def gram_of(x):
    x = np.asarray(x, np.float64)
    squares = np.sum(x**2, axis=1)
    return np.exp(-(squares[:, None] + squares[None] - 2 * x @ x.T) / (x.shape[1] / 2))


def watched(gram, rounds, rule, nu, rate):
    """Eq. 20, as it descends: f(x) − ρ of each round, of all x in the end, and effective terms."""
    alpha, rho, scores = np.zeros(rounds), 0.0, np.zeros(rounds)
    for t in range(rounds):
        eta = rate or (t + 1) ** -0.5
        scores[t] = gram[t, :t] @ alpha[:t] - rho
        alarm = scores[t] <= 0
        if alarm or rule.decay == "always":
            alpha *= 1 - eta
        alpha[t] = eta * alarm
        rho = max(rule.floor, rho + eta * (nu - alarm))
    return scores, gram[:, :rounds] @ alpha - rho, alpha.sum() ** 2 / (alpha**2).sum()


def on_clusters(key, settings):
    x, outlier = novelty.clusters(key, ROUNDS)
    gram, late = gram_of(x), np.asarray(outlier)[ROUNDS // 2 :]
    for setting in settings:
        scores, _, terms = watched(gram, ROUNDS, *setting)
        scores = scores[ROUNDS // 2 :]
        shares = np.mean(scores[~late] <= 0), np.mean(scores[late] <= 0)
        yield *shares, roc_auc_score(late, -scores), terms


def on_digits(key, settings):
    x = novelty.digits()[0]
    gram = gram_of(x[np.asarray(jax.random.permutation(key, len(x)))])
    for setting in settings:
        scores, last, terms = watched(gram, TRAIN, *setting)
        yield np.mean(scores <= 0), np.mean(last[TRAIN:] <= 0), terms


@pytest.mark.slow
@pytest.mark.claim("NORMA-Fig3")
@pytest.mark.parametrize(
    ("name", "run", "key"), [("digits", on_digits, KEYS[0]), ("clusters", on_clusters, KEYS[1])]
)
def test_tables_are_those_of_a_plain_loop(small, name, run, key):
    fields = FIELDS[name]
    rows = rows_of(small / f"{name}.csv")
    assert len(rows) == {"digits": 4 * 7, "clusters": 4 * 2 * 2}[name]
    rules = [Rule(row["decay"], float(row["floor"])) for row in rows]
    rates = [{"t^(−1/2)": 0.0, "0.002": 0.002}[row["learning_rate"]] for row in rows]
    settings = [*zip(rules, [float(row["nu"]) for row in rows], rates, strict=True)]
    keys = [jax.random.fold_in(key, seed) for seed in range(SEEDS)]
    expected = np.array([list(run(key, settings)) for key in keys])
    one = 0.51 / (len(novelty.digits()[0]) - TRAIN)  # of a seed's digits float32 may miss
    spread = np.abs(np.subtract(*expected)) / 2  # of two seeds
    for end, wanted, rtol in (("", expected.mean(axis=0), 1e-3), ("_std_error", spread, 1e-2)):
        found = [[float(row[field + end]) for field in fields] for row in rows]
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=one)


@pytest.mark.slow
@pytest.mark.claim("NORMA-Fig3")
def test_rejections_are_the_alarms_and_the_lowest_scores():
    x, labels = novelty.digits()
    assert (x.min(), x.max()) == (-1, 1)
    rule = Rule("always", -np.inf)
    found = novelty.rejections(rule, TRAIN, NU, KEYS[0], count=7)
    titles = list(found)
    assert titles[0] == "first 7 alarms (digit, round)"
    order = np.asarray(jax.random.permutation(KEYS[0], len(x)))
    scores, last, _ = watched(gram_of(x[order]), TRAIN, rule, NU, 0.0)
    alarms = np.flatnonzero(scores <= 0)[:7]
    images, captions = found[titles[0]]
    np.testing.assert_array_equal(images.reshape(-1, 64), x[order[alarms]])
    assert captions == [f"{labels[order[t]]:.0f}, {t + 1}" for t in alarms]
    for title, at, part in zip(titles[1:], (0, TRAIN), (last[:TRAIN], last[TRAIN:]), strict=True):
        images, captions = found[title]
        shown = [float(caption.split(", ")[1].replace("−", "-")) for caption in captions]
        np.testing.assert_allclose(shown, np.sort(part)[:7], atol=6e-4)
        np.testing.assert_array_equal(images[0].ravel(), x[order[at + np.argmin(part)]])
    # After the first alarm ρ < 0 ≤ f, until quiet rounds have made up for 1 − ν.
    silent = np.cumsum(NU / np.sqrt(np.arange(2, TRAIN))) < 1 - NU
    assert 20 < np.sum(silent) < 2 + alarms[1] + 1 < 50


def test_auc_counts_ties_half(rng):
    scores, positive = rng.integers(0, 5, 40), rng.random(40) < 0.3
    found = auc(jnp.asarray(scores), jnp.asarray(positive))
    np.testing.assert_allclose(found, roc_auc_score(positive, scores), rtol=1e-6)


def test_effective_terms():
    def terms(*weights):
        return effective_terms(jnp.array(weights))

    assert terms(2.0, 2.0, 0.0, 2.0) == 3
    np.testing.assert_allclose(terms(3.0, 1.0), 1.6, rtol=1e-6)
    np.testing.assert_allclose(terms(3e-30, 1e-30), 1.6, rtol=1e-6)  # squares underflow
    assert terms(0.0, 0.0) == 0


def test_rates_fall_or_are_constant():
    assert (FALLING.name, Rate(0.002, falling=False).name) == ("t^(−1/2)", "0.002")
    np.testing.assert_allclose(FALLING(jnp.array([0, 3])), [1, 0.5])
    np.testing.assert_allclose(Rate(0.002, falling=False)(jnp.array([0, 3])), [0.002] * 2)
