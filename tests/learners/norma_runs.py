"""Streams for NORMA, and a run of it by a scan over `step`."""

import functools

import jax
import numpy as np

import noisy_jax as nj
from tests.learners import references
from tests.learners.runs import inputs

T, DIM, LENGTH_SCALE = 60, 2, 0.75**0.5
KERNEL = nj.kernels.gaussian(length_scale=LENGTH_SCALE)
PLAIN = references.gaussian_kernel(LENGTH_SCALE)
FAR = {  # the rounds that ν counts; for the joint gradient, what takes their place
    "nu": lambda p, y, s: y * p <= s,
    "novelty": lambda p, y, s: p <= 0,  # predictions are f(x) − ρ
    "nu tube": lambda p, y, s: np.abs(y - p) > s,
    "huber quantile": lambda p, y, s: np.abs(y - p) > s,
    "huber joint": lambda p, y, s: np.minimum(1, ((y - p) / s) ** 2) / 2,
}


def labelled(rng, rounds=T):
    x = rng.normal(size=(rounds, DIM))
    return x, np.where(x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=rounds) > 0, 1.0, -1.0)


def valued(rng, rounds=T):
    x = rng.normal(size=(rounds, DIM))
    return x, np.sin(2 * x[:, 0]) + 0.5 * rng.standard_t(3, size=rounds)


def scanned(learner, x, y):
    """(state, predictions, rule states before each round) by a scan over `step`."""

    def one_round(state, shown):
        sample, x, key = shown
        return learner.step(state, sample, key), (learner.predict(state, x), state.rule)

    scan = jax.jit(functools.partial(jax.lax.scan, one_round))
    state, output = scan(learner.init(x.shape[1]), inputs(x, y))
    return state, *output


def kept(alpha, size):
    """Coefficients as a ring holds them."""
    slots = np.zeros(size)
    newest = np.arange(max(0, len(alpha) - size), len(alpha))
    slots[newest % size] = alpha[newest]
    return slots
