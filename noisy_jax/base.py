"""The contract of the library: the data of one round, and the functions that make a learner.

Letters for shapes, used everywhere: T rounds, d features (dimensions), V independent noisy copies
of one example, S seeds. All functions are unbatched; batch them with `jax.vmap`.

The data of round t::

    clean (x_t, y_t) ──► noise ──► Sample ──► Learner.step ──► state
           └──────────► Learner.predict(state, x_t) ──► loss on clean data

Clean data go to `predict` only, for evaluation; no argument of `step` can carry them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation.arrays import check_axes, check_dimension, check_shape, real_array
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import check_labels, whole
from noisy_jax.validation.objects import choice, function, instance, switch
from noisy_jax.validation.rows import check_copies_given, check_stream
from noisy_jax.validation.values import ArrayLike, as_jax_takes, concrete
from noisy_jax.varying import of_this_device
from noisy_jax.warning import warn

_ALIKE = 20  # times as large as another column: gradient descent hardly learns the small one

State: TypeAlias = Any
"""Memory of a learner between rounds: a NamedTuple of arrays of fixed shapes, without a key."""

_T = TypeVar("_T", bound=type)


def exportable(cls: _T) -> _T:
    """Class decorator: registers a NamedTuple, so that `jax.export` serializes functions of it.

    To load such a function, a process imports the room that holds the class, as
    `import noisy_jax.learners` does for learners and their states. Its name in the file is
    `package.Class`.

    Example:
        >>> from typing import NamedTuple
        >>> import jax, jax.numpy as jnp
        >>> @exportable
        ... class CountState(NamedTuple):
        ...     count: jax.Array
        >>> step = jax.jit(lambda state: CountState(state.count + 1))
        >>> data = jax.export.export(step)(CountState(jnp.int32(0))).serialize()
        >>> print(jax.export.deserialize(data).call(CountState(jnp.int32(2))).count)
        3
    """
    name = f"{cls.__module__.partition('.')[0]}.{cls.__name__}"
    with contextlib.suppress(ValueError):  # registered before, by its package or a reload
        jax.export.register_namedtuple_serialization(cls, serialized_name=name)
    return cls


def plain_signature(cls: _T) -> _T:
    """Class decorator: `help` shows the types of a NamedTuple's fields as the source writes them.

    Without it they are `ForwardRef('ArrayLike')`, and for functions 'ArrayLike'.

    Example:
        >>> import inspect, noisy_jax as nj
        >>> print(inspect.signature(nj.Stream))
        (x: 'jax.Array', y: 'jax.Array')
    """
    new: Any = cls.__new__
    types = new.__annotations__.items()
    new.__annotations__ = {name: getattr(of, "__forward_arg__", of) for name, of in types}
    return cls


@plain_signature
@exportable
class Stream(NamedTuple):
    """Clean examples (x_t, y_t) of T rounds, which do not depend on what a learner predicts.

    `nj.streams` makes streams; `nj.streams.from_arrays(x, y)` checks arrays of your own. `rollout`
    and `study` add noise to the examples, and show a learner only the noisy ones.

    Attributes:
        x: `[T, d]` clean instances of d features, a row for each round.
        y: `[T]` clean targets; labels are −1 and +1.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.streams.from_arrays([[0.0, 1.0], [2.0, 3.0]], [1.0, -1.0]).x.shape)
        (2, 2)
    """

    x: jax.Array
    y: jax.Array


@plain_signature
@exportable
class Sample(NamedTuple):
    """The noisy data of one round t, as `Learner.step` takes them.

    A noisy copy of the clean instance x is x̃ = x + n, with noise n of mean zero that is drawn anew
    for each copy. `noise.observe` makes samples from clean data; make them yourself from data that
    are noisy already.

    Attributes:
        x: `[V, d]`, V ≥ 1 independent noisy copies of the d features; a known mean of the noise is
            already subtracted.
        y: `[]`, the target; it may contain noise of mean zero.
        cov: covariance Σ_t of the noise in each copy, as `[]` (σ² on every coordinate), `[d]`
            (diagonal) or `[d, d]`; `None`, the default, if unknown. If Σ_t depends on x: an
            unbiased estimate of the covariance of the first copy.
        cross_cov: `[d]`, covariance of the noise in y and the noise in the first copy; `None`, the
            default, if they are independent. The noise in the other copies is independent of the
            noise in y.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> sample = nj.Sample(jnp.array([[1.1, 0.2]]), jnp.array(2.0), cov=0.1)  # V = 1, d = 2
        >>> learner = nj.learners.known_covariance(radius=1.0)
        >>> state = learner.step(learner.init(2), sample, jax.random.key(0))
        >>> print(learner.predict(state, jnp.ones(2)) > 0)
        True
    """

    x: jax.Array
    y: jax.Array
    cov: ArrayLike | None = None
    cross_cov: jax.Array | None = None


CleanEstimates: TypeAlias = tuple[jax.Array, jax.Array]
"""`(value, square)`, unbiased estimates of f(x) and of f(x)² at the clean x.

With a `Sample.cross_cov`, `square` contains 2 Cov(ỹ, value) too, as `estimated_errors` needs.
"""

Unrolled: TypeAlias = tuple[State, jax.Array, CleanEstimates | None]
"""`(state, predictions[T], estimates)` of many rounds."""

Targets: TypeAlias = Literal["exact", "independent", "any"]

Flips: TypeAlias = tuple[Any, Any] | Literal[False] | None


@plain_signature
class Needs(NamedTuple):
    """Requirements on the data that a learner states, as `Learner.needs`.

    If they hold, the learner's estimates of clean quantities, such as gradients, have no bias, or
    only the bias that its docstring names. `rollout`, `study` and `learn` check them.

    Attributes:
        copies: V ≥ 1, the number of independent noisy copies of each instance that `step` reads
            (`Sample.x`).
        horizon: the largest number of rounds that the state has room for; `None` if there is no
            limit. More rounds raise ValueError.
        noise: distribution of the noise in x that the learner corrects for, or the class of it,
            such as `noise.Gaussian`, if the covariance is read from each sample; `None` if the
            learner is built for none in particular. Under another distribution `rollout` warns,
            and `learn` raises ValueError.
        targets: "exact" if noise in the targets would make the learner biased; "independent" if
            that noise must be independent of the noise in x; "any" if it may be correlated with
            the noise in the first copy (`Sample.cross_cov`).
        labels: whether targets must be labels −1 and +1.
        flips: (ρ₊, ρ₋), the probabilities that a label +1 and a label −1 is recorded with the
            other sign, for which the learner corrects (`losses.flipped`); (0, 0) if it does not.
            `rollout` warns when labels are flipped with other probabilities. `False` if flips
            would make the learner biased, beyond correction (ValueError); `None` if they have no
            effect, or their effect is not known.
        one_scale: whether the columns of x should have similar sizes, because one radius and one
            learning rate serve all of them. `rollout` and `learn` warn if a column is more than 20
            times as large as another.

    Example:
        >>> import noisy_jax as nj
        >>> needs = nj.learners.two_copies(radius=1.0).needs
        >>> print(needs.copies, needs.noise, needs.targets)
        2 None any
    """

    copies: int = 1
    horizon: int | None = None
    noise: Any = None
    targets: Targets = "independent"
    labels: bool = False
    flips: Flips = None
    one_scale: bool = False

    def both(self, other: Needs) -> Needs:
        """Returns the needs of two learners that see the same samples: the stricter of each.

        `noise` is the noise of the learner that corrects for a positive variance, or else for any
        distribution; of two such learners the first one's. `flips` is False if one of them is,
        else the first that are not (0, 0), else (0, 0) if one of them has it, else `None`.
        """

        def freedom(needs):
            return ("exact", "independent", "any").index(needs.targets)

        def noisiness(noise):
            return (noise is not None) + has_noise(noise)

        def flipped(flips):
            return 3 * (flips is False) or (flips is not None) + has_flips(flips)

        horizons = [horizon for horizon in (self.horizon, other.horizon) if horizon is not None]
        return Needs(
            copies=max(self.copies, other.copies),
            horizon=min(horizons, default=None),
            noise=max(self.noise, other.noise, key=noisiness),
            targets=min(self, other, key=freedom).targets,
            labels=self.labels or other.labels,
            flips=other.flips if flipped(other.flips) > flipped(self.flips) else self.flips,
            one_scale=self.one_scale or other.one_scale,
        )


@plain_signature
class Learner(NamedTuple):
    """An online learning algorithm, as pure functions of one round.

    Each round calls `predict` on the clean instance, for evaluation, and then `step` on its noisy
    copies. All functions work under `jit`, `scan` and `vmap`, and the hyper-parameters inside a
    learner may be traced. `nj.learners` makes learners; `rollout` runs one. Below, f is the
    predictor that a state holds.

    Attributes:
        init: `(dim) -> state`, the state before round 0, for d = `dim` features. A state is a
            pytree of arrays. It may be donated to a compiled function (`donate_argnums` of
            `jax.jit`), as no two of its arrays share a buffer.
        step: `(state, sample, key) -> state`, one round, from a `Sample`. The key is for the
            learner's own randomness; a deterministic learner ignores it.
        predict: `(state, x[..., d]) -> [...]`, predictions f(x) on clean instances.
        needs: requirements on the data for the learner to be unbiased, a `Needs`.
        unroll: optional, a faster way through many rounds with the same numbers up to rounding:
            `(state, samples, x[T, d], keys[T]) -> (state, predictions[T], estimates)`, where every
            leaf of `samples` has a leading axis T, and `estimates` are the `clean_estimates` before
            each round, `[T]` each, or `None`.
        clean_estimates: `(state, sample, key) -> (value, square)`, `[]` each: estimates of f(x) and
            of f(x)² at the clean x, unbiased over the noise in the sample, which `step` gets next
            with the same key. So square − 2y·value + y² has the mean (f(x) − y)² plus the variance
            of the noise in y. Under a `Sample.cross_cov`, `square` contains 2 Cov(ỹ, value) for
            this. `None` if the learner has none.
        finish: `(state) -> state`, after the last round: makes use of rounds that `step` has
            collected but not yet used. A run may still continue from it. `None` if `step` uses
            every round at once.
        weights: `(state) -> weights`, a pytree of numbers in which predictions are linear, as
            `wrappers.averaged` needs; `None` if there are none.
        with_weights: `(state, weights) -> state`, the state with other weights; `None` where
            `weights` is.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> keys = jax.random.split(jax.random.key(0), 2000)
        >>> x = jax.random.normal(jax.random.key(1), (2000, 2))
        >>> noisy = x + 0.7 * jax.random.normal(jax.random.key(2), x.shape)
        >>> y = x @ jnp.array([2.0, -1.0])
        >>> learner = nj.wrappers.averaged(nj.learners.known_covariance(radius=3.0))
        >>> def one_round(state, row):
        ...     noisy_x, y, key = row
        ...     return learner.step(state, nj.Sample(noisy_x[None], y, cov=0.49), key), None
        >>> state, _ = jax.lax.scan(one_round, learner.init(2), (noisy, y, keys))
        >>> print(learner.predict(state, jnp.array([1.0, 0.0])).round(1))
        2.0
    """

    init: Callable[[int], State]
    step: Callable[[State, Sample, jax.Array], State]
    predict: Callable[[State, jax.Array], jax.Array]
    needs: Needs
    unroll: Callable[[State, Sample, jax.Array, jax.Array], Unrolled] | None = None
    clean_estimates: Callable[[State, Sample, jax.Array], CleanEstimates] | None = None
    finish: Callable[[State], State] | None = None
    weights: Callable[[State], Any] | None = None
    with_weights: Callable[[State, Any], State] | None = None


def field_weights(state: Any) -> Any:
    """`Learner.weights` of a state whose field `weights` holds all of a linear predictor."""
    return state.weights


def with_field_weights(state: Any, weights: Any) -> Any:
    """`Learner.with_weights` of a state whose field `weights` holds all of a linear predictor."""
    return state._replace(weights=weights)


def fresh(state: State) -> State:
    """Copies each array of a state into a buffer that it shares with no other array.

    `Learner.init` returns such states, so that they can be donated (`jax.jit(…, donate_argnums)`).
    """
    return jax.tree.map(jnp.copy, state)


def in_this_precision(init: Callable[[int], State], state: State, dim: int) -> State:
    """Converts a state to the types that `init(dim)` makes now.

    They differ if `jax_enable_x64` was set or unset since the state was made.
    """
    default = jnp.result_type(float)
    types = {jnp.result_type(leaf) for leaf in jax.tree.leaves(state)}
    if all(dtype == default or not jnp.issubdtype(dtype, jnp.floating) for dtype in types):
        return state
    first = jax.eval_shape(lambda: init(dim))
    return jax.tree.map(lambda leaf, like: jnp.asarray(leaf, like.dtype), state, first)


def has_noise(noise: Any) -> bool:
    """Returns True if a learner's `noise` has a covariance that is known not to be zero."""
    if noise is None or isinstance(noise, type):
        return False
    cov = concrete(getattr(noise, "distribution", noise).cov)  # that of noise.PerRound
    return cov is not None and bool(np.any(cov != 0))


def has_flips(flips: Any) -> bool:
    """Returns True if a learner's `flips` are probabilities that are not known to be zero."""
    rates = [concrete(rate) for rate in flips or ()]
    return any(rate is None or bool(np.any(rate != 0)) for rate in rates)


def estimated_errors(estimates: Any, y: Any) -> Any:
    """Returns estimates of the squared errors on clean data, q − 2ỹv + ỹ², from estimates v and q.

    Their mean is E(f(x) − y)² plus the variance of the noise in ỹ.
    """
    value, square = estimates
    return square - 2 * y * value + y**2


def estimates_through(
    learner: Learner, to_inner: Callable[..., Any]
) -> Callable[..., CleanEstimates] | None:
    """Returns a wrapper's `clean_estimates`: the inner learner's at `to_inner(…)`, or `None`.

    `to_inner(state, sample, key)` takes the wrapper's arguments, and returns the inner learner's
    `(state, sample, key)`.
    """
    estimates = learner.clean_estimates
    return None if estimates is None else lambda *arguments: estimates(*to_inner(*arguments))


def finish_of_inner(learner: Learner) -> Callable[[State], State] | None:
    """Returns a wrapper's `finish`: the inner learner's on the field `inner` of its state."""
    finish = learner.finish
    return None if finish is None else lambda state: state._replace(inner=finish(state.inner))


def unrolled(learner: Learner) -> Callable[..., Unrolled]:
    """Returns the learner's own `unroll`, or a scan of predict, read and step."""

    def unroll(state, samples, x, keys):
        state = of_this_device(state)
        if learner.unroll is not None:
            return learner.unroll(state, samples, x, keys)

        def one_round(state, inputs):
            sample, x, key = inputs
            prediction = learner.predict(state, x)
            of_sample = learner.clean_estimates
            estimates = None if of_sample is None else of_sample(state, sample, key)
            return learner.step(state, sample, key), (prediction, estimates)

        state, (predictions, estimates) = jax.lax.scan(one_round, state, (samples, x, keys))
        return state, predictions, estimates

    return unroll


def check_learner(learner: Learner, name: str = "learner") -> None:
    """Raises ValueError if `learner` is not a `Learner`, for example if it is a factory."""
    instance(name, learner, Learner, "learners.two_copies(radius=…) makes one")
    for part in ("init", "step", "predict"):
        function(f"{name}.{part}", getattr(learner, part))
    needs = instance(f"{name}.needs", learner.needs, Needs, "nj.Needs() is one")
    whole(f"{name}.needs.copies", needs.copies)
    if needs.horizon is not None:
        whole(f"{name}.needs.horizon", needs.horizon)
    choice(f"{name}.needs.targets", needs.targets, get_args(Targets))
    for part in ("labels", "one_scale"):
        switch(f"{name}.needs.{part}", getattr(needs, part))


def check_one_prediction(learner: Learner, dim: int, name: str) -> None:
    """Raises ValueError if a learner has several columns, such as `wrappers.paired` makes."""
    if jax.eval_shape(lambda: learner.predict(learner.init(dim), jnp.zeros(dim))).shape:
        raise ValueError(
            f"{name} predicts several columns: pass its learners one by one, or wrap them in "
            "wrappers.mixture"
        )


def sound_stream(stream: Stream) -> Stream:
    """Returns a stream of arrays; raises ValueError if shapes differ or a number is not finite."""
    instance("stream", stream, Stream, "streams.from_arrays(x, y) makes one")
    check_stream(*stream)
    arrays: Any = real_array("x", stream.x), real_array("y", stream.y)
    return Stream(*arrays)


def check_sample(sample: Sample, copies: int, *, labels: bool = False) -> None:
    """Raises ValueError if a sample is not one that a learner of V copies can learn from.

    It must be of one round, with enough copies, and with a label −1 or +1 if the learner needs
    `labels`.
    """
    instance("sample", sample, Sample, "noise.observe makes one")
    for name in ("x", "y", "cov", "cross_cov"):
        value = getattr(sample, name)
        if value is None and "cov" in name:
            continue
        if not isinstance(value, ArrayLike):
            raise ValueError(
                f"sample.{name} must be an array, got {given(value)}: jnp.asarray makes one"
            )
        if isinstance(value, np.ma.MaskedArray):
            raise ValueError(f"sample.{name} must have no mask: leave out such rounds, or fill it")
        if as_jax_takes(value) is not value and np.asarray(value).dtype.kind != "f":
            wanted = "of floats, or of whole numbers of at most 32 bits"
            raise ValueError(f"sample.{name} must be {wanted}, got {given(value)}")
        real_array(f"sample.{name}", value)
    check_axes("sample.x", sample.x, "[V, d]", ": V copies of one instance")
    check_axes("sample.y", sample.y, "[]", "; batch rounds with jax.vmap")
    dim = np.shape(sample.x)[1:]
    if sample.cov is not None:
        check_dimension("sample.cov", sample.cov, dim)
        if (found := np.shape(sample.cov)) not in ((), dim, dim * 2):
            raise ValueError(f"sample.cov must be [], [d] or [d, d], got {list(found)}")
    if sample.cross_cov is not None:
        check_shape("sample.cross_cov", sample.cross_cov, dim, "one for each feature")
    check_copies_given(copies, np.shape(sample.x)[0])
    if labels:
        check_labels("sample.y", sample.y)


def check_targets_of(learner: Learner, name: str, y: Any) -> None:
    """Raises ValueError if a learner needs labels, and a target in `[n]` is neither −1 nor +1."""
    if learner.needs.labels:
        check_labels(name, y)


def warn_of_sizes(learner: Learner, x: Any, names: Any = None) -> None:
    """Warns if columns of x `[..., d]` differ in size, and the learner needs them to be alike."""
    rows = concrete(x) if learner.needs.one_scale else None
    if rows is None:
        return
    sizes = np.sqrt(np.mean(np.square(rows, dtype=np.float64), axis=tuple(range(rows.ndim - 1))))
    some = np.flatnonzero(sizes)
    if not len(some) or sizes.max() <= _ALIKE * sizes[some].min():
        return
    low, high = some[sizes[some].argmin()], sizes.argmax()
    of = ["column " + (str(j) if names is None else repr(names[j])) for j in (low, high)]
    warn(
        f"the sizes of columns differ, from {sizes[low]:.2g} ({of[0]}) to {sizes[high]:.2g} "
        f"({of[1]}), but this learner has one radius and one rate for all of them: divide each "
        "column, and its noise, by its standard deviation, or use corrected_ftrl, which needs no "
        "such care",
    )
