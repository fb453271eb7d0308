"""The study of the corrected leader, and the regret that it is meant to reach."""

import jax
import numpy as np
import pytest

import leader as study
import noisy_jax as nj
from noisy_jax.command import regret
from tests.files import names_in, rows_of
from tests.keys import key
from tests.papers import printed_by


@pytest.mark.slow
def test_the_linear_part_reports_regret_with_and_without_a_ball(tmp_path):
    quick = ["--parts", "linear", "--horizons", "32", "64", "--seeds", "2"]
    printed = printed_by("leader", *quick, "--out", str(tmp_path))
    assert "regret against the best predictor without a ball" in printed
    folder = tmp_path / "linear"
    assert names_in(folder) == {"results.csv", "unconstrained.csv", "config.json", "regret.png"}
    rows, free = rows_of(folder / "results.csv"), rows_of(folder / "unconstrained.csv")
    more = {
        (int(a["horizon"]), round(float(b["regret"]) - float(a["regret"]), 6))
        for a, b in zip(rows, free, strict=True)
    }
    assert sorted(horizon for horizon, _ in more) == [32, 64]  # one constant for each
    for horizon, constant in more:
        past = _stream(horizon, first=64)
        x, y = np.asarray(past.x, float), np.asarray(past.y, float)
        least = np.sum((x @ np.linalg.lstsq(x, y)[0] - y) ** 2)
        ball = float(nj.comparators.linear_ball(past, radius=1.0).loss)
        np.testing.assert_allclose(constant, ball - least, atol=1e-4)


def _stream(horizon, first):
    """The first rounds of the study's stream, seed 0."""
    stream_key, _ = jax.random.split(jax.random.key(0))
    stream = nj.streams.resampled(stream_key, nj.streams.dataset("diabetes"), first)
    return nj.Stream(stream.x[:horizon], stream.y[:horizon])


@pytest.mark.slow
def test_noises_of_the_stress_part_have_the_variances_that_it_names(monkeypatch):
    cases = {}

    def case(settings, name, stream, distribution, *more):
        cases[name] = distribution
        return [{"setting": name, "learner": "", "horizon": 1, "regret": 0.0, "std_error": 0.0}
                | {"num_seeds": 2}]  # fmt: skip

    monkeypatch.setattr(study, "_case", case)
    settings = study.Settings(horizons=(64,), noise_variance=0.3, length_scale=1.5)
    data = regret.DataSet("", "", _stream(64, first=64), nj.noise.Gaussian(0.3), jax.random.key(0))
    study._stress(settings, data)
    variances = {case: float(np.mean(noise.cov)) for case, noise in cases.items()}
    named = {"one-copy adversary A": 0.0, "one-copy adversary B": 4.0}
    named["Fourier features, noise variance 0.8ℓ²"] = 0.8 * 1.5**2
    assert variances.keys() > {*named, "Student noise, 3 degrees of freedom", "64 rounds"}
    for case, variance in variances.items():
        np.testing.assert_allclose(variance, named.get(case, 0.3), rtol=1e-6)


def regrets(learners, noise, comparator, horizons=(1024, 4096)):
    """Mean regrets `[len(horizons)]` of each learner, and their standard errors."""
    makers = {name: lambda _, made=made: (made, None) for name, made in learners.items()}
    options = {"num_seeds": 4, "horizons": horizons, "comparator": comparator}
    table = nj.streams.resampled(jax.random.key(0), nj.streams.dataset("diabetes"), 4096)
    found = nj.study(makers, table, noise, key(1), **options)
    rows = {name: [row for row in found.rows if row.learner == name] for name in learners}
    return {name: np.array([(r.regret, r.std_error) for r in own]).T for name, own in rows.items()}


@pytest.mark.long
@pytest.mark.statistical
def test_the_linear_leader_needs_no_tuning_and_the_uncorrected_one_fails():
    known = nj.moments.known_covariance()
    leaders = {r: nj.learners.corrected_ftrl(known, regularization=r) for r in (0.01, 0.1, 1.0)}
    blind = nj.wrappers.assuming(leaders[0.1], 0.0)
    in_ball = nj.learners.corrected_ftrl(known, radius=1.0, solve_every=4)
    best = nj.comparators.linear_ball(radius=1.0)
    found = regrets({**leaders, "ball": in_ball, "blind": blind}, nj.noise.Gaussian(0.1), best)
    for least in leaders:
        mean, error = found[least]
        assert np.all(mean < np.array([25, 25]) + 5 * error)
        assert np.all(np.abs(mean - found[0.1][0]) < 5)  # paired: the same noise
    mean, error = found["ball"]
    assert np.all(mean < np.array([13, 23]) + 5 * error)
    assert found["blind"][0][1] > 60


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize(("variance", "largest"), [(0.1, (32, 50)), (0.3, (150, 320))])
def test_one_rule_serves_fourier_features_at_several_noise_levels(variance, largest):
    def leader(assumed):
        law = {"length_scale": 1.0, "characteristic": nj.noise.Gaussian(assumed)}
        frequencies = nj.moments.gaussian_frequencies(jax.random.key(5), 128, dim=10, **law)
        return nj.learners.corrected_ftrl(nj.moments.fourier(frequencies), solve_every=128)

    clean = nj.worlds.gaussian(dim=10, length_scale=1.0, noise=nj.noise.Gaussian(0.0))
    best = nj.comparators.world_ball(world=clean, radius=1.2)
    plain = leader(0.0)
    uncorrected = plain._replace(needs=plain.needs._replace(noise=None))  # no warning, on purpose
    learners = {"leader": leader(variance), "uncorrected": uncorrected}
    found = regrets(learners, nj.noise.Gaussian(variance), best)
    mean, error = found["leader"]
    assert np.all(mean < np.array(largest) + 5 * error)
    if variance == 0.1:  # under more noise the early rounds hide what the correction gains
        assert found["uncorrected"][0][1] > 2 * mean[1]
