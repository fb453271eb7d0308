"""One pass over chunks of a table, which may be interrupted."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from noisy_jax.observed.observations.files import Chunks
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation import instance, listed

_MAKES = "nj.observations.from_arrays makes one"


class Pass:
    """Goes once through chunks of a table, and may begin behind rows that were seen before.

    Attributes:
        first: the first chunk.
    """

    def __init__(self, chunks: Iterable[Observations]):
        self._chunks, self._iterator = chunks, iter(chunks)
        found = next(self._iterator, None)
        if found is None:
            raise ValueError("observations must be at least one chunk, got none")
        self.first: Observations = instance("observations", found, Observations, _MAKES)

    def digest(self) -> str:
        """A digest of the first chunk, which tells the table from others."""
        one = self.first
        digest = hashlib.sha256(repr((one.names, one.target, type(one.noise).__name__)).encode())
        for array in (one.x, one.y, one.cov, one.cov_std_error, one.cov_deviations, one.cross_cov):
            array = np.zeros(0) if array is None else np.ascontiguousarray(array)
            digest.update(repr(array.shape).encode() + array.tobytes())
        return digest.hexdigest()

    def after(self, rows: int) -> Iterator[Observations]:
        """The chunks behind the first `rows` rows, which only `Chunks` can skip unread.

        Raises:
            ValueError: the chunks are not alike, or not those whose rows were seen before.
        """
        chunks = itertools.chain([self.first], self._iterator)
        if rows and isinstance(self._chunks, Chunks):
            chunks, rows = self._chunks.after(rows), 0
        for chunk in chunks:
            check_alike(self.first, chunk)
            if not rows:
                yield chunk
                continue
            rows -= len(chunk.y)
            if rows < 0:
                raise ValueError("the checkpoint was made from chunks with other numbers of rows")
        if rows:
            raise ValueError(f"the checkpoint has seen {rows} rows more than there are")


def check_alike(first: Observations, chunk: Observations) -> None:
    """Raises ValueError if a chunk has other columns, copies or noise than the first one."""
    instance("observations", chunk, Observations, _MAKES)
    if [one.labels for one in chunk.categories] != [one.labels for one in first.categories]:
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
    if chunk is not first and chunk.unreliability is not None:
        raise ValueError(
            "a reliability is of the variance in the whole table: read it at once, or give the "
            "variance of the error"
        )
    averaged = [one for one in (first, chunk) if one.pooled is not None]
    if averaged and all(one.pooled is not None or one.cov is None for one in (first, chunk)):
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
    for name in ("cov_std_error", "cov_deviations"):
        if not np.array_equal(getattr(chunk, name), getattr(first, name)):
            raise ValueError("all chunks must have the same uncertainty of the noise's covariance")
