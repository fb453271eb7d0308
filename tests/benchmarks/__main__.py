"""All benchmarks in one table: `python tests/benchmarks`, or `--quick` on less data.

It has a line for each comparison and each requirement: the task, what this library and its peer
reached, their ratio and what it must be. `--json FILE` writes these as well, with the commit and
the machine, such as to `docs/benchmarks/2026-11-26.json`. Needs the
extra `benchmark` and a machine that does nothing else; the exit status is 0 in any case.
Requirements hold on Intel and AMD, unless they name one; docs/benchmarks.md lists higher aims. They
are for the whole run: `--quick` uses less data, and some of its ratios are smaller.
"""

import argparse
import datetime
import importlib
import json
import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import jax
import timing

NAMES = "linear", "kernel", "norma", "truncation", "moments", "subquantile", "start"


def record(rows: dict[str, timing.Row], quick: bool) -> dict:
    """One run: where and when it was, ratios or other numbers by name, and requirements."""
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    packages = ("jax", "jaxlib", "numpy", "scikit-learn")
    return {
        "commit": found.stdout.strip() or None,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {"processor": timing.processor(), "cores": os.cpu_count()},
        "versions": {"python": platform.python_version()} | {one: version(one) for one in packages},
        "ratios": {name: float(row.measured) for name, row in rows.items() if row.unit == "ratio"},
        "numbers": {n: [float(r.measured), r.unit] for n, r in rows.items() if r.unit != "ratio"},
        "requirements": {
            name: {"required": row.required, "met": bool(row.met)}
            for name, row in rows.items()
            if row.required
        },
    }


def main():
    """Runs all benchmarks, and prints the table."""
    parser = argparse.ArgumentParser("python tests/benchmarks", description="All, as one table.")
    parser.add_argument("--quick", action="store_true", help="on less data, in under 3 minutes")
    parser.add_argument("--json", metavar="FILE", type=Path, help="a file for the results as well")
    given = parser.parse_args()
    quick, measured, table = given.quick, {}, []
    for name in NAMES:
        print(f"{name} …", end=" ", flush=True)
        start, benchmark = time.perf_counter(), importlib.import_module(name)
        if quick:
            timing.most_repeats = 3
            vars(benchmark).update(benchmark.QUICK)
        rows = benchmark.rows()
        table += [timing.cells(row, f"{name}: ") for row in rows]
        measured |= {f"{name}: {row.what}": row for row in rows}
        jax.clear_caches()
        print(f"{time.perf_counter() - start:.0f} s", flush=True)
    print(f"\n{timing.machine()}\n")
    timing.print_columns(table)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(record(measured, quick), indent=1) + "\n")


if __name__ == "__main__":
    main()
