"""Checks that one can divide by the characteristic function of a distribution."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.noise.base import Noise
from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import concrete


def characteristic_problem(noise: Noise, dim: int) -> str:
    """The reason why one cannot divide by the characteristic function; "" if one can."""
    if noise.characteristic_vanishes:
        return "whose characteristic function has zeros"
    if _log_characteristic(noise, jnp.zeros(dim)) is None:
        return "whose characteristic function is not known"
    if _changes_sign(noise, dim):
        return "whose characteristic function has zeros: set characteristic_vanishes = True"
    return ""


def _changes_sign(noise: Noise, dim: int) -> bool:
    """True if a real characteristic function is negative on an axis, at some |ω| < 12/σ."""
    if any(concrete(leaf) is None for leaf in jax.tree.leaves(noise)):
        return False
    with jax.ensure_compile_time_eval():
        cov = np.asarray(noise.cov)
        spread = np.sqrt(np.diagonal(cov) if cov.ndim == 2 else np.broadcast_to(cov, dim))
        axes = np.eye(dim) / np.where(spread > 0, spread, 1)
        omega = jnp.asarray(np.linspace(0, 12, 241)[:, None, None] * axes[None], float)
        phi = np.exp(np.asarray(_log_characteristic(noise, omega), complex))
    return bool(np.abs(np.imag(phi)).max() < 1e-4 and np.real(phi).min() < -1e-4)


def compiled(function):
    """`jax.jit` of `function(noise, …)`, which is called as it is for noise that is no pytree."""
    program = jax.jit(function)

    @functools.wraps(function)
    def call(noise, *args):
        return (function if jax.tree_util.all_leaves([noise]) else program)(noise, *args)

    return call


_log_characteristic = compiled(lambda noise, omega: noise.log_characteristic(omega))


def check_characteristic(noise: Noise, dim: int) -> None:
    """Raises ValueError unless the noise has a characteristic function that one can divide by."""
    instance("noise", noise, Noise, "one distribution, such as noise.Laplace(0.1)")
    name = type(noise).__name__
    check_dimension(f"{name}.cov", noise.cov, (dim,))
    if problem := characteristic_problem(noise, dim):
        wanted = "noise must have a known characteristic function without zeros"
        raise ValueError(f"{wanted}, got {name}, {problem}: features divide by it")
