"""Any JAX model as a learner: descent along an unbiased estimate of the gradient of its loss.

    θ_{t+1} = P(θ_t − η_t ∇_θ ĝ_t(θ_t)),   E ĝ_t(θ) = ℓ(f_θ(x_t), y_t)

ĝ_t is a transformation of `nj.unbiased`, applied to the loss of one round as a function of x_t. The
whole gradient is estimated from one set of copies, for any smooth loss. For a linear f, the squared
loss and `replicates` it is the gradient of `two_copies`, averaged over the order of the copies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.core import Tracer

from noisy_jax import gone
from noisy_jax.base import Learner, Needs, Sample, Unrolled, check_sample, exportable, fresh
from noisy_jax.engine.rules import parsed_radius
from noisy_jax.learners.gradient_descent import descent, projected, started
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_smooth, flips_of, takes_noisy_targets
from noisy_jax.unbiased import Transformed
from noisy_jax.unbiased.estimates import Estimate
from noisy_jax.unbiased.transformed import trained
from noisy_jax.validation.arrays import check_shape, real_array
from noisy_jax.validation.numbers import check_finite, whole
from noisy_jax.validation.objects import function
from noisy_jax.validation.values import ArrayLike
from noisy_jax.varying import check_no_exchange, of_this_device


@exportable
class ModelState(NamedTuple):
    """State of a model.

    Attributes:
        params: θ_t, as they were given, with `None` for what is not trained.
        optimizer: state of the rate or of the optax transformation.
    """

    params: Any
    optimizer: optax.OptState


@gone.options("copies", instead=gone.OPTION_OF_ESTIMATE)
def model(
    apply: Callable[[Any, jax.Array], jax.Array],
    params: Any,
    loss: Loss | Callable[[jax.Array, jax.Array], jax.Array],
    *,
    estimate: Callable[..., Transformed] | None = None,
    radius: ArrayLike | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> Learner:
    """A learner of any JAX model, from noisy copies of its inputs.

    In each round it estimates the loss at the clean input from noisy copies (`nj.unbiased`), and
    makes a step on the gradient of this estimate in the parameters. Modules of equinox and flax
    (nnx) are models as they are: `model(lambda net, x: net(x), net, …)` for a module `net` whose
    output is one number (colabs/any_model.ipynb). The random state of a module of nnx (Dropout) is
    held fixed.

    Args:
        apply: `(params, x[d]) -> []`, the prediction at one clean input.
        params: the parameters at the start, any pytree. Its arrays of floating point are trained;
            all else (whole numbers, functions) is held fixed.
        loss: a `Loss`, or a function `(prediction, y) -> []`, smooth in the prediction. Noise in y
            that is independent of x̃ is allowed for the squared loss and losses that are linear in
            y.
        estimate: a transformation of `nj.unbiased`, which says what must be known of the noise and
            how many copies a round reads; `functools.partial` gives it options. `None`, the
            default, for `nj.unbiased.replicates` of 4 copies. `gaussian` without its argument
            `noise` reads `sample.cov` in each round.
        radius: B > 0. The parameters stay in the ball of radius B around `params`, and the default
            rate is √2 B/√(Σ_{s≤t} ‖g_s‖²) with the gradients g_s so far. `None`, the default, for
            no ball; then give `optimizer`.
        optimizer: an optax transformation in place of this rate, with or without a ball. For
            batches of k rounds use `optax.MultiSteps(optimizer, k)`.

    Returns:
        A `Learner` whose round costs one gradient of the estimate; `state.params` are the trained
        parameters (for a module `eqx.combine(run.state.params, net)`). Its `clean_estimates` of
        f(x) and f(x)² are made by the same transformation, and biased if it is. If the estimate is
        unbiased, and the loss convex and the model linear in the parameters, its expected regret on
        clean data at the adaptive rate is at most 2√2 B√(E Σ_t ‖g_t‖²) (`bounds.adaptive_rate`).

    Raises:
        ValueError: neither `radius` nor `optimizer` is given, the loss has kinks, or inside
            `jax.shard_map` devices exchange numbers in `apply` or `loss` (as by `psum`).

    Example:
        >>> import functools, jax, jax.numpy as jnp, noisy_jax as nj
        >>> x = jax.random.normal(jax.random.key(0), (10_000, 1))
        >>> stream, noise = nj.Stream(x, jnp.sin(2 * x[:, 0])), nj.noise.Laplace(0.5)
        >>> kernel = nj.kernels.gaussian(length_scale=1.0)
        >>> features = nj.kernels.fourier_features(kernel, jax.random.key(1), 64)
        >>> for order in (0, 1):  # 0: the mean of the copies
        ...     learner = nj.learners.model(
        ...         lambda w, x: features(x) @ w, jnp.zeros(64), nj.losses.squared(), radius=2.0,
        ...         estimate=functools.partial(nj.unbiased.replicates, order=order, copies=4))
        ...     run = nj.rollout(learner, stream, noise, jax.random.key(2))
        ...     print(f"order {order}: {((run.predictions - stream.y)[5000:] ** 2).mean():.2f}")
        order 0: 0.04
        order 1: 0.03
    """
    for name, value in {"apply": apply, "loss": loss}.items():
        function(name, value)
    if isinstance(loss, Loss):
        check_smooth(loss)
    if radius is None and optimizer is None:
        raise ValueError("give radius, for the adaptive rate in a ball, or optimizer, or both")
    radius = None if radius is None else parsed_radius(radius)
    method = descent(radius, optimizer)
    start, whole_of = trained(params)
    for leaf in jax.tree.leaves(start):
        traced = isinstance(leaf, Tracer)
        if not traced and getattr(leaf, "is_fully_addressable", True):  # all on this process
            check_finite("params", leaf)
    if not jax.tree.leaves(start):
        raise ValueError("params must have at least one array of floating point, which is trained")

    def value_at(params: Any, x: jax.Array) -> jax.Array:
        value = apply(whole_of(params), x)
        check_shape("apply's result", value, (), "one number for one input x[d]")
        return value

    def of_round(params: Any, x: jax.Array, y: jax.Array):
        value = value_at(params, x)
        return loss(value, y), value, value**2

    of_loss: dict[str, Any] = {"labels": False}
    if isinstance(loss, Loss):
        targets = "independent" if takes_noisy_targets(loss) else "exact"
        labels = loss.kind == "margin"
        of_loss = {"labels": labels, "targets": targets, "flips": flips_of(loss)}

    # One program also where the functions of the learner are called outside jit.
    program = functools.partial(jax.jit, inline=True)
    transformation = Estimate.of(estimate)
    probe = transformation.probed(of_round, argnum=1)
    copies = probe.copies

    def estimates(params: Any, sample: Sample, key: jax.Array):
        check_sample(sample, copies)
        g = transformation.for_sample(of_round, sample, argnum=1)
        estimated = g(params, sample.x[:copies], sample.y, key=key)
        return estimated[0], estimated[1:]

    @program
    def round_of(state: ModelState, sample: Sample, key: jax.Array):
        state, sample, key = of_this_device((state, sample, key))  # gradients are its alone
        check_sample(sample, copies)
        check_no_exchange("apply and loss", of_round, state.params, sample.x[0], sample.y)
        slope, estimated = jax.grad(estimates, has_aux=True)(state.params, sample, key)
        moves, optimizer_state = method.update(slope, state.optimizer, state.params)
        after = optax.apply_updates(state.params, moves)
        if radius is not None:
            apart = projected(jax.tree.map(jnp.subtract, after, start), radius)
            after = jax.tree.map(jnp.add, start, apart)
        return ModelState(after, optimizer_state), estimated

    @program
    def clean_estimates(state: ModelState, sample: Sample, key: jax.Array):
        return estimates(*of_this_device((state.params, sample, key)))[1]

    def init(dim: int) -> ModelState:
        x = jnp.zeros(whole("dim", dim, 1, "number of features"))
        jax.eval_shape(value_at, start, x)
        return fresh(ModelState(start, started(method, start)))

    def predict(state: ModelState, x: jax.Array) -> jax.Array:
        params, x = of_this_device((state.params, jnp.asarray(real_array("x", x))))
        return jnp.vectorize(functools.partial(value_at, params), signature="(d)->()")(x)

    def unroll(state: ModelState, samples: Sample, x: jax.Array, keys: jax.Array) -> Unrolled:
        def one_round(state, inputs):
            sample, x, key = inputs
            after, estimated = round_of(state, sample, key)
            return after, (predict(state, x), estimated)

        start = of_this_device(state)
        state, (predictions, estimated) = jax.lax.scan(one_round, start, (samples, x, keys))
        return state, predictions, estimated

    def step(state: ModelState, sample: Sample, key: jax.Array) -> ModelState:
        check_sample(sample, copies, labels=of_loss["labels"])  # before they are traced
        return round_of(state, sample, key)[0]

    return Learner(
        init,
        step,
        predict,
        Needs(copies, noise=probe.noise, **of_loss),
        unroll,
        clean_estimates=clean_estimates,
    )
