"""Equations of any model: sums over the rows of an unbiased estimate of each loss.

With the loss ℓ(θ; x, y) of a model at one clean row, and a transformation of `nj.unbiased` that
takes it to ℓ̂ of the noisy row, E ℓ̂ = ℓ, the equations are

    Σ_i ψ_i(θ) = 0,   ψ_i = −∇_θ ℓ̂(θ; x̃_i, y_i).

Random draws of ℓ̂ are fixed by the number of the row, so that the equations are smooth in θ. A share
s of the noise is taken away if the covariance that ℓ̂ knows is multiplied by s, and if the copies of
a row are moved to x̄ + √s(x̃_v − x̄): at s = 0 it is the loss at the mean of the copies. Rows may have
different numbers of copies, with NaN behind the last: then ℓ̂ is taken from the copies of each row.

Everything is in float64, for blocks of rows of one size, so that one program serves a table. The
programs of the last few models are kept.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from noisy_jax.observed.fits.roots import Sums
from noisy_jax.observed.fits.sandwich import Block
from noisy_jax.observed.observations import Observations
from noisy_jax.unbiased.estimates import Estimate
from noisy_jax.validation.keys import parsed_key

_ROWS = 4096  # of a block
_KEPT = 8  # programs: each fit has one without and one with the correction


@dataclasses.dataclass(frozen=True)
class Functions:
    """Compiled functions, the same for all tables."""

    curve: Callable[..., Any]  # `(params, x[d]) -> []`
    loss: Callable[..., Any]  # `(prediction, y) -> []`
    estimate: Estimate  # a transformation of `nj.unbiased`

    def of_row(self, params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        """The loss of one clean row, `[]`."""
        return self.loss(self.curve(params, x), y)


class ByRow(NamedTuple):
    """The terms of the equations of a block of rows, times the weights of the rows."""

    losses: np.ndarray  # [m], ℓ̂
    scores: np.ndarray  # [m, p], ψ
    jacobians: np.ndarray  # [m, p, p], ∂ψ/∂u


@dataclasses.dataclass(frozen=True, eq=False)
class ModelEquations:
    """The equations of one table in parameters u, with θ = center + scale u.

    θ are the numbers of `start`, a pytree of arrays. `around` gives other units.

    Attributes:
        functions: the model and the estimate of its loss.
        start: parameters of the model.
        seed: of the draws.
        weights: `[n]`, of the rows.
        parts: copies, y, places and covariances of blocks of rows, on the device.
        programs: compiled functions for these blocks.
        center: `[p]`; at first `start`.
        scale: `[p]`; at first 1.
    """

    functions: Functions
    start: Any
    seed: int
    weights: np.ndarray
    parts: Sequence[Any]
    programs: tuple[Any, Any]
    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(
        cls,
        functions: Functions,
        start: Any,
        table: Observations,
        seed: int,
        weights: np.ndarray | None = None,
    ) -> ModelEquations:
        """The equations of a table, whose rows have the weights `[n]`, by default 1."""
        n, known, cov = len(table.y), np.asarray(table.cov), None
        if functions.estimate.reads_cov:
            cov = _short(known)
        parts = []
        for first in range(0, n, size := min(n, _ROWS)):
            rows = np.minimum(np.arange(first, first + size), n - 1)  # behind the last, it again
            own = cov[rows] if known.ndim == 3 and cov is not None else cov
            parts.append(jax.device_put((table.x[rows], table.y[rows], rows, own)))
        by_row = cov is not None and known.ndim == 3
        counts = tuple(np.unique(table.num_copies()).tolist())
        center = np.asarray(ravel_pytree(start)[0])
        return cls(
            functions=functions,
            start=start,
            seed=seed,
            weights=np.ones(n) if weights is None else weights,
            parts=parts,
            programs=_programs(functions, counts, by_row),
            center=center,
            scale=np.ones(len(center)),
        )

    @property
    def num_rows(self) -> int:
        """The number n of rows."""
        return len(self.weights)

    def around(self, center: np.ndarray, scale: np.ndarray | float = 1.0) -> ModelEquations:
        """The same equations in other units."""
        scale = np.broadcast_to(scale, center.shape)
        return dataclasses.replace(self, center=center, scale=scale)

    def at(self, theta: np.ndarray, share: float) -> Sums:
        """See `roots.Equations`; `theta` is u."""
        parts = [
            (one.scores.sum(axis=0), one.jacobians.sum(axis=0), float(one.losses.sum()))
            for one in self.by_row(theta, share)
        ]
        return Sums._make(map(sum, zip(*parts, strict=True)))

    def blocks(self, theta: np.ndarray, share: float) -> Iterator[Block]:
        """See `roots.Equations`."""
        return (Block(one.scores, -one.jacobians) for one in self.by_row(theta, share))

    def by_row(self, u: np.ndarray, share: float) -> Iterator[ByRow]:
        """The terms of the sums, of blocks of rows."""
        units = np.outer(self.scale, self.scale)
        for weights, found in self._called(0, u, share):
            found = [np.asarray(one)[: len(weights)] for one in found]
            losses, scores, jacobians = (np.einsum("n,n...->n...", weights, one) for one in found)
            yield ByRow(losses, scores * self.scale, jacobians * units)

    def in_covariance(self, theta: np.ndarray, share: float) -> np.ndarray:
        """See `roots.Equations`: of the covariance that a Gaussian estimate reads.

        By the heat equation the derivative of E ℓ̂ is −½ E ∇²ℓ̂, with the Hessian in x.
        """
        moves = sum(np.asarray(found) for _, found in self._called(1, theta, share))
        return share * np.moveaxis(np.asarray(moves), -1, 0) * self.scale[:, None, None]

    def some(self, which: np.ndarray) -> ModelEquations:
        """See `roots.Equations`: rows that are left out have the weight 0."""
        weights = np.zeros(self.num_rows)
        weights[which] = self.weights[which]
        return dataclasses.replace(self, weights=weights)

    def _called(self, program: int, u: np.ndarray, share: float) -> Iterator[tuple[Any, Any]]:
        """Returns the weights of blocks of rows, and the results of a program on the blocks."""
        args = self.center + self.scale * u, float(share), self.start, self.seed
        for first, part in zip(range(0, self.num_rows, _ROWS), self.parts, strict=True):
            weights = self.weights[first : first + _ROWS]
            kept = np.pad(weights, (0, len(part[1]) - len(weights)))
            yield weights, self.programs[program](kept, *args, *part)


def _short(cov: np.ndarray) -> np.ndarray:
    """Variances `[..., d]` of covariances `[..., d, d]` that are all diagonal."""
    variances = np.diagonal(cov, axis1=-2, axis2=-1)
    same = np.array_equal(variances[..., None] * np.eye(cov.shape[-1]), cov)
    return variances if same else cov


def _estimates(functions: Functions, counts, of_row, share, start, seed):
    """`(theta[p], copies[V, d], y, number, cov) -> ` the estimate of `of_row(params, x, y)`."""
    params, key = ravel_pytree(start)[1], parsed_key(jax.random.key(seed))

    def one(theta, copies, y, number, cov):
        seen = ~jnp.isnan(copies)
        center = jnp.nanmean(copies, axis=0)[None]
        copies = jnp.where(seen, center + jnp.sqrt(share) * (copies - center), center)
        own_cov = share * cov if functions.estimate.reads_cov else None
        estimate = functions.estimate(of_row, own_cov, argnum=1)
        own, options = seen[:, 0].sum(), {"key": jax.random.fold_in(key, number)}
        found: Any = 0.0
        for count in counts:
            value = estimate(params(theta), copies[:count], y, **options)
            found = found + jnp.where(own == count, value, 0.0)
        return found

    return one


@functools.lru_cache(maxsize=_KEPT)
def _programs(functions: Functions, counts: tuple[int, ...], by_row: bool) -> tuple[Any, Any]:
    """ℓ̂ `[m]`, ψ `[m, p]` and ∂ψ/∂θ `[m, p, p]` of rows; and ½ Σ ∇_θ of the Hessian in x.

    The latter, `[d, d, p]`, is of its estimate. `by_row` says whether each row has a covariance of
    its own. The compiled programs go with the functions, which live as long as they are kept here:
    a loop over models, each with a curve of its own, does not fill the memory.
    """
    axes = (None, 0, 0, 0, 0 if by_row else None)

    def scores(_, theta, share, start, seed, copies, y, rows, cov):
        loss = _estimates(functions, counts, functions.of_row, share, start, seed)

        def slope(theta, *row):
            value, slope = jax.value_and_grad(loss)(theta, *row)
            return -slope, (value, -slope)

        each = jax.vmap(jax.jacfwd(slope, has_aux=True), axes)
        jacobians, (values, slopes) = each(theta, copies, y, rows, cov)
        return values, slopes, jacobians

    def bent(params, x, y):
        return jax.hessian(functions.of_row, argnums=1)(params, x, y) / 2

    def in_covariance(kept, theta, share, start, seed, copies, y, rows, cov):
        estimate = _estimates(functions, counts, bent, share, start, seed)

        def total(theta):
            return jnp.tensordot(kept, jax.vmap(estimate, axes)(theta, copies, y, rows, cov), 1)

        return jax.jacfwd(total)(theta)

    return jax.jit(scores), jax.jit(in_covariance)
