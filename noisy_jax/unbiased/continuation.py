"""Numbers a + jb with j² = −1 whose parts keep the types of the function that is continued.

A function of a real x, evaluated at x + jy, gives its continuation to the complex plane. The parts
a and b are arrays of the type that the function itself computes with, also complex ones: j is not
their i. Linear operations act on both parts as they are; exp, sin, … are those of complex numbers.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation import at_least_float32

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

    def parts(own, plus, minus):
        pair = ((plus + minus) / 2, (plus - minus) / 2j) if twice else (plus.real, plus.imag)
        return Continued(*[part.astype(own.dtype) for part in pair])

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


@jax.custom_jvp
def erf(z: jax.Array) -> jax.Array:
    """The error function of a complex number, up to the rounding of 1 + |erf z|.

    erf z = 1 − exp(−z²) w(iz) where Re z ≥ 0; elsewhere it follows, because erf is odd.

    w(iz) = 2p(Z)/(L + z)² + 1/(√π(L + z)) with a polynomial p of Z = (L − z)/(L + z), |Z| ≤ 1.

    Source: Weideman, Computation of the complex error function (1994).
    """
    scale, coefficients = _polynomial(_TERMS[z.real.dtype.itemsize])
    sign = jnp.where(z.real < 0, -1, 1).astype(z.dtype)
    z = sign * z
    inverse = 1 / (scale + z)
    total = jnp.polyval(jnp.asarray(coefficients, z.dtype), (scale - z) * inverse)
    w = (2 * total * inverse + np.pi**-0.5) * inverse
    return sign * (1 - jnp.exp(-(z**2)) * w)


@erf.defjvp
def _erf_jvp(primals, tangents):
    """erf' z = 2/√π exp(−z²)."""
    (z,), (move,) = primals, tangents
    return erf(z), 2 / np.pi**0.5 * jnp.exp(-(z**2)) * move


def erfc(z: jax.Array) -> jax.Array:
    """1 − erf z, up to the rounding of 1 + |erf z|."""
    return 1 - erf(z)


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
