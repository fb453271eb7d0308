import math
import pickle
import types
from functools import partial, wraps

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import noisy_jax as nj
from noisy_jax.simulated.bounds.guarantee import at_rate_factor
from tests.errors import raises
from tests.files import config_of, names_in, rows_of

NOISE = nj.noise.Gaussian(0.2)
COMPARATOR = nj.comparators.linear_ball(radius=1.0)
STREAM = nj.streams.linear(jax.random.key(0), 512, 3, label_noise=0.1)
MOMENTS = nj.bounds.moments(STREAM, NOISE)
LEARNERS = {
    "two copies": nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, MOMENTS, radius=1.0),
    "blind": nj.tuned(nj.learners.uncorrected, nj.bounds.uncorrected, MOMENTS, radius=1.0),
}
BLIND = nj.learners.uncorrected(radius=1.0, learning_rate=0.1)
OPTIONS = {"num_seeds": 6, "horizons": [128, 300, 512], "comparator": COMPARATOR}
SMALL = {"num_seeds": 4, "horizons": [64, 128]}


def studied(learners=LEARNERS, **options):
    return nj.study(learners, STREAM, NOISE, jax.random.key(1), **OPTIONS | options)


@pytest.fixture(scope="module")
def result():
    return studied(parameters={"note": 1})


@pytest.mark.slow
def test_rows_equal_regret_by_hand(result):
    horizon = 300
    past = nj.Stream(STREAM.x[:horizon], STREAM.y[:horizon])
    best = nj.comparators.linear_ball(past, 1.0).predictions
    noise_key = jax.random.fold_in(jax.random.key(1), horizon)
    keys = jax.vmap(lambda seed: jax.random.fold_in(noise_key, seed))(jnp.arange(6))
    regrets = {}
    for name, make in LEARNERS.items():
        learner, bound = make(horizon)

        @jax.jit
        def last(key, learner=learner):
            predictions = nj.rollout(learner, past, NOISE, key).predictions
            return nj.simulated.regret(nj.losses.squared(), predictions, best, past.y)[-1]

        regrets[name] = np.asarray(jax.vmap(last)(keys), np.float64)
        (row,) = [r for r in result.rows if r.learner == name and r.horizon == horizon]
        np.testing.assert_allclose(row.regret, regrets[name].mean(), rtol=1e-4)
        error = regrets[name].std(ddof=1) / np.sqrt(6)
        np.testing.assert_allclose(row.std_error, error, rtol=1e-3)
        assert row.num_seeds == 6
        ends = row.regret + scipy.stats.t(5).ppf([0.025, 0.975]) * error
        np.testing.assert_allclose([row.low, row.high], ends, 1e-3)
        np.testing.assert_allclose(row.bound, bound.regret)
        np.testing.assert_allclose(row.bound_over_regret, row.bound / row.regret)
        np.testing.assert_allclose(row.learning_rate, bound.learning_rate)
        assert row.diverged == 0
    paired = regrets["blind"] - regrets["two copies"]
    np.testing.assert_allclose(row.difference, paired.mean(), rtol=1e-3)
    np.testing.assert_allclose(row.difference_std_error, paired.std(ddof=1) / np.sqrt(6), rtol=1e-2)


@pytest.mark.slow
def test_quantiles_are_columns_where_asked_for(result, tmp_path):
    tails = studied(quantiles=(0.01, 0.5, 0.99))
    for row, plain in zip(tails.rows, result.rows, strict=True):
        low, median, high = row.quantiles
        assert low < median < high
        assert low < plain.regret < high
        np.testing.assert_allclose(row[1:-1], plain[1:-1], rtol=1e-4, atol=1e-4)
    lines = str(tails).splitlines()
    assert lines[0].split()[4:9] == ["95%", "q0.01", "q0.5", "q0.99", "bound"]
    assert f"{tails.rows[0].quantiles[2]:.1f}" in lines[1].split()
    first, *_ = rows_of(tails.save(tmp_path) / "results.csv")
    assert float(first["quantile_0.99"]) == tails.rows[0].quantiles[2]
    assert tails.config["quantiles"] == (0.01, 0.5, 0.99)


def test_table_is_readable(result):
    lines = str(result).splitlines()
    assert lines[0].split() == ["learner", "T", "regret", "±", "95%", "bound", "bound/regret",
                                "vs", "first", "±", "95%"]  # fmt: skip
    assert len(lines) == 1 + 6 + 2 + 2
    assert len({len(line) for line in lines[:7]}) == 1


def test_save_writes_table_and_configuration(result, tmp_path):
    folder = result.save(tmp_path / "deep" / "folder")
    rows = rows_of(folder / "results.csv")
    assert len(rows) == 6
    for written, row in zip(rows, result.rows, strict=True):
        assert written["learner"] == row.learner
        for name in row._fields[1:-1]:  # no quantiles
            assert float(written[name]) == pytest.approx(getattr(row, name))
        assert float(written["growth_low"]) == pytest.approx(result.growth[row.learner].low)
    config = config_of(folder)
    assert config["num_seeds"] == 6
    assert config["horizons"] == [128, 300, 512]
    assert config["noise"] == {"kind": "Gaussian", "cov": 0.2, "mean": 0.0}
    assert config["batch_size"] == 6
    assert "squared" in config["loss"]
    assert config["note"] == 1
    assert config["versions"]["jax"] == jax.__version__
    assert names_in(folder) == {"results.csv", "config.json"}


@pytest.mark.slow
def test_resumes_from_a_checkpoint(result, tmp_path):
    file = tmp_path / "new" / "study.npz"
    kept = {"checkpoint": file, "tag": "radius 1", "parameters": {"note": 1}}

    def interrupt(done, total):
        assert total == 6 * (128 + 300 + 512)
        if done > 6 * 128:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        studied(**kept, progress=interrupt)
    reports, report = [], lambda *seen: reports.append(seen)
    resumed = studied(**kept, progress=report)
    assert resumed.rows == result.rows
    assert reports == [(6 * (128 + 300 + 512),) * 2]  # only the last horizon was left
    assert names_in(file.parent) == {"study.npz"}
    more = studied(**kept, num_seeds=8, progress=report)
    assert len(reports) == 4
    assert [row.num_seeds for row in more.rows] == [8] * 6
    whole = studied(num_seeds=8)
    np.testing.assert_allclose(more.rows[0].regret, whole.rows[0].regret, rtol=1e-5)


OTHER = nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, MOMENTS, radius=2.0)


def test_a_checkpoint_of_another_study_is_an_error(tmp_path):
    options = SMALL | {"learners": {"two copies": LEARNERS["two copies"]}}
    options |= {"checkpoint": tmp_path / "study.npz", "tag": "a"}
    studied(**options)
    for change in (
        {"learners": {"two copies": OTHER}},
        {"horizons": [64, 100]},
        {"comparator": nj.comparators.linear_ball(radius=2.0)},
        {"loss": nj.losses.smoothed_absolute()},
        {"y_noise": NOISE},
        {"num_seeds": range(1, 6)},
        {"quantiles": (0.5,)},
        {"parameters": {"note": 2}},
        {"tag": "another"},
    ):
        raises("was made by another run", studied, **options | change)
    studied(**options | {"batch_size": 2})


def test_a_damaged_checkpoint_is_found_before_the_work(tmp_path):
    (tmp_path / "study.npz").write_bytes(b"half a file")
    done, options = [], {"checkpoint": tmp_path / "study.npz", "tag": "radius 1"}
    message = r"study\.npz is not a readable checkpoint"
    raises(message, studied, **options, progress=lambda *a: done.append(a))
    assert not done


def test_studies_of_ranges_of_seeds_merge_to_the_study_of_all():
    options = SMALL | {"quantiles": (0.5,)}
    whole = studied(**options | {"num_seeds": 6, "batch_size": 2})
    ranges = range(4, 6), range(2), range(2, 4)
    parts = [studied(**options | {"num_seeds": seeds, "batch_size": 2}) for seeds in ranges]
    merged = nj.Study.merge(parts)
    assert merged.rows == whole.rows
    assert merged.growth == whole.growth
    assert merged.config == whole.config
    assert str(nj.Study.merge(iter([merged]))) == str(whole)
    again = pickle.loads(pickle.dumps(parts))
    assert nj.Study.merge(again).rows == whole.rows
    raises("seed 0 is in two", nj.Study.merge, parts * 2)
    other = studied(**options | {"num_seeds": range(6, 8), "parameters": {"note": 1}})
    raises("the studies differ in note: merge", nj.Study.merge, [*parts, other])
    raises("at least one study, got none", nj.Study.merge, [])


@pytest.mark.slow
def test_a_learner_built_for_other_noise_runs_with_one_warning():
    def make(horizon):
        learner, guarantee = LEARNERS["blind"](horizon)
        return learner._replace(needs=nj.Needs(noise=nj.noise.Gaussian(0.5))), guarantee

    message = r"learners\['other'\] was built for other noise"
    with pytest.warns(UserWarning, match=message) as caught:
        studied({"other": make}, num_seeds=2, horizons=[16, 32])
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.slow
def test_noise_that_changes_from_round_to_round():
    """Each horizon sees its own rounds of it."""
    by_round = [jnp.linspace(0.0, 0.3, 512), jnp.linspace(0.2, 0.0, 512)]
    noise, y_noise = (nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(own)) for own in by_round)
    learner = nj.learners.known_covariance(radius=1.0)
    options = {"num_seeds": 1, "horizons": [100, 290], "comparator": COMPARATOR, "y_noise": y_noise}
    found = nj.study({"a": learner}, STREAM, noise, jax.random.key(1), **options)
    past, own, of_y = jax.tree.map(lambda leaf: leaf[:100], (STREAM, noise, y_noise))
    options = {"loss": nj.losses.squared(), "comparator": COMPARATOR(past).predictions}
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1), 100), 0)
    alone = nj.simulated.final_regret(learner, past, own, key, y_noise=of_y, **options)
    np.testing.assert_allclose(found.rows[0].regret, alone, rtol=1e-4)
    assert np.isnan(found.rows[0].bound)
    assert "a learner of 1 cop" in found.config["learners"]["a"]
    assert found.config["noise"]["kind"] == found.config["y_noise"]["kind"] == "PerRound Gaussian"
    assert found.config["noise"]["distribution.cov"]["shape"] == (512,)


def test_a_learner_that_diverges_is_counted_and_the_others_stand():
    def wild(horizon):
        learner = nj.learners.uncorrected(radius=1e19, learning_rate=1e18)
        return learner, nj.bounds.uncorrected(MOMENTS, horizon=horizon, radius=1.0)

    both = studied({"blind": LEARNERS["blind"], "wild": wild}, num_seeds=3, horizons=[64])
    assert [row.diverged for row in both.rows] == [0, 1]
    assert [math.isfinite(row.regret) for row in both.rows] == [True, False]
    assert "diverged in 100% of seeds" in str(both)


FEATURES = nj.worlds.fourier_gaussian(jax.random.key(2), 8, dim=3, length_scale=1.0, noise=NOISE)
WORLD = nj.worlds.gaussian(dim=3, length_scale=1.0, noise=NOISE)
ESTIMATOR = nj.unbiased.kernel_gradient(
    nj.kernels.linear(), nj.losses.squared(), radius=1.0, x_second_moment=1.2
)
OF_WORLDS = partial(nj.bounds.parallel_worlds, 2.0, y_second_moment=1.1)
FACTORIES = {  # the factory, its bound, their options, and whether it needs room for the rounds
    "two_copies": (nj.learners.two_copies, nj.bounds.two_copies, (MOMENTS,), False),
    "as_printed": (
        partial(nj.learners.known_covariance, as_printed=True),
        nj.bounds.as_printed.known_covariance, (MOMENTS,), False,
    ),
    "parallel_worlds": (partial(nj.learners.parallel_worlds, WORLD), OF_WORLDS, (), True),
    "fourier_worlds": (partial(nj.learners.fourier_worlds, FEATURES), OF_WORLDS, (), False),
    "uncorrected_kernel": (
        partial(nj.learners.uncorrected_kernel, nj.kernels.linear()),
        nj.bounds.rate_of(OF_WORLDS), (), True,
    ),
    "random_truncation": (
        partial(nj.learners.random_truncation, ESTIMATOR),
        partial(nj.bounds.random_truncation, ESTIMATOR), (), True,
    ),
    "own": (
        lambda **tuning: nj.learners.parallel_worlds(WORLD, **tuning), OF_WORLDS, (), True,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate_factor"), [*((name, 4.0) for name in FACTORIES), ("two_copies", None)]
)
def test_each_factory_with_a_rate_can_be_tuned(name, rate_factor):
    """At a multiple of the theorem's rate, or at the adaptive one; with room for more rounds."""
    factory, bound, moments, needs_room = FACTORIES[name]
    radius = {} if name == "random_truncation" else {"radius": 1.0}
    room = {"room": False} if "fourier" in str(factory) else {}
    make = nj.tuned(factory, bound, *moments, rate_factor=rate_factor, **room, **radius)
    learner, guarantee = make(32, room=48)
    assert learner.needs.horizon == (48 if needs_room else None)
    rate = None
    if rate_factor:
        theory = bound(*moments, horizon=32, **radius)
        np.testing.assert_array_equal(guarantee, at_rate_factor(theory, rate_factor))
        rate = rate_factor * theory.learning_rate
    own = factory(learning_rate=rate, **radius, **({"horizon": 48} if needs_room else {}))
    past, key = nj.Stream(STREAM.x[:32], STREAM.y[:32]), jax.random.key(0)
    runs = [nj.rollout(each, past, NOISE, key).predictions for each in (learner, own)]
    np.testing.assert_allclose(*runs, rtol=1e-5, atol=1e-6)
    assert np.ptp(runs[0]) > 0


@pytest.mark.parametrize("rate_factor", [None, 1.0])
def test_a_learner_with_biased_gradients_has_a_rate_and_no_bound(rate_factor):
    uncorrected = partial(nj.learners.uncorrected_kernel, nj.kernels.gaussian(length_scale=0.7))
    bound = partial(nj.bounds.parallel_worlds, 1.0, y_second_moment=1.0)
    options = {"radius": 2.0, "rate_factor": rate_factor}
    _, guarantee = nj.tuned(uncorrected, nj.bounds.rate_of(bound), **options)(40)
    assert np.isnan(guarantee.regret)
    # On clean data the gradients are right, and the bound holds.
    clean = lambda **tuning: nj.wrappers.noiseless(uncorrected(**tuning), STREAM)  # noqa: E731
    _, of_clean = nj.tuned(clean, bound, **options)(40)
    assert np.isfinite(of_clean.regret)
    np.testing.assert_array_equal(guarantee.learning_rate, of_clean.learning_rate)


BOTH, WHOLE = nj.wrappers.paired(BLIND, BLIND), COMPARATOR(STREAM)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learners": {}}, "at least one learner"),
        ({"learners": {"a": nj.learners.two_copies}}, r"function two_copies.* as two_copies\("),
        ({"learners": {"a": BOTH}}, r"learners\['a'\] predicts several columns: pass .*"),
        ({"learners": {"a": "b"}}, r"learners\['a'\] must be a Learner, or a fun.* got 'b'"),
        ({"horizons": [64, 64]}, r"increasing, got \[64, 64\]"),
        ({"horizons": [64, 1024]}, "largest horizon, 1024, exceeds the 512 rounds"),
        ({"num_seeds": 0}, "num_seeds must be a whole number of at least 1, got 0"),
        ({"learners": list(LEARNERS.values())}, "learners must map names .* got list"),
        ({"learners": {"a": lambda T: BLIND}}, r"\(learner, guarantee\), .* one returned Learner"),
        ({"learners": {"a": lambda T: (BLIND, 3.0)}}, r"one of bounds, or None, got 3\.0"),
        ({"horizons": 64}, "horizons must be a list of numbers of rounds, got 64"),
        ({"comparator": WHOLE}, "comparator must be a function .* got LinearBall"),
        ({"comparator": lambda past: past.y}, "comparator must return something with predictions"),
        ({"comparator": lambda past: WHOLE}, r"\[128\] for a .* got \[512\]: it must use the"),
        ({"loss": "squared"}, "loss must be a Loss, got 'squared'"),
        ({"loss": nj.losses.hinge()}, "y must be labels −1 and"),
        ({"checkpoint": "study.npz"}, "checkpoint needs a tag, a text that says"),
    ],
)
def test_bad_input_is_an_error(options, message):
    arguments = {"learners": LEARNERS, "stream": STREAM, "noise": NOISE, "key": jax.random.key(0)}
    raises(message, nj.study, **arguments | OPTIONS | options)


@pytest.mark.slow
def test_a_learner_without_a_guarantee_enters_and_leaves_columns_empty(tmp_path):
    def decaying(horizon):
        kernel, loss = nj.kernels.gaussian(length_scale=0.5**0.5), nj.losses.hinge()
        options = {"learning_rate": 0.5, "regularization": 0.05, "buffer": 20}
        return nj.learners.norma(kernel, loss, **options), None

    labelled = nj.Stream(STREAM.x, jnp.sign(STREAM.y))
    result = nj.study(
        {"norma": decaying, "blind": LEARNERS["blind"]}, labelled, NOISE, jax.random.key(1),
        num_seeds=2, horizons=[32, 64], loss=nj.losses.hinge(),
        comparator=lambda past: types.SimpleNamespace(predictions=past.y),
    )  # fmt: skip
    norma, blind = result.rows[0], result.rows[-1]
    assert np.isfinite([norma.regret, norma.std_error, blind.bound]).all()
    assert np.isnan([norma.bound, norma.bound_over_regret, norma.learning_rate]).all()
    assert str(result).count("none") == 4  # bound and bound/regret at two horizons
    assert len({len(line) for line in str(result).splitlines()[:5]}) == 1
    nj.plots.regret(result).figure.savefig(result.save(tmp_path) / "regret.png")


def test_an_error_of_a_guarantee_comes_before_the_work():
    heavy = nj.bounds.moments(STREAM, nj.noise.StudentT(df=3.0, scale=0.1))
    known = nj.learners.known_covariance, nj.bounds.known_covariance
    learners = {"blind": LEARNERS["blind"], "known": nj.tuned(*known, heavy, radius=1.0)}
    done, message = [], r"needs a finite .excess_kurtosis."
    raises(message, studied, learners, progress=lambda *a: done.append(a))
    assert not done


def test_a_folder_that_cannot_be_written_is_an_error(result, tmp_path):
    (tmp_path / "file").touch()
    raises("cannot write to the folder", result.save, tmp_path / "file" / "below")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"factory": BLIND}, "factory must be a function"),
        ({"bound": 1.0}, "bound must be a function"),
        ({"moments": (1.0, 1.0, 1.0, 0.0)}, "moments must be a DataMoments"),
        ({"room": "yes"}, "room must be True or False"),
        ({"rate_factor": -1.0}, "rate_factor must be positive"),
        ({"bound": nj.bounds.known_covariance}, r"two_copies, got bounds\.known_covariance, which"),
        (
            {"bound": partial(nj.bounds.random_truncation, None)},
            r"bound must be bounds\.two_copies for .* got bounds\.random_truncation, which holds",
        ),
    ],
)
def test_wrong_arguments_of_tuned_are_named(wrong, message):
    right = {"factory": nj.learners.two_copies, "bound": nj.bounds.two_copies, "moments": MOMENTS}
    raises(message, nj.tuned, **right | wrong, radius=1.0)
    raises("horizon must be a whole number", nj.tuned(**right, radius=1.0), 16.5)
    raises("room must be a whole number", nj.tuned(**right, radius=1.0), 10, room="much")


def test_tuned_names_options_that_the_factory_or_the_bound_does_not_take():
    make = partial(nj.tuned, nj.learners.two_copies, nj.bounds.two_copies, MOMENTS)
    with pytest.raises(TypeError, match=r"^factory must take .* unexpected .* 'unknown'; bind"):
        make(radius=1.0, unknown=1)
    with pytest.raises(TypeError, match=r"^factory must take .* missing .* 'radius'; bind"):
        make()

    @wraps(nj.learners.two_copies)
    def named(*, learning_rate, radius, name):
        return nj.learners.two_copies(radius=radius, learning_rate=learning_rate)

    def bound(*moments, name, **options):
        return nj.bounds.two_copies(*moments, **options)

    made = nj.tuned(named, bound, MOMENTS, radius=1.0, name="mine")  # by its own signature
    assert made(8)[0].needs.copies == 2
