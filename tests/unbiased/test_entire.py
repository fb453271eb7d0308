"""What `pair` and `gaussian` take as entire, and what they say of the rest."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax.extend.core import Primitive

import noisy_jax as nj
from noisy_jax.unbiased.continuation import Continued, by_complex, erf
from noisy_jax.unbiased.entire import continued
from tests.errors import raises

RE, IM = np.array([0.3, -0.7, 1.2]), np.array([0.5, 0.2, -0.4])
Z = RE + 1j * IM


def gelu(z):
    return 0.5 * z * (1 + scipy.special.erf(z / np.sqrt(2)))


def loop(x):
    """A carry that begins as a constant, one that never depends on x, and stacked results."""

    def step(carry, one):
        value, count = carry
        return (value * x[0] + one, count + 1), jnp.sin(value)

    (value, count), stacked = jax.lax.scan(step, (1.0, 0), x[1:])
    return value + count + stacked


def loop_by_hand(z):
    first = z[0] + z[1]
    return first * z[0] + z[2] + 2 + np.array([np.sin(1), np.sin(first)])


def branch(x, flag):
    return jax.lax.cond(flag, lambda v: (v[0] ** 2, 1.0), lambda v: (0.0, v[1]), x)


def whole_numbers_beside(x):
    together, numbers = jax.lax.optimization_barrier((x, jnp.arange(3)))
    return (together + numbers.astype(x.dtype)) ** 2


def max_pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2,), (1,), "VALID")


H = np.array([1.0, 3.0, 2.0])
ENTIRE = {
    "sum of squares": (lambda x: jnp.vdot(x, x), lambda z: np.sum(z * z)),
    "variance": (jnp.var, lambda z: np.mean((z - z.mean()) ** 2)),
    "powers": (lambda x: x**5 - x**2.0 + x**0 + 2**x, lambda z: z**5 - z**2 + 1 + 2**z),
    "division": (lambda x: x / 3.0 - 2.0, lambda z: z / 3 - 2),
    "functions": (
        lambda x: jnp.exp(x) + jnp.exp2(x) + jnp.expm1(x) + jnp.sin(x) + jnp.cos(x),
        lambda z: np.exp(z) + 2**z + np.exp(z) - 1 + np.sin(z) + np.cos(z),
    ),
    "hyperbolic": (lambda x: jnp.sinh(x) * jnp.cosh(2 * x), lambda z: np.sinh(z) * np.cosh(2 * z)),
    "erf": (jax.lax.erf, scipy.special.erf),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), gelu),
    "matrix product": (
        lambda x: jnp.outer(x, x) @ jnp.arange(3.0) @ jnp.ones((3, 2)),
        lambda z: np.outer(z, z) @ np.arange(3.0) @ np.ones((3, 2)),
    ),
    "convolution": (lambda x: jnp.convolve(x, x[:2]), lambda z: np.convolve(z, z[:2])),
    "indexing": (
        lambda x: x[::-1].at[0].set(x[1]).at[jnp.array([1])].add(x[2]) + jnp.cumsum(x),
        lambda z: np.array([z[1], z[1] + z[2], z[0]]) + np.cumsum(z),
    ),
    "products": (lambda x: jnp.prod(x) + jnp.cumprod(x), lambda z: np.prod(z) + np.cumprod(z)),
    "products of complex numbers": (
        lambda x: (jnp.cumprod(1j * x + 1)[:2] + (1j * x[:2]) ** 2.0).real,
        lambda z: [1 - z[0] ** 2, 1 - z[0] * z[1] - z[1] ** 2],
    ),
    "products in place": (
        lambda x: jnp.ones(3).at[jnp.array([0, 0, 1])].multiply(x),
        lambda z: [z[0] * z[1], z[2], 1],
    ),
    "fill": (
        lambda x: x.at[jnp.array([0, 7])].get(mode="fill", fill_value=2.0) ** 2,
        lambda z: [z[0] ** 2, 4],
    ),
    "NaN as fill": (lambda x: x.at[7].get(mode="fill") ** 2, lambda z: np.nan),
    "derivatives of a maximum of parameters": (
        lambda x: jax.vjp(max_pool, H)[1](x[:2])[0][1] * jax.jvp(max_pool, (H,), (x,))[1],
        lambda z: (z[0] + z[1]) * z[1],
    ),
    "whole numbers beside x": (whole_numbers_beside, lambda z: (z + np.arange(3)) ** 2),
    "linear equations": (
        lambda x: jnp.linalg.solve(jnp.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]), x) ** 2,
        lambda z: np.linalg.solve(np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]), z) ** 2,
    ),
    "choice": (lambda x: jnp.where(jnp.arange(3) > 1, x, 4.0), lambda z: [4, 4, z[2]]),
    "scan": (loop, loop_by_hand),
    "fori": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * x[0] + i, 1.0),
        lambda z: (z[0] * z[0] + 1) * z[0] + 2,
    ),
    "carry that depends on x from the second round on": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, c: (c[1], x), 2 * (jnp.zeros(3),))[0] ** 2,
        np.square,
    ),
    "while": (
        lambda x: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * x, c[1] + 1), (x, 0))[0],
        lambda z: z**4,
    ),
    "branches": (
        lambda x: jnp.stack([*branch(x, jnp.array(True)), *branch(x, jnp.array(False))]),
        lambda z: [z[0] ** 2, 1, 0, z[1]],
    ),
    "jit": (jax.jit(lambda x: jnp.sin(x) ** 2), lambda z: np.sin(z) ** 2),
    "checkpoint": (jax.checkpoint(lambda x: jnp.sin(x) ** 2), lambda z: np.sin(z) ** 2),
    "gradient": (
        jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 3)),
        lambda z: 3 * np.sin(z) ** 2 * np.cos(z),
    ),
    "conjugate inside": (
        lambda x: jnp.real(jnp.conj(jnp.exp(1j * x)) * jnp.exp(3j * x)),
        lambda z: np.cos(2 * z),
    ),
    "complex inside": (lambda x: jnp.real(jnp.exp(1j * x)), np.cos),
    "Fourier transform": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x), 3) ** 2, lambda z: z**2),
    "relu of parameters": (
        lambda x: jax.nn.relu(jnp.array([-1.0, 2.0, 3.0])) * x,
        lambda z: [0, 2, 3] * z,
    ),
    "no x at all": (lambda x: jnp.tanh(jnp.ones(2)), lambda z: np.tanh(np.ones(2))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTIRE)
def test_the_continuation_is_the_function_of_a_complex_number(name, x64):
    """NumPy at the complex point; real and imaginary parts may also be mapped and jitted."""
    f, reference = ENTIRE[name]
    found = jax.jit(lambda re, im: continued(f, Continued(re, im), "pair").re)(RE, IM)
    np.testing.assert_allclose(found, np.real(reference(Z)), rtol=1e-10, atol=1e-12)


def test_products_of_short_numbers_keep_their_type():
    copies = jnp.array([[1.0, 2.0], [2.0, 3.0]], jnp.bfloat16)
    found = nj.unbiased.pair(jnp.cumprod)(copies)
    np.testing.assert_array_equal(found, jnp.array([1.5, 3.5], jnp.bfloat16), strict=True)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-12)])
def test_erf_is_scipys(dtype, tolerance, x64):
    """Around zero, along both axes, and where its size is e^64."""
    real, imaginary = np.meshgrid(np.linspace(-6, 6, 25), np.linspace(-8, 8, 33))
    expected = scipy.special.erf(real + 1j * imaginary)
    found = jax.jit(lambda *z: erf(Continued(*z)))(real.astype(dtype), imaginary.astype(dtype))
    assert found.re.dtype == dtype
    error = np.abs(np.asarray(found.re) + 1j * np.asarray(found.im) - expected)
    assert (error <= tolerance * (1 + np.abs(expected))).all()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-14)])
def test_sines_have_relative_precision_at_imaginary_parts_of_any_size(dtype, tolerance, x64):
    """sin(a + jb) = sin a cosh b + j cos a sinh b, and its derivative is cos(a + jb)."""
    b = np.array([-80, -3, -0.5, -1e-9, 0, 1e-20, 0.01, 1, 20, 88]).astype(dtype)
    a = np.full_like(b, 0.75)
    found, slopes = jax.jit(
        lambda b: jax.jvp(lambda b: by_complex(jnp.sin, Continued(a, b)), (b,), (a,))
    )(b)
    grown, turned = np.cosh(b.astype(float)), np.sinh(b.astype(float))
    sine, cosine = np.sin(0.75), np.cos(0.75)
    np.testing.assert_allclose(found, [sine * grown, cosine * turned], tolerance, 0)
    np.testing.assert_allclose(slopes, [0.75 * sine * turned, 0.75 * cosine * grown], tolerance, 0)
    assert found.re.dtype == slopes.re.dtype == dtype


@pytest.mark.parametrize("wave", [jnp.sin, jnp.cosh])
def test_an_estimate_may_be_estimated(wave, x64):
    """Of errors in two arguments: the mean over all four points, of which each is an estimate."""
    copies, pair = jnp.array([0.3, 0.7]), nj.unbiased.pair
    found = pair(lambda z: pair(lambda x: wave(x * z))(copies))(copies)
    point = 0.5 + 0.2j * np.array([1, -1])
    expected = getattr(np, wave.__name__)(np.multiply.outer(point, point)).mean().real
    np.testing.assert_allclose(found, expected)


@pytest.mark.slow
def test_derivatives_of_erf_are_those_of_a_complex_number(x64):
    def parts(real, imaginary):
        return jnp.stack(erf(Continued(real, imaginary)))

    points = jnp.array(0.4), jnp.array(0.3)
    slopes = jax.jacrev(parts, (0, 1))(*points)  # Cauchy and Riemann, and 2/√π exp(−z²)
    slope = 2 / np.sqrt(np.pi) * np.exp(-((0.4 + 0.3j) ** 2))
    np.testing.assert_allclose(slopes, [[slope.real, slope.imag], [-slope.imag, slope.real]])
    forward = jax.jacfwd(parts)
    np.testing.assert_allclose(forward(*points), slopes[0])
    curved = -2 * (0.4 + 0.3j) * slope  # −4z/√π exp(−z²)
    np.testing.assert_allclose(jax.jacfwd(forward)(*points), [curved.real, curved.imag])


def relu_layer(x):
    return jnp.sum(jax.nn.relu(x))


def large(x):
    return jnp.sum(x) > 1


REJECTED = {
    "relu": (relu_layer, r"'max' in relu \(.*test_entire.py:\d+:\d+ \(relu_layer\)\) is not anal"),
    "abs": (lambda x: jnp.abs(x) ** 2, r"'abs' .* is not analytic: write x\*\*2, not abs"),
    "max": (lambda x: jnp.max(x), "'reduce_max' .* is not analytic"),
    "scatter": (lambda x: x.at[0].apply(jnp.abs), r"'scatter' .* in place: write x.at.*\.set\("),
    "beside a solution": (
        lambda x: jax.lax.custom_linear_solve(
            lambda v: v, x, lambda _, b: (b, b**2), symmetric=True, has_aux=True
        )[1],
        "'custom_linear_solve' .* has poles",
    ),
    "sort": (lambda x: jnp.sort(x), "'sort' .* is not analytic"),
    "argmax": (lambda x: x[jnp.argmax(x)], "'argmax' .* is not analytic"),
    "comparison": (lambda x: jnp.where(x > 0, x, 0), "'gt' .* is not analytic"),
    "norm": (lambda x: jnp.linalg.norm(x), "'sqrt' .* has poles or branch points"),
    "cast": (lambda x: x.astype(int) * 1.0, "'convert_element_type' .* is not analytic"),
    "floor": (lambda x: jnp.floor(x), "'floor' .* is not analytic"),
    "tanh": (lambda x: jnp.tanh(x), "'tanh' .* has poles"),
    "gelu by tanh": (
        lambda x: jax.nn.gelu(x),
        r"'tanh' .* has poles .*: gelu without .*, jax.nn.gelu\(x, approximate=False\)",
    ),
    "logistic": (lambda x: jax.nn.sigmoid(x), "'logistic' .* has poles"),
    "softmax": (lambda x: jax.nn.softmax(x), "pair needs an entire function"),
    "reciprocal": (lambda x: 1 / x, "'div' .* has poles .*: divide by what does not depend on x"),
    "negative power": (lambda x: x**-2, "'integer_pow' .* has poles .* exponent that is at least"),
    "root": (lambda x: x**0.5, "'pow' .* has poles .*: take a whole exponent"),
    "log": (lambda x: jnp.log(x), "'log' .* has poles"),
    "solve": (lambda x: jnp.linalg.solve(jnp.diag(x), x), "'lu' .* has poles"),
    "in a loop": (
        lambda x: jax.lax.fori_loop(0, 2, lambda i, c: jnp.tanh(c), x),
        "'tanh' in .* has poles",
    ),
    "in a branch": (lambda x: jax.lax.cond(True, jnp.tanh, jnp.sin, x), "'tanh' in cond .* has po"),
    "complex result": (lambda x: jnp.exp(1j * x), "result of f is of type complex.*real and imag"),
    "whole number": (lambda x: x.astype(int), "'convert_element_type' .* is not analytic"),
    "flag": (large, "'gt' .* is not analytic"),
    "flag as a number": (lambda x: large(x).astype(float), "'gt' .* is not analytic"),
    "branch by x": (
        lambda x: jax.lax.cond(large(x), jnp.sin, jnp.cos, x),
        "'gt' .* is not analytic",
    ),
    "loop until x is small": (
        lambda x: jax.lax.while_loop(large, lambda x: x / 2, x),
        "'gt' .* is not analytic",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_not_entire_is_one_clear_message(name):
    f, message = REJECTED[name]
    copies = jnp.array([RE, RE + 0.1], float)
    with pytest.raises(ValueError, match=message) as caught:
        jax.eval_shape(nj.unbiased.pair(f), copies)
    if "result of f" not in message:
        assert "multilevel and replicates take any smooth function" in str(caught.value)
    assert "\n" not in str(caught.value)
    g = functools.partial(nj.unbiased.gaussian(f, 0.1), key=jax.random.key(0))
    raises("gaussian ", jax.eval_shape, g, copies[:1])
    if name not in ("complex result", "whole number", "flag"):
        assert jax.tree.leaves(jax.eval_shape(nj.unbiased.replicates(f), copies))


def primitive(name, function):
    made = Primitive(name)
    made.def_impl(function)
    made.def_abstract_eval(lambda x: x)
    return made


def test_ones_own_primitives_can_be_registered():
    thrice, cube = primitive("thrice", lambda x: 3 * x), primitive("cube", lambda x: x**3)
    gate = primitive("gate", jnp.sign)
    copies = jnp.array([RE + IM, RE - IM], float)  # of which z = RE + i IM is made
    raises(r"whether 'thrice' is one: .*register", nj.unbiased.pair(thrice.bind), copies)
    nj.unbiased.register(thrice, "linear")
    nj.unbiased.register(cube, "entire")
    nj.unbiased.register(gate, "not analytic")
    np.testing.assert_allclose(nj.unbiased.pair(thrice.bind)(copies), 3 * RE, rtol=1e-6)
    np.testing.assert_allclose(nj.unbiased.pair(cube.bind)(copies), np.real(Z**3), rtol=1e-5)
    raises(r"'gate' is not analytic", nj.unbiased.pair(gate.bind), copies)
    register = nj.unbiased.register
    raises(r"kind must be 'linear', 'entire', .* got 'smooth'", register, gate, "smooth")
    raises(r"primitive must be a jax\.extend\.core\.Primitive, got", register, jnp.sin, "entire")
    raises("JAX's own primitive 'sin' is known", register, Primitive("sin"), "linear")
