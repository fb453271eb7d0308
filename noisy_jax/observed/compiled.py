"""A learner's functions over observed rows, compiled."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Sample, State, estimated_errors, unrolled
from noisy_jax.noise.observation import scan_in_blocks
from noisy_jax.observed.observations import Observations

_JUDGED = 256  # rows that are judged at once
_BLOCK = 512  # rows a block: learners divide them again


def shared_cov(observations: Observations) -> np.ndarray | None:
    """The covariance that all rows share, if they do."""
    cov = observations.cov
    return cov if cov is not None and cov.ndim == 2 else None


def _diagonal(cov: np.ndarray | None) -> np.ndarray | None:
    """Returns the variances of a diagonal covariance, as rounds with these are much faster."""
    if cov is None or np.count_nonzero(cov - np.diag(np.diag(cov))):
        return cov
    return np.diag(cov)


class CompiledLearner:
    """A learner's compiled functions over standardized rows."""

    def __init__(self, learner: Learner):
        self.learner = learner
        own: Any = learner.clean_estimates

        def train(shared, state, samples, keys):
            def block(state, inputs):
                samples, keys = inputs
                if shared is not None:
                    cov = jnp.broadcast_to(shared, (len(keys), *shared.shape))
                    samples = samples._replace(cov=cov)
                state, _, estimates = unrolled(learner)(state, samples, samples.x[:, 0], keys)
                if estimates is None:
                    return state, jnp.full(len(keys), jnp.nan)
                return state, estimated_errors(estimates, samples.y)

            # Rows behind the last block take a second copy of the program, which compiles as long.
            sizes = (size for size in range(_BLOCK, _BLOCK // 2, -1) if len(keys) % size == 0)
            return scan_in_blocks(block, state, (samples, keys), next(sizes, _BLOCK))

        def errors(shared, state, samples, keys):
            def one(inputs):
                sample, key = inputs
                sample = sample if shared is None else sample._replace(cov=shared)
                return estimated_errors(own(state, sample, key), sample.y)

            return jax.lax.map(one, (samples, keys), batch_size=_JUDGED)

        def slope(shared, *rest):  # forward: some learners read their atoms in a loop
            return jax.jacfwd(lambda cov: jnp.sum(errors(cov, *rest)))(shared)

        precisely = jax.default_matmul_precision("highest")
        self._train, self._errors, self._slope = map(
            jax.jit, map(precisely, (train, errors, slope))
        )

    def train(self, rows: Observations, key: jax.Array) -> State:
        """The state after all rows."""
        return self.finished(self.resume(self.start(rows.x.shape[2]), rows, key)[0])

    def start(self, dim: int) -> State:
        """The state before the first row, in NumPy arrays."""
        return jax.tree.map(np.asarray, jax.jit(self.learner.init, static_argnums=0)(dim))

    def resume(self, state: State, rows: Observations, key) -> tuple[State, np.ndarray]:
        """Returns the state after the rows, and errors `[n]` of the predictions before each row.

        States are in NumPy arrays; a run resumes from these with the same program.
        """
        shared, *inputs = _inputs(rows, key, _diagonal)
        state, errors = self._train(shared, state, *inputs)
        errors = np.concatenate([np.asarray(error, np.float64).ravel() for error in errors])
        return jax.tree.map(np.asarray, state), errors

    def finished(self, state: State) -> State:
        """The state after the last row, in JAX arrays."""
        state = jax.device_put(state)
        return state if self.learner.finish is None else self.learner.finish(state)

    def errors(self, state: State, rows: Observations, key: jax.Array) -> np.ndarray:
        """Estimated squared errors `[n]` on the clean rows, by `Learner.clean_estimates`."""
        count = len(rows.y)
        filled = np.resize(np.arange(count), -(-count // _JUDGED) * _JUDGED)  # compiled once
        shared, *inputs = _inputs(rows.rows(filled), key, _diagonal)
        errors = self._errors(shared, state, *inputs)
        return np.asarray(errors, np.float64)[:count]

    def slope(self, state: State, rows: Observations, key: jax.Array) -> np.ndarray:
        """`[d, d]`, the derivative of the sum of `errors` by a shared covariance."""
        shared, *inputs = _inputs(rows, key)
        return np.asarray(self._slope(shared, state, *inputs), np.float64)


_recent: dict[int, CompiledLearner] = {}
_MOST = 16


def compiled_learner(learner: Learner) -> CompiledLearner:
    """The functions of a learner; they are kept for the learners that were used last."""
    compiled = _recent.pop(id(learner), None) or CompiledLearner(learner)
    _recent[id(learner)] = compiled  # it holds the learner: no other has this id
    if len(_recent) > _MOST:
        del _recent[next(iter(_recent))]
    return compiled


def _inputs(
    rows: Observations, key, form=lambda cov: cov
) -> tuple[jax.Array | None, Sample, jax.Array]:
    """The covariance that all rows share, in some form, if they do; a sample and a key for each."""
    shared, cross = form(shared_cov(rows)), rows.cross_cov
    own = rows.cov if shared is None else None
    if cross is not None:
        cross = np.broadcast_to(cross, rows.x[:, 0].shape)
    arrays: Any = rows.x, rows.y, own, cross, shared
    kind = jax.dtypes.canonicalize_dtype(float)  # NumPy compiles nothing to convert numbers
    *sample, shared = jax.tree.map(lambda a: np.asarray(a, kind), arrays)
    return shared, Sample(*sample), jax.random.split(key, len(rows.y))
