"""Unbiased estimates of any JAX function at clean inputs, from noisy copies of them.

Each transformation takes a function f of one clean input x, and returns a function g of noisy
copies of x with E g = f(x). They differ in what must be known of the noise:

| transformation | what is known of the noise | copies | f must be |
|---|---|---|---|
| `multilevel` | nothing; the bias is ~ 1/V² | random, at most V | twice differentiable |
| `pair` | that it is Gaussian | 2 | entire |
| `gaussian` | that it is Gaussian, and its covariance | 1 | entire |
| `replicates` | nothing; g has a small bias | V | 2(k + 1) times differentiable |

x may be a pytree, such as a dict of arrays, and f may return a new state besides the loss, or
exchange numbers between rows, as batch normalization does (see `Transformed`).

Differentiate outside: the gradient of g in the other arguments is unbiased for the gradient of f.
`diagnose` tells from noisy rows alone whether a correction works, and whether it pays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.unbiased import truncation
from noisy_jax.unbiased.diagnosis import Diagnosis, diagnose
from noisy_jax.unbiased.entire import register
from noisy_jax.unbiased.gaussian import gaussian
from noisy_jax.unbiased.multilevel import Multilevel, multilevel
from noisy_jax.unbiased.pair import pair
from noisy_jax.unbiased.replicates import replicates
from noisy_jax.unbiased.transformed import Transformed
from noisy_jax.unbiased.truncation.gradients import kernel_gradient

__all__ = [
    "Diagnosis",
    "Multilevel",
    "Transformed",
    "diagnose",
    "gaussian",
    "kernel_gradient",
    "multilevel",
    "pair",
    "register",
    "replicates",
    "truncation",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Says what to write in place of a name that is gone."""
        refuse(__name__, name)
