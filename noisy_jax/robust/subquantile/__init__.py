"""Subquantile minimization: kernel regression and classification if some rows are corrupted."""

from noisy_jax.robust.subquantile.fits import Fit, logistic, ridge
from noisy_jax.robust.subquantile.gram import Gram, chunked_gram
from noisy_jax.robust.subquantile.problem import Problem, ridge_problem
from noisy_jax.robust.subquantile.steps import State, init, step

__all__ = [
    "Fit",
    "Gram",
    "Problem",
    "State",
    "chunked_gram",
    "init",
    "logistic",
    "ridge",
    "ridge_problem",
    "step",
]
