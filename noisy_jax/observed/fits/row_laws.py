"""Moments of Fourier features where the distribution of the noise is known for each row.

Noise with the characteristic function φ_i in row i multiplies the mean of a wave e^{i⟨ω, x⟩} by
φ_i(ω). Division of each row by its own φ_i would let the noisiest rows dominate. If the clean rows
do not depend on how noisy rows are, the estimate of the mean over clean waves with the smallest
variance at small means is

    Σ_i w_i φ̄_i(ω) e^{i⟨ω, x̃_i⟩} / Σ_i w_i |φ_i(ω)|²,

where noisy rows count less, all the less at high frequencies. It is unbiased for any φ_i that do
not depend on the clean rows. So it is the estimate under one φ for all rows, with sums that are
weighted by φ̄_i/φ and φ = (Σ_i w_i |φ_i|²/Σ_i w_i)^{1/2}.

Source: Delaigle and Meister, Density estimation with heteroscedastic error, Bernoulli 14 (2008).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.moments.fourier import Frequencies, characteristics
from noisy_jax.moments.online import Sums
from noisy_jax.noise import PerRound
from noisy_jax.noise.base import check_characteristic
from noisy_jax.observed.fits.doubts import LEVEL, Doubt, doubt_about, scores, tail
from noisy_jax.observed.observations import Observations

_NUMBERS = 2**21  # complex numbers in memory at once


class RowLaws(NamedTuple):
    """The distributions of the errors of rows."""

    distribution: Any  # of one copy, with leaves [n, ...]
    scale: np.ndarray  # [d], by which x is divided
    copies: int  # V, of which x is the mean

    @classmethod
    def of(cls, observations: Observations, scale: np.ndarray) -> "RowLaws | None":
        """Of a table; `None` if its distributions are not known row by row."""
        if not isinstance(observations.noise, PerRound):
            return None
        laws, (_, copies, dim) = observations.noise.distribution, observations.x.shape
        check_characteristic(jax.tree.map(lambda leaf: leaf[0], laws), dim)
        return cls(laws, np.asarray(scale, np.float32), copies)

    def some(self, which) -> "RowLaws":
        """Of some of the rows."""
        return self._replace(distribution=jax.tree.map(lambda v: v[which], self.distribution))

    def sums(
        self, frequencies: Frequencies, x: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[Frequencies, Sums]:
        """The frequencies with φ of all these rows together, and sums as of `fourier`."""
        totals: Any = None
        step = max(1, _NUMBERS // len(frequencies.omega) ** 2)
        for start in range(0, len(y), step):
            block = np.arange(start, start + step) % len(y)  # of one size, so that it compiles once
            own = np.where(np.arange(start, start + step) < len(y), weights[block], 0.0)
            laws, omega = self.some(block), jnp.asarray(frequencies.omega, float)
            args = *laws[:2], laws.copies, own.astype(np.float32)
            found = _totals(omega, x[block].astype(np.float32), y[block].astype(np.float32), *args)
            found = jax.tree.map(lambda leaf: np.asarray(leaf).astype(complex), found)
            totals = found if totals is None else jax.tree.map(np.add, totals, found)
        waves, squares = totals
        phi = [np.sqrt(np.real(square) / weights.sum()) for square in squares]
        single, apart, both = (
            np.divide(wave, own, out=np.zeros_like(wave), where=own > 0)
            for wave, own in zip(waves, phi, strict=True)
        )
        cc, ss = (apart.real + both.real) / 2, (apart.real - both.real) / 2
        cs = (both.imag - apart.imag) / 2
        gram: Any = np.block([[cc, cs], [cs.T, ss]])
        cross: Any = np.concatenate([single.real, single.imag])
        made = frequencies._replace(single=phi[0], difference=phi[1], total=phi[2], noise=None)
        return made, Sums(gram, cross, jnp.asarray(weights.sum()), jnp.zeros(()))

    def effective(self, frequencies: Frequencies, weights: np.ndarray) -> Frequencies:
        """The frequencies with φ of all these rows together."""
        nothing = np.zeros((len(weights), len(self.scale)))
        return self.sums(frequencies, nothing, nothing[:, 0], weights)[0]

    def conjugates(self, omega: np.ndarray) -> list[np.ndarray]:
        """φ̄ of rows at ω, at differences and at sums of two, `[n, P]` and twice `[n, P, P]`."""
        phi = _phi(jnp.asarray(omega, float), self.distribution, self.scale, self.copies)
        return [np.conj(np.asarray(one, complex)) for one in phi]


def laws_follow_values(observations: Observations) -> list[Doubt]:
    """Whether rows have larger, or smaller, known errors where values are larger.

    Clean rows that do not depend on how noisy rows are have the same mean, and the same y, at any
    size of the errors.
    """
    if not isinstance(observations.noise, PerRound):
        return []
    x, y = observations.x.mean(axis=1), scores(observations.y)
    spread = scores(np.diagonal(np.asarray(observations.cov), axis1=1, axis2=2))
    values = np.column_stack([x - x.mean(axis=0), y, scores(np.abs(y))])
    largest = np.abs(spread).max(axis=0)[:, None] * np.abs(values).max(axis=0)
    p = tail(spread.T @ values, (spread**2).T @ values**2, largest)
    failed = np.flatnonzero(p.min(axis=0) * p.size < LEVEL)
    target = observations.target
    names = [*observations.names, target, f"how far {target} is from its median"]
    return doubt_about(
        [names[j] for j in failed],
        "known errors of rows are larger, or smaller, at larger values of …, but a kernel fit "
        "takes them as independent of clean rows: give replicates of each row, or fit rows of "
        "similar errors alone",
    )


def _phi(omega, laws, scale, copies):
    """φ of rows at ω, at differences and at sums of two, `[n, P]` and twice `[n, P, P]`."""
    each = jax.vmap(characteristics, in_axes=(0, None, None, None))
    return each(laws, omega, scale, copies)


@jax.jit
def _totals(omega, x, y, laws, scale, copies, weights):
    """Σ w y φ̄ e^{i⟨ω, x⟩} and Σ w φ̄ e^{i⟨ω ∓ ω', x⟩} over rows, and the sums of w|φ|²."""
    phi = _phi(omega, laws, scale, copies)
    angles = jnp.matmul(x, omega.T, precision="highest")
    waves = jnp.exp(1j * angles)
    left = weights[:, None] * waves
    apart = left[:, :, None] * waves.conj()[:, None] * phi[1].conj()
    both = left[:, :, None] * waves[:, None] * phi[2].conj()
    cross = jnp.sum(left * y[:, None] * phi[0].conj(), axis=0)
    squares = tuple(
        jnp.tensordot(weights, jnp.abs(one) ** 2, 1, precision="highest") for one in phi
    )
    return (cross, apart.sum(axis=0), both.sum(axis=0)), squares
