"""The version, in a module of its own so that everything in the package can import it."""

import jaxlib.version

__version__ = "0.3.0"

LOWEST_JAX = (0, 8)


def check_jax() -> None:
    """Raises ImportError if JAX is too old, as in a notebook that installed without dependencies.

    It looks at jaxlib, which is at most as new as jax, and takes no time to import.
    """
    version = jaxlib.version.__version__
    if tuple(map(int, version.split(".")[:2])) < LOWEST_JAX:
        lowest = ".".join(map(str, LOWEST_JAX))
        raise ImportError(
            f"noisy_jax needs JAX {lowest} or newer, but {version} is installed: run "
            f'pip install --upgrade "jax>={lowest}", and restart Python'
        )
