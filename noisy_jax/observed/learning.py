"""`learn`: runs a learner over noisy data as they were observed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np

from noisy_jax.base import Learner, State, check_learner, warn_of_sizes
from noisy_jax.observed.compiled import CompiledLearner, compiled_learner, shared_cov
from noisy_jax.observed.fits.assumptions import warned
from noisy_jax.observed.fits.units import Units, check_varies
from noisy_jax.observed.learned import Learned
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.beside import with_roles
from noisy_jax.observed.observations.passes import MAKES, Pass
from noisy_jax.observed.suitability import (
    check_rows,
    check_suits,
    check_takes_weights,
    units_for,
)
from noisy_jax.running import Running
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.objects import instance, switch
from noisy_jax.validation.values import Array, check_concrete

_ROWS = 4096


def learn(
    learner: Learner,
    observations: Observations | Iterable[Observations],
    key: jax.Array,
    *,
    standardize: bool = True,
) -> Learned:
    """Runs a learner once over observed noisy rows, in their order. No noise is added.

    **Units**: columns and y are standardized, so that a learner's radius and length scale are in
    standard deviations; predictions of the result are in original units. The standard deviations
    are of the noisy values in the first quarter of the rows (at most 4,096 rows, or more if a
    column is constant in them). Each later row is centred by the means of all rows before it.
    Labels −1 and +1 stay as they are, for learners that need them (`Needs.labels`).

    **Replicates**: from each row it learns by the first `learner.needs.copies` copies. Further ones
    only enter the means and standard deviations above. If the learner needs one copy, give a table
    of their means, with the noise of a mean.

    **Risk**: each row behind those that give the standard deviations is predicted, and judged,
    before the learner sees it. With the predictor f of this moment, the noisy target ỹ of the row,
    and unbiased estimates v of f(x) and q of f(x)² at the clean x (`Learner.clean_estimates`), its
    squared error is estimated by

        q − 2ỹv + ỹ².

    The mean over these rows, `Learned.risk`, is an unbiased estimate of the squared error on clean
    data plus the variance of the noise in y, because a row's own noise is neither in its units nor
    in the learner's state.

    Args:
        learner: any `Learner` that needs at most as many copies as there are replicates.
        observations: a table, by `nj.table`, `nj.csv` or `nj.observations.from_arrays`; or chunks
            of a table with the same columns and noise, by `nj.observations.chunks` or as any
            iterable of tables. A learner that reads the covariance of the noise needs it to be
            known. The first chunk gives the standard deviations for all chunks: it should hold some
            thousand rows in random order.
        key: a key of `jax.random.key`, for the learner's own randomness; chunk c uses
            `fold_in(key, c)`.
        standardize: whether columns and y are divided by standard deviations, by default True;
            means are always subtracted. A learner that is built for one distribution of the noise,
            such as a learner with a world of `nj.worlds` or with `moments.fourier`, needs this
            noise in the units of the rows that it sees: with False, noise and length scale are in
            original units.

    Returns:
        A `Learned`: the state after the last row, the risk, and predictions in original units.

    Raises:
        ValueError: a column is constant, or has more noise than variance; the learner is built for
            other noise than the rows have, needs more copies, or has no room for all rows; or the
            table has products, weights, clusters, misclassified columns, or covariances that are
            known on average only (`Observations.each_row`).

    Example:
        >>> import jax, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(4000, 2))
        >>> y = x @ [2.0, -1.0] + 0.1 * rng.normal(size=4000)
        >>> table = nj.observations.from_arrays(x + 0.3 * rng.normal(size=x.shape), y, noise=0.09)
        >>> learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
        >>> learned = nj.learn(learner, table, jax.random.key(0))
        >>> learned
        Learned: mean squared error on clean data 0.0... (95% interval -0.0... to 0.0...), of ...
        >>> print(learned.coefficients.round(1))
        [ 2. -1.]
    """
    check_learner(learner)
    check_concrete("key", key, "call nj.learn outside jit, vmap and grad")
    key = parsed_key(key)
    standardize = switch("standardize", standardize)
    in_chunks = isinstance(observations, Iterable) and not isinstance(observations, Array)
    if not in_chunks:
        instance("observations", observations, Observations, MAKES)
    learning = Learning(compiled_learner(learner), standardize, in_chunks=in_chunks)
    chunks: Any = observations if in_chunks else [observations]
    for chunk in Pass(chunks):
        learning.take(chunk, key)
    return learning.learned()


class _Progress(NamedTuple):
    """Sums over the rows seen so far."""

    number: int
    rows: Running  # over all rows, `[d + 1]`: of the means of the copies, and of y
    errors: Running  # over judged rows, of the estimated error
    chunks: int
    state: State


class Learning:
    """A learner that takes the chunks of a table one by one; see `learn`.

    The first chunk gives the units.

    Attributes:
        alike: a row of the first chunk, with the properties that all chunks share; `None` before
            it.
        units: the units of the first chunk.
        progress: state of learning so far, in NumPy arrays.
    """

    alike: Observations | None = None
    units: Units
    progress: _Progress

    def __init__(
        self, compiled: CompiledLearner, standardize: bool = True, *, in_chunks: bool = True
    ):
        self.compiled, self.standardize, self.in_chunks = compiled, standardize, in_chunks

    @property
    def labels(self) -> bool:
        """True if y are labels −1 and +1, which are neither centred nor scaled."""
        return self.compiled.learner.needs.labels

    def take(self, chunk: Observations, key: jax.Array, weights: np.ndarray | None = None) -> None:
        """Learns from one more chunk, of rows that count `weights [n]` times.

        The squared loss of a linear predictor at (√w x̃, √w ỹ) is w times that at (x̃, ỹ), and so
        are its estimates, if the covariance of the noise is multiplied by w as well.
        """
        learner, before = self.compiled.learner, 0 if self.alike is None else self.progress.number
        check_rows(learner, with_roles(chunk, {}, "nj.learn"), before=before, more=self.in_chunks)
        chunk = chunk.evened()  # means of copies in unequal numbers are one copy
        if weights is not None:
            check_takes_weights(learner)
        if self.alike is None:
            self._begin(chunk, weights)
        elif not all(map(np.array_equal, _noise_of(self.alike), _noise_of(chunk))):
            raise ValueError("all chunks must have the same noise, or a covariance a row")
        number, means, errors, chunks, state = self.progress
        first = max(self._unjudged - number, 0)  # rows that are not judged
        x, y, means = _centred(chunk, means, self.units, first, weights)
        table = chunk.scaled(self.units, x, chunk.y.astype(y.dtype) if self.labels else y)
        if weights is not None:
            table = table.times(weights)
        own_key = jax.random.fold_in(key, chunks) if self.in_chunks else key
        state, errors_of_rows = self.compiled.resume(state, table, own_key)
        errors_of_rows = errors_of_rows[first:, None] * self.units.y_scale**2
        if weights is not None:
            weights = weights[first:]
            errors_of_rows, weights = (a[weights > 0] for a in (errors_of_rows, weights))
            errors_of_rows = errors_of_rows / weights[:, None]
        errors = errors.plus(Running.of(errors_of_rows, weights))
        self.progress = _Progress(number + len(y), means, errors, chunks + 1, state)

    def _begin(self, first: Observations, weights: np.ndarray | None) -> None:
        """Takes the units of the first chunk, and checks that the learner suits them."""
        learner, dim = self.compiled.learner, len(first.names)
        warned(first)
        try:
            self.units, self._unjudged = _first_units(learner, first, self.standardize, weights)
            check_suits(learner, first, self.units)
        except ValueError as error:
            where = f"the first chunk, of {len(first.y):,} rows: " if self.in_chunks else ""
            raise ValueError(f"{where}{error}") from error
        x = (first.x - self.units.center) / self.units.scale
        warn_of_sizes(learner, x, first.names)
        rows, errors = (Running.of(np.zeros((0, size))) for size in (dim + 1, 1))
        self.progress = _Progress(0, rows, errors, 0, self.compiled.start(dim))
        self.alike = first.rows(np.arange(1))

    def learned(self) -> Learned:
        """The result of learning from the chunks so far."""
        alike: Any = self.alike
        _, means, errors, _, state = self.progress
        return Learned(
            state=self.compiled.finished(state),
            risk=float(errors.mean[0]) if errors.count else np.nan,
            risk_std_error=float(errors.std_error[0]),
            num_rows=int(errors.count),
            variance=float(means.squares[-1] / means.count),
            learner=self.compiled.learner,
            center=means.mean[:-1],
            scale=self.units.scale,
            y_center=0.0 if self.labels else float(means.mean[-1]),
            y_scale=self.units.y_scale,
            names=alike.names,
            references=alike.references,
        )


def _noise_of(chunk: Observations) -> tuple[Any, Any]:
    """The law and the covariance that all rows of a chunk share."""
    return type(chunk.noise), shared_cov(chunk)


def _first_units(
    learner: Learner, table: Observations, standardize: bool, weights: np.ndarray | None = None
) -> tuple[Units, int]:
    """Centres and scales that the first rows give, and how many rows these are.

    Whether a row belongs to them depends only on the rows up to it: for later rows the units are
    constants.
    """
    x, y = table.x, table.y
    check_varies(x.reshape(-1, x.shape[2]), y, table)
    varied = max(map(_first_that_differs, (*x[:, 0].T, y)))
    number = max(min(-(-len(y) // 4), 4096), 1 + varied)
    if weights is not None:
        weights = weights[:number]
        if not weights.any():
            raise ValueError(f"the weights of the first {number} rows must not all be zero")
    return units_for(learner, table.rows(np.arange(number)), standardize, weights), number


def _first_that_differs(column: np.ndarray) -> int:
    """The first row with another value than row 0; 0 if there is none."""
    for start in range(0, len(column), _ROWS):
        if (differs := column[start : start + _ROWS] != column[0]).any():
            return start + int(differs.argmax())
    return 0


def _centred(
    chunk: Observations,
    means: Running,
    units: Units,
    first: int,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, Running]:
    """Standardized x `[n, V, d]` and y `[n]`, and the means of the rows seen and of these.

    A row is centred by the means of all rows before it, and the `first` ones by those in `units`.
    """
    kind = jax.dtypes.canonicalize_dtype(float)
    x, y = np.empty(chunk.x.shape, kind), np.empty(chunk.y.shape, kind)
    start, scale = np.append(units.center, units.y_center), np.append(units.scale, units.y_scale)
    for begin in range(0, len(y), _ROWS):  # in parts that fit into a processor's cache
        part = slice(begin, begin + _ROWS)
        values = np.column_stack([chunk.x[part].mean(axis=1), chunk.y[part]]) - start
        counts = np.ones(len(values)) if weights is None else weights[part]
        before = means.count + np.cumsum(counts) - counts
        counted = counts[:, None] * values
        centers = np.cumsum(counted, axis=0) - counted + means.count * (means.mean - start)
        centers /= np.where(before > 0, before, 1)[:, None]
        centers[: max(first - begin, 0)] = 0.0
        centers += start
        x[part] = (chunk.x[part] - centers[:, None, :-1]) / scale[:-1]
        y[part] = (chunk.y[part] - centers[:, -1]) / scale[-1]
        added = Running.of(values, None if weights is None else counts)
        means = means.plus(added._replace(mean=start + added.mean))
    return x, y, means
