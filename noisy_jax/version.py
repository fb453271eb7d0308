"""The version, in a module of its own so that everything in the package can import it."""

__version__ = "0.3.0"
