"""Distributions that change from round to round, and checks of the noise of several rounds."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from noisy_jax.noise.base import Noise, check_drawable, register_distribution
from noisy_jax.validation.arrays import check_shape
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import concrete


@register_distribution
class PerRound:
    """A distribution that changes from round to round.

    Give it as `noise` or `y_noise` of `nj.rollout` on a stream of T rounds. `noise.observe`, which
    draws one round, takes the distribution of that round instead.

    Args:
        distribution: a distribution each of whose parameters has a leading axis of T rounds, as
            `jax.vmap` over the parameters makes it. Other shapes raise ValueError.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=5, dim=3)
        >>> noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(jnp.linspace(0.1, 0.2, 5)))
        >>> learner = nj.learners.known_covariance(radius=1.0)
        >>> print(nj.rollout(learner, stream, noise, jax.random.key(1)).predictions.shape)
        (5,)
    """

    distribution: Noise

    def __post_init__(self) -> None:
        instance("PerRound.distribution", self.distribution, Noise, _PER_ROUND)
        self.distribution.check(stacked=True)
        _check_stacked(self.distribution)


_PER_ROUND = "build it as PerRound(jax.vmap(Gaussian)(covs))"


def _check_stacked(distribution: Noise, horizon: int | None = None) -> None:
    """Raises ValueError unless all leaves lead with an axis of T rounds."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(distribution)]
    lengths = {shape[:1] for shape in shapes} | ({(horizon,)} if horizon else set())
    if len(lengths) > 1 or () in lengths:
        rounds = f"{horizon} rounds" if horizon else "rounds"
        wanted = f"every parameter stacked along the {rounds}"
        raise ValueError(f"PerRound needs {wanted}, got shapes {shapes}; {_PER_ROUND}")


def check_noise(
    noise: Noise | PerRound, y_noise: Noise | PerRound | None, horizon: int | None = None
) -> None:
    """Raises ValueError if `noise` or `y_noise` is not a distribution that fits the rounds.

    The horizon is `None` for a single round, for which `PerRound` is not allowed.
    """
    for name, distribution in (("noise", noise), ("y_noise", y_noise)):
        if isinstance(distribution, PerRound) and horizon is not None:
            _check_stacked(distribution.distribution, horizon)
        elif distribution is not None or name == "noise":
            instance(name, distribution, Noise, "noise.Gaussian(0.1) is one")
        check_drawable(distribution)
    shape = (horizon,) if isinstance(y_noise, PerRound) and horizon is not None else ()
    scalar, _ = by_round(y_noise)
    for leaf in jax.tree.leaves(getattr(scalar, "rest", scalar)):  # that of noise.Correlated
        check_shape("each parameter of y_noise", leaf, shape, "a scalar distribution")


def differs(built: Any, noise: Any) -> bool:
    """True if both are concrete and differ. Means are ignored.

    A learner built for noise that changes by round reads its covariance: only the kind must agree.
    """
    if built is noise or any(concrete(leaf) is None for leaf in jax.tree.leaves((built, noise))):
        return False
    (built, built_axis), (noise, axis) = by_round(built), by_round(noise)
    if not isinstance(built, type(noise)):
        return True
    if built_axis == 0:
        return False
    if jax.tree.structure(built).children() != jax.tree.structure(noise).children():
        return True
    parameters = jax.tree_util.tree_leaves_with_path(built)
    for (path, leaf), other in zip(parameters, jax.tree.leaves(noise), strict=True):
        stacked = np.asarray(other) if axis == 0 else np.asarray(other)[None]
        values = [np.asarray(leaf)[None], stacked]
        dims = {value.shape[-1] for value in values if value.ndim > 1}
        if jax.tree_util.keystr(path).endswith(".mean"):
            continue
        if len(dims) > 1:
            return True
        if any(value.ndim > 2 for value in values):  # one is a full matrix
            units = np.eye(*dims)
            values = [v if v.ndim > 2 else v.reshape(len(v), -1, 1) * units for v in values]
        if not np.allclose(*(v.reshape(len(v), -1) for v in values), rtol=1e-4, atol=0):
            return True
    return False


def by_round(noise: Any) -> tuple[Any, int | None]:
    """A distribution, with its axis for `jax.vmap` over rounds: 0 if it changes, else `None`."""
    return (noise.distribution, 0) if isinstance(noise, PerRound) else (noise, None)
