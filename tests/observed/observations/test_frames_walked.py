"""The way from a frame to the printed fit: each step of the door is taken once."""

import collections
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import noisy_jax as nj

ROOT = str(Path(nj.__file__).parent)


class Walk:
    """Calls into noisy_jax, in their order, as (module, function)."""

    def __init__(self, run):
        self.calls: list[tuple[str, str]] = []
        before = sys.getprofile()
        sys.setprofile(self._seen)
        try:
            run()
        finally:
            sys.setprofile(before)

    def _seen(self, frame, event, argument):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(ROOT) and not frame.f_code.co_name.startswith("<"):
            self.calls.append((file[len(ROOT) + 1 : -3], frame.f_code.co_name))

    def times(self, *functions):
        """How often functions of these names are called."""
        counts = collections.Counter(name for _, name in self.calls)
        return sum(counts[one] for one in functions)

    def shown(self):
        """Hops, modules, and how often the way comes back to a module that it had left."""
        modules = [module for module, _ in self.calls]
        way = [one for k, one in enumerate(modules) if k == 0 or one != modules[k - 1]]
        rooms = len({*way})
        return f"{len(modules)} hops, {rooms} modules, {len(way) - rooms} returns"


def _frame(n=400):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, n))
    frame = {"x1": x + 0.5 * rng.normal(size=n), "x2": x + 0.5 * rng.normal(size=n)}
    return pd.DataFrame({**frame, "z": z, "w": z + rng.normal(size=n), "y": x - z})


def test_names_and_columns_are_resolved_once():
    """Each column of a frame is parsed once, and what is known of each error is read once."""
    frame = _frame()
    options = {"target": "y", "noise": {"x1": 0.25, "w": nj.sd(1.0)}, "drop": ["x2"]}
    nj.fit(nj.table(frame, **options))  # what is kept from call to call
    walk = Walk(lambda: str(nj.fit(nj.table(frame, **options))))
    print(walk.shown())
    assert walk.times("roles") == 1
    assert walk.times("numeric") == 4
    assert walk.times("error_of") == 2
    assert walk.times("observations_of") == walk.times("errors_by_name") == 1


def test_replicates_are_read_once():
    frame = _frame()
    frame.loc[::3, "x2"] = np.nan
    options = {"target": "y", "noise": {"w": 1.0}, "replicates": {"x": ["x1", "x2"]}}
    nj.fit(nj.table(frame, **options))
    walk = Walk(lambda: str(nj.fit(nj.table(frame, **options))))
    print(walk.shown())
    assert walk.times("roles") == 1
    assert walk.times("numeric") == 5
    assert walk.times("error_of") == 1
    assert walk.times("covariances_of_means") == 1
