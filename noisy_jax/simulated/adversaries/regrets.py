"""The regret of one run, as a function of the stream that can be differentiated."""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Stream
from noisy_jax.losses import squared
from noisy_jax.noise import Noise
from noisy_jax.simulated.comparators import kernel_ball, linear_ball
from noisy_jax.simulated.rollouts import final_regret
from noisy_jax.validation import check_shape, given

Kernel = Callable[[jax.Array, jax.Array], jax.Array]
"""`(x[n, d], z[m, d]) -> [n, m]`, such as one of `kernels`."""


def clean_regret(
    learner: Learner,
    stream: Stream,
    noise: Noise,
    key: chex.PRNGKey,
    *,
    radius: chex.Numeric,
    kernel: Kernel | None = None,
    y_noise: Noise | None = None,
    rounds: chex.Numeric | None = None,
) -> jax.Array:
    """The regret `[]` of one run on clean data, squared loss, against the best one in a ball.

        R = Σ_t (f_t(x_t) − y_t)² − min_{‖u‖ ≤ B} Σ_t (u(x_t) − y_t)²

    Its gradient in the stream takes the minimizer u* as a constant: by the envelope theorem the
    derivative of the minimum is the derivative of Σ_t (u*(x_t) − y_t)² at fixed u*.

    It takes the arguments of `simulated.final_regret`; x and y must be zero after the `rounds`
    that count. The learner must allow reverse mode only if you take a gradient. Comparators are
    weights in the ball of radius B by default, and with a `kernel` the functions of its space.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0], [1.0]], [1.0, -1.0])
        >>> learner = nj.learners.two_copies(radius=1.0, learning_rate=0.25)
        >>> def of(stream):
        ...     return clean_regret(
        ...         learner, stream, nj.noise.Gaussian(0.0), jax.random.key(0), radius=1.0)
        >>> print(of(stream), jax.grad(of)(stream).y)  # 1 + 1.5² − 2, with u* = 0
        1.25 [ 1.5 -1. ]
    """
    if kernel is not None and not callable(kernel):
        raise ValueError(f"kernel must be a function (x, z) -> [n, m], got {given(kernel)}")
    fixed = jax.lax.stop_gradient(stream)
    if kernel is None:
        comparator = stream.x @ linear_ball(fixed, radius).weights
    else:
        horizon, gram = len(stream.y), kernel(fixed.x, fixed.x)
        check_shape("kernel(x, z)", gram, (horizon, horizon), "for x and z of [T, d]")
        used = jnp.arange(horizon) < (horizon if rounds is None else rounds)
        gram = jnp.where(used[:, None] & used[None], gram, 0)
        found = kernel_ball(gram, fixed.y, radius)
        # The values come from `found`, as float32 coefficients may cancel.
        values = jnp.matmul(kernel(stream.x, fixed.x), found.coefficients, precision="highest")
        comparator = found.predictions + values - jax.lax.stop_gradient(values)
    return final_regret(
        learner, stream, noise, key,
        loss=squared(), comparator=comparator, y_noise=y_noise, rounds=rounds,
    )  # fmt: skip
