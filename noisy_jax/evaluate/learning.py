"""`learn`: runs a learner over noisy data as they were observed."""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Sample, State, check_learner
from noisy_jax.fits.identification import check_identified
from noisy_jax.observations import Observations
from noisy_jax.validation import check_key, instance


@dataclasses.dataclass(frozen=True, eq=False)
class Learned:
    """What a learner made of observations.

    Attributes:
        state: the learner's state after the last row, in standardized units.
        risk: mean squared error on clean data of the predictions that were made along the way,
            in the units of y squared, estimated from the noisy rows; it contains the variance of
            the noise in y. NaN if the learner has no unbiased readings.
        risk_std_error: its standard error.
        variance: of y, the error of predicting its mean.
        learner: the learner.
        center: `[d]`, means of the columns.
        scale: `[d]`, standard deviations of the columns.
        y_center: mean of y.
        y_scale: standard deviation of y.
    """

    state: State
    risk: float
    risk_std_error: float
    variance: float
    learner: Learner
    center: np.ndarray
    scale: np.ndarray
    y_center: float
    y_scale: float

    def predict(self, x: Any) -> np.ndarray:
        """Predictions `[...]` at clean features `[..., d]`, in original units."""
        x = (np.asarray(x, np.float64) - self.center) / self.scale
        predictions = self.learner.predict(self.state, jnp.asarray(x, float))
        return np.asarray(predictions, np.float64) * self.y_scale + self.y_center


def learn(learner: Learner, observations: Observations, key: chex.PRNGKey) -> Learned:
    """Runs a learner once over observed noisy rows, in their order. No noise is added.

    Columns and y are standardized first, by means and standard deviations of the noisy rows, so
    that a learner's radius and length scale are in these units; predictions are in original units.
    Before each step the learner's prediction is judged: with unbiased readings v of f(x) and q of
    f(x)² at the clean x (`Learner.read`), q − 2ỹv + ỹ² is an unbiased estimate of its squared error
    on clean data, whose mean over rows is the risk.

    Args:
        learner: any learner that needs at most as many copies as there are replicates.
        observations: from `nj.observations.from_arrays`, with one distribution of the noise or one
            a row. Learners that read the covariance need it to be known. It must not exceed the
            covariance of the rows.
        key: for the learner's own randomness.

    Example:
        >>> import jax, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(4000, 2))
        >>> y = x @ [2.0, -1.0] + 0.1 * rng.normal(size=4000)
        >>> table = nj.observations.from_arrays(x + rng.normal(size=x.shape), y, noise=1.0)
        >>> learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
        >>> learned = learn(learner, table, jax.random.key(0))
        >>> bool(learned.risk + 2 * learned.risk_std_error < learned.variance)
        True
    """
    check_learner(learner)
    instance("observations", observations, Observations, "nj.observations.from_arrays makes one")
    check_key(key)
    x, y, cov = observations.x, observations.y, observations.cov
    if x.shape[1] < learner.copies:
        raise ValueError(
            f"the learner needs {learner.copies} noisy copies of each row, but there are "
            f"{x.shape[1]}: use a learner that needs fewer, or replicates"
        )
    center, scale = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    y_center, y_scale = float(y.mean()), float(y.std())
    if not (scale > 0).all() or not y_scale > 0:
        raise ValueError("every column, and y, must take more than one value")
    if cov is not None:
        cov = cov / np.outer(scale, scale)
        _check_covariance((x - center) / scale, cov, observations.names, scale)
        cov = np.broadcast_to(cov, (len(y), *cov.shape[-2:]))
        cov = jnp.asarray(cov, float)
    samples = Sample(
        jnp.asarray((x - center) / scale, float), jnp.asarray((y - y_center) / y_scale, float), cov
    )
    state, errors = _run(learner, samples, jax.random.split(key, len(y)))
    errors = np.asarray(errors, np.float64) * y_scale**2
    return Learned(
        state,
        float(errors.mean()),
        float(errors.std(ddof=1) / len(y) ** 0.5) if len(y) > 1 else np.nan,
        y_scale**2,
        learner,
        center,
        scale,
        y_center,
        y_scale,
    )


def _check_covariance(x, cov, names, scale) -> None:
    """Raises ValueError if the noise varies more than the data, by more than chance explains."""
    rows, copies, dim = x.shape
    plain = np.einsum("nvi,nvj->ij", x, x) / (rows * copies)
    chance = 2 * (dim / rows) ** 0.5 + dim / rows + 5 * (2 / rows) ** 0.5  # of λ_min, Gaussian data
    gram = plain - cov.reshape(-1, dim, dim).mean(axis=0)
    check_identified(gram, plain, names, scale, least=-chance)


def _run(learner: Learner, samples: Sample, keys):
    @jax.jit
    def run(samples, keys):
        def one_round(state, inputs):
            sample, key = inputs
            error = jnp.nan * sample.y
            if learner.read is not None:
                value, square = learner.read(state, sample)
                error = square - 2 * sample.y * value + sample.y**2
            return learner.step(state, sample, key), error

        return jax.lax.scan(one_round, learner.init(samples.x.shape[2]), (samples, keys))

    return run(samples, keys)
