"""Moments of parts of a table, in units of their own, and their fit."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.groups import streamed_labels
from tests.errors import raises
from tests.observed.rows import agree

NAMES = ("intercept", "coefficients", "covariance", "reliability", "gram", "cross")


def drifting(rng, rows):
    """Rows whose means and scales change a lot from the first to the last."""
    x = rng.normal(size=(rows, 2)) * np.linspace(1, 30, rows)[:, None]
    x += np.linspace(0, 1000, rows)[:, None]
    return x + rng.normal(size=x.shape), x @ [1.0, -0.5] + rng.normal(size=rows)


def part(x, y):
    return nj.observations.from_arrays(x, y, noise=[1.0, 1.0], cross_cov=[0.1, 0.0])


def test_parts_give_the_fit_of_the_table(rng):
    """Each part in its own units, sent elsewhere as bytes; its groups are rotated."""
    x, y = drifting(rng, 6400)
    cuts = [576, 2560, 4544]
    parts = [part(*one) for one in zip(np.split(x, cuts), np.split(y, cuts), strict=True)]
    sent = [pickle.loads(pickle.dumps(nj.fits.moments(one))) for one in parts]
    assert repr(sent[0]) == "TableMoments(576 rows of x1, x2)"
    whole = nj.fit([part(x, y)])
    fit = nj.fit(sent)
    agree(fit, nj.fit([sent[0].plus(sent[1]), sent[2].plus(sent[3])]), *NAMES, rtol=1e-9)
    agree(fit, whole, *(name for name in NAMES if name != "covariance"), rtol=1e-9)
    np.testing.assert_allclose(fit.std_error, whole.std_error, rtol=0.5)  # other groups
    sizes = np.diff([0, *cuts, 6400])
    first = [streamed_labels(0, size) for size in sizes]
    turns = np.cumsum([0, *(int(streamed_labels(size, 1)[0]) for size in sizes[:-1].tolist())])
    labels = np.concatenate([(one + turn) % 32 for one, turn in zip(first, turns, strict=True)])
    left = [nj.fit(part(x[labels != g], y[labels != g])) for g in range(32)]
    expected = 31 * np.cov([one.coefficients for one in left], rowvar=False, bias=True)
    np.testing.assert_allclose(fit.covariance[1:, 1:], expected, rtol=1e-6)


def test_parts_of_few_rows_keep_at_least_8_groups(rng):
    x, y = drifting(rng, 90)
    x[:30, 1] = 3.0  # a column may be constant in a part
    rows = zip(np.split(x, 30), np.split(y, 30), strict=True)
    fit = nj.fit([nj.fits.moments(part(*one)) for one in rows])
    assert fit.num_rows == 90
    assert 7 <= fit.degrees_of_freedom <= 31
    whole = nj.fit(part(x, y), errors="jackknife")
    np.testing.assert_allclose(fit.coefficients, whole.coefficients, rtol=1e-9)


@pytest.mark.slow
def test_the_processes_of_the_page_give_the_fit_of_all_files(rng, tmp_path):
    """The ten lines of colabs/several_hosts.md, which Ray and Spark run in the same way."""
    page = (Path(__file__).parents[3] / "colabs" / "several_hosts.md").read_text()
    (script,) = re.findall("```python\n(# parts_of_a_table.py.*?)```", page, re.DOTALL)
    (tmp_path / "parts_of_a_table.py").write_text(script)
    x = rng.normal(size=(6400, 2))
    rows = np.column_stack([x[:, 0] + 0.5 * rng.normal(size=6400), x[:, 1], x @ [1.0, 2.0]])
    paths = [tmp_path / f"{number}.csv" for number in range(2)]
    for path, some in zip(paths, np.split(rows, 2), strict=True):
        np.savetxt(path, some, delimiter=",", header="x1,x2,y", comments="")
    command = [sys.executable, "parts_of_a_table.py", *(path.name for path in paths)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    parts = [nj.csv(path, target="y", noise={"x1": 0.25}) for path in paths]
    assert found.stdout == f"{nj.fit([nj.fits.moments(part) for part in parts])}\n"


def test_doubts_and_categories_of_the_first_part_are_remarks(rng):
    x = rng.normal(size=2000)
    frame = {"x": x + rng.normal(size=2000), "flag": rng.integers(2, size=2000) * 1.0, "y": x}
    found = nj.fits.moments(nj.table(frame, target="y", noise={"x": 1.0, "flag": 0.1}))
    with pytest.warns(nj.fits.AssumptionWarning, match="'flag' .2 values."):
        fit = nj.fit([found, found])
    assert any("'flag'" in one for one in fit.remarks)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one, other: nj.fit([one, other]), r"must have the columns \['x1', 'x2'\]"),
        (lambda one, other: nj.fits.moments([1.0]), "nj.table makes one"),
        (lambda one, other: nj.fit([one], model="logistic"), "takes one table"),
        (lambda one, other: nj.fit([one], clusters=[0]), "without weights and clusters"),
    ],
)
def test_parts_that_do_not_fit_are_named(rng, call, message):
    x, y = drifting(rng, 100)
    other = nj.observations.from_arrays(x, y, noise=1.0, names=["a", "b"])
    raises(message, call, nj.fits.moments(part(x, y)), nj.fits.moments(other))


def test_parts_with_categories_are_an_error():
    """One part may compare them with another category than the next."""
    a = np.random.default_rng(0).normal(size=80)
    frame = {"a": a, "c": ["north", "south"] * 40, "y": np.arange(80.0)}
    part = nj.table(frame, target="y", noise={"a": 0.1})
    raises("a part of a table has the categories", nj.fits.moments, part)
    other = nj.table(frame | {"c": ["east", "south"] * 40}, target="y", noise={"a": 0.1})
    raises("compare categories with the same one", nj.fit, [part, other])
