"""Trimming where the honest instances are noisy as well: fits in a surrogate's space.

Row i shows two independent copies x̃_i, x̃'_i of its instance, and y_i, clean or corrupted. With the
clean kernel k, its surrogate k̂ and f = Σ_j a_j k(x̃_j, ·), which predicts on clean data:

- blind: fits k(x̃, x̃) as if copies were clean;
- surrogate: fits k̂(x̃, x̃);
- second copy: as surrogate, but trims by r_i = y_i − Σ_j a_j k̂(x̃_j, x̃'_i).

For a that does not depend on x̃'_i, E r_i = y_i − f(x_i): residuals on second copies are unbiased,
those on the copies that a was fitted to are not, nor are entries k̂(x̃_i, x̃_j) of k(x_i, x_j), both
of whose arguments are noisy. E r_i² = (y_i − f(x_i))² + Var r_i even so: where f is steep, honest
rows look bad. And after the first refit a depends on which rows second copies let stay.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax import worlds
from noisy_jax.commands.robustness import (
    Setting,
    clean_error,
    relabelling,
    ridge_on,
    trimmed,
)
from noisy_jax.noise import Gaussian
from noisy_jax.robust.subquantile.problem import rows_kept, smallest

METHODS = ("blind ridge", "blind", "surrogate ridge", "surrogate", "second copy", "oracle")
"""The oracle is ridge of k̂(x̃, x̃) on the honest rows; names without ridge trim."""

ADVERSARIES = ("gross", "shift", "small shift")
"""Those of `robustness` under whom rows are noisy as well."""

_REFITS = 10


class NoisyScores(NamedTuple):
    """How fits to noisy and contaminated rows do, by `METHODS`.

    Attributes:
        error: `[M]`, root mean squared error on clean test rows.
        precision: `[M]`, share of the rows kept that are honest.
    """

    error: chex.Array
    precision: chex.Array


@jax.default_matmul_precision("highest")
def on_noisy_inputs(
    setting: Setting,
    length_scale: float,
    variance: float,
    shares: chex.Array,
    key: chex.PRNGKey,
) -> Mapping[str, NoisyScores]:
    """Scores `[E, M]` of one table of `setting`, with Gaussian noise on x, by adversary."""
    table_key, noise_key, corrupt_key = jax.random.split(key, 3)
    table = setting.draw(table_key)
    distribution = Gaussian(variance)
    world = worlds.gaussian(dim=table.x.shape[1], length_scale=length_scale, noise=distribution)
    copies = [distribution.sample(copy_key, table.x) for copy_key in jax.random.split(noise_key)]
    score = partial(_scores, setting, world, table, copies)

    def under(corrupt, share):
        return score(corrupt(corrupt_key, table.x, table.y, share), share)

    every = relabelling(setting, table)
    return {name: jax.vmap(partial(under, every[name]))(shares) for name in ADVERSARIES}


def _scores(setting, world, table, copies, made, share) -> NoisyScores:
    first, second = copies
    blind, surrogate = world.kernel(first, first), world.surrogate(first, first)
    crossed = world.surrogate(second, first)
    C, honest, everything = setting.regularization, ~made.corrupted, jnp.ones_like(made.corrupted)
    refit = partial(ridge_on, gram=surrogate, y=made.y, regularization=C)
    blind_fit, surrogate_fit = (
        trimmed(setting, gram, made.y, share) for gram in (blind, surrogate)
    )

    def reselect(_, kept):
        residuals = made.y - crossed @ refit(kept)
        return smallest(jnp.abs(residuals), rows_kept(made.y.size, share))[0]

    crosswise = jax.lax.fori_loop(0, _REFITS, reselect, surrogate_fit.kept)
    found = (
        (ridge_on(everything, blind, made.y, regularization=C), everything),
        (blind_fit.coefficients, blind_fit.kept),
        (refit(everything), everything),
        (surrogate_fit.coefficients, surrogate_fit.kept),
        (refit(crosswise), crosswise),
        (refit(honest), honest),
    )
    coefficients, kept = (jnp.stack(part) for part in zip(*found, strict=True))
    error = clean_error(coefficients, world.kernel(table.test_x, first), table)
    precision = jnp.sum(kept & honest[None], axis=1) / jnp.sum(kept, axis=1)
    return NoisyScores(error, precision)
