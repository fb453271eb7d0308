"""A random number of copies of any noise: a bias of order 1/V², for any smooth function."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import uniform
from noisy_jax.unbiased.transformed import Points, Transformed, mean
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import between, whole, within
from noisy_jax.validation.values import at_least_float32, check_concrete

RATIO = 2**-1.5


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Multilevel(Transformed):
    """The function g(…, copies, …, key=key) that `multilevel` returns; also a `Transformed`.

    With the key, g draws a level N from 0 to L, and uses the first b 2^N of the V copies. Give each
    call another key. g estimates f at the clean x, up to a bias of order 1/V² (see `multilevel`).

    Attributes:
        copies: V = b 2^L, the most copies that one estimate uses, and the number that g takes.
        probabilities: `[L + 1]`, p_N, the probabilities of the levels N.
        base: b, number of copies at level 0.
        f: the function of one clean input x that g estimates.
        argnum: which positional argument of f is x.
        name: "multilevel".
        rule: `(copies, key) -> Points`, where g evaluates f, and with which weights.
        noise: `None`: the noise may have any distribution.
        draws: True: g needs a key.
        next_order: `None`.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> g = nj.unbiased.multilevel(jnp.sin, levels=3)
        >>> key = jax.random.key(0)
        >>> copies = jnp.ones(8).at[g.copies_needed(key) :].set(jnp.nan)  # the rest is not read
        >>> print(g.copies, f"{g(copies, key=key):.3f} {jnp.sin(1.0):.3f}")
        8 0.841 0.841
    """

    _: dataclasses.KW_ONLY
    probabilities: np.ndarray
    base: int

    @property
    def mean_copies(self) -> float:
        """Mean number of copies that one estimate uses, Σ_N p_N b 2^N."""
        return float(self.probabilities @ (self.base * 2 ** np.arange(len(self.probabilities))))

    def copies_needed(self, key: jax.Array) -> jax.Array:
        """Returns the number of copies, from the first on, that the estimate with this key uses.

        It is `[]`, known before any copy is measured, and does not depend on f.

        Example:
            >>> import jax, jax.numpy as jnp, noisy_jax as nj
            >>> g = nj.unbiased.multilevel(jnp.sin)
            >>> [int(g.copies_needed(key)) for key in jax.random.split(jax.random.key(0), 8)]
            [4, 1, 4, 1, 1, 2, 4, 1]
        """
        return self.base * 2 ** _level(key, self.probabilities)

    def mean_of_used(self, copies: jax.Array, key: jax.Array) -> jax.Array:
        """Returns the mean `[*x.shape]` of the copies `[V, *x.shape]` that g uses with this key."""
        return _mean(copies, 0, self.copies_needed(key)).astype(copies.dtype)


def multilevel(
    f: Callable[..., Any],
    argnum: int = 0,
    *,
    levels: int = 5,
    base: int = 1,
    continue_with: float = 0.5,
    ratio: float = RATIO,
) -> Multilevel:
    """Turns f of a clean x into an estimate from a random number of noisy copies.

    The noisy copies are x plus noise of mean zero and of any unknown distribution, independent and
    alike in all copies. With probability 1 − q the estimate g is f(x̄_b), at the mean x̄_b of the
    first b copies. Otherwise a level N ≥ 1 is drawn with probability p_N = q(1 − r)r^(N − 1), and
    with the means c_1 and c_2 of the two halves of the first b 2^N copies

        g = f(x̄_b) + [f((c_1 + c_2)/2) − ½f(c_1) − ½f(c_2)]/p_N.

    The corrections telescope: with F_N = E f(mean of b 2^N copies), E g is
    F_0 + Σ_N (F_N − F_{N−1}), whose limit is f(x). N ends at L = `levels`. This last correction has
    p_L = q r^(L − 1) and counts twice, so that the bias that is left is of order 1/(b 2^L)², not
    1/(b 2^L). For quadratic functions there is none.

    If ∇f is Lipschitz and the noise has four moments, the second moment of g stays bounded as L
    grows if r > ¼, and the mean number of copies if r < ½. r = 2^(−3/2), the default, balances
    both. Each estimate evaluates f at four points.

    If the same rows are used again and again, turn the copies of a row by a random number of places
    each time, `copies[(turn + jnp.arange(len(copies))) % g.copies_needed(key)]`, with the same key:
    without more copies this averages the estimates over orders of the copies.

    Weights of the estimate, some of them negative, reach a custom_vjp rule inside f as part of its
    cotangent. A rule that is not linear in it, such as one that clips gradients, makes the gradient
    biased: clip outside.

    Args:
        f: a function of one clean input x, of any shape, and of other arguments; twice
            differentiable in x. Its results are any pytree of numbers of floating point.
        argnum: which positional argument of f is x; 0 by default. All others, and keywords, are
            passed on. The keyword `key` belongs to g: rename an argument `key` of f.
        levels: L ≥ 1, the highest level; 5 by default.
        base: b ≥ 1, number of copies at level 0; 1 by default.
        continue_with: q in (0, 1], the probability of a correction; 0.5 by default. A smaller q
            takes fewer copies and gives a larger variance.
        ratio: r in (0, 1), with p_{N+1} = r p_N below the last level.

    Returns:
        g, a `Multilevel`: `g(…, copies, …, key=key)` takes copies `[V, *x.shape]` in place of x,
        V = b 2^L. Give each call another key. It uses the first `g.copies_needed(key)` copies and
        does not read the others, which need not be measured: any number, also NaN, may stand there.
        Rows between which f exchanges numbers (`jax.lax.pmean`) need the same key: if their levels
        differ, g is NaN. Means and weighted sums are taken in at least float32, all else in the
        types of f and x: in bfloat16 the difference of levels keeps the rounding of f, times 1/p_N.

    Source: Blanchet and Glynn, Unbiased Monte Carlo for optimization and functions of expectations
    via multi-level randomization (2015); Rhee and Glynn (2015). The doubled last correction is
    Richardson's extrapolation.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> g = nj.unbiased.multilevel(jnp.cos, levels=3)
        >>> keys, noise_key = jax.random.split(jax.random.key(0), 200_000), jax.random.key(1)
        >>> copies = 1.0 + 0.5 * jax.random.normal(noise_key, (200_000, g.copies))
        >>> estimates = jax.vmap(lambda copies, key: g(copies, key=key))(copies, keys)
        >>> print(f"{estimates.mean():.2f} {jnp.cos(copies[:, 0]).mean():.2f} {jnp.cos(1.0):.2f}")
        0.54 0.48 0.54
        >>> print(f"{g.mean_copies:.2f} copies on average, at most {g.copies}")
        2.10 copies on average, at most 8
    """
    levels, base = whole("levels", levels), whole("base", base)
    probabilities = _probabilities(levels, continue_with, ratio)
    # Of no correction, of each level, and twice the last one.
    factors = np.append(0, np.append(np.ones(levels - 1), 2) / probabilities[1:])

    @functools.partial(jax.jit, inline=True)  # one program also outside jit
    def rule(copies, key):
        level = _level(key, probabilities)
        first = mean(copies[:base])
        half, most = base * 2**level // 2, base * 2**levels
        left, right = (
            jnp.where(level > 0, _mean(copies[:most], start, start + half), first)
            for start in (0, half)
        )
        points = jnp.stack([first.astype(left.dtype), (left + right) / 2, left, right])
        correction = jnp.asarray(factors, float)[level]
        weights = jnp.stack([jnp.ones_like(correction), correction, *2 * [-correction / 2]])
        return Points(points.astype(copies.dtype), weights)

    return Multilevel(
        f, argnum, "multilevel", base * 2**levels, rule, draws=True,
        probabilities=probabilities, base=base,
    )  # fmt: skip


def _probabilities(levels: int, continue_with, ratio) -> np.ndarray:
    """Returns the probabilities of N = 0 to L."""
    for name, value in {"continue_with": continue_with, "ratio": ratio}.items():
        check_concrete(name, value, "the number of copies follows from it")
    q = float(within("continue_with", continue_with, 0, 1))
    if not q:
        raise ValueError(
            "continue_with must be above 0: without corrections the estimate is f at one copy"
        )
    r = float(between("ratio", ratio, 0, 1))
    rest = r ** np.arange(levels)
    return np.append(1 - q, q * np.append((1 - r) * rest[:-1], rest[-1]))


def _mean(copies: jax.Array, start, stop) -> jax.Array:
    """The mean of the copies from `start` to `stop`, in at least float32."""
    wide = copies.astype(at_least_float32(copies.dtype))
    number = jnp.arange(len(copies)).reshape(-1, *[1] * (copies.ndim - 1))
    # `where`, not a product: a copy that is not used may be NaN.
    total = jnp.sum(jnp.where((number >= start) & (number < stop), wide, 0), axis=0)
    return total / jnp.maximum(stop - start, 1).astype(wide.dtype)


def _level(key, probabilities: np.ndarray) -> jax.Array:
    key = parsed_key(key)
    ends = jnp.asarray(np.cumsum(probabilities)[:-1], float)
    return jnp.sum(uniform(key, dtype=ends.dtype) >= ends)
