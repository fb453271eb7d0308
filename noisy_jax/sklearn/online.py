"""Learners that take chunk after chunk, as `nj.learn` does."""

from __future__ import annotations

import functools
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import RegressorMixin

from noisy_jax.base import Learner, check_learner
from noisy_jax.learners import corrected_ftrl
from noisy_jax.moments import known_covariance
from noisy_jax.observed.compiled import CompiledLearner, compiled_learner
from noisy_jax.observed.learning import Learned, Learning
from noisy_jax.observed.observations.passes import check_alike
from noisy_jax.sklearn.estimators import Noisy, clean_score_of, seed_of
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.objects import function, switch


@functools.cache
def _default() -> CompiledLearner:
    return CompiledLearner(corrected_ftrl(known_covariance()))


class OnlineRegressor(RegressorMixin, Noisy):
    """Runs a learner of noisy_jax over chunks of noisy rows, for scikit-learn.

    `partial_fit` on chunk after chunk gives the result of `nj.learn` for a list of these chunks.
    The standard deviations of the first quarter of the first chunk (at most 4,096 rows, or more if
    a column is constant in them) are the units of the columns and of y: let this chunk have some
    thousand rows in random order. `predict(X)` is for CLEAN features, in original units. `score` is
    R² at the X that it is given, which it takes as clean; use `clean_score_`.

    Args:
        learner: a `Learner`, or a function without arguments that returns one, such as
            `functools.partial(nj.learners.known_covariance, radius=3.0)`. Only the latter can be
            pickled. By default least squares on moments that are corrected by the noise's
            covariance, `nj.learners.corrected_ftrl(nj.moments.known_covariance())`.
        noise: the error in one row of X, in the units of X: a variance (for all columns), variances
            `[d]`, a covariance `[d, d]`, standard deviations by `nj.sd(…)`, a distribution such as
            `nj.noise.Laplace(0.3)`, or a mapping from names of columns to such, where other columns
            are exact. It is the same in all rows. 0.0, the default, corrects nothing.
        standardize: whether the learner sees columns and y divided by standard deviations; True by
            default. Means are always subtracted.
        random_state: seed of the learner's own randomness: a whole number; `None` or a
            `RandomState` to draw one.

    Attributes:
        result_: the `nj.Learned`; with weights its `num_rows` is the sum of the weights of the
            judged rows.
        clean_score_: R² = 1 − error/variance of y on clean data, of predictions that were made
            before each row, but for the first quarter of the first chunk. The mean squared error
            (with the noise in y) is estimated from the noisy rows. NaN if the learner has no such
            estimate, and with a warning if the error is estimated below 0.

    Example:
        >>> import numpy as np
        >>> from noisy_jax.sklearn import OnlineRegressor
        >>> rng = np.random.default_rng(0)
        >>> model = OnlineRegressor(noise=0.25)
        >>> for _ in range(3):
        ...     x = rng.normal(size=(4000, 2))
        ...     noisy = x + 0.5 * rng.normal(size=x.shape)
        ...     y = x @ [2.0, -1.0] + 3 + rng.normal(size=4000)
        ...     model = model.partial_fit(noisy, y)
        >>> print(model.predict([[1.0, 0.0]]).round(1), round(model.clean_score_, 1))
        [5.] 0.8
    """

    def __init__(self, learner=None, noise=0.0, standardize=True, random_state=0):
        self.learner = learner
        self.noise = noise
        self.standardize = standardize
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Starts again, and learns from rows X `[n, d]` and targets y `[n]`."""
        vars(self).pop("_learning", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learns from one more chunk of rows X `[n, d]` and targets y `[n]`.

        Args:
            X: noisy features.
            y: targets.
            sample_weight: `[n]`, ≥ 0: the loss of a row counts so many times, also in the means of
                columns and in `clean_score_`, as if the row had been measured so many times with
                other noise. For linear learners of the squared loss, as the default one; with other
                learners they raise ValueError.
        """
        first = not hasattr(self, "_learning")
        table = self.table(X, y, reset=first)
        weights = self.weights(sample_weight, table.x[:, 0])
        if first:
            learning = Learning(self._compiled(), switch("standardize", self.standardize))
            self._seed = seed_of(self.random_state)
        else:
            learning = self._learning
            check_alike(learning.alike, table)
        learning.take(table, parsed_key(jax.random.key(self._seed)), weights)
        self._learning = learning
        self._read()
        return self

    def _read(self) -> None:
        """Sets the attributes from the state of the learner."""
        self.result_: Learned = self._learning.learned()
        self.clean_score_ = clean_score_of(self.result_.risk, self.result_.variance)

    def _compiled(self) -> CompiledLearner:
        if self.learner is None:
            return _default()
        hint = "without arguments, or a Learner"
        learner: Any = self.learner
        if not isinstance(learner, Learner):
            learner = function("learner", learner, hint)()
        check_learner(learner)
        return compiled_learner(learner)

    def predict(self, X: Any) -> np.ndarray:
        """Returns predictions `[n]` at clean features X `[n, d]`."""
        X = self.features(X)
        return np.asarray(self.result_.predict(X), np.float64)

    def __getstate__(self):
        """Returns the attributes without compiled functions, which are made again."""
        attributes: Any = super().__getstate__()
        state = dict(attributes)
        if state.pop("result_", None) is not None:
            state["_learning"] = dict(vars(state["_learning"]), compiled=None)
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        if hasattr(self, "_learning"):
            learned: Any = self._learning
            self._learning = Learning.__new__(Learning)
            vars(self._learning).update(learned, compiled=self._compiled())
            self._read()
