"""A practitioner: a table of noisy columns, its fit, predictions."""

# pyright: strict

from typing import assert_type

import numpy as np

import noisy_jax as nj
from noisy_jax.observed.fits.judged import Comparison
from noisy_jax.observed.fits.parts import TableMoments

rng = np.random.default_rng(0)
x = rng.normal(size=400)
frame = {"a": x + 0.5 * rng.normal(size=400), "y": 2 * x + 0.1 * rng.normal(size=400)}
table = assert_type(
    nj.table(frame, target="y", noise={"a": nj.sd(0.5)}), nj.observations.Observations
)
part = assert_type(nj.fits.moments(table), TableMoments)
fit = nj.fit([part, part])
assert_type(fit, nj.fits.LinearFit)
assert_type(fit.coefficients, np.ndarray)
assert_type(fit.labels, tuple[str, ...])
assert_type(fit.std_error, np.ndarray)
assert_type(fit.risk, Comparison)
assert_type(fit.uncorrected, nj.fits.Estimates)
assert_type(fit.residuals(table), np.ndarray)
assert_type(fit.intercept, float)
assert_type(fit.strength, float)
print(fit.predict(x[:, None]), nj.fit(part for part in [table, table]))


def slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y @ x / np.sum(x**2)


simulated = nj.methods.SIMEX(slope, draws=8)
assert_type(nj.fit(table, simulated), nj.fits.SimexFit)
labels = nj.table({"a": frame["a"], "y": 1.0 * (frame["y"] > 0)}, target="y", noise={"a": 0.25})
assert_type(nj.fit(labels, nj.methods.Logistic()), nj.fits.Fit)
