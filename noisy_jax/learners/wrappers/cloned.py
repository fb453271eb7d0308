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

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Sample, check_learner, read_through, unrolled
from noisy_jax.noise import Gaussian
from noisy_jax.validation import check_dimension, concrete


def cloned(learner: Learner, noise: Gaussian) -> Learner:
    """A learner that needs several Gaussian copies of each instance, run from a single copy.

    Args:
        learner: a learner of V copies, built for the noise that the clones have:
            `noise.cloned(V)`, of covariance VΣ. A world must exist for that noise: a Gaussian
            kernel of length scale ℓ needs 2‖Σ‖ < ℓ² for V = 2.
        noise: the Gaussian noise of the single copy, the same in every round (clones of other noise
            would not be independent). Its mean has no effect, as samples come with known means
            subtracted.

    Returns:
        A `Learner` of 1 copy. It has unbiased readings if the given one has.

    Example:
        >>> import jax, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise.cloned(2))
        >>> options = {"horizon": 1000, "radius": 2.0}
        >>> learner = nj.learners.parallel_worlds(world, **options)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(cloned(learner, noise), stream, noise, jax.random.key(1))
        >>> loss = (run.predictions - stream.y) ** 2
        >>> print(f"mean squared loss {loss.mean():.2f}, zero's {(stream.y**2).mean():.2f}")
        mean squared loss 0.04, zero's 0.20
    """
    check_learner(learner)
    if not isinstance(noise, Gaussian):
        raise ValueError(
            f"cloned needs Gaussian noise, got {type(noise).__name__}: clones of a copy with other "
            "noise are not independent"
        )
    copies, clone_noise = learner.copies, noise.cloned(learner.copies)
    if learner.noise is not None and not _same(learner.noise, clone_noise):
        raise ValueError(
            f"{copies} copies cloned from noise of covariance {noise.cov} have noise of covariance "
            f"{clone_noise.cov}, but the learner was built for {learner.noise}: build its world "
            f"with noise.cloned({copies})"
        )

    def clone(sample: Sample, key) -> tuple[Sample, jax.Array]:
        clone_key, learner_key = jax.random.split(key)
        single = jnp.asarray(sample.x[0])
        check_dimension("noise.cov", noise.cov, single.shape)
        draws = jnp.zeros((copies, *single.shape), single.dtype)
        g = Gaussian(noise.cov).centred(clone_key, draws)
        x = single[None] + copies**0.5 * (g - g.mean(axis=0, keepdims=True))
        return Sample(x, sample.y, clone_noise.cov), learner_key

    def step(state, sample, key):
        return learner.step(state, *clone(sample, key))

    def unroll(state, samples, x, keys):
        samples, keys = jax.vmap(clone)(samples, keys)
        return unrolled(learner)(state, samples, x, keys)

    read = read_through(learner, lambda state, *seen: (state, *clone(*seen)))
    return learner._replace(
        step=step, unroll=unroll, copies=1, noise=noise, read=read, correlated_targets=False
    )


def _same(noise, clone_noise: Gaussian) -> bool:
    """Whether a noise is that of the clones; true if a covariance is traced."""
    if not isinstance(noise, Gaussian):
        return False
    one, other = concrete(noise.cov), concrete(clone_noise.cov)
    if one is None or other is None:
        return True
    dim = max(cov.shape[-1] if cov.ndim else 1 for cov in (one, other))
    one, other = (cov if cov.ndim == 2 else cov * np.eye(dim) for cov in (one, other))
    return np.allclose(one, other, rtol=1e-5)
