"""Numbers a + jb with j² = −1 whose parts keep the types of the function that is continued.

A function of a real x, evaluated at x + jy, gives its continuation to the complex plane. The parts
a and b are arrays of the type that the function itself computes with, also complex ones: j is not
their i. Linear operations act on both parts as they are; exp, sin, … have addition formulas.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_SERIES = 32  # terms of erf's series: exact in float64 where |Im z| ≤ 9, above which it is > 1e35


class Continued(NamedTuple):
    """a + jb.

    Attributes:
        re: a.
        im: b, in the shape and type of a.
    """

    re: Any
    im: Any


def linear(apply: Callable, *args: Any) -> Any:
    """An operation that is linear in all its numbers of floating point together."""
    real = apply(*[arg.re if isinstance(arg, Continued) else arg for arg in args])
    imaginary = apply(*[arg.im if isinstance(arg, Continued) else _nothing(arg) for arg in args])
    return _paired(real, imaginary)


def _nothing(arg):
    """The imaginary part of a constant; whole numbers and truth values are no part of the sum."""
    return jnp.zeros_like(arg) if jnp.issubdtype(jnp.result_type(arg), jnp.inexact) else arg


def product(apply: Callable, a: Any, b: Any) -> Continued:
    """An operation that is linear in each of two arguments."""
    if not isinstance(b, Continued):
        return Continued(apply(a.re, b), apply(a.im, b))
    if not isinstance(a, Continued):
        return Continued(apply(a, b.re), apply(a, b.im))
    real = apply(a.re, b.re) - apply(a.im, b.im)
    return Continued(real, apply(a.re, b.im) + apply(a.im, b.re))


def apart(apply: Callable, *args: Any) -> Any:
    """An operation that is linear in what depends on x, for what does not, as a quotient is."""
    real = apply(*[arg.re if isinstance(arg, Continued) else arg for arg in args])
    imaginary = apply(*[arg.im if isinstance(arg, Continued) else arg for arg in args])
    return _paired(real, imaginary)


def _paired(real: Any, imaginary: Any) -> Any:
    if isinstance(real, (list, tuple)):
        return [Continued(*parts) for parts in zip(real, imaginary, strict=True)]
    return Continued(real, imaginary)


def power(z: Continued, exponent: int) -> Continued:
    """zⁿ, n ≥ 0, by repeated squaring."""
    result = None
    while exponent:
        if exponent % 2:
            result = z if result is None else product(jnp.multiply, result, z)
        exponent //= 2
        z = square(z) if exponent else z
    return Continued(jnp.ones_like(z.re), jnp.zeros_like(z.re)) if result is None else result


def square(z: Continued) -> Continued:
    """z²."""
    return Continued((z.re - z.im) * (z.re + z.im), 2 * z.re * z.im)


def exp(z: Continued) -> Continued:
    """exp z."""
    size = jnp.exp(z.re)
    return Continued(size * jnp.cos(z.im), size * jnp.sin(z.im))


def exponential(base: Any, z: Continued) -> Continued:
    """base^z for a positive base that does not depend on x."""
    size, angle = base**z.re, z.im * jnp.log(base)
    return Continued(size * jnp.cos(angle), size * jnp.sin(angle))


def exp2(z: Continued) -> Continued:
    """2^z."""
    size, angle = jnp.exp2(z.re), z.im * np.log(2).astype(z.im.dtype)
    return Continued(size * jnp.cos(angle), size * jnp.sin(angle))


def expm1(z: Continued) -> Continued:
    """exp z − 1, without cancellation near 0."""
    real = jnp.expm1(z.re) * jnp.cos(z.im) - 2 * jnp.sin(z.im / 2) ** 2
    return Continued(real, jnp.exp(z.re) * jnp.sin(z.im))


def sin(z: Continued) -> Continued:
    """The sine of z."""
    return Continued(jnp.sin(z.re) * jnp.cosh(z.im), jnp.cos(z.re) * jnp.sinh(z.im))


def cos(z: Continued) -> Continued:
    """The cosine of z."""
    return Continued(jnp.cos(z.re) * jnp.cosh(z.im), -jnp.sin(z.re) * jnp.sinh(z.im))


def sinh(z: Continued) -> Continued:
    """The hyperbolic sine of z."""
    return Continued(jnp.sinh(z.re) * jnp.cos(z.im), jnp.cosh(z.re) * jnp.sin(z.im))


def cosh(z: Continued) -> Continued:
    """The hyperbolic cosine of z."""
    return Continued(jnp.cosh(z.re) * jnp.cos(z.im), jnp.sinh(z.re) * jnp.sin(z.im))


def erf(z: Continued) -> Continued:
    """The error function of z, whose parts are real; exact up to rounding where |Im z| ≤ 9."""
    wide = jnp.promote_types(z.re.dtype, jnp.float32)
    parts = _erf(z.re.astype(wide), z.im.astype(wide))
    return Continued(*(part.astype(z.re.dtype) for part in parts))


def erfc(z: Continued) -> Continued:
    """1 − erf z. Where it is small, it is exact up to the rounding of 1."""
    real, imaginary = erf(z)
    return Continued(1 - real, -imaginary)


@jax.custom_jvp
def _erf(a, b):
    """The parts of erf(a + jb): Salzer's series (Abramowitz and Stegun, 7.1.29).

    erf a + e^(−a²)/(2πa) [1 − cos 2ab + j sin 2ab] + (2/π) e^(−a²) Σ_n e^(−n²/4)/(n² + 4a²) [2a −
    2a cosh(nb) cos 2ab + n sinh(nb) sin 2ab + j(2a cosh(nb) sin 2ab + n sinh(nb) cos 2ab)]
    """
    angle = a * b
    sinc = jnp.sinc(angle / np.pi) * b  # sin(ab)/a
    cosine, sine = jnp.cos(2 * angle), jnp.sin(2 * angle)

    def term(n, sums):
        # Exponents are added before exp: cosh(nb) alone may overflow.
        up, down = (jnp.exp(-(n**2) / 4 - a**2 + sign * n * b) / 2 for sign in (1, -1))
        ch, sh = up + down, up - down
        scale = 1 / (n**2 + 4 * a**2)
        real = 2 * a * jnp.exp(-(n**2) / 4 - a**2) - 2 * a * ch * cosine + n * sh * sine
        imaginary = 2 * a * ch * sine + n * sh * cosine
        return sums[0] + scale * real, sums[1] + scale * imaginary

    def one(n, sums):
        return term(n.astype(a.dtype), sums)

    real, imaginary = jax.lax.fori_loop(
        1, _SERIES + 1, one, (jnp.zeros_like(angle), jnp.zeros_like(angle))
    )
    size = jnp.exp(-(a**2)) / np.pi
    # (1 − cos 2ab)/(2a) = sin²(ab)/a and sin(2ab)/(2a) = cos(ab) sin(ab)/a.
    first = Continued(size * jnp.sin(angle) * sinc, size * jnp.cos(angle) * sinc)
    return (
        jax.scipy.special.erf(a) + first.re + 2 / np.pi * real,
        first.im + 2 / np.pi * imaginary,
    )


@_erf.defjvp
def _erf_jvp(primals, tangents):
    """erf' z = 2/√π exp(−z²)."""
    z, change = Continued(*primals), Continued(*tangents)
    squared = square(z)
    slope = exp(Continued(-squared.re, -squared.im))
    moved = product(jnp.multiply, slope, change)
    factor = 2 / np.sqrt(np.pi).astype(z.re.dtype)
    return _erf(*primals), (factor * moved.re, factor * moved.im)
