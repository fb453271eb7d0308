"""Quadrature rules for exact expectations, as nodes `[N, d]` and weights `[N]`."""

import itertools

import numpy as np


def tensor(nodes, weights, dim):
    """The rule of `dim` independent coordinates from that of one, nodes `[n]` and weights `[n]`."""
    grid = np.array(list(itertools.product(nodes, repeat=dim)))
    return grid, np.prod(list(itertools.product(weights, repeat=dim)), axis=1)


def gauss_hermite(n, cov):
    """The rule of N(0, cov), n nodes along each axis of cov `[d, d]`, which may be singular."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    nodes, weights = tensor(nodes, weights / weights.sum(), len(cov))
    variances, axes = np.linalg.eigh(cov)
    return nodes * np.sqrt(np.maximum(variances, 0)) @ axes.T, weights
