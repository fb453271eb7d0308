"""One pass over chunks of a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation.messages import listed
from noisy_jax.validation.objects import instance

MAKES = "nj.table makes one of a data frame, nj.observations.from_arrays of arrays"


class Pass:
    """Goes once through chunks of a table.

    A chunk where no row shows the errors of replicates, as no row has two of them, is joined to
    the one before it, or behind it.

    Attributes:
        first: the first chunk.
    """

    def __init__(self, chunks: Iterable[Observations]):
        if is_frame(chunks):  # whose parts are columns
            instance("observations", chunks, Observations, MAKES)
        self._iterator = _joined(chunks)
        first = next(self._iterator, None)
        if first is None:
            raise ValueError(
                "observations must be at least one chunk, got none: an iterator, such as "
                "pandas.read_csv(path, chunksize=…), can be gone through once"
            )
        self.first: Observations = instance("observations", first, Observations, MAKES)

    def __iter__(self) -> Iterator[Observations]:
        """All chunks; ValueError if they are not alike."""
        for chunk in itertools.chain([self.first], self._iterator):
            check_alike(self.first, chunk)
            yield chunk


def _joined(chunks: Iterable[Any]) -> Iterator[Any]:
    """The chunks, some of them joined, so that each shows the errors of its replicates."""
    held: list[Observations] = []  # of which all together may not show them
    for chunk in chunks:
        if held:
            check_alike(held[0], chunk)
            kinds = [[(type(e), e.places) for e in table.errors] for table in (held[0], chunk)]
            if kinds[0] == kinds[1]:
                held = [_whole(held)] if chunk.shown() else held
                if not (chunk.shown() and held[0].shown()):
                    held.append(chunk)
                    continue
            yield _whole(held)
            held = []
        if isinstance(chunk, Observations) and chunk.copied:
            held = [chunk]
        else:
            yield chunk
    if held:
        yield _whole(held)


def _whole(parts: list[Observations]) -> Observations:
    return parts[0].joined(parts[1:]) if parts[1:] else parts[0]


def is_frame(value: Any) -> bool:
    """Returns True for a data frame or a mapping from names to arrays, of which a table is made."""
    return isinstance(value, Mapping) or (hasattr(value, "columns") and hasattr(value, "shape"))


def check_alike(first: Observations, chunk: Observations) -> None:
    """Raises ValueError if a chunk has other columns, copies or noise than the first one."""
    instance("observations", chunk, Observations, MAKES)
    labels, first_labels = ([c.labels for c in table.categories] for table in (chunk, first))
    if labels != first_labels:
        raise ValueError(
            "all chunks must have the same categories: name them, as "
            "nj.noise.Misclassified(matrix, categories=[…])"
        )
    if chunk.references != first.references:
        raise ValueError(
            "all chunks must compare categories with the same one, but one has "
            f"{listed(first.references)} and another {listed(chunk.references)}: make indicators "
            "of the whole table"
        )
    if (chunk.names, chunk.target) != (first.names, first.target):
        raise ValueError(
            f"all chunks must have the columns {list(first.names)} and the target "
            f"{first.target!r}, but one has {list(chunk.names)} and {chunk.target!r}"
        )
    if chunk is not first and any(not error.of_parts for error in chunk.errors):
        raise ValueError(
            "a reliability is of the variance in the whole table: read it at once, or give the "
            "variance of the error"
        )
    if first.copied and chunk.copied and not (first.even and chunk.even):
        return  # replicates that are complete in one chunk, but not in the other
    if chunk.x.shape[1] != first.x.shape[1]:
        raise ValueError(
            f"all chunks must have as many copies of each row, but one has {first.x.shape[1]} and "
            f"another {chunk.x.shape[1]}"
        )
    if (chunk.cov is None) != (first.cov is None):
        raise ValueError("either all chunks must have a known covariance of the noise, or none")
    if (chunk.cross_cov is None) != (first.cross_cov is None):
        raise ValueError("either all chunks must have a cross_cov, or none")
    pairs: Any = zip(chunk.uncertainty(), first.uncertainty(), strict=True)
    for stated, stated_first in pairs:
        if not np.array_equal(stated, stated_first):
            raise ValueError(
                "chunks state different standard errors of the noise: estimate its covariance "
                "once, and pass the same CovarianceEstimate to every chunk"
            )
