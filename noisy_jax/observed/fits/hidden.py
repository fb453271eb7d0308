"""The part of a kernel fit that the noise hides, and how far it can move the estimated error.

Noise multiplies the mean of a wave e^{i⟨ω, x⟩} by φ(ω). Where n|φ|² is small, n noisy rows do not
show the mean of the clean wave, so that a judge damps it: it multiplies the wave by
s = |φ|²/(|φ|² + ε/n). The judge is then biased by means over the clean rows of functions that are
known,

    B₂(x) = f²(x) − (f²)_s(x)    and    B₁(x) = f(x) − f_s(x),

where the index s damps every wave of a function. Whatever the distribution of the clean rows is,
the bias of the estimated error is at most max |B₂| + 2 (mean y²)^{1/2} max |B₁|.

Source: Donoho (Statistical estimation and optimal recovery, 1994) and Armstrong and Kolesár
(Optimal inference in a class of regression models, 2018) add the largest bias to the half width
for the standard error.
"""

from __future__ import annotations

import numpy as np

from noisy_jax.moments.fourier import Frequencies

JUDGE = 1.0
"""ε of the judge, for means over all n rows."""
CAUTION = 0.1
"""Share of the largest bias that is added to a risk when candidates are compared.

The whole of it would leave only very smooth functions.
"""
_POINTS = 256


def places(x: np.ndarray) -> np.ndarray:
    """Returns rows of x, spread over the table, as places to look for a function's largest value.

    Noisy rows spread further than clean rows.
    """
    return x[:: max(1, len(x) // _POINTS)]


def hidden(
    frequencies: Frequencies, weights: np.ndarray, x: np.ndarray, square: float, rows: float
) -> np.ndarray:
    """B₂ and (mean y²)^{1/2} B₁ of functions with weights `[K, D]`, at points x `[m, d]`.

    Returns `[K, 2, m]`. x and the frequencies are in the same units, and the weights in units of
    the amplitude; `square` is mean y² of the targets less the functions' constant term, and `rows`
    how many rows there are, or equally informative ones if they have weights.
    """
    size = np.sqrt(square)
    omega, amplitude = np.asarray(frequencies.omega, float), float(frequencies.amplitude)
    waves, pairs = amplitude * np.exp(1j * x @ omega.T), len(omega)
    single, difference, total = (
        1 / (1 + rows / JUDGE * np.abs(np.asarray(phi, complex)) ** 2) for phi in frequencies[2:5]
    )
    parts = []
    for c in weights[:, :pairs] - 1j * weights[:, pairs:]:
        value, read = clean_estimates(waves * c, single, difference, total)
        parts.append((read, size * value))
    return np.array(parts)


def clean_estimates(waves, single, difference, total) -> tuple[np.ndarray, np.ndarray]:
    """f `[m]` and f² `[m]` of f = Re Σ_j u_j, each wave times the factor at its frequency.

    f² = ½ Re Σ_jk (u_j ū_k + u_j u_k), where u_j ū_k is a wave at the difference of their
    frequencies, and u_j u_k one at the sum.

    The waves `[m, P]` are u_j = c_j exp(i⟨ω_j, x⟩), c_j = w_j − i w_{P+j} with the weights w; the
    factors are at ω_j, `[P]`, and at ω_j ∓ ω_k, `[P, P]` each.
    """
    square = np.sum((waves @ difference) * waves.conj() + (waves @ total) * waves, axis=1)
    return (waves @ single).real, square.real / 2


def hidden_share(frequencies: Frequencies, weights: np.ndarray, rows: float) -> float:
    """Returns the share of Σ_j w_j² at frequencies ω_j where the noise hides cos²⟨ω_j, x⟩."""
    squares = weights**2
    phi = np.diag(np.asarray(frequencies.total, complex))
    lost = np.abs(phi) ** 2 < JUDGE / rows
    return float(squares[np.tile(lost, 2)].sum() / squares.sum())
