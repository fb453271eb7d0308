"""What not choosing a rate costs in time: `python tests/benchmarks/tuning.py`.

An adaptive rate against a fixed one, and a mixture of twelve rates against one learner; noise is
drawn before.
"""

import functools

import jax
import jax.numpy as jnp
from timing import at_most, judged, median_times, report

import noisy_jax as nj
from noisy_jax.noise import observe

NOISE = nj.noise.Gaussian(0.1)
RATES = jnp.geomspace(0.001, 1.0, 12)
ROUNDS = {"linear": 8192, "kernel": 2048}
QUICK = {"ROUNDS": {"linear": 4096, "kernel": 512}}
WORLD = nj.worlds.gaussian(dim=10, length_scale=1.0, noise=NOISE)


def linear(rate):
    return nj.learners.two_copies(radius=1.0, learning_rate=rate)


def kernel(rate):
    return nj.learners.parallel_worlds(
        WORLD, horizon=ROUNDS["kernel"], radius=2.0, learning_rate=rate
    )


def runs(learner, kind, seeds):
    """A call of the compiled run of all seeds on the diabetes stream."""
    stream = nj.streams.resampled(jax.random.key(0), nj.streams.dataset("diabetes"), ROUNDS[kind])
    draw = jax.vmap(lambda key, x, y: observe(key, x, y, NOISE, copies=2))
    keys = jax.random.split(jax.random.key(1), (seeds, ROUNDS[kind]))
    samples = jax.jit(jax.vmap(draw, (0, None, None)))(keys, *stream)
    return functools.partial(judged(learner), samples, stream.x)


def rows():
    found = []
    for kind, make, numbers in (("linear", linear, (1, 64)), ("kernel", kernel, (1, 16))):
        mixture = nj.wrappers.mixture(nj.wrappers.swept(make, RATES))
        for seeds in numbers:
            fixed, adaptive, mixed = median_times(
                *(runs(each, kind, seeds) for each in (make(0.03), make(None), mixture)), repeats=15
            )
            where = f"{kind}, {seeds} seeds"
            found.append(at_most(f"adaptive / fixed rate, {where}", adaptive, fixed, 1.2))
            if kind == "kernel":
                found.append(at_most(f"mixture of 12 rates / one, {where}", mixed, fixed, 2.5))
    return found


if __name__ == "__main__":
    report(f"rounds: {ROUNDS}", rows)
