"""`learn`: runs a learner over noisy data as they were observed."""

import dataclasses
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Sample, State, check_learner, estimated_errors, unrolled
from noisy_jax.checkpoints import fingerprint, resumed
from noisy_jax.evaluate.montecarlo import Sums, merged
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.evaluate.rollouts import scan_in_blocks
from noisy_jax.evaluate.suitability import check_room, check_suits, standardized
from noisy_jax.observations import Observations
from noisy_jax.observations.passes import Pass
from noisy_jax.validation import check_key, concrete

_JUDGED = 256  # rows that are judged at once


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
        center: `[d]`, means of the columns (of the first chunk, if there are chunks; likewise the
            following).
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

    def predict(self, x: Any) -> Any:
        """Predictions `[...]` at clean features `[..., d]`, in original units, also under `jit`."""
        traced = concrete(x) is None
        x = jnp.asarray(x, float) if traced else np.asarray(x, np.float64)
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

    Columns and y are standardized first, by means and standard deviations of all noisy rows of a
    table, also of later ones, so that a learner's radius and length scale are in these units;
    predictions are in original units. Of chunks, only the first gives means and deviations: these
    are known when learning starts. Before each step the learner's prediction is judged: with
    unbiased readings v of f(x) and q of f(x)² at the clean x (`Learner.read`), q − 2ỹv + ỹ² is an
    unbiased estimate of its squared error on clean data, whose mean over rows is the risk.

    A learner that is built for a distribution of the noise, such as one in a world or with
    `moments.fourier`, needs the noise in the units of the rows that it sees. The easiest way is
    `standardize=False`, with the noise and the length scale in original units. Otherwise divide the
    noise's scale by the columns' standard deviations.

    Args:
        learner: any learner that needs at most as many copies as there are replicates. Further
            replicates have no effect.
        observations: from `nj.observations.from_arrays`, with one distribution of the noise or one
            a row. Learners that read the covariance need it to be known. It must not exceed the
            covariance of the rows. Or chunks of a table, by `nj.observations.chunks` or as any
            iterable of tables with the same columns and noise: memory depends on the size of a
            chunk. It should hold some thousand rows in random order, as its means and deviations
            are used for all.
        key: for the learner's own randomness; chunk c uses `fold_in(key, c)`.
        standardize: whether columns and y are divided by their standard deviations. Their means are
            always subtracted.
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
        Learned: mean squared error on clean data 0.01... (95% interval -0.0... to 0.0...), of ...

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

    sums: Sums  # over rows, of the estimated error and of y
    chunks: int
    state: State


def _learned(learner: Learner, observations, key, standardize, checkpoint) -> Learned:
    in_chunks = isinstance(observations, Iterable)
    table = Pass(observations if in_chunks else [observations])
    check_room(learner, len(table.first.y), more=in_chunks)
    try:
        rows, units = standardized(table.first, standardize)
        check_suits(learner, rows, units.scale)
    except ValueError as error:
        where = f"the first chunk, of {len(table.first.y):,} rows: " if in_chunks else ""
        raise ValueError(f"{where}{error}") from error
    runs, state = Runs(learner, rows.cov), _on_host(learner.init(rows.x.shape[2]))
    identity = ""
    if checkpoint is not None:
        identity = f"learn {standardize} {table.digest()} {runs.fingerprint(state, rows, key)}"
    empty = _Progress(Sums(0, np.zeros(2), np.zeros(2)), 0, state)
    parts = "table or its noise, learner, key, standardize, or version of JAX"
    with resumed(checkpoint, identity, empty, parts) as ((sums, chunks, state), save):
        sums, chunks = sums._replace(num_seeds=int(sums.num_seeds)), int(chunks)
        for chunk in table.after(sums.num_seeds):
            check_room(learner, sums.num_seeds + len(chunk.y), more=in_chunks)
            noises = [(type(one.noise), _shared(one)) for one in (table.first, chunk)]
            if not all(map(np.array_equal, *noises)):
                raise ValueError("all chunks must have the same noise, or a covariance a row")
            rows, _ = standardized(chunk, standardize, units)
            own_key = jax.random.fold_in(key, chunks) if in_chunks else key
            state, errors = runs.resume(state, rows, own_key)
            values = np.column_stack([errors * units.y_scale**2, chunk.y])
            mean = values.mean(axis=0)
            squares = ((values - mean) ** 2).sum(axis=0)
            sums, chunks = merged(sums, Sums(len(values), mean, squares)), chunks + 1
            save(_Progress(sums, chunks, state))
    count, squares = sums.num_seeds, sums.squares
    return Learned(
        runs.finished(state),
        float(sums.mean[0]),
        float((squares[0] / (count - 1) / count) ** 0.5) if count > 1 else np.nan,
        float(squares[1] / count),
        learner,
        units.center,
        units.scale,
        units.y_center,
        units.y_scale,
    )


def _shared(observations: Observations) -> np.ndarray | None:
    """The covariance that all rows share, if they do."""
    cov = observations.cov
    return cov if cov is not None and cov.ndim == 2 else None


def _on_host(state: State) -> State:
    """The state in NumPy arrays, from which a run resumes with the same program."""
    return jax.tree.map(np.asarray, state)


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

        def train(state, samples, keys):
            return scan_in_blocks(block, state, (samples, keys))

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
        state, errors = self.resume(_on_host(self.learner.init(rows.x.shape[2])), rows, key)
        return self.finished(state), errors

    def resume(self, state: State, rows: Observations, key) -> tuple[State, np.ndarray]:
        """As `train`, from and to a state in NumPy arrays, to which more rows may follow."""
        state, errors = self._train(state, *_inputs(rows, key))
        errors = np.concatenate([np.asarray(error, np.float64).ravel() for error in errors])
        return _on_host(state), errors

    def finished(self, state: State) -> State:
        """The state after the last row, in JAX arrays."""
        state = jax.tree.map(jnp.asarray, state)
        return state if self.learner.finish is None else self.learner.finish(state)

    def fingerprint(self, state: State, rows: Observations, key: chex.PRNGKey) -> str:
        """A digest of the program and of its first arguments."""
        samples, keys = _inputs(rows, key)
        return fingerprint(jax.tree_util.Partial(self._train, state, samples), keys)

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
