"""Tables of dask: the fit of all rows, on threads and on processes of which one is killed."""

import importlib
import os
import resource
import signal
import threading
import time

import dask
import dask.dataframe
import numpy as np
import pandas
import pytest
from distributed import Client, LocalCluster

import noisy_jax as nj
from noisy_jax.observed.observations import partitions

KNOWN = {"target": "y", "noise": {"a": nj.sd(0.5), "b": 0.0}}


def frame(rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    y = 1 + x @ [2.0, -1.0] + rng.normal(size=rows)
    return pandas.DataFrame({"a": x[:, 0] + 0.5 * rng.normal(size=rows), "b": x[:, 1], "y": y})


@dask.delayed
def with_gap():
    rows = frame(20, 0)
    rows.loc[7, "a"] = np.nan
    return rows


def slow_frame(rows, seed):
    time.sleep(0.2)  # long enough for a worker to be killed on the way
    return frame(rows, seed)


def check_same(one, other, rtol=1e-12):
    for name in ("intercept", "coefficients", "covariance", "gram"):
        wanted = getattr(other, name)
        np.testing.assert_allclose(getattr(one, name), wanted, 0, rtol * np.abs(wanted).max())


@pytest.mark.parametrize("kind", ["dask DataFrame", "delayed frames"])
def test_the_fit_of_partitions_is_that_of_the_rows(kind, monkeypatch):
    """Also where one has no row, or is alone behind those that are merged at once."""
    monkeypatch.setattr(importlib.import_module(partitions.__module__), "_AT_ONCE", 3)
    frames = [frame(64 * rows, seed) for seed, rows in enumerate([10, 0, 20, 30])]
    delayed = [dask.delayed(one) for one in frames]
    table = delayed if kind == "delayed frames" else dask.dataframe.from_delayed(delayed)
    parts = partitions(table, **KNOWN)
    assert repr(parts) == "Partitions(4 partitions)"
    whole = nj.table(pandas.concat(frames, ignore_index=True), **KNOWN)
    moments = [nj.fits.moments(nj.table(one, **KNOWN)) for one in frames if len(one)]
    check_same(nj.fit(parts), nj.fit(moments), 1e-9)
    np.testing.assert_allclose(nj.fit(parts).coefficients, nj.fit(whole).coefficients, rtol=1e-9)
    assert [len(part.y) for part in parts] == [640, 1280, 1920]


def test_partitions_may_be_sorted_by_a_column_and_be_mappings_without_rows():
    """One partition does not show whether a column numbers the rows."""
    rows = [frame(640, seed).assign(t=np.arange(640)) for seed in range(2)]
    parts = [{name: one[name].to_numpy() for name in one} for one in [*rows, rows[0][:0]]]
    fit = nj.fit(partitions([dask.delayed(one) for one in parts], **KNOWN))
    table = nj.table(pandas.concat(rows, ignore_index=True), **KNOWN)
    np.testing.assert_allclose(fit.coefficients, nj.fit(table).coefficients, rtol=1e-9)


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing():
    parts = [dask.delayed(slow_frame)(5_000, seed) for seed in range(24)]
    wanted = nj.fit([nj.fits.moments(nj.table(frame(5_000, seed), **KNOWN)) for seed in range(24)])
    settings = {"n_workers": 4, "threads_per_worker": 1, "processes": True}
    with (
        LocalCluster(dashboard_address=None, silence_logs="CRITICAL", **settings) as cluster,
        Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        client.run(importlib.import_module, "noisy_jax")
        threading.Timer(0.6, os.kill, (min(pids.values()), signal.SIGKILL)).start()
        check_same(nj.fit(partitions(parts, **KNOWN)), wanted)
        client.wait_for_workers(4)
        assert len(set(client.run(os.getpid).values()) & set(pids.values())) == 3


@pytest.mark.long
def test_memory_is_bounded_by_a_partition():
    """One partition at a time, where all rows together would take 96 MB."""
    parts = [dask.delayed(frame)(100_000, seed) for seed in range(40)]
    with dask.config.set(scheduler="synchronous"):
        nj.fit(partitions(parts[:2], **KNOWN))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fit = nj.fit(partitions(parts, **KNOWN))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert fit.num_rows == 4_000_000
    assert grown < 32  # MB


def fitted(parts, **options):
    return nj.fit(partitions(parts, **KNOWN | options))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda part: partitions(frame(9, 0), **KNOWN), "in memory is for nj.table"),
        (lambda part: partitions(part, noise={"a": 1.0}), "name y's column by target="),
        (lambda part: partitions(part, subject="b", **KNOWN), "rows of one subject apart"),
        (lambda part: fitted(part, target="z"), "partition 0 has no column named 'z'"),
        (lambda part: fitted([*part, with_gap()]), r"^partition 1: .*'a'\[7\] is nan"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call([dask.delayed(frame)(100, 0)])
