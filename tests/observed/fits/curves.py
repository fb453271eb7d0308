"""Curves that fits of any model are tested with, and noisy rows of one of them."""

import jax.numpy as jnp
import numpy as np

START = {"level": 0.0, "rate": 0.5, "size": 1.0}


def growth(params, x):
    return params["level"] + params["size"] * jnp.exp(params["rate"] * x[0])


def wave(params, x):
    return params["level"] + params["size"] * jnp.sin(params["rate"] * x[0])


def drawn(rng, n=600, copies=1, noise=0.2, rate=0.6):
    """Noisy rows of `growth`, `[n, V, 1]`, and y."""
    x = rng.normal(size=n)
    y = 0.5 + np.exp(rate * x) + 0.3 * rng.normal(size=n)
    return x[:, None, None] + noise * rng.normal(size=(n, copies, 1)), y
