"""What the benchmarks share: runs, their time, the machine, the table they print."""

import datetime
import functools
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from noisy_jax.base import unrolled
from noisy_jax.noise import observe


class Row(NamedTuple):
    """One line of a benchmark's table; without a requirement it only informs."""

    what: str
    measured: float
    unit: str  # or "ratio"
    required: str = ""
    met: bool | None = None
    ours: str = ""  # of a ratio, what this library reached, with its unit
    peer: str = ""  # of a ratio, what it is compared with


def at_least(what, ours, peer, bound, unit="M rounds/s"):
    """A row for the ratio ours / peer, which must not fall below `bound`."""
    ratio = ours / peer
    required, parts = f">= {bound}", (f"{ours:.3g} {unit}", f"{peer:.3g} {unit}")
    return Row(what, ratio, "ratio", required, ratio >= bound, *parts)


def at_most(what, ours, peer, bound, unit="s"):
    """A row for the ratio ours / peer, which must not exceed `bound`."""
    ratio = ours / peer
    required, parts = f"<= {bound}", (f"{ours:.3g} {unit}", f"{peer:.3g} {unit}")
    return Row(what, ratio, "ratio", required, ratio <= bound, *parts)


def limited(what, measured, unit, most):
    """A row for a number that must not exceed `most`."""
    return Row(what, measured, unit, f"<= {most:g}", measured <= most)


def reached(what, measured, unit, least):
    """A row for a number that must not fall below `least`."""
    return Row(what, measured, unit, f">= {least:g}", measured >= least)


def faster(what, ours, peer, bound=None):
    """A row for the ratio of seconds peer / ours, which must not fall below `bound`, if given."""
    ratio, parts = peer / ours, (f"{ours:.3g} s", f"{peer:.3g} s")
    wanted = ("", None) if bound is None else (f">= {bound}", ratio >= bound)
    return Row(what, ratio, "ratio", *wanted, *parts)


most_repeats = 15
"""No median is of more calls than these; `python tests/benchmarks --quick` lowers it."""

_PAUSE = 0.1  # seconds


def median_times(*functions: Callable, repeats: int = 7) -> list[float]:
    """Median seconds of a call to each function, after one call that compiles and warms up.

    They are called in turns, so that whatever else the machine does slows all of them alike. Each
    call waits 0.1 s: after a product NumPy's threads look for more work for 50 to 100 ms, and would
    take a core from the other side.
    """
    for function in functions:
        jax.block_until_ready(function())
    seconds = [[] for _ in functions]
    for _ in range(min(repeats, most_repeats)):
        for function, own in zip(functions, seconds, strict=True):
            time.sleep(_PAUSE)
            start = time.perf_counter()
            jax.block_until_ready(function())
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in seconds]


def median_time(function: Callable, repeats: int = 7) -> float:
    """Median seconds of a call to one function, as `median_times`."""
    return median_times(function, repeats=repeats)[0]


@functools.partial(jax.jit, static_argnames="copies")
def shown(stream, keys, noise, *, copies):
    """The rounds of a stream as learners see them, `[S, T]` for keys `[S]`; Σ is not known."""

    def one_round(key, t, x, y):
        sample = observe(jax.random.fold_in(key, t), x, y, noise, copies=copies)
        return sample._replace(cov=None)

    rounds = jax.vmap(one_round, (None, 0, 0, 0))
    every_seed = jax.vmap(rounds, (0, None, None, None))
    return every_seed(keys, np.arange(len(stream.y)), *stream)


def judged(learner):
    """A jitted function to states and clean predictions of predict-then-step, `samples[S, T]`."""

    def one_seed(samples, x, key):
        keys = jax.random.split(key, len(x))  # of the learner's own randomness
        return unrolled(learner)(learner.init(x.shape[-1]), samples, x, keys)[:2]

    def every_seed(samples, x):
        keys = jax.random.split(jax.random.key(0), len(samples.y))
        return jax.vmap(one_seed, in_axes=(0, None, 0))(samples, x, keys)

    return jax.jit(every_seed)


def by_round(learner):
    """The learner without its own way through many rounds."""
    return learner._replace(unroll=None)


def against_scan(setting, ours, learner, samples, x, bound):
    """A row on the seconds `ours` of a learner's own way, against a scan over its steps."""
    scan = functools.partial(judged(by_round(learner)), samples, x)
    return faster(f"scan / unroll, {setting}", ours, median_time(scan, repeats=1), bound)


def descent(read, y, *, radius, learning_rate):
    """Predictions of gradient descent on expansions in NumPy, with the recursion for ‖f‖².

    From a round t and the weights `[t]` of its terms `read` gives f at the clean instance, at the
    copy that is read and at the one that is stored, and the squared norm of the new term.
    """
    weights, squared_norm = np.zeros(len(y), np.float32), 0.0
    predictions = np.zeros(len(y), np.float32)
    for t in range(len(y)):
        predictions[t], value, own, norm = read(t, weights[:t])
        alpha = -2 * learning_rate * (value - y[t])
        squared_norm += 2 * alpha * own + alpha**2 * norm
        weights[t] = alpha
        if squared_norm > radius**2:
            weights[: t + 1] *= radius / np.sqrt(squared_norm)
            squared_norm = radius**2
    return predictions


def processor() -> str:
    """Its name."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return (*names, platform.processor() or platform.machine())[0]


def machine() -> str:
    """One line: processor, cores, versions of Python, jax and numpy, jax's device, date."""
    return (
        f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"jax {jax.__version__}, numpy {np.__version__}; "
        f"jax runs on {jax.devices()[0].device_kind}; {datetime.date.today()}"
    )


def cells(row: Row, benchmark: str = "") -> tuple[str, ...]:
    """Task, ours, peer, ratio and required of a row."""
    required = row.required + {True: " (met)", False: " (NOT MET)", None: ""}[row.met]
    number = f"{row.measured:,.3g}"
    if row.unit == "ratio":
        return benchmark + row.what, row.ours, row.peer, number, required
    return benchmark + row.what, f"{number} {row.unit}", "", "", required


def print_columns(lines: Iterable[Sequence[str]]) -> None:
    """Prints `cells` in aligned columns, numbers to the right."""
    lines = [("task", "ours", "peer", "ratio", "required"), *lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for task, *numbers, required in lines:
        right = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=False))
        print("  ".join([task.ljust(widths[0]), *right, required]).rstrip())


def report(settings: str, rows: Callable[[], Sequence[Row]]) -> None:
    """Measures; then prints the machine, the settings and the table."""
    found = rows()
    print(machine(), settings, "", sep="\n")
    print_columns(map(cells, found))
