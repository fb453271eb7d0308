"""Kernel regression on noisy features: random Fourier features with corrected second moments."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Sample
from noisy_jax.fits.coefficients import Comparison
from noisy_jax.fits.functions import Candidate, FourierFeatures, FourierFit, FourierPredictor
from noisy_jax.moments.fourier import Frequencies, fourier, gaussian_frequencies
from noisy_jax.noise import Gaussian
from noisy_jax.noise.base import check_characteristic
from noisy_jax.observations import Observations

_GROUPS = 16
_BLOCK = 4096
_FACTORS = (0.1, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0)
"""Regularizations that are tried, in units of the moments' standard deviation; at least a tenth."""
_PAIRS_OF_REPLICATES = 2048
"""Rows from which an unknown characteristic function is estimated at most."""
_FLOOR = 0.05
"""Smallest characteristic function that an estimate from replicates is trusted for."""


def fourier_fit(
    observations: Observations, candidates: FourierFeatures | Sequence[FourierFeatures]
) -> FourierFit:
    """See `nj.fit`."""
    listed = [candidates] if isinstance(candidates, FourierFeatures) else list(candidates)
    if not listed or not all(isinstance(c, FourierFeatures) for c in listed):
        raise ValueError("features must be nj.fourier(length_scale=…), or a list of such")
    if observations.cov is not None and observations.cov.ndim == 3:
        raise ValueError(
            "Fourier features need noise of one distribution, but it changes from row to row; "
            "a linear fit takes such noise"
        )
    x, y = observations.x.mean(axis=1), observations.y
    center, scale = x.mean(axis=0), x.std(axis=0)
    y_center, y_scale = y.mean(), y.std()
    if not (scale > 0).all() or not y_scale > 0:
        raise ValueError("every column, and y, must take more than one value")
    if len(y) < 4 * _GROUPS:
        raise ValueError(f"kernel fits need at least {4 * _GROUPS} rows, got {len(y)}")
    standard = ((x - center) / scale).astype(np.float32)
    target = ((y - y_center) / y_scale).astype(np.float32)
    phi = _characteristic(observations, scale)
    tried = [_Trial(one, standard, target, phi) for one in listed]
    table = [
        Candidate(trial.features, factor, *trial.summary(risks))
        for trial in tried
        for factor, risks in trial.risks.items()
    ]
    order = np.argsort([candidate.risk for candidate in table])
    best = table[order[0]]
    trial = tried[listed.index(best.features)]
    corrected, plain = trial.risks[best.factor], trial.plain_risks
    difference = [c - p for c, p in zip(corrected, plain, strict=True)]
    numbers = [v for r in (corrected, plain, difference) for v in trial.summary(r)]
    units, amplitude = y_scale**2, float(trial.frequencies.amplitude)
    risk = Comparison(*(float(v * units) for v in numbers), variance=float(units))
    shown = {}
    for k in order:
        shown.setdefault(table[k].features, table[k])
    make = {
        "omega": np.asarray(trial.frequencies.omega, np.float64) / scale,
        "center": center,
        "constant": float(y_center),
    }
    return FourierFit(
        **make,
        weights=trial.weights(best.factor) * y_scale * amplitude,
        uncorrected=FourierPredictor(**make, weights=trial.plain_weights * y_scale * amplitude),
        risk=risk,
        candidates=tuple(
            c._replace(risk=c.risk * units, std_error=c.std_error * units) for c in shown.values()
        ),
        target=observations.target,
        num_rows=len(y),
    )


class _Trial:
    """Moments of one choice of features in groups of rows, and what follows from them."""

    def __init__(self, features: FourierFeatures, x, y, phi):
        self.features = features
        self.frequencies = gaussian_frequencies(
            jax.random.key(features.seed),
            features.num_features,
            dim=x.shape[1],
            length_scale=features.length_scale,
            characteristic=phi,
        )
        moments = fourier(self.frequencies, wiener=0.0)
        none = Frequencies(*self.frequencies[:2], *map(jnp.ones_like, self.frequencies[2:]))
        sums = _sums(moments, x, y)
        self.count = np.asarray([s.count for s in sums], np.float64)
        self.yy = np.array([float(y[g::_GROUPS] @ y[g::_GROUPS]) for g in range(_GROUPS)])
        self.corrected = [_float64(moments.corrected(s)) for s in sums]
        self.noisy = [_float64(fourier(none, wiener=0.0).corrected(s)) for s in sums]
        whole_gram = sum(gram for gram, _ in self.corrected)
        share = self.count / self.count.sum()
        apart = [g - s * whole_gram for (g, _), s in zip(self.corrected, share, strict=True)]
        square = sum(a @ a for a in apart) * _GROUPS / (_GROUPS - 1)
        self.spread = float(np.sqrt(np.linalg.eigvalsh(square)[-1]))
        self.risks = {f: self._risks(self.corrected, f) for f in _FACTORS}
        self.plain_factor = min(
            _FACTORS, key=lambda f: np.sum(self._risks(self.noisy, f, judge=self.noisy))
        )
        self.plain_risks = self._risks(self.noisy, self.plain_factor)
        self.plain_weights = self.weights(self.plain_factor, self.noisy)

    def weights(self, factor, parts=None) -> np.ndarray:
        """The regularized solution on all groups."""
        parts = self.corrected if parts is None else parts
        gram, cross = (sum(p[k] for p in parts) for k in (0, 1))
        return self._solve(gram, cross, factor, 1.0)

    def _solve(self, gram, cross, factor, share):
        values, vectors = np.linalg.eigh(gram)
        lam = factor * self.spread * share**0.5 + 1e-6 * self.count.sum()
        return vectors @ ((vectors.T @ cross) / (np.maximum(values, 0) + lam))

    def _risks(self, parts, factor, judge=None) -> list[float]:
        """Σ of estimated squared errors in each group, of the fit to the other groups."""
        judge = self.corrected if judge is None else judge
        gram, cross = (sum(p[k] for p in parts) for k in (0, 1))
        share = 1 - 1 / _GROUPS
        sums = []
        for part, (own_gram, own_cross), yy in zip(parts, judge, self.yy, strict=True):
            w = self._solve(gram - part[0], cross - part[1], factor, share)
            sums.append(float(w @ own_gram @ w - 2 * own_cross @ w + yy))
        return sums

    def summary(self, sums) -> tuple[float, float]:
        """Mean over rows of sums over groups, and its standard error."""
        means = np.asarray(sums) / self.count
        return float(means.mean()), float(means.std(ddof=1) / _GROUPS**0.5)


def _sums(moments, x, y):
    """Sums of each group of rows, row number modulo the number of groups, block by block."""
    one = jax.jit(lambda x, y, kept: moments.sums(Sample(x[:, None], y), kept))
    groups = []
    for g in range(_GROUPS):
        own_x, own_y, total = x[g::_GROUPS], y[g::_GROUPS], None
        for start in range(0, len(own_y), _BLOCK):
            block = slice(start, start + _BLOCK)
            filling = _BLOCK - len(own_y[block])
            sums = one(
                np.pad(own_x[block], ((0, filling), (0, 0))),
                np.pad(own_y[block], (0, filling)),
                np.pad(np.ones(len(own_y[block]), np.float32), (0, filling)),
            )
            sums = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), sums)
            total = sums if total is None else jax.tree.map(np.add, total, sums)
        groups.append(total)
    return groups


def _float64(pair):
    return tuple(np.asarray(leaf, np.float64) for leaf in pair)


def _characteristic(observations: Observations, scale: np.ndarray):
    """φ of the error in the standardized mean of the copies, as a function of frequencies."""
    copies = observations.x.shape[1]
    noise = observations.noise
    if noise is None and observations.cov is not None and not observations.cov.any():
        noise = Gaussian(0.0)
    if noise is not None:
        check_characteristic(noise, len(scale))
        return lambda omega: jnp.exp(copies * noise.log_characteristic(omega / scale / copies))
    if observations.cov is not None:
        raise ValueError(
            "a kernel fit needs the distribution of the noise, not its covariance alone: "
            "noise=nj.noise.Gaussian(cov) if it is Gaussian, or replicates"
        )
    rows = np.linspace(0, len(observations.y) - 1, min(_PAIRS_OF_REPLICATES, len(observations.y)))
    pairs = observations.x[rows.astype(int)]
    apart = ((pairs[:, 0] - pairs[:, 1]) / scale / copies).astype(np.float32)

    def phi(omega):
        """√mean cos⟨ω, x̃ − x̃'⟩ = |φ| of one copy, V of which make that of their mean."""
        flat = omega.reshape(-1, omega.shape[-1])
        squared = jax.lax.map(lambda w: jnp.cos(apart @ w).mean(), flat, batch_size=256)
        phi = jnp.maximum(squared, _FLOOR**2) ** (copies / 2)
        return phi.reshape(omega.shape[:-1]).astype(jnp.complex64)

    return phi
