"""Kernel learning under unknown noise, with the whole gradient estimated as one function.

    f_{t+1} = P(f_t − η_t Ĝ_t),   Ĝ_t = Σ_j w_j Re ℓ'(f_t(z_j), y_t) Ψ(z_j)

P is the projection on {‖f‖ ≤ W}. The clean gradient G(x) = ℓ'(f_t(x), y_t) Ψ(x) is a smooth
function of x. The transformations of `nj.unbiased` estimate any such function from noisy copies of
x, as a weighted sum of its values at few points z_j. So one set of copies is enough for the
derivative and the feature map together, and the loss needs no power series. `random_truncation`
estimates them one by one, from copies of their own.

At complex points, of `pair` and `gaussian`, Re(ℓ'(f(z), y) Ψ(z)) is
Re ℓ'(f(z), y) Re Ψ(z) − Im ℓ'(f(z), y) Im Ψ(z), so that Re Ψ(z) and Im Ψ(z) take the place of
Ψ(z).

Source: Blanchet and Glynn (2015) for `multilevel`, Richardson's extrapolation for `replicates`, and
the mean-value property for `pair`. The learner is not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax import gone
from noisy_jax.base import CleanEstimates, Learner, Sample
from noisy_jax.engine import Round, Rule, Update, everything, expansion
from noisy_jax.engine.memory import Space
from noisy_jax.engine.rules import rate_of
from noisy_jax.kernels import Kernel
from noisy_jax.kernels.kernel import check_kernel, near_origin
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss, check_smooth, flips_of, takes_noisy_targets
from noisy_jax.unbiased.continuation import Continued
from noisy_jax.unbiased.entire import continued
from noisy_jax.unbiased.estimates import Estimate
from noisy_jax.unbiased.transformed import Points, Transformed
from noisy_jax.validation.values import ArrayLike


@gone.options("copies", "order", "base", "continue_with", instead=gone.OPTION_OF_ESTIMATE)
def unknown_noise(
    kernel: Kernel,
    loss: Loss,
    *,
    radius: ArrayLike,
    horizon: int,
    estimate: Callable[..., Transformed] | None = None,
    block: int | None = None,
) -> Learner:
    """Online kernel learning under noise of unknown distribution, another one in each round.

        f_{t+1} = P(f_t − η_t Ĝ_t),   Ĝ_t an estimate of G_t = ℓ'(f_t(x_t), y_t) k(x_t, ·)

    G_t is the gradient of the loss at the clean x_t; Ĝ_t estimates it from noisy copies by a
    transformation of `nj.unbiased`, with all its factors together. P is the projection on {‖f‖ ≤
    W}, and η_t = √2 W/√(Σ_{s≤t} ‖Ĝ_s‖²).

    A bias costs a constant in each round, and variance costs √T in all. So where streams are short
    and the noise is weak, average the copies (`replicates` of order 0); where they are long,
    correct. `pair` and `gaussian` have heavy tails unless the noise is weak: 2‖Σ‖ < ℓ² for a
    Gaussian kernel of length scale ℓ and noise of covariance Σ.

    Args:
        kernel: one of `kernels` that is smooth, such as `kernels.gaussian`; for `pair` and
            `gaussian` it must be entire (equal to its power series everywhere).
        loss: a `Loss` with a smooth derivative; for `pair` and `gaussian` entire. Targets may be
            noisy if ℓ' is linear in them, as it is for the squared loss.
        radius: W > 0, in the norm of the kernel's space. Regret is the learner's total loss on
            clean data over T rounds minus the total of the best function in this ball.
        horizon: T ≥ 1, the largest number of rounds. `nj.rollout` raises ValueError for more.
        estimate: a transformation of `nj.unbiased`, which says what must be known of the noise and
            how many copies a round reads; `functools.partial` gives it options. `None`, the
            default, for `nj.unbiased.replicates` of 4 copies. `gaussian` without its argument
            `noise` reads `sample.cov` in each round.
        block: number of rounds that `unroll` plays at once, for speed only; by default at most 64.

    Returns:
        A `Learner` of the most copies that a round may use. Ĝ_t is a weighted sum over K points, 4
        for `multilevel`, 2 for `pair`, 2^(k + 1) − 1 for `replicates` of order k if the number of
        copies is a power of two, and round t costs O(tK²) kernel evaluations. Its `clean_estimates`
        of f(x) and f(x)² at the clean x are made in the same way. `bounds.unknown_noise` bounds the
        expected regret with `multilevel`.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> x = jax.random.uniform(jax.random.key(0), (2000, 2), minval=-1.0)
        >>> stream = nj.Stream(x, jnp.sin(3 * x[:, 0]))
        >>> kernel, loss = nj.kernels.gaussian(length_scale=0.5), nj.losses.squared()
        >>> learner = nj.learners.unknown_noise(kernel, loss, radius=3.0, horizon=2000)
        >>> run = nj.rollout(learner, stream, nj.noise.Laplace(0.2), jax.random.key(1))
        >>> loss = loss(run.predictions, stream.y)[500:].mean()
        >>> print(f"squared loss {loss:.2f}, of predicting 0 {jnp.mean(stream.y**2):.2f}")
        squared loss 0.02, of predicting 0 0.52
    """
    check_kernel(kernel)
    check_loss(loss)
    check_smooth(loss)
    transformation = Estimate.of(estimate)
    probe = transformation.probed(loss.gradient)
    copies = probe.copies

    def points_of(sample: Sample, key: jax.Array) -> Points:
        return transformation.for_sample(loss.gradient, sample).points(sample.x[:copies], key)

    sample = Sample(jnp.zeros((copies, 1)), jnp.zeros(()), jnp.zeros(()))
    points = jax.eval_shape(points_of, sample, jax.random.key(0))
    parts = _of_points(kernel, loss)
    if points.imaginary is not None:
        parts = _of_complex_points(kernel, loss, probe.name)
    number = len(jax.eval_shape(parts.atoms, points))
    rate = rate_of(None, radius)

    def round_of(sample: Sample, key: jax.Array) -> Round:
        points = points_of(sample, key)
        return Round(parts.atoms(points), None, (sample.y, points.weights))

    def update(state, values, target, t, gram) -> Update:
        slopes = parts.slopes(values, *target)
        square = jnp.sum(slopes[:, None] * gram * slopes[None])
        eta, state = rate.at(state, t, jnp.maximum(square, 0))
        return Update(-eta * slopes, 1.0, state)

    return expansion(
        round_of=round_of,
        rule=Rule(rate.init, update),
        memory=everything(horizon, width=number)(parts.space),
        copies=copies,
        radius=radius,
        block=block,
        labels=loss.kind == "margin",
        flips=flips_of(loss),
        targets="independent" if takes_noisy_targets(loss) else "exact",
        noise=probe.noise,
        estimates=lambda outputs, target: parts.estimates(outputs, target[1]),
    )


class _Parts(NamedTuple):
    """Functions that make a gradient and clean estimates from values at the points."""

    atoms: Callable[[Points], jax.Array]  # `[K, d]`, of a round
    space: Space
    slopes: Callable[..., jax.Array]  # `(values[K], y, weights) -> [K]`, in Ĝ
    estimates: Callable[..., CleanEstimates]  # `(outputs[K], weights)`


def _of_points(kernel: Kernel, loss: Loss) -> _Parts:
    """Real points."""

    def slopes(values, y, weights):
        return weights * loss.gradient(values, y)

    def estimates(outputs, weights):
        return jnp.sum(weights * outputs), jnp.sum(weights * outputs**2)

    return _Parts(lambda points: points.real, Space(kernel.gram, kernel.gram), slopes, estimates)


def _of_complex_points(kernel: Kernel, loss: Loss, name: str) -> _Parts:
    """Re Ψ(z) and Im Ψ(z), stored as the real and the imaginary part of z, in turn."""
    gram = kernel.entire or kernel.gram

    def in_turn(real, imaginary):
        """`[2n, …]`, of arrays `[n, …]`."""
        return jnp.stack([real, imaginary], axis=1).reshape(-1, *real.shape[1:])

    def at(atoms, sign=1):
        return Continued(atoms[::2], sign * atoms[1::2])

    def continued_gram(z, others, imaginary=None):
        """k(z_i, z'_j) `[n, m]`, without conjugates; z' may have no imaginary part."""
        real = near_origin(z.re, others) if kernel.entire else (z.re, others)
        if imaginary is None:
            return continued(lambda rows: gram(rows, real[1]), Continued(real[0], z.im), name)
        count, parts = len(z.re), (real, (z.im, imaginary))
        together = Continued(*map(jnp.concatenate, parts))
        return continued(lambda rows: gram(rows[:count], rows[count:]), together, name)

    def inner(atoms, others):
        """Returns ⟨·, ·⟩ of both parts, from k(z, z') = ⟨Ψ(z), Ψ(z')⟩ and k(z̄, z')."""
        plain, conjugate = (continued_gram(at(atoms, sign), *at(others)) for sign in (1, -1))
        of_real = in_turn((plain.re + conjugate.re).T, (plain.im + conjugate.im).T)
        of_imaginary = in_turn((plain.im - conjugate.im).T, (conjugate.re - plain.re).T)
        return in_turn(of_real.T, of_imaginary.T) / 2

    def evaluate(atoms, x):
        return in_turn(*continued_gram(at(atoms), x))

    def slopes(values, y, weights):
        derivative = continued(lambda p: loss.gradient(p, y), at(values), name)
        return in_turn(weights * derivative.re, -weights * derivative.im)

    def estimates(outputs, weights):
        real, imaginary = at(outputs)
        return jnp.sum(weights * real), jnp.sum(weights * (real**2 - imaginary**2))

    jax.eval_shape(slopes, jnp.zeros(2), jnp.ones(()), jnp.ones(1))  # the loss must be entire
    atoms: Any = lambda points: in_turn(points.real, points.imaginary)  # noqa: E731
    return _Parts(atoms, Space(inner, evaluate), slopes, estimates)
