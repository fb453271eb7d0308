"""Cost of `nj.unbiased`: `python tests/benchmarks/unbiased.py`.

The gradient of a network's loss by each transformation, against that of the loss itself.
"""

import functools
import statistics
import time

import jax
import jax.numpy as jnp
from timing import at_most, median_times, report

import noisy_jax as nj

DIM, WIDTH, BATCH, COMPILATIONS = 10, 256, 256, 3
QUICK = {"COMPILATIONS": 1}
KEYS = jax.random.split(jax.random.key(0), 6)
ACTIVATIONS = {"sin": jnp.sin, "gelu": functools.partial(jax.nn.gelu, approximate=False)}


def network(activation):
    """The loss of one row of a network of two hidden layers, and its parameters."""
    draws = map(jax.random.normal, KEYS[:3], [(DIM, WIDTH), (WIDTH, WIDTH), (WIDTH,)])
    params = [a / a.shape[0] ** 0.5 for a in draws]

    def loss(params, x, y):
        first, second, last = params
        return (activation(activation(x @ first) @ second) @ last - y) ** 2

    return loss, params


def gradient(g, copies, params):
    """A jitted gradient of the mean over rows, and its arguments; no copies: of the loss itself."""
    shape = (BATCH, copies, DIM) if copies else (BATCH, DIM)
    x, y = jax.random.normal(KEYS[3], shape), jax.random.normal(KEYS[4], (BATCH,))
    keys = jax.random.split(KEYS[5], BATCH)

    def risk(params, x, y, keys):
        def row(x, y, key):
            return g(params, x, y, key=key) if copies else g(params, x, y)

        return jax.vmap(row)(x, y, keys).mean()

    return jax.jit(jax.grad(risk)), (params, x, y, keys)


def compiled(program, arguments):
    """The compiled program, and the median seconds of tracing and compiling it."""
    seconds = []
    for _ in range(COMPILATIONS):
        jax.clear_caches()
        start = time.perf_counter()
        found = program.lower(*arguments).compile()
        seconds.append(time.perf_counter() - start)
    return functools.partial(found, *arguments), statistics.median(seconds)


def rows():
    jax.config.update("jax_enable_compilation_cache", False)
    found = []
    for name, activation in ACTIVATIONS.items():
        loss, params = network(activation)
        estimates = {
            "multilevel": (nj.unbiased.multilevel(loss, 1), 32, 4.2, 4.3),
            "pair": (nj.unbiased.pair(loss, 1), 2, 4, 4.3),
            "replicates, V = 2": (nj.unbiased.replicates(loss, 1), 2, 3, 2),
            "gaussian, 1 draw": (nj.unbiased.gaussian(loss, 0.1, 1, draws=1), 1, 4, 4.3),
        }
        plain, plain_compile = compiled(*gradient(loss, 0, params))
        for what, (g, copies, bound, most) in estimates.items():
            ours, seconds = compiled(*gradient(g, copies, params))
            times = median_times(ours, plain, repeats=15)
            found += [
                at_most(f"{what}, {name}: gradient", *times, bound),
                at_most(f"{what}, {name}: compilation", seconds, plain_compile, most),
            ]
    jax.config.update("jax_enable_compilation_cache", True)
    return found


if __name__ == "__main__":
    settings = f"float32; gradient of a network of 2 x {WIDTH} units on batches of {BATCH} rows"
    report(settings, rows)
