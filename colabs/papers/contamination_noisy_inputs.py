"""Trimming where the honest instances are noisy as well: fits in a surrogate's space.

Row i shows two independent copies x̃_i, x̃'_i of its instance, and y_i, clean or corrupted. With
the clean kernel k, its surrogate k̂ and f = Σ_j a_j k(x̃_j, ·), which predicts on clean data:

- uncorrected: fits k(x̃, x̃) as if copies were clean;
- surrogate: fits k̂(x̃, x̃); the oracle is its ridge on the honest rows;
- second copy: as surrogate, but trims by r_i = y_i − Σ_j a_j k̂(x̃_j, x̃'_i).

For a that does not depend on x̃'_i, E r_i = y_i − f(x_i): residuals on second copies are
unbiased, those on the copies that a was fitted to are not, nor are entries k̂(x̃_i, x̃_j) of
k(x_i, x_j), both of whose arguments are noisy. Still E r_i² = (y_i − f(x_i))² + Var r_i: where f is
steep, honest rows look bad. And after the first refit a depends on which rows second copies kept.
"""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp

from contamination_fits import Scores, Setting, judged, relabelling, ridge_on, trimmed
from noisy_jax.noise import Gaussian
from noisy_jax.robust.subquantile.problem import rows_kept, smallest
from noisy_jax.worlds import gaussian

METHODS = (
    "uncorrected ridge",
    "uncorrected",
    "surrogate ridge",
    "surrogate",
    "second copy",
    "oracle",
)
"""Names without ridge trim."""

ADVERSARIES = ("gross", "shift", "small shift")
"""Those of `contamination_fits` under whom instances are noisy as well."""

_REFITS = 10  # of the fit that trims by second copies


@jax.default_matmul_precision("highest")
def on_noisy_inputs(
    setting: Setting, length_scale: float, variance: float, shares: jax.Array, key: jax.Array
) -> Mapping[str, Scores]:
    """Scores of one table with Gaussian noise of a variance on x, in each of the shares `[E]`.

    Returns:
        By adversary, `[E, M]` by `METHODS`.
    """
    table_key, noise_key, corrupt_key = jax.random.split(key, 3)
    table = setting.draw(table_key)
    noise = Gaussian(variance)
    world = gaussian(dim=table.x.shape[1], length_scale=length_scale, noise=noise)
    first, second = (noise.sample(copy_key, table.x) for copy_key in jax.random.split(noise_key))
    score = partial(_noisy_scores, setting, world, table, first, second)

    def under(corrupt, share):
        return score(corrupt(corrupt_key, table.x, table.y, share), share)

    every = relabelling(setting, table)
    return {name: jax.vmap(partial(under, every[name]))(shares) for name in ADVERSARIES}


def _noisy_scores(setting, world, table, first, second, made, share) -> Scores:
    uncorrected, surrogate = world.kernel(first, first), world.surrogate(first, first)
    crossed = world.surrogate(second, first)
    alpha, honest = setting.alpha, ~made.corrupted
    everything = jnp.ones_like(made.corrupted)
    refit = partial(ridge_on, gram=surrogate, y=made.y, alpha=alpha)
    uncorrected_fit, surrogate_fit = (
        trimmed(setting, gram, made.y, share) for gram in (uncorrected, surrogate)
    )

    def reselect(_, kept):
        residuals = made.y - crossed @ refit(kept)
        return smallest(jnp.abs(residuals), rows_kept(made.y.size, share))[0]

    crosswise = jax.lax.fori_loop(0, _REFITS, reselect, surrogate_fit.kept)
    found = (
        (ridge_on(everything, uncorrected, made.y, alpha), everything),
        (uncorrected_fit.coefficients, uncorrected_fit.kept),
        (refit(everything), everything),
        (surrogate_fit.coefficients, surrogate_fit.kept),
        (refit(crosswise), crosswise),
        (refit(honest), honest),
    )
    coefficients, kept = (jnp.stack(part) for part in zip(*found, strict=True))
    test_gram = world.kernel(table.test_x, first)
    return judged(coefficients, test_gram, table, kept, honest[None])
