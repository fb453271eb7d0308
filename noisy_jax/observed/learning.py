"""`learn`: runs a learner over noisy data as they were observed."""

import dataclasses
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, State, check_learner
from noisy_jax.checkpoints import resumed
from noisy_jax.intervals import half_width
from noisy_jax.observed.fits.assumptions import warned
from noisy_jax.observed.fits.coefficients import features_of
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.passes import Pass
from noisy_jax.observed.row_runs import Runs, on_host, shared_cov
from noisy_jax.observed.suitability import (
    check_room,
    check_suits,
    first_units,
    standardized,
)
from noisy_jax.running import Running
from noisy_jax.validation import check_key, concrete


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """What a learner made of observations; `print` shows its error on clean data.

    Attributes:
        state: the learner's state after the last row, in standardized units.
        risk: mean squared error on clean data of the predictions that were made along the way,
            behind the first rows that give the scales, in the units of y squared, estimated from
            the noisy rows; it contains the variance of the noise in y. NaN if the learner has no
            unbiased readings.
        risk_std_error: its standard error, if rows are independent.
        num_rows: rows whose predictions were judged.
        variance: of y, the error of predicting its mean.
        learner: the learner.
        center: `[d]`, means of the columns.
        scale: `[d]`, standard deviations of the columns in the first rows; 1 with
            `standardize=False`.
        y_center: mean of y.
        y_scale: standard deviation of y in the first rows; 1 with `standardize=False`.
        names: d names of the columns.
    """

    state: State
    risk: float
    risk_std_error: float
    num_rows: int
    variance: float
    learner: Learner
    center: np.ndarray
    scale: np.ndarray
    y_center: float
    y_scale: float
    names: tuple[str, ...]

    def __repr__(self) -> str:
        """The estimated error, beside that of predicting the mean."""
        low, high = self.risk_interval
        found = "not known (no row with unbiased readings was judged)"
        if np.isfinite(self.risk):
            found = f"{self.risk:.4g} (95% interval {low:.4g} to {high:.4g})"
        return (
            f"Learned: mean squared error on clean data {found}, "
            f"of predicting the mean {self.variance:.4g}"
        )

    @property
    def risk_interval(self) -> tuple[float, float]:
        """The 95% interval of `risk`, by Student's t with n − 1 degrees of freedom."""
        half = float(half_width(self.risk_std_error, self.num_rows - 1))
        return self.risk - half, self.risk + half

    def predict(self, x: Any) -> Any:
        """Predictions `[...]` at clean features `[..., d]`, in original units, also under `jit`.

        A DataFrame's columns are taken by their names.
        """
        x = features_of(x, self.names)
        traced = concrete(x) is None
        x = (x - np.broadcast_to(self.center, x.shape)) / np.broadcast_to(self.scale, x.shape)
        found = self.learner.predict(self.state, jnp.asarray(x, float))
        return (found if traced else np.asarray(found, np.float64)) * self.y_scale + self.y_center


def learn(
    learner: Learner,
    observations: Observations | Iterable[Observations],
    key: chex.PRNGKey,
    *,
    standardize: bool = True,
    checkpoint: str | os.PathLike | None = None,
) -> Learned:
    """Runs a learner once over observed noisy rows, in their order. No noise is added.

    Columns and y are standardized, so that a learner's radius and length scale are in these units;
    predictions are in original units. The first quarter of the rows (of the first chunk, if there
    are chunks; at most 4,096 rows, more if a column is constant in them) gives the standard
    deviations for all rows. Each later row is centred by the means of all rows before it.

    Before each step the learner's prediction is judged: with unbiased readings v of f(x) and q of
    f(x)² at the clean x (`Learner.read`), q − 2ỹv + ỹ² is an unbiased estimate of its squared error
    on clean data. The risk is the mean over the rows behind the first quarter. Their own noise is
    neither in the units nor in the learner's state, so that the estimate is exactly unbiased; means
    of the whole table would contain it, and the risk would be about 2(wᵀΣw + Var ỹ)/n too low.

    A learner that is built for a distribution of the noise, such as one in a world or with
    `moments.fourier`, needs the noise in the units of the rows that it sees. The easiest way is
    `standardize=False`, with the noise and the length scale in original units. Otherwise divide the
    noise's scale by the standard deviations of the first quarter of the rows.

    Args:
        learner: any learner that needs at most as many copies as there are replicates. Further
            replicates have no effect.
        observations: from `nj.observations.from_arrays`, with one distribution of the noise or one
            a row. Learners that read the covariance need it to be known. It must not exceed the
            covariance of the rows. Or chunks of a table, by `nj.observations.chunks` or as any
            iterable of tables with the same columns and noise: memory depends on the size of a
            chunk. The first should hold some thousand rows in random order, as its deviations are
            used for all.
        key: for the learner's own randomness; chunk c uses `fold_in(key, c)`.
        standardize: whether columns and y are divided by standard deviations. Means are always
            subtracted.
        checkpoint: folder in which the state and the sums over rows are stored after each chunk. A
            call with the same learner, key and first chunk resumes behind the last row that was
            stored, bit for bit on the same machine. `nj.observations.chunks` skips the rows before
            it; other iterables must give them again. Rows may have been added at the end.

    Returns:
        `Learned`. After the last row the learner also uses the rows of an incomplete block
        (`Learner.finish`).

    Raises:
        ValueError: if a column is constant, its noise exceeds its variance, or the learner is built
            for other noise than that of the rows it sees; the folder of a checkpoint cannot be
            written, is in use, or holds a file that is damaged or of another run.

    Example:
        >>> import jax, tempfile, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(4000, 2))
        >>> y = x @ [2.0, -1.0] + 0.1 * rng.normal(size=4000)
        >>> table = nj.observations.from_arrays(x + 0.3 * rng.normal(size=x.shape), y, noise=0.09)
        >>> learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
        >>> learned = learn(learner, table, jax.random.key(0))
        >>> print(learned)
        Learned: mean squared error on clean data 0.0... (95% interval -0.0... to 0.0...), of ...

        A run over the first two of four chunks, as if it had been killed there, and its resumption:

        >>> parts = [table.rows(np.arange(1000) + start) for start in (0, 1000, 2000, 3000)]
        >>> folder, key = tempfile.mkdtemp(), jax.random.key(0)
        >>> killed = learn(learner, parts[:2], key, checkpoint=folder)
        >>> resumed = learn(learner, parts, key, checkpoint=folder)
        >>> resumed.risk == learn(learner, parts, key).risk != killed.risk
        True
    """
    check_learner(learner)
    check_key(key)
    return _learned(learner, observations, key, standardize, checkpoint)


class _Progress(NamedTuple):
    """What is kept of the rows seen so far, and stored in checkpoints."""

    rows: Running  # over all rows, `[d + 1]`: of the means of the copies, and of y
    errors: Running  # over judged rows, of the estimated error
    chunks: int
    state: State


def _learned(learner: Learner, observations, key, standardize, checkpoint) -> Learned:
    in_chunks = isinstance(observations, Iterable)
    table = Pass(observations if in_chunks else [observations])
    check_room(learner, len(table.first.y), more=in_chunks)
    warned(table.first, stacklevel=3)
    try:
        units, unjudged = first_units(table.first, standardize)
        center, y_center = table.first.x.mean(axis=(0, 1)), table.first.y.mean()
        whole = dataclasses.replace(units, center=center, y_center=y_center)
        rows = standardized(table.first, whole)
        check_suits(learner, rows, units.scale)
    except ValueError as error:
        where = f"the first chunk, of {len(table.first.y):,} rows: " if in_chunks else ""
        raise ValueError(f"{where}{error}") from error
    runs, state = Runs(learner), on_host(learner.init(rows.x.shape[2]))
    identity = ""
    if checkpoint is not None:
        identity = f"learn {standardize} {table.digest()} {runs.fingerprint(state, rows, key)}"
    no_rows, no_errors = (Running.of(np.zeros((0, size))) for size in (len(center) + 1, 1))
    nothing = _Progress(no_rows, no_errors, 0, state)
    parts = "table or its noise, learner, key, standardize, or version of JAX"
    with resumed(checkpoint, identity, nothing, parts) as (progress, save):
        seen, errors, chunks, state = progress
        errors, seen = (part._replace(count=int(part.count)) for part in (errors, seen))
        chunks = int(chunks)
        for chunk in table.after(seen.count):
            check_room(learner, seen.count + len(chunk.y), more=in_chunks)
            noises = [(type(one.noise), shared_cov(one)) for one in (table.first, chunk)]
            if not all(map(np.array_equal, *noises)):
                raise ValueError("all chunks must have the same noise, or a covariance a row")
            values = np.column_stack([chunk.x.mean(axis=1), chunk.y])
            rows = standardized(chunk, units, _means_before(seen, values, units, unjudged))
            own_key = jax.random.fold_in(key, chunks) if in_chunks else key
            state, own = runs.resume(state, rows, own_key)
            judged = own[max(unjudged - seen.count, 0) :, None] * units.y_scale**2
            errors, seen = errors.plus(Running.of(judged)), seen.plus(Running.of(values))
            chunks += 1
            save(_Progress(seen, errors, chunks, state))
    count = errors.count
    return Learned(
        runs.finished(state),
        float(errors.mean[0]) if count else np.nan,
        float(errors.std_error[0]),
        count,
        float(seen.squares[-1] / seen.count),
        learner,
        seen.mean[:-1],
        units.scale,
        float(seen.mean[-1]),
        units.y_scale,
        table.first.names,
    )


def _means_before(seen: Running, values: np.ndarray, units, first: int) -> np.ndarray:
    """`[n, d + 1]`, the means of all rows before each; in the `first` rows, their own means."""
    start = np.append(units.center, units.y_center)
    apart = values - start
    sums = seen.count * (seen.mean - start) + np.cumsum(apart, axis=0) - apart
    count = seen.count + np.arange(len(values))[:, None]
    return start + np.where(count < first, 0.0, sums / np.maximum(count, 1))
