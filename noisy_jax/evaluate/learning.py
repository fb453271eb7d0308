"""`learn`: runs a learner over noisy data as they were observed."""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Sample, State, check_learner, estimated_errors, unrolled
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.evaluate.rollouts import scan_in_blocks
from noisy_jax.fits.identification import check_cross, check_identified
from noisy_jax.fits.linear import Units
from noisy_jax.learners.wrappers.assuming import Assumed
from noisy_jax.noise import Noise, PerRound
from noisy_jax.observations import Observations
from noisy_jax.validation import check_key, instance

_JUDGED = 256  # rows that are judged at once
_TOLERANCE = 0.01  # of the noise that a learner is built for, relative to the rows' noise


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """What a learner made of observations; `print` shows its error on clean data.

    Attributes:
        state: the learner's state after the last row, in standardized units.
        risk: mean squared error on clean data of the predictions that were made along the way,
            in the units of y squared, estimated from the noisy rows; it contains the variance of
            the noise in y. NaN if the learner has no unbiased readings.
        risk_std_error: its standard error, if rows are independent.
        variance: of y, the error of predicting its mean.
        learner: the learner.
        center: `[d]`, means of the columns.
        scale: `[d]`, standard deviations of the columns; 1 with `standardize=False`.
        y_center: mean of y.
        y_scale: standard deviation of y; 1 with `standardize=False`.
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

    def __repr__(self) -> str:
        """The estimated error, beside that of predicting the mean."""
        low, high = self.risk_interval
        found = "not known (the learner has no unbiased readings)"
        if np.isfinite(self.risk):
            found = f"{self.risk:.4g} (95% interval {low:.4g} to {high:.4g})"
        return (
            f"Learned: mean squared error on clean data {found}, "
            f"of predicting the mean {self.variance:.4g}"
        )

    @property
    def risk_interval(self) -> tuple[float, float]:
        """The 95% interval of `risk`, from a normal distribution."""
        half = NORMAL_95 * self.risk_std_error
        return self.risk - half, self.risk + half

    def predict(self, x: Any) -> np.ndarray:
        """Predictions `[...]` at clean features `[..., d]`, in original units."""
        x = (np.asarray(x, np.float64) - self.center) / self.scale
        predictions = self.learner.predict(self.state, jnp.asarray(x, float))
        return np.asarray(predictions, np.float64) * self.y_scale + self.y_center


def learn(
    learner: Learner, observations: Observations, key: chex.PRNGKey, *, standardize: bool = True
) -> Learned:
    """Runs a learner once over observed noisy rows, in their order. No noise is added.

    Columns and y are standardized first, by means and standard deviations of all noisy rows, also
    of later ones, so that a learner's radius and length scale are in these units; predictions are
    in original units. Before each step the learner's prediction is judged: with unbiased readings v
    of f(x) and q of f(x)² at the clean x (`Learner.read`), q − 2ỹv + ỹ² is an unbiased estimate of
    its squared error on clean data, whose mean over rows is the risk.

    A learner that is built for a distribution of the noise, such as one in a world or with
    `moments.fourier`, needs the noise in the units of the rows that it sees. The easiest way is
    `standardize=False`, with the noise and the length scale in original units. Otherwise divide the
    noise's scale by the columns' standard deviations.

    Args:
        learner: any learner that needs at most as many copies as there are replicates. Further
            replicates have no effect.
        observations: from `nj.observations.from_arrays`, with one distribution of the noise or one
            a row. Learners that read the covariance need it to be known. It must not exceed the
            covariance of the rows.
        key: for the learner's own randomness.
        standardize: whether columns and y are divided by their standard deviations. Their means are
            always subtracted.

    Returns:
        `Learned`. After the last row the learner also uses the rows of an incomplete block
        (`Learner.finish`).

    Raises:
        ValueError: if a column is constant, its noise exceeds its variance, or the learner is built
            for other noise than that of the rows it sees.

    Example:
        >>> import jax, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(4000, 2))
        >>> y = x @ [2.0, -1.0] + 0.1 * rng.normal(size=4000)
        >>> table = nj.observations.from_arrays(x + 0.3 * rng.normal(size=x.shape), y, noise=0.09)
        >>> learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
        >>> learned = learn(learner, table, jax.random.key(0))
        >>> print(learned)
        Learned: mean squared error on clean data 0.01... (95% interval -0.0... to 0.0...), of ...
    """
    check_learner(learner)
    rows, units = standardized(observations, standardize)
    check_key(key)
    check_suits(learner, rows, units.scale)
    state, errors = Runs(learner, rows.cov).train(rows, key)
    errors = errors * units.y_scale**2
    count = len(errors)
    return Learned(
        state,
        float(errors.mean()),
        float(errors.std(ddof=1) / count**0.5) if count > 1 else np.nan,
        float(observations.y.var()),
        learner,
        units.center,
        units.scale,
        units.y_center,
        units.y_scale,
    )


def standardized(observations: Observations, standardize: bool) -> tuple[Observations, Units]:
    """The rows as a learner sees them, and their units; their `noise` is as it was."""
    instance("observations", observations, Observations, "nj.observations.from_arrays makes one")
    x, y, cov = observations.x, observations.y, observations.cov
    dim = x.shape[2]
    units = Units.of(x.reshape(-1, dim), y, observations)
    if not standardize:
        units = dataclasses.replace(units, scale=np.ones(dim), y_scale=1.0)
    x, y = (x - units.center) / units.scale, (y - units.y_center) / units.y_scale
    cov = None if cov is None else cov / np.outer(units.scale, units.scale)
    cross = observations.cross_cov
    cross = None if cross is None else cross / (units.scale * units.y_scale)
    return dataclasses.replace(observations, x=x, y=y, cov=cov, cross_cov=cross), units


def check_suits(learner: Learner, rows: Observations, scale: np.ndarray) -> None:
    """Raises ValueError if a learner cannot learn from standardized rows."""
    copies = rows.x.shape[1]
    if copies < learner.copies:
        raise ValueError(
            f"the learner needs {learner.copies} noisy copies of each row, but there are "
            f"{copies}: use a learner that needs fewer, or replicates"
        )
    if learner.horizon is not None and len(rows.y) > learner.horizon:
        raise ValueError(
            f"the table has {len(rows.y)} rows, but the learner has room for {learner.horizon}: "
            f"build it with horizon={len(rows.y)}"
        )
    if rows.cross_cov is not None and not learner.correlated_targets:
        raise ValueError(
            "the errors in x and y are correlated, for which the learner does not correct: use "
            "two_copies, known_covariance or the linear moments of corrected_ftrl"
        )
    if rows.cross_cov is not None:
        cross = rows.cross_cov.reshape(-1, rows.x.shape[2]).mean(axis=0)
        cov = copies * rows.averaged()[1].reshape(-1, *2 * cross.shape).mean(axis=0)
        check_cross(cross, cov, rows.y.var(), len(rows.y), rows.names)
    if rows.cov is not None:
        _check_covariance(rows.x, rows.cov, rows.names, scale)
        _check_noise(learner, rows, rows.cov, scale)


class Runs:
    """A learner's compiled runs over standardized rows that share a covariance, or have their own.

    `train` learns from rows in their order, and `errors` judges a state that stays as it is.

    Args:
        learner: the learner.
        cov: `[d, d]`, `[n, d, d]` or `None`, as in the rows that will follow.
    """

    def __init__(self, learner: Learner, cov: np.ndarray | None):
        self.learner = learner
        shared = None if cov is None or cov.ndim == 3 else jnp.asarray(cov, float)
        read: Any = learner.read

        def block(state, inputs):
            samples, keys = inputs
            if shared is not None:
                samples = samples._replace(cov=jnp.broadcast_to(shared, (len(keys), *shared.shape)))
            state, _, readings = unrolled(learner)(state, samples, samples.x[:, 0], keys)
            if readings is None:
                return state, jnp.full(len(keys), jnp.nan)
            return state, estimated_errors(readings, samples.y)

        def train(samples, keys):
            return scan_in_blocks(block, learner.init(samples.x.shape[2]), (samples, keys))

        def errors(state, samples, keys, cov=shared):
            def one(inputs):
                sample, key = inputs
                sample = sample if cov is None else sample._replace(cov=cov)
                return estimated_errors(read(state, sample, key), sample.y)

            return jax.lax.map(one, (samples, keys), batch_size=_JUDGED)

        def slope(state, samples, keys):  # forward: some learners read their atoms in a loop
            return jax.jacfwd(lambda cov: jnp.sum(errors(state, samples, keys, cov)))(shared)

        precisely = jax.default_matmul_precision("highest")
        self._train, self._errors, self._slope = map(
            jax.jit, map(precisely, (train, errors, slope))
        )

    def train(self, rows: Observations, key: chex.PRNGKey) -> tuple[State, np.ndarray]:
        """The state after the last row, and the errors `[n]` of the predictions before each."""
        state, errors = self._train(*_inputs(rows, key))
        state = state if self.learner.finish is None else self.learner.finish(state)
        return state, np.concatenate([np.asarray(error, np.float64).ravel() for error in errors])

    def errors(self, state: State, rows: Observations, key: chex.PRNGKey) -> np.ndarray:
        """Estimated squared errors `[n]` on the clean rows, by `Learner.read`."""
        count = len(rows.y)
        filled = np.resize(np.arange(count), -(-count // _JUDGED) * _JUDGED)  # compiled once
        errors = self._errors(state, *_inputs(rows.rows(filled), key))
        return np.asarray(errors, np.float64)[:count]

    def slope(self, state: State, rows: Observations, key: chex.PRNGKey) -> np.ndarray:
        """`[d, d]`, the derivative of the sum of `errors` by a shared covariance."""
        return np.asarray(self._slope(state, *_inputs(rows, key)), np.float64)


def _inputs(rows: Observations, key) -> tuple[Sample, chex.PRNGKey]:
    own = None if rows.cov is None or rows.cov.ndim == 2 else jnp.asarray(rows.cov, float)
    cross = rows.cross_cov
    if cross is not None:
        cross = jnp.asarray(np.broadcast_to(cross, rows.x[:, 0].shape), float)
    samples = Sample(jnp.asarray(rows.x, float), jnp.asarray(rows.y, float), own, cross)
    return samples, jax.random.split(key, len(rows.y))


def _check_noise(learner: Learner, observations: Observations, cov, scale) -> None:
    """Raises ValueError if a learner is built for other noise than the rows have."""
    built, seen = learner.noise, observations.noise
    kind = type(built.distribution) if isinstance(built, PerRound) else built
    if isinstance(kind, type) and seen is not None and not isinstance(seen, kind):
        raise ValueError(
            f"the learner is built for {kind.__name__} noise, but that of the rows is "
            f"{type(seen).__name__}"
        )
    if not isinstance(built, Noise) or isinstance(built, Assumed):
        return
    if cov.ndim == 3:
        raise ValueError(
            f"the learner is built for one {type(built).__name__} distribution, but the noise has "
            "a covariance of its own in each row: use a learner that reads it, such as "
            "corrected_ftrl with moments.known_covariance()"
        )
    own = np.asarray(built.covariance(len(scale)), np.float64)
    same = np.allclose(own, cov, rtol=_TOLERANCE, atol=_TOLERANCE * np.diag(cov).max())
    size = np.sqrt(np.where(np.diag(cov) > 0, np.diag(cov), 1.0))
    omega = (np.array([0.5, 1.0, 2.0])[:, None, None] * np.diag(1 / size)).reshape(-1, len(scale))
    phi = built.log_characteristic(jnp.asarray(omega, float))
    other = None if seen is None else seen.log_characteristic(jnp.asarray(omega / scale, float))
    if phi is not None and other is not None:
        same = same and np.allclose(phi, other, rtol=2 * _TOLERANCE, atol=1e-3)
    if not same:
        units = f"{np.array2string(scale, precision=4, separator=', ', threshold=8)}"
        divided = f": x is divided by {units}, so divide the noise's scale too, or use "
        hint = ": build it for theirs" if (scale == 1).all() else f"{divided}standardize=False"
        raise ValueError(
            f"the learner is built for other {type(built).__name__} noise than the rows have{hint}"
        )


def _check_covariance(x, cov, names, scale) -> None:
    """Raises ValueError if the noise varies more than the data, by more than chance explains."""
    rows, copies, dim = x.shape
    plain = np.einsum("nvi,nvj->ij", x, x) / (rows * copies)
    chance = 2 * (dim / rows) ** 0.5 + dim / rows + 5 * (2 / rows) ** 0.5  # of λ_min, Gaussian data
    gram = plain - cov.reshape(-1, dim, dim).mean(axis=0)
    check_identified(gram, plain, names, scale, least=-chance)
