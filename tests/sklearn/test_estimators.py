"""scikit-learn's own suite on every estimator, and what the estimators share."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import noisy_jax as nj
from noisy_jax.sklearn import (
    SIMEX,
    NoisyKernelRegression,
    NoisyLinearRegression,
    NoisyLogisticRegression,
    NoisyPoissonRegressor,
    OnlineRegressor,
    clean_score,
)
from tests.keys import SHIFT

ESTIMATORS = [
    NoisyLinearRegression(),
    NoisyLinearRegression(1e-3),
    NoisyLogisticRegression(),
    NoisyPoissonRegressor(),
    SIMEX(LinearRegression(), draws=4),
    NoisyKernelRegression(num_features=16),
    OnlineRegressor(),
]
EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
UNDETERMINED = {EQUIVALENCE: "more columns than rows, which noise forbids"}


def undetermined(estimator):
    return UNDETERMINED if getattr(estimator, "noise", None) == 1e-3 else {}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of tables with few rows, as scikit-learn runs it
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=undetermined)
def test_passes_the_suite_of_scikit_learn(estimator, check):
    check(estimator)


def rows(count=4000):
    rng = np.random.default_rng(SHIFT)
    x = rng.normal(size=(count, 2))
    noisy = x + [0.7, 0.0] * rng.normal(size=x.shape)
    return x, noisy, x @ [2.0, -1.0] + 3 + 0.5 * rng.normal(size=count)


@pytest.mark.statistical
def test_the_clean_score_is_that_on_clean_data():
    x, noisy, y = rows(20_000)
    model = NoisyLinearRegression(noise=[0.49, 0.0]).fit(noisy, y)
    risk = model.result_.risk
    error = 5 * risk.corrected_std_error / risk.variance
    assert abs(model.clean_score_ - model.score(x, y)) < error < 0.1
    assert model.score(noisy, y) < model.clean_score_ - error


def test_a_column_transformer_hands_over_names_to_the_noise():
    _, noisy, y = rows()
    frame = pd.DataFrame(noisy, columns=["dose", "age"])
    frame["sex"] = np.where(np.arange(len(y)) % 2, "f", "m")
    sex = "sex", OneHotEncoder(drop="first", sparse_output=False), ["sex"]
    columns = [("numbers", "passthrough", ["dose", "age"]), sex]
    columns = ColumnTransformer(columns, verbose_feature_names_out=False)
    model = make_pipeline(columns, NoisyLinearRegression(noise={"dose": nj.sd(0.7)}))
    model.set_output(transform="pandas").fit(frame, y)
    assert [*model[-1].feature_names_in_] == ["dose", "age", "sex_m"]
    plain = frame[["dose", "age"]].assign(sex_m=(frame["sex"] == "m") * 1.0, y=y)
    table = nj.table(plain, target="y", noise={"dose": 0.49})
    np.testing.assert_allclose(model[-1].coef_, nj.fit(table).coefficients, rtol=1e-12)
    with pytest.raises(ValueError, match="noise has 'dose', but x has the columns 'x1', 'x2'"):
        NoisyLinearRegression(noise={"dose": 0.49}).fit(noisy, y)


def test_a_grid_chooses_by_the_clean_score_behind_a_scaler():
    _, noisy, y = rows(400)
    noise = np.array([0.49, 0.0]) / StandardScaler().fit(noisy).scale_ ** 2
    last = NoisyLinearRegression(noise={"x1": noise[0]})
    model = make_pipeline(StandardScaler(), SelectKBest(f_regression), last)
    found = GridSearchCV(model, {"selectkbest__k": [1, 2]}, scoring=clean_score, cv=2)
    found.fit(noisy, y)
    assert found.best_index_ == 1
    assert clean_score(found) == found.best_estimator_[-1].clean_score_
    plain = NoisyLinearRegression(noise=[0.49, 0.0]).fit(noisy, y)
    np.testing.assert_allclose(found.predict(noisy), plain.predict(noisy), rtol=1e-9)
    assert clone(model)[-1].noise == last.noise


@pytest.mark.filterwarnings("ignore:the error on clean data is estimated below 0")
def test_a_clean_score_above_one_is_nan_with_a_warning():
    x, noisy, _ = rows(400)
    with pytest.warns(UserWarning, match="clean_score_ is NaN"):
        model = NoisyLinearRegression(noise=[1.2, 0.0]).fit(noisy, x @ [2.0, -1.0])
    assert np.isnan(model.clean_score_)


def test_undetermined_rows_raise_where_there_is_noise():
    _, noisy, y = rows(30)
    twice, labels = np.column_stack([noisy, noisy]), noisy[:, 0] > 0
    linear, logistic = NoisyLinearRegression(), NoisyLogisticRegression()
    for model, x, target in ((linear, twice, y), (logistic, noisy, labels)):
        with pytest.warns(ConvergenceWarning, match="The fit is of scikit-learn's L"):
            model.fit(x, target)
        reference = type(model.result_)().fit(x, target)
        np.testing.assert_array_equal(model.predict(x), reference.predict(x))
    with pytest.raises(nj.fits.UndeterminedError, match="perfectly"):
        NoisyLogisticRegression(noise=0.01).fit(noisy, labels)
