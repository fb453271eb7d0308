"""Estimators for scikit-learn: `nj.fit` and `nj.learn` in pipelines, grids and cross-validation.

`import noisy_jax.sklearn` needs the extra `sklearn`. X and y are NumPy arrays or data frames, as
everywhere in scikit-learn, and all results are NumPy arrays in float64.

**Noise** is an argument of the estimator: the size or distribution of the error in one row of X, in
the units of the X that the estimator sees. Behind a `StandardScaler` these are standard deviations
of the noisy columns, so give the variance divided by the squares of the scaler's `scale_`; or leave
the scaler out, since the fits here do not depend on the units of the columns. It is the same for
all rows: a variance; `[d]` variances; a `[d, d]` covariance; `nj.sd(…)` of these; a distribution
such as `nj.noise.Laplace(0.3)`; or a mapping from names of columns to entries of the argument
`noise` of `nj.table`, where columns that are not named are exact. A DataFrame names its columns;
the columns of other X are x1, x2, …. From replicates
give `nj.noise.estimate_covariance(copies)`, divided by the number of copies if X holds their means.
The default 0.0 says that X has no error: a fit that is not corrected.

**Scores**: `score` is the score on the data given. Where these are noisy, it favours fits that are
not corrected, so do not choose by it. `clean_score_` is R² on clean data, estimated from noisy rows
by cross-fitting; `clean_score`, a function, is a scorer for `GridSearchCV` that reads it. The grid
may hold anything but `noise`: a score assumes the noise of its own fit, and the largest would win.
"""

from noisy_jax.sklearn.estimators import clean_score
from noisy_jax.sklearn.functions import NoisyKernelRegression
from noisy_jax.sklearn.linear import (
    SIMEX,
    NoisyLinearRegression,
    NoisyLogisticRegression,
    NoisyPoissonRegressor,
)
from noisy_jax.sklearn.online import OnlineRegressor

__all__ = [
    "SIMEX",
    "NoisyKernelRegression",
    "NoisyLinearRegression",
    "NoisyLogisticRegression",
    "NoisyPoissonRegressor",
    "OnlineRegressor",
    "clean_score",
]
