"""Quadrature rules for exact expectations, as nodes `[N, d]` and weights `[N]`."""

import itertools

import numpy as np


def tensor(nodes, weights, dim):
    """The rule of `dim` independent coordinates from that of one, nodes `[n]` and weights `[n]`."""
    grid = np.array(list(itertools.product(nodes, repeat=dim)))
    return grid, np.prod(list(itertools.product(weights, repeat=dim)), axis=1)


def matrix(cov, dim):
    """A covariance `[]`, `[d]` or `[d, d]` as a matrix."""
    return np.asarray(cov) if np.ndim(cov) == 2 else np.diag(np.broadcast_to(cov, dim))


def gauss_hermite(n, cov, dim=None):
    """The rule of N(0, cov), n nodes along each axis of cov of any form; it may be singular."""
    cov = matrix(cov, dim)
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    nodes, weights = tensor(nodes, weights / weights.sum(), len(cov))
    variances, axes = np.linalg.eigh(cov)
    return nodes * np.sqrt(np.maximum(variances, 0)) @ axes.T, weights


def laplace(n, scales):
    """The rule of independent Laplace noise of these scales: n nodes on each side, to 36 scales."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    nodes = 18 * (nodes + 1)
    weights = 18 * weights * np.exp(-nodes) / 2
    grid, weights = tensor(np.append(-nodes, nodes), np.tile(weights, 2), len(scales))
    return grid * scales, weights
