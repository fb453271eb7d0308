"""The transformation that learners, moments and fits take as their argument `estimate`.

Each transformation of `nj.unbiased` takes f and the place of x, and has options of its own; all
that another room needs of it follows from its result: the copies, the noise, whether it draws.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

from noisy_jax.base import Sample
from noisy_jax.noise import Gaussian
from noisy_jax.unbiased.replicates import replicates
from noisy_jax.unbiased.transformed import Transformed
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.objects import instance

_NAMES = ("gaussian", "multilevel", "pair", "replicates")


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A transformation with its options.

    Attributes:
        transform: such as `nj.unbiased.replicates`, or a `functools.partial` of it.
        reads_cov: whether it lacks the covariance of the noise, as `nj.unbiased.gaussian` does
            without the argument `noise`: then it is read with the data.
    """

    transform: Callable[..., Transformed]
    reads_cov: bool

    @classmethod
    def of(cls, named: Any) -> Estimate:
        """The estimate that a user names, by default `replicates` of 4 copies.

        Raises:
            ValueError: it is no transformation, or has an option that it does not take.
        """
        transform: Any = functools.partial(replicates, copies=4) if named is None else named
        if isinstance(transform, str) and transform in _NAMES:
            raise ValueError(
                f"estimate={transform!r} left in version 0.4.0: write "
                f"estimate=nj.unbiased.{transform}, or a functools.partial of it with its options"
            )
        if isinstance(transform, Transformed):
            raise ValueError(
                f"estimate must be a transformation, such as nj.unbiased.{transform.name}, not "
                "what it returns"
            )
        wrong = (
            "estimate must be a function such as nj.unbiased.replicates, or a "
            f"functools.partial of one with its options, got {given(transform)}"
        )
        if not callable(transform):
            raise ValueError(wrong)
        try:
            parameters = inspect.signature(transform).parameters
        except ValueError as error:  # of a partial with an option that is not one
            partial = isinstance(transform, functools.partial)
            raise ValueError(_of_options(transform) if partial else wrong) from error
        kinds = {parameter.kind for parameter in parameters.values()}
        if "argnum" not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ValueError(wrong)
        noise = parameters.get("noise")
        reads_cov = noise is not None and noise.default is noise.empty
        return cls(transform, reads_cov)  # pyright: ignore[reportArgumentType]

    def __call__(self, f: Callable[..., Any], cov: Any, argnum: int = 0) -> Transformed:
        """The estimate of f; `cov` is the covariance of the noise, if it is read with the data."""
        noise = {"noise": cov} if self.reads_cov else {}
        g = self.transform(f, argnum=argnum, **noise)
        return instance("estimate's result", g, Transformed, "nj.unbiased.replicates makes one")

    def for_sample(self, f: Callable[..., Any], sample: Sample, argnum: int = 0) -> Transformed:
        """The estimate of f for the noise of one round."""
        if self.reads_cov and sample.cov is None:
            raise ValueError(
                "the estimate needs sample.cov, but the covariance of this noise is not known: "
                "give it to estimate as noise, or use replicates"
            )
        return self(f, sample.cov, argnum)

    def probed(self, f: Callable[..., Any], argnum: int = 0) -> Transformed:
        """An estimate of f that says its copies, its noise, and whether it draws."""
        g = self(f, 0.0, argnum)
        return dataclasses.replace(g, noise=Gaussian) if self.reads_cov else g


def _of_options(transform: Any) -> str:
    """Which options a transformation takes, and which it was given."""
    function = transform.func
    taken = inspect.signature(function).parameters.values()
    options = [parameter.name for parameter in taken if parameter.kind is parameter.KEYWORD_ONLY]
    wrong = [name for name in transform.keywords if name not in options]
    return f"estimate: {function.__name__} takes {listed(options)}, but not {listed(wrong)}"
