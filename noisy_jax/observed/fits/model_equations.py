"""Equations of any model: sums over the rows of an unbiased estimate of each loss.

The estimate is the one of the method, or follows from what the table tells of the noise.

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

from noisy_jax.losses import Loss
from noisy_jax.losses.loss import takes_noisy_targets
from noisy_jax.noise import Gaussian
from noisy_jax.observed.fits.roots import Sums
from noisy_jax.observed.fits.sandwich import Block
from noisy_jax.observed.fits.trials import order_of
from noisy_jax.observed.observations import Observations
from noisy_jax.unbiased import gaussian, replicates
from noisy_jax.unbiased.estimates import Estimate
from noisy_jax.unbiased.transformed import Points, Transformed
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import check_labels

_ROWS = 4096  # of a block
_KEPT = 8  # programs: each fit has one without and one with the correction
_PLAIN = functools.partial(replicates, order=0)
_KNOWN = functools.partial(gaussian, draws=16)
_ANY_LAW = "replicates, x [n, V, d], may have noise of any law"
_ALONE = "; or give the covariance alone, if the noise is nearly Gaussian"


@dataclasses.dataclass(frozen=True)
class Functions:
    """Compiled functions, the same for all tables."""

    curve: Callable[..., Any]  # `(params, x[d]) -> []`
    loss: Callable[..., Any]  # `(prediction, y) -> []`
    estimate: Estimate  # a transformation of `nj.unbiased`

    def of_row(self, params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        """The loss of one clean row, `[]`."""
        return self.loss(self.curve(params, x), y)


def functions_of(method: Any, table: Observations) -> tuple[Functions, Functions, int]:
    """The model at the means of copies, its estimate at clean rows, and the copies that this needs.

    Args:
        method: `nj.methods.Model`.
        table: the rows; ValueError if the method does not suit them.
    """
    table.check_each_row("nj.methods.Model")
    if table.cross_cov is not None:
        raise ValueError(
            "nj.methods.Model needs errors in y that are independent of those in x: leave out "
            "cross_cov"
        )
    loss = method.loss
    allows = isinstance(loss, Loss) and takes_noisy_targets(loss) and loss.kind != "margin"
    if table.target_cov is not None and not allows:  # the error of a label is no variance
        raise ValueError(
            f"this loss is for {table.target!r} without error: leave out its noise, or take "
            "nj.losses.squared()"
        )
    if isinstance(loss, Loss) and loss.kind == "margin":
        check_labels(table.target, table.y)
    if table.copied and table.cov is not None and method.estimate:
        raise ValueError(
            "leave out estimate: with replicates of unknown noise in some columns and known noise "
            "in others, nj.methods.Model corrects each in its own way"
        )
    estimate = Estimate.of(method.estimate or estimate_for(table))
    probed = estimate.probed(method.curve, argnum=1)
    law, copies = table.not_gaussian(), table.x.shape[1]
    if estimate.reads_cov and table.cov is None:
        raise ValueError(
            "this estimate needs the covariance of the noise, but the table has replicates of "
            "unknown noise: nj.unbiased.pair takes Gaussian noise, nj.unbiased.replicates any"
        )
    if isinstance(probed.noise, Gaussian):
        raise ValueError("leave out the noise of estimate: the table states it")
    if probed.noise is not None and law:
        raise ValueError(f"this estimate is for Gaussian noise, got {law}: {_ANY_LAW}{_ALONE}")
    if method.seed and not probed.draws:
        raise ValueError("leave out seed: this estimate draws nothing")
    if copies < probed.copies:
        raise ValueError(
            f"this estimate needs {probed.copies} copies of each row, but the table has {copies}"
        )
    shared = _hashable(method.curve), loss
    return Functions(*shared, Estimate.of(_PLAIN)), Functions(*shared, estimate), probed.copies


def _hashable(curve: Callable[..., Any]) -> Callable[..., Any]:
    """The curve, or if it has no hash (a module with arrays) a function that calls it."""
    try:
        hash(curve)
    except TypeError:
        return functools.partial(curve)
    return curve


def estimate_for(table: Observations) -> Callable[..., Any]:
    """The transformation that the table allows."""
    law, copies = table.not_gaussian(), table.x.shape[1]
    if table.copied and table.cov is not None:
        return _both
    if table.cov is not None:
        if not table.cov.any():
            return _PLAIN
        if law is None:
            return _KNOWN
    if copies == 1:
        raise ValueError(
            "from one copy of each row nj.methods.Model needs Gaussian noise, got "
            f"{law}: {_ANY_LAW}{_ALONE}"
        )
    return _any_law


def _any_law(f: Callable, argnum: int) -> Transformed:
    """`replicates` of the order that the number of copies allows."""

    def rule(copies, key):
        estimate: Any = replicates(f, order=order_of(len(copies)))
        estimate = estimate.next_order if len(copies) < 4 else estimate
        return estimate.points(copies, key)

    return Transformed(f, argnum, "replicates", 2, rule)


def _both(f: Callable, noise: Any, argnum: int) -> Transformed:
    """`_any_law` of `_KNOWN`: `noise` is zero in columns that differ between the copies."""

    def rule(copies, key):
        outer, inner = _any_law(f, 0).points(copies), _KNOWN(f, noise).points(copies[:1], key)
        outer_parts = [a.repeat(len(inner.weights), axis=0) for a in (outer.real, outer.weights)]
        number = len(outer.weights)
        imaginary = jnp.tile(inner.imaginary, (number, 1))  # pyright: ignore[reportArgumentType]
        return Points(outer_parts[0], outer_parts[1] * jnp.tile(inner.weights, number), imaginary)

    return Transformed(f, argnum, "gaussian", 2, rule, draws=True)


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
        n, stated, cov = len(table.y), np.asarray(table.cov), None
        if functions.estimate.reads_cov:
            cov = _short(stated)
        parts = []
        for first in range(0, n, size := min(n, _ROWS)):
            rows = np.minimum(np.arange(first, first + size), n - 1)  # behind the last, it again
            of_rows = cov[rows] if stated.ndim == 3 and cov is not None else cov
            parts.append(jax.device_put((table.x[rows], table.y[rows], rows, of_rows)))
        by_row = cov is not None and stated.ndim == 3
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
            (block.scores.sum(axis=0), block.jacobians.sum(axis=0), float(block.losses.sum()))
            for block in self.by_row(theta, share)
        ]
        return Sums._make(map(sum, zip(*parts, strict=True)))

    def blocks(self, theta: np.ndarray, share: float) -> Iterator[Block]:
        """See `roots.Equations`."""
        return (Block(block.scores, -block.jacobians) for block in self.by_row(theta, share))

    def by_row(self, u: np.ndarray, share: float) -> Iterator[ByRow]:
        """The terms of the sums, of blocks of rows."""
        units = np.outer(self.scale, self.scale)
        for weights, terms in self._called(0, u, share):
            terms = [np.asarray(values)[: len(weights)] for values in terms]
            losses, scores, jacobians = (
                np.einsum("n,n...->n...", weights, values) for values in terms
            )
            yield ByRow(losses, scores * self.scale, jacobians * units)

    def in_covariance(self, theta: np.ndarray, share: float) -> np.ndarray:
        """See `roots.Equations`: of the covariance that a Gaussian estimate reads.

        By the heat equation the derivative of E ℓ̂ is −½ E ∇²ℓ̂, with the Hessian in x.
        """
        moves = sum(np.asarray(slopes) for _, slopes in self._called(1, theta, share))
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

    def of_one_row(theta, copies, y, number, cov):
        measured = ~jnp.isnan(copies)
        center = jnp.nanmean(copies, axis=0)[None]
        copies = jnp.where(measured, center + jnp.sqrt(share) * (copies - center), center)
        share_of_cov = share * cov if functions.estimate.reads_cov else None
        estimate = functions.estimate(of_row, share_of_cov, argnum=1)
        copies_of_row, options = measured[:, 0].sum(), {"key": jax.random.fold_in(key, number)}
        total: Any = 0.0
        for count in counts:
            value = estimate(params(theta), copies[:count], y, **options)
            total = total + jnp.where(copies_of_row == count, value, 0.0)
        return total

    return of_one_row


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

        of_rows = jax.vmap(jax.jacfwd(slope, has_aux=True), axes)
        jacobians, (values, slopes) = of_rows(theta, copies, y, rows, cov)
        return values, slopes, jacobians

    def bent(params, x, y):
        return jax.hessian(functions.of_row, argnums=1)(params, x, y) / 2

    def in_covariance(kept, theta, share, start, seed, copies, y, rows, cov):
        estimate = _estimates(functions, counts, bent, share, start, seed)

        def total(theta):
            return jnp.tensordot(kept, jax.vmap(estimate, axes)(theta, copies, y, rows, cov), 1)

        return jax.jacfwd(total)(theta)

    return jax.jit(scores), jax.jit(in_covariance)
