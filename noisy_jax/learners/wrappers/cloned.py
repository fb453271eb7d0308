"""Several independent copies made from a single one, if the noise is Gaussian and known.

From x̃ = x + n with n ~ N(0, Σ), draw g_1, …, g_V ~ N(0, Σ) and set

    x̃_v = x̃ + √V (g_v − ḡ),   ḡ the mean of the g_v.

The added vectors have covariances (Vδ_{uv} − 1)Σ, so that the noises of different copies are
uncorrelated. As they are jointly Gaussian they are independent, each N(0, VΣ). For V = 2 the copies
are x̃ ± ξ with ξ ~ N(0, Σ). So a learner that needs V copies runs from a single one, at V times the
noise.

Source: known in statistics as data fission or data thinning; for online learning not in the papers,
which leave kernel learning from a single copy open.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_learner, estimates_through, unrolled
from noisy_jax.noise import Gaussian, PerRound
from noisy_jax.noise.rounds import by_round, differs
from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.keys import parsed_key


def cloned(learner: Learner, noise: Gaussian | PerRound) -> Learner:
    """Returns a learner of one Gaussian copy, which makes of it the V copies that `learner` needs.

    From a copy x̃ = x + n with n ~ N(0, Σ) it draws V copies ("clones") x̃ + ξ_v in each round. The
    random ξ_v are correlated in such a way that the noises of the clones are independent N(0, VΣ).
    So the price is noise of V times the covariance. Noise in y that is correlated with n is
    correlated with all clones, as they contain n, and not with the first alone. So where
    `learner.needs.targets` is "any", the result has "independent".

    Args:
        learner: a learner of V = `learner.needs.copies` copies. If it is built for a distribution,
            as with one of `worlds`, this must be `noise.cloned(V)`, of covariance VΣ; else
            ValueError. A world must exist for that noise: a Gaussian kernel of length scale ℓ and V
            = 2 need 2‖Σ‖ < ℓ².
        noise: the `noise.Gaussian` of the single copy, with the covariance Σ; others raise
            ValueError, as their clones would not be independent. Its mean has no effect, because
            samples come with known means subtracted. With `noise.PerRound` Σ is read from
            `sample.cov` in each round, and the learner must not be built for a distribution: take
            `two_copies` or `unknown_noise`.

    Example:
        >>> import jax, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise.cloned(2))
        >>> learner = nj.learners.parallel_worlds(world, horizon=1000, radius=2.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> single = nj.wrappers.cloned(learner, noise)
        >>> run = nj.rollout(single, stream, noise, jax.random.key(1))
        >>> loss = (run.predictions - stream.y) ** 2
        >>> print(f"mean squared loss {loss.mean():.2f}, zero's {(stream.y**2).mean():.2f}")
        mean squared loss 0.04, zero's 0.20
    """
    check_learner(learner)
    needs, (gaussian, axis) = learner.needs, by_round(noise)
    copies = needs.copies
    if not isinstance(gaussian, Gaussian):
        raise ValueError(
            f"cloned needs Gaussian noise, got {type(gaussian).__name__}: clones of a copy with "
            "other noise are not independent"
        )
    per_round, built = axis == 0, None if needs.noise is Gaussian else needs.noise
    if per_round and built is not None:
        raise ValueError(
            f"noise changes by round, but the learner was built for {built}: use a learner that is "
            "built for no noise in particular, such as learners.two_copies or unknown_noise"
        )
    other_kind = built is not None and not isinstance(built, Gaussian)  # known of traced noise, too
    if other_kind or (built is not None and differs(built, gaussian.cloned(copies))):
        raise ValueError(
            f"{copies} copies cloned from noise of covariance {gaussian.cov} have noise of "
            f"covariance {gaussian.cloned(copies).cov}, but the learner was built for {built}: "
            f"build its world with noise.cloned({copies})"
        )

    def clone(sample: Sample, key) -> tuple[Sample, jax.Array]:
        clone_key, learner_key = jax.random.split(parsed_key(key))
        single = jnp.asarray(sample.x[0])
        cov = sample.cov if per_round else gaussian.cov
        if cov is None:
            raise ValueError("sample.cov must be the covariance of the round, got None")
        check_dimension("noise.cov", cov, single.shape)
        draws = jnp.zeros((copies, *single.shape), single.dtype)
        g = Gaussian(cov).centred(clone_key, draws)
        x = single[None] + copies**0.5 * (g - g.mean(axis=0, keepdims=True))
        return Sample(x, sample.y, copies * cov), learner_key

    def step(state, sample, key):
        return learner.step(state, *clone(sample, key))

    def unroll(state, samples, x, keys):
        samples, keys = jax.vmap(clone)(samples, keys)
        return unrolled(learner)(state, samples, x, keys)

    clean_estimates = estimates_through(
        learner, lambda state, sample, key: (state, *clone(sample, key))
    )
    targets = "exact" if needs.targets == "exact" else "independent"
    needs = needs._replace(copies=1, noise=noise, targets=targets)
    return learner._replace(step=step, unroll=unroll, needs=needs, clean_estimates=clean_estimates)
