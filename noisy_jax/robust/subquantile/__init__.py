"""Subquantile minimization: kernel regression and classification if some rows are corrupted.

`STARTS` are the names of the starts of a fit: "zero", "median", "ridge" and "huber".
"""

from noisy_jax.robust.subquantile.fits import Fit, logistic, ridge
from noisy_jax.robust.subquantile.gram import Gram, chunked_gram, dense_gram
from noisy_jax.robust.subquantile.problem import Problem, logistic_problem, ridge_problem
from noisy_jax.robust.subquantile.starts import STARTS
from noisy_jax.robust.subquantile.steps import State, init, step

__all__ = [
    "STARTS",
    "Fit",
    "Gram",
    "Problem",
    "State",
    "chunked_gram",
    "dense_gram",
    "init",
    "logistic",
    "logistic_problem",
    "ridge",
    "ridge_problem",
    "step",
]
