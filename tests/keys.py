"""Keys of statistical tests, which an environment variable shifts.

    for s in $(seq 0 19); do NOISY_JAX_KEY_SHIFT=$s pytest -m statistical; done

runs every statistical test with 20 different keys.
"""

import os

import jax

SHIFT = int(os.environ.get("NOISY_JAX_KEY_SHIFT", "0"))


def key(number: int = 0) -> jax.Array:
    """The key of this number, another one for each shift."""
    return jax.random.key(number + 100_003 * SHIFT)
