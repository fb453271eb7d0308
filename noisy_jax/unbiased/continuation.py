"""Numbers a + jb with j² = −1 whose parts keep the types of the function that is continued.

A function of a real x, evaluated at x + jy, gives its continuation to the complex plane. The parts
a and b are arrays of the type that the function itself computes with, also complex ones: j is not
their i. Linear operations act on both parts as they are; exp, sin, … are those of complex numbers,
and erf, which JAX has not for these, is made of real parts, in 0.7 of their time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation.values import at_least_float32

_TERMS = {4: 14, 8: 40}  # of erf's polynomial, by the bytes of a number: up to rounding


class Continued(NamedTuple):
    """a + jb.

    Attributes:
        re: a.
        im: b, in the shape and type of a.
    """

    re: Any
    im: Any


def apart(apply: Callable[..., Any], *args: Any) -> Any:
    """An operation that is linear in what depends on x, for what does not, as a quotient is."""
    real = apply(*[arg.re if isinstance(arg, Continued) else arg for arg in args])
    imaginary = apply(*[arg.im if isinstance(arg, Continued) else arg for arg in args])
    if isinstance(real, (list, tuple)):
        return [
            Continued(*parts) if jnp.issubdtype(parts[0].dtype, jnp.inexact) else parts[0]
            for parts in zip(real, imaginary, strict=True)
        ]
    return Continued(real, imaginary)


def linear(apply: Callable[..., Any], *args: Any) -> Any:
    """An operation that is linear in all its numbers of floating point together."""
    return apart(apply, *map(with_parts, args))


def with_parts(arg: Any) -> Any:
    """A number of floating point with an imaginary part, of zero if it has none."""
    if isinstance(arg, Continued) or not jnp.issubdtype(jnp.result_type(arg), jnp.inexact):
        return arg
    return Continued(arg, jnp.zeros_like(arg))


def product(apply: Callable[..., Any], a: Any, b: Any) -> Continued:
    """An operation that is linear in each of two arguments."""
    if not isinstance(b, Continued):
        return Continued(apply(a.re, b), apply(a.im, b))
    if not isinstance(a, Continued):
        return Continued(apply(a, b.re), apply(a, b.im))
    real = apply(a.re, b.re) - apply(a.im, b.im)
    return Continued(real, apply(a.re, b.im) + apply(a.im, b.re))


def by_complex(apply: Callable[..., Any], *args: Any) -> Any:
    """A primitive that is right for complex numbers, in the types of its own results.

    Parts a and b that are complex, with an i of their own, make two numbers a ± ib. Of the results
    f₊ and f₋ there the parts are (f₊ + f₋)/2 and (f₊ − f₋)/2i.
    """
    reals = [arg.re if isinstance(arg, Continued) else arg for arg in args]
    twice = any(jnp.iscomplexobj(arg.re) for arg in args if isinstance(arg, Continued))

    def at(sign):
        def whole(arg):
            if not isinstance(arg, Continued):
                return arg
            re, im = (part.astype(at_least_float32(part.dtype)) for part in arg)
            return re + sign * 1j * im if twice else jax.lax.complex(re, im)

        return apply(*[whole(arg) for arg in args])

    def parts(real, plus, minus):
        pair = ((plus + minus) / 2, (plus - minus) / 2j) if twice else (plus.real, plus.imag)
        return Continued(*[part.astype(real.dtype) for part in pair])

    plus = at(1)
    return jax.tree.map(parts, jax.eval_shape(apply, *reals), plus, at(-1) if twice else plus)


def cosh(z: Continued) -> Continued:
    """cosh z = cos jz; XLA's own cancels near 0."""
    return by_complex(jnp.cos, Continued(-z.im, z.re))


def sinh(z: Continued) -> Continued:
    """sinh z = −j sin jz."""
    turned = by_complex(jnp.sin, Continued(-z.im, z.re))
    return Continued(turned.im, -turned.re)


def cosine_and_sine(turns: Continued) -> list[Continued]:
    """The cosine and the sine of z cycles, 2πz."""
    within = turns.re - jnp.round(turns.re)  # exact
    angle = Continued(2 * np.pi * within, 2 * np.pi * turns.im)
    return [by_complex(wave, angle) for wave in (jnp.cos, jnp.sin)]


def erf(z: Continued) -> Continued:
    """The error function of z, whose parts are real, up to the rounding of 1 + |erf z|.

    Source: Weideman, Computation of the complex error function (1994).
    """
    wide = at_least_float32(z.re.dtype)
    parts, _ = _erf_and_gauss(z.re.astype(wide), z.im.astype(wide))
    return Continued(*(part.astype(z.re.dtype) for part in parts))


def erfc(z: Continued) -> Continued:
    """1 − erf z, up to the rounding of 1 + |erf z|."""
    real, imaginary = erf(z)
    return Continued(1 - real, -imaginary)


@jax.custom_jvp
@jax.jit
def _erf_and_gauss(a, b):
    """The parts of erf z and of exp(−z²), z = a + jb.

    erf z = 1 − exp(−z²) w(jz) where Re z ≥ 0; elsewhere it follows, because erf is odd.

    w(jz) = 2p(Z)/(L + z)² + 1/(√π(L + z)) with a polynomial p of Z = (L − z)/(L + z), |Z| ≤ 1.
    """
    scale, coefficients = _polynomial(_TERMS[a.dtype.itemsize])
    gauss = by_complex(jnp.exp, Continued((b - a) * (b + a), -2 * a * b))
    sign = jnp.where(a < 0, -1, 1).astype(a.dtype)
    a, b = sign * a, sign * b
    size = 1 / ((scale + a) ** 2 + b**2)
    inverse = Continued((scale + a) * size, -b * size)  # 1/(L + z)
    ratio = product(jnp.multiply, Continued(scale - a, -b), inverse)
    total = _real_polynomial(coefficients, ratio)
    rest = product(jnp.multiply, total, inverse)
    rest = Continued(2 * rest.re + 1 / np.sqrt(np.pi).astype(a.dtype), 2 * rest.im)
    w = product(jnp.multiply, rest, inverse)
    small = product(jnp.multiply, gauss, w)
    return (sign * (1 - small.re), -sign * small.im), tuple(gauss)


def _real_polynomial(coefficients: list[float], z: Continued) -> Continued:
    """Σ c_i zⁿ⁻ⁱ, with real c, in half the operations of Horner's rule: z² = 2 Re(z) z − |z|².

    Source: Knuth, The Art of Computer Programming, volume 2, section 4.6.4.
    """
    twice, size = 2 * z.re, z.re**2 + z.im**2
    total, before = jnp.full_like(z.re, coefficients[0]), jnp.zeros_like(z.re)
    for coefficient in coefficients[1:-1]:
        total, before = coefficient + twice * total - size * before, total
    return Continued(coefficients[-1] + z.re * total - size * before, z.im * total)


@functools.cache
def _polynomial(count: int) -> tuple[float, list[float]]:
    """L and the coefficients of p, the highest power first."""
    number = 2 * count
    scale = (count / 2**0.5) ** 0.5
    angles = np.arange(1 - number, number) * np.pi / number
    t = scale * np.tan(angles / 2)
    values = np.append(0, np.exp(-(t**2)) * (scale**2 + t**2))
    spectrum = np.fft.fft(np.fft.fftshift(values)).real / (2 * number)
    return float(scale), spectrum[1 : count + 1][::-1].tolist()


@_erf_and_gauss.defjvp
def _erf_and_gauss_jvp(primals, tangents):
    """erf' z = 2/√π exp(−z²), and the derivative of exp(−z²) is −2z exp(−z²)."""
    value, gauss = _erf_and_gauss(*primals)
    moved = product(jnp.multiply, Continued(*gauss), Continued(*tangents))
    factor = 2 / np.sqrt(np.pi).astype(primals[0].dtype)
    turned = product(jnp.multiply, Continued(*primals), moved)
    tangent = (factor * moved.re, factor * moved.im), (-2 * turned.re, -2 * turned.im)
    return (value, gauss), tangent
