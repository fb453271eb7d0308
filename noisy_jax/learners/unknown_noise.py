"""Kernel learning under unknown noise, with the whole gradient estimated as one function.

    f_{t+1} = P(f_t − η_t Ĝ_t),   Ĝ_t = Σ_j w_j ℓ'(f_t(p_j), y_t) Ψ(p_j)

P is the projection on {‖f‖ ≤ W}. The clean gradient G(x) = ℓ'(f_t(x), y_t) Ψ(x) is a smooth
function of x. `unbiased.replicates`, `multilevel` and `pair` estimate any such function from noisy
copies of x, as a weighted sum of its values at few points p_j. So one set of copies is enough for
the derivative and the feature map together, and the loss needs no power series.
`random_truncation` estimates them one by one, from copies of their own.

With `pair` there is one point z in the complex plane. There Re(ℓ'(f(z), y) Ψ(z)) is
Re ℓ'(f(z), y) Re Ψ(z) − Im ℓ'(f(z), y) Im Ψ(z), so that Re Ψ(z) and Im Ψ(z) take the place of the
points.

Source: Blanchet and Glynn (2015) for `multilevel`, Richardson's extrapolation for `replicates`, and
the mean-value property for `pair`. The learner is not in the papers.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Readings, Sample
from noisy_jax.engine import Round, Rule, Space, Update, everything, expansion, rate_of
from noisy_jax.kernels import Kernel
from noisy_jax.kernels.kernel import check_kernel, near_origin
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss, check_smooth, flips_of, takes_noisy_targets
from noisy_jax.unbiased import multilevel, replicates
from noisy_jax.unbiased.continuation import Continued
from noisy_jax.unbiased.entire import continued_number
from noisy_jax.unbiased.pair import complex_point
from noisy_jax.validation import check_unused, choice, whole

Estimate = Literal["replicates", "multilevel", "pair"]
_OPTIONS: dict[Estimate, tuple[str, ...]] = {
    "replicates": ("copies", "order"),
    "multilevel": ("base", "continue_with"),
    "pair": ("copies",),
}


def unknown_noise(
    kernel: Kernel,
    loss: Loss,
    *,
    radius: chex.Numeric,
    horizon: int,
    estimate: Estimate = "replicates",
    copies: int | None = None,
    order: int | None = None,
    base: int | None = None,
    continue_with: float | None = None,
    block: int | None = None,
) -> Learner:
    """Online kernel learning under noise of unknown distribution, another one in each round.

    | estimate | what is known of the noise | copies in a round | bias |
    |---|---|---|---|
    | "replicates" | nothing | V | O(σ^(k + 2)), O(σ^(2(k + 1))) under Gaussian noise |
    | "multilevel" | nothing | 2.4 on average at b = 1, 4.6 at b = 2; at most 32 | O(σ⁴/32²) |
    | "pair" | that it is Gaussian | V, 2 are enough | none |

    The bias of the mean of the copies costs a constant in each round, and variance costs √T in all:
    average where streams are short and the noise is weak, correct where they are long. "pair" has
    heavy tails unless the noise is weak: 2‖Σ‖ < ℓ² for a Gaussian kernel.

    Args:
        kernel: with smooth features, such as `kernels.gaussian`; entire for "pair".
        loss: with a smooth derivative; entire for "pair". Targets may be noisy if ℓ' is linear in
            them, as that of the squared loss.
        radius: W > 0, the norm of the largest competitor in the kernel's space.
        horizon: T, the largest number of rounds.
        estimate: of the gradient.
        copies: V, of "replicates" (at least 2^k) and of "pair" (at least 2); by default 4.
        order: k ≥ 0 of "replicates", by default 1; 0 is the mean of the copies, without correction.
        base: b ≥ 1 of "multilevel", by default 1. L is the largest with b 2^L ≤ 32, at least 1.
        continue_with: q of "multilevel", in (0, 1], by default ½. A smaller q takes fewer copies.
        block: number of rounds that `unroll` plays at once, by default as in `engine.expansion`.

    Returns:
        A `Learner` at the adaptive rate √2 W/√(Σ‖Ĝ‖²). It needs the most copies that a round may
        use; with "multilevel" a round reads the first `unbiased.multilevel(f, levels=L, base=b,
        continue_with=q).copies_needed(key)` of them, for the key of its `step`. Round t costs
        O(tK²) kernel evaluations for K points: 4 of "multilevel", 2 of "pair", 2^(k + 1) − 1 of
        "replicates" if V is a power of two. Readings are estimates of the same kind.
        `bounds.unknown_noise` bounds the expected regret with "multilevel".

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> x = jax.random.uniform(jax.random.key(0), (2000, 2), minval=-1.0)
        >>> stream = nj.Stream(x, jnp.sin(3 * x[:, 0]))
        >>> kernel, loss = nj.kernels.gaussian(length_scale=0.5), nj.losses.squared()
        >>> learner = unknown_noise(kernel, loss, radius=3.0, horizon=2000)
        >>> run = nj.rollout(learner, stream, nj.noise.Laplace(0.2), jax.random.key(1))
        >>> loss = loss(run.predictions, stream.y)[500:].mean()
        >>> print(f"squared loss {loss:.2f}, of predicting 0 {jnp.mean(stream.y**2):.2f}")
        squared loss 0.02, of predicting 0 0.52
    """
    check_kernel(kernel)
    check_loss(loss)
    check_smooth(loss)
    choice("estimate", estimate, get_args(Estimate))
    options = {"copies": copies, "order": order, "base": base, "continue_with": continue_with}
    own, reason = _OPTIONS[estimate], f"with estimate={estimate!r}"
    check_unused(reason, **{name: each for name, each in options.items() if name not in own})
    copies, base = 4 if copies is None else copies, 1 if base is None else base
    if estimate == "pair":
        copies, parts = whole("copies", copies, 2), _of_pair(kernel, loss)
    elif estimate == "multilevel":
        q = 0.5 if continue_with is None else continue_with
        g = multilevel(loss.gradient, levels=levels_of(base), base=base, continue_with=q)
        copies, parts = g.copies, _of_points(kernel, loss, g, g.copies)
    else:
        g = replicates(loss.gradient, order=1 if order is None else order)
        copies = whole("copies", copies, g.copies, "2^order, of which means are taken")
        parts = _of_points(kernel, loss, g, copies)
    rate, margin = rate_of(None, radius), loss.kind == "margin"

    def update(state, values, target, t, gram) -> Update:
        slopes = parts.slopes(values, target)
        square = jnp.sum(slopes[:, None] * gram * slopes[None])
        eta, state = rate.at(state, t, jnp.maximum(square, 0))
        return Update(-eta * slopes, 1.0, state)

    return expansion(
        round_of=lambda sample, key: parts.round_of(sample._replace(x=sample.x[:copies]), key),
        rule=Rule(rate.init, update),
        memory=everything(horizon, width=parts.width)(parts.space),
        copies=copies,
        radius=radius,
        block=block,
        labels=margin,
        flips=flips_of(loss),
        targets="independent" if takes_noisy_targets(loss) else "exact",
        readings=parts.readings,
    )


def levels_of(base: int) -> int:
    """L of "multilevel": the largest with b 2^L ≤ 32, at least 1."""
    return max(1, (32 // whole("base", base)).bit_length() - 1)


class _Parts(NamedTuple):
    """An estimate of the gradient: a round's K = `width` atoms, `[K]` slopes in Ĝ, and readings."""

    round_of: Callable[[Sample, chex.PRNGKey], Round]
    width: int
    space: Space
    slopes: Callable[[jax.Array, Any], jax.Array]
    readings: Callable[[jax.Array, Any], Readings]


def _of_points(kernel: Kernel, loss: Loss, g: Any, copies: int) -> _Parts:
    """Real points p_j with weights w_j."""

    def round_of(sample: Sample, key: chex.PRNGKey) -> Round:
        points, weights = g.points(sample.x, key)
        return Round(points, None, (sample.y, weights))

    def slopes(values, target):
        y, weights = target
        return weights * loss.gradient(values, y)

    def readings(outputs, target):
        _, weights = target
        return jnp.sum(weights * outputs), jnp.sum(weights * outputs**2)

    points = jax.eval_shape(g.points, jnp.zeros((copies, 1)), jax.random.key(0))[0]
    return _Parts(round_of, len(points), Space(kernel.gram, kernel.gram), slopes, readings)


def _of_pair(kernel: Kernel, loss: Loss) -> _Parts:
    """Re Ψ(z) and Im Ψ(z), stored as the real and the imaginary part of z."""
    gram = kernel.entire or kernel.gram

    def at(points, sign=1):
        return Continued(points[::2], sign * points[1::2])

    def continued_gram(z, others, imaginary=None):
        """k(z_i, z'_j) `[n, m]`, without conjugates; z' may have no imaginary part."""
        real = near_origin(z.re, others) if kernel.entire else (z.re, others)
        if imaginary is None:
            z = Continued(real[0], z.im)
            return continued_number(lambda rows: gram(rows, real[1]), z, "pair")
        count, parts = len(z.re), (real, (z.im, imaginary))
        together = Continued(*map(jnp.concatenate, parts))
        return continued_number(lambda rows: gram(rows[:count], rows[count:]), together, "pair")

    def products(points, others):
        """From k(z, z') = ⟨Ψ(z), Ψ(z')⟩ and k(z̄, z'): of real and imaginary parts, `[n, m]`."""
        plain, conjugate = (continued_gram(at(points, sign), *at(others)) for sign in (1, -1))
        of_real = [plain.re + conjugate.re, plain.im + conjugate.im]
        of_imaginary = [plain.im - conjugate.im, conjugate.re - plain.re]
        return [[part / 2 for part in parts] for parts in (of_real, of_imaginary)]

    def inner(points, others):
        parts = jnp.array(products(points, others))  # [2, 2, n, m]
        return parts.transpose(2, 0, 3, 1).reshape(len(points), len(others))

    def evaluate(points, x):
        parts = continued_gram(at(points), x)
        return jnp.stack(parts, axis=1).reshape(len(points), len(x))

    def values(weights, points, others, x):
        """As `inner` and `evaluate`, without matrices of both parts."""
        weights = weights[::2], weights[1::2]

        def of_parts(real, imaginary):
            return weights[0] @ real + weights[1] @ imaginary

        at_others = map(of_parts, *products(points, others))
        at_points = of_parts(*continued_gram(at(points), x))
        return jnp.stack(list(at_others), axis=1).reshape(-1), at_points

    def slopes(values, y):
        derivative = continued_number(lambda p: loss.gradient(p, y), Continued(*values), "pair")
        return jnp.stack([derivative.re, -derivative.im])

    def round_of(sample: Sample, key: chex.PRNGKey) -> Round:
        del key  # it draws nothing
        return Round(jnp.stack(complex_point(sample.x)), None, sample.y)

    def readings(outputs, y):
        real, imaginary = outputs
        return real, real**2 - imaginary**2

    jax.eval_shape(slopes, jnp.zeros(2), jnp.ones(()))  # the loss must be entire
    return _Parts(round_of, 2, Space(inner, evaluate, values=values), slopes, readings)
