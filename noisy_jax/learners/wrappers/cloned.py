"""Several independent copies made from a single one, where the noise is Gaussian and known.

From x̃ = x + n with n ~ N(0, Σ), draw g_1, …, g_V ~ N(0, Σ) and set

    x̃_v = x̃ + √V (g_v − ḡ),   ḡ the mean of the g_v.

The added vectors have covariances (Vδ_{uv} − 1)Σ, so that the noises of different copies are
uncorrelated; being jointly Gaussian they are independent, each N(0, VΣ). For V = 2 the copies are
x̃ ± ξ with ξ ~ N(0, Σ). So every learner that needs several copies runs from one, at V times the
noise: kernel learning from one noisy copy, which the papers leave open.

Source: derived for this library.
"""

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Sample, check_learner, unrolled
from noisy_jax.noise import Gaussian
from noisy_jax.validation import check_dimension, concrete


def cloned(learner: Learner, noise: Gaussian) -> Learner:
    """A learner that needs several Gaussian copies of each instance, run from a single copy.

    Args:
        learner: any learner of V copies, built for the noise that the clones have:
            `noise.cloned(V)`, of covariance VΣ. A Gaussian kernel of length scale ℓ
            therefore needs 2‖Σ‖ < ℓ² for V = 2.
        noise: the Gaussian noise of the single copy, the same in every round. Its mean does not
            matter, as samples come with known means subtracted.

    Returns:
        A `Learner` of 1 copy.

    Raises:
        ValueError: noise that is not Gaussian (clones of other distributions are not independent), or a
            learner that was built for other noise than the clones'.

    Example:
        >>> import noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise.cloned(2))
        >>> learner = nj.learners.parallel_worlds(world, horizon=9, radius=1.0, learning_rate=0.1)
        >>> cloned(learner, noise).copies
        1
    """
    check_learner(learner)
    if not isinstance(noise, Gaussian):
        raise ValueError(
            f"cloned needs Gaussian noise, got {type(noise).__name__}: copies made from a single "
            "one are independent for Gaussian noise alone"
        )
    copies, clones = learner.copies, noise.cloned(learner.copies)
    if learner.noise is not None and not _same(learner.noise, clones):
        raise ValueError(
            f"{copies} copies cloned from noise of covariance {noise.cov} have noise of covariance "
            f"{clones.cov}, but the learner was built for {learner.noise}: build its world with "
            f"noise.cloned({copies})"
        )

    def copies(sample: Sample, key) -> tuple[Sample, jax.Array]:
        clone_key, learner_key = jax.random.split(key)
        single = sample.x[0]
        check_dimension("noise.cov", noise.cov, single.shape)
        draws = jnp.zeros((copies, *single.shape), single.dtype)
        g = Gaussian(noise.cov).centred(clone_key, draws)
        x = single[None] + copies**0.5 * (g - g.mean(axis=0, keepdims=True))
        return Sample(x, sample.y, clones.cov), learner_key

    def step(state, sample, key):
        return learner.step(state, *copies(sample, key))

    def unroll(state, samples, x, keys):
        samples, keys = jax.vmap(copies)(samples, keys)
        return unrolled(learner)(state, samples, x, keys)

    return learner._replace(step=step, unroll=unroll, copies=1, noise=noise)


def _same(distribution, clones: Gaussian) -> bool:
    """Whether a distribution is that of the clones, as far as its parameters are concrete."""
    if not isinstance(distribution, Gaussian):
        return False
    covs = [concrete(distribution.cov), concrete(clones.cov)]
    if any(cov is None for cov in covs):
        return True
    dim = max(cov.shape[-1] if cov.ndim else 1 for cov in covs)
    return np.allclose(*(cov if cov.ndim == 2 else cov * np.eye(dim) for cov in covs), rtol=1e-5)
