"""Parts of Parquet and Arrow files, by pyarrow."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMATS = {".parquet": "parquet", ".arrow": "ipc", ".feather": "feather"}
"""Ends of files' names, with what pyarrow calls what is in them."""


def arrow_parts(path: str | Path, rows: int, after: int = 0) -> Iterator[Any]:
    """pyarrow tables of `rows` rows each (the last one may have fewer) behind the first `after`."""
    try:
        pyarrow, dataset = map(importlib.import_module, ("pyarrow", "pyarrow.dataset"))
    except ImportError:
        raise ValueError(
            f"{path} is read by the package pyarrow: install noisy_jax[frames]"
        ) from None
    try:
        data = dataset.dataset(path, format=FORMATS[Path(path).suffix])
        waiting, count = data.schema.empty_table(), 0
        for batch in data.to_batches(batch_size=rows, batch_readahead=1, use_threads=False):
            before, count = count, count + len(batch)
            waiting = pyarrow.concat_tables([waiting, pyarrow.Table.from_batches([batch])])
            if before < after:
                waiting = waiting.slice(max(len(waiting) - max(count - after, 0), 0))
            while len(waiting) >= rows:
                yield waiting.slice(0, rows)
                waiting = waiting.slice(rows)
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} is not such a file: {' '.join(str(error).split())}") from error
    if len(waiting):
        yield waiting
    if count < after:
        raise ValueError(f"{path} has {count} rows, but {after} were read before")
