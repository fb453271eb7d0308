"""Networks trained on noisy inputs: clean error of each transformation of `nj.unbiased`."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax

from noisy_jax import noise, unbiased
from noisy_jax.command.runner import Report, over_seeds, script
from noisy_jax.command.settings import SeededSettings, option
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.validation.numbers import positive

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "sin": jnp.sin,
    "tanh": jnp.tanh,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
}
"""Of the hidden units; tanh is not entire, as `pair` and `gaussian` need."""

LAWS = {
    "Gaussian": noise.Gaussian,
    "Laplace": noise.Laplace.from_variance,
}
"""Distributions of the noise, by their variance."""

MEASURED = ("once", "always")

RATES = {"sin": 5e-3, "tanh": 1e-2, "gelu": 1e-2}
HIDDEN, BATCH, TESTED = 64, 256, 50_000


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """Networks trained on noisy inputs, and judged on clean ones.

    y = sin 2a + b²/2 + noise of deviation 0.2, from noisy copies of (a, b); 64 hidden units, Adam
    with a rate that falls to zero along a cosine, batches of 256. Gradients of estimates that have
    heavy tails (gaussian, pair, multilevel) are clipped. Each row is measured once, and each time
    that it is used, its copies are turned by a random number of places, so that estimates take them
    in many orders; or it is measured anew. Writes networks.csv and config.json.

    Examples:
      python colabs/papers/networks.py
      python colabs/papers/networks.py --activation tanh --law Laplace
      python colabs/papers/networks.py --variance 0.36 --measured always
    """

    activation: str = option("sin", "of the hidden units", choices=ACTIVATIONS)
    law: str = option("Gaussian", "distribution of the noise", choices=LAWS)
    variance: float = option(0.16, "of the noise in each input", "V", positive)
    measured: str = option("once", "rows: once, or whenever they are used", choices=MEASURED)
    rows: int = option(40_000, "noisy rows", "N", fast=2_000)
    steps: int = option(6_000, "steps of Adam", "N", fast=100)
    clip: float = option(0.1, "largest norm of gradients with heavy tails", "G", positive)
    seeds: int = option(3, "independent data and first weights", "N", fast=2)


def run(settings: Settings) -> Iterator[Report]:
    """Every way to train, on data of its own number of copies."""
    rows = []
    for name, way in ways(settings).items():
        train = functools.partial(clean_error, settings, *way)
        found = over_seeds(train, jax.random.key(settings.seed), settings.seeds, name, batch_size=8)
        numbers = {"error": float(found.mean), "std_error": float(found.std_error)}
        rows.append({"way": name, **numbers, "num_seeds": settings.seeds})
    title = (
        f"mean squared error on clean inputs, {settings.activation} network, {settings.law} noise "
        f"of variance {settings.variance:g}"
    )
    columns = [("", "{way}"), ("error", "{error:.5f}"), ("± 95%", plus_minus("std_error", ".5f"))]
    yield Report(None, {"networks": Table(rows, columns, title)}, {})


def ways(settings: Settings) -> dict[str, tuple[int, Any, bool]]:
    """Number of copies in each row; what the loss becomes, `None` for their mean; heavy tails."""
    gaussian = functools.partial(unbiased.gaussian, noise=settings.variance)
    multilevel = functools.partial(unbiased.multilevel, base=2)
    every: dict[str, tuple[int, Any, bool]] = {
        "clean inputs": (0, None, False),
        "one copy, uncorrected": (1, None, False),
        "mean of 2": (2, None, False),
        "mean of 4": (4, None, False),
        "mean of 6": (6, None, False),
        "gaussian": (1, gaussian, True),
        "pair": (2, unbiased.pair, True),
        "replicates of 2": (2, unbiased.replicates, False),
        "replicates of 4, order 2": (4, functools.partial(unbiased.replicates, order=2), False),
        "multilevel, 4.8 copies on average": (64, multilevel, True),
    }
    if settings.activation == "tanh" or settings.law != "Gaussian":
        del every["gaussian"], every["pair"]
    return every


def clean_error(
    settings: Settings, copies: int, estimate: Any, heavy: bool, key: jax.Array
) -> jax.Array:
    """Mean squared error on clean test inputs of one trained network."""
    data_key, start_key, step_key, level_key = jax.random.split(key, 4)
    keys = jax.random.split(data_key, 4)
    x = jax.random.normal(keys[0], (settings.rows, 2))
    y = truth(x) + 0.2 * jax.random.normal(keys[1], (settings.rows,))
    law = LAWS[settings.law](settings.variance)
    clean = jnp.broadcast_to(x[:, None], (settings.rows, max(copies, 1), 2))
    once = settings.measured == "once" or not copies
    seen = law.sample(keys[2], clean) if copies and once else clean
    activation = ACTIVATIONS[settings.activation]
    levels = jax.random.split(level_key, settings.rows)  # of a row are its own: measured once

    def predict(params, x):
        hidden = activation(x @ params["in"] + params["bias"])
        return hidden @ params["out"] + params["level"]

    def loss(params, x, y):
        return (predict(params, x) - y) ** 2

    g = None if estimate is None else estimate(loss, argnum=1)
    adam = optax.adam(optax.cosine_decay_schedule(RATES[settings.activation], settings.steps))
    optimizer = optax.chain(optax.clip_by_global_norm(settings.clip), adam) if heavy else adam

    def of_row(params, copies, y, key, turn):
        if g is None:
            return loss(params, copies.mean(axis=0), y)
        used = g.copies_needed(key) if isinstance(g, unbiased.Multilevel) else len(copies)
        turned = copies[(turn + jnp.arange(len(copies))) % used]
        return g(params, turned, y, key=key)

    def risk(params, chosen, key):
        draw_key, turn_key, noise_key = jax.random.split(key, 3)
        own = levels[chosen] if copies > 1 and once else jax.random.split(draw_key, BATCH)
        measured = seen[chosen] if once else law.sample(noise_key, seen[chosen])
        turns = jax.random.randint(turn_key, (BATCH,), 0, max(copies, 1))
        of_rows = jax.vmap(of_row, (None, 0, 0, 0, 0))
        return of_rows(params, measured, y[chosen], own, turns).mean()

    def step(state, key):
        params, optimizer_state = state
        row_key, draw_key = jax.random.split(key)
        chosen = jax.random.randint(row_key, (BATCH,), 0, settings.rows)
        slope = jax.grad(risk)(params, chosen, draw_key)
        moves, optimizer_state = optimizer.update(slope, optimizer_state)
        return (optax.apply_updates(params, moves), optimizer_state), None

    start = jax.random.split(start_key, 3)
    phases = jax.random.uniform(start[1], (HIDDEN,), minval=-jnp.pi, maxval=jnp.pi)
    periodic = settings.activation == "sin"  # starts as random Fourier features do
    params = {
        "in": (0.6 if periodic else 0.5) * jax.random.normal(start[0], (2, HIDDEN)),
        "bias": phases if periodic else jax.random.normal(start[1], (HIDDEN,)),
        "out": jax.random.normal(start[2], (HIDDEN,)) / HIDDEN**0.5,
        "level": jnp.zeros(()),
    }
    every = jax.random.split(step_key, settings.steps)
    (params, _), _ = jax.lax.scan(step, (params, optimizer.init(params)), every)
    tested = jax.random.normal(keys[3], (TESTED, 2))
    return jnp.mean(jax.vmap(lambda x: (predict(params, x) - truth(x)) ** 2)(tested))


def truth(x: jax.Array) -> jax.Array:
    """E y at clean inputs `[..., 2]`."""
    return jnp.sin(2 * x[..., 0]) + x[..., 1] ** 2 / 2


if __name__ == "__main__":
    sys.exit(script(Settings, run))
