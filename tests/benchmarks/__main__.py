"""All benchmarks in one table: `python tests/benchmarks`, or `--quick` on less data.

It has a line for each comparison and each requirement: the task, what this library and its peer
reached, their ratio and what it must be. Each file alone prints more. Needs the extra `benchmark`
and a machine that does nothing else; the exit status is 0 in any case. Requirements are those of
the whole run: on less data, compiled calls are short, and some ratios are smaller.
"""

import argparse
import importlib
import time

import jax
import timing

NAMES = ("linear", "kernel", "norma", "truncation", "tuning", "moments", "subquantile", "unbiased")
"""Linear first: it measures memory, while this process holds little."""


def cells(name: str, row: timing.Row) -> tuple[str, ...]:
    """Task, ours, peer, ratio and required of a row of a benchmark."""
    task, number = f"{name}: {row.what}", f"{row.measured:,.3g}"
    if row.unit == "ratio":
        return task, row.ours, row.peer, number, timing.required(row)
    return task, f"{number} {row.unit}", "", "", timing.required(row)


def main():
    """Runs all benchmarks, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python tests/benchmarks", description="All benchmarks, as one table."
    )
    parser.add_argument("--quick", action="store_true", help="on less data, in under 3 minutes")
    quick = parser.parse_args().quick
    table = [("task", "ours", "peer", "ratio", "required")]
    for name in NAMES:
        print(f"{name} …", end=" ", flush=True)
        start, benchmark = time.perf_counter(), importlib.import_module(name)
        if quick:
            timing.most_repeats = 3
            vars(benchmark).update(benchmark.QUICK)
        table += [cells(name, row) for row in benchmark.rows() if row.required or row.peer]
        jax.clear_caches()
        print(f"{time.perf_counter() - start:.0f} s", flush=True)
    print(f"\n{timing.machine()}\n")
    timing.print_columns(table, right={1, 2, 3})


if __name__ == "__main__":
    main()
