"""Coverage of intervals in simulated tables: `python -m tests.observed.coverage [CASE…]`.

Each case makes tables whose truth is known, with rows in random order, and the same rows sorted by
y. Printed are the shares of 95% intervals that contain the truth, by coefficient, the first three
columns in random order and the last column the least of them with sorted rows; beside them the
coverage of the uncorrected fit, which shows that the tables are not too easy.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import noisy_jax as nj
from tests.observed.rows import outcome

TABLES = 400
LEAST = 0.93
BETA = 1.0, -0.5


@dataclasses.dataclass(frozen=True)
class Rows:
    """Columns of one simulated table, and what is known of them."""

    columns: dict[str, Any]  # by name, arrays [n], y among them
    known: dict[str, Any] = dataclasses.field(default_factory=dict)  # options of `nj.table`
    method: Any = None
    truth: Any = BETA  # of the coefficients

    def in_order(self, order: np.ndarray) -> "Rows":
        """The same rows in another order."""
        columns = {name: np.asarray(column)[order] for name, column in self.columns.items()}
        return dataclasses.replace(self, columns=columns)


def clean(rng, n):
    """Two correlated columns, `[n, 2]`."""
    return rng.normal(size=(n, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])


def measured(rng, n=300, model="linear", spread=1.0, size=1.0):
    """Two columns with an error in the first, of variance 0.36, and y."""
    x = clean(rng, n)
    eta = (0.5 + x @ BETA) * size
    y = eta + spread * rng.normal(size=n) if model == "linear" else outcome(rng, model, eta)
    a = x[:, 0] + 0.6 * rng.normal(size=n)
    return x, {"a": a, "b": x[:, 1], "y": y}


def linear(rng):
    return Rows(measured(rng)[1], {"noise": {"a": 0.36}})


def uneven_errors_in_y(rng):
    x, columns = measured(rng, spread=0)
    columns["y"] = columns["y"] + (0.3 + np.abs(x[:, 0])) * rng.normal(size=len(x))
    return Rows(columns, {"noise": {"a": 0.36}})


def errors_by_row(rng):
    n = 300
    x, sizes = clean(rng, n), rng.uniform(0.2, 0.9, size=(n, 2))
    y = 0.5 + x @ BETA + 0.3 * rng.normal(size=n) + sizes[:, 1] * rng.normal(size=n)
    columns = {"a": x[:, 0] + sizes[:, 0] * rng.normal(size=n), "b": x[:, 1], "y": y}
    columns |= {"a_error": sizes[:, 0], "y_error": sizes[:, 1]}
    noise = {"a": nj.sd(column="a_error"), "y": nj.sd(column="y_error")}
    return Rows(columns, {"noise": noise})


def unequal_replicates(rng):
    x, columns = measured(rng, 400)
    copies = x[:, :1] + 0.8 * rng.normal(size=(400, 3))
    copies[rng.integers(1, 4, (400, 1)) <= np.arange(3)] = np.nan
    columns.pop("a")
    columns |= {f"a{k}": copies[:, k] for k in range(3)}
    return Rows(columns, {"replicates": {"a": ["a0", "a1", "a2"]}, "features": ["a", "b"]})


def fifty_pairs(rng):
    pairs = np.sqrt(0.36) * rng.normal(size=(50, 2))
    variance = pairs.var(axis=1, ddof=1).mean()
    estimate = nj.noise.CovarianceEstimate(variance, variance * (2 / 50) ** 0.5)
    return Rows(measured(rng)[1], {"noise": {"a": estimate}})


def clusters(rng):
    n, groups = 400, 40
    label = np.repeat(np.arange(groups), n // groups)
    x = clean(rng, n) + 0.7 * rng.normal(size=(groups, 2))[label]
    y = 0.5 + x @ BETA + 0.7 * rng.normal(size=groups)[label] + 0.7 * rng.normal(size=n)
    columns = {"a": x[:, 0] + 0.6 * rng.normal(size=n), "b": x[:, 1], "y": y, "school": label}
    return Rows(columns, {"noise": {"a": 0.36}, "clusters": "school"})


def weights(rng):
    _, columns = measured(rng)
    columns["w"] = rng.uniform(0.2, 3.0, size=300)
    return Rows(columns, {"noise": {"a": 0.36}, "weights": "w"})


def misclassified(rng):
    n, matrix = 500, np.array([[0.9, 0.1], [0.2, 0.8]])
    group, b = rng.integers(0, 2, size=n), rng.normal(size=n)
    recorded = (rng.random(n) < matrix[group, 1]) * 1
    y = 0.5 + 1.0 * group - 0.5 * b + 0.7 * rng.normal(size=n)
    columns = {"a": recorded, "b": b, "y": y}
    return Rows(columns, {"noise": {"a": nj.noise.Misclassified(matrix)}})


def interactions(rng):
    n = 500
    x = clean(rng, n)
    y = 0.5 + x @ BETA + 0.4 * x[:, 0] * x[:, 1] + 0.7 * rng.normal(size=n)
    columns = {"a": x[:, 0] + 0.5 * rng.normal(size=n), "b": x[:, 1], "y": y}
    known = {"noise": {"a": 0.25}, "products": [("a", "b")]}
    return Rows(columns, known, truth=np.array([1.0, -0.5, 0.4]))


def logistic(rng):
    return Rows(measured(rng, 500, "logistic")[1], {"noise": {"a": 0.36}}, nj.methods.Logistic())


def logistic_flips(rng):
    _, columns = measured(rng, 800, "logistic")
    flipped = rng.random(800) < np.where(columns["y"] > 0, 0.1, 0.05)
    columns["y"] = np.where(flipped, 1 - columns["y"], columns["y"])
    return Rows(columns, {"noise": {"a": 0.36}}, nj.methods.Logistic(flips=(0.1, 0.05)))


def poisson(rng):
    columns = measured(rng, 500, "poisson", size=0.5)[1]
    return Rows(columns, {"noise": {"a": 0.36}}, nj.methods.Poisson(), (0.5, -0.25))


def _wave(params, x):
    return params["level"] + params["size"] * jnp.sin(params["rate"] * x[0])


def _curve(rng, n):
    x = rng.normal(size=n)
    y = 0.5 + np.sin(1.5 * x) + 0.3 * rng.normal(size=n)
    start = {"level": 0.5, "rate": 1.4, "size": 1.0}
    columns = {"a": x + 0.3 * rng.normal(size=n), "y": y}
    method = nj.methods.Model(_wave, start)
    return Rows(columns, {"noise": {"a": 0.09}}, method, np.array([0.5, 1.5, 1.0]))


def curve(rng):
    return _curve(rng, 400)


def curve_of_150_rows(rng):
    return _curve(rng, 150)


def simex(rng):
    from sklearn.linear_model import LinearRegression

    method = nj.methods.SIMEX(LinearRegression(), draws=5, extrapolation="rational")
    return Rows(measured(rng)[1], {"noise": {"a": 0.36}}, method)


GRID = np.linspace(-2, 2, 41)[:, None]


def kernel(rng):
    n = 600
    x = rng.uniform(-2.5, 2.5, size=n)
    columns = {"a": x + 0.3 * rng.normal(size=n), "y": np.sin(1.5 * x) + 0.3 * rng.normal(size=n)}
    method = nj.methods.Fourier(length_scale="auto", num_features=64)
    known = {"noise": {"a": nj.noise.Gaussian(0.09)}}
    return Rows(columns, known, method, np.sin(1.5 * GRID[:, 0]))


CASES: dict[str, Callable[..., Rows]] = {
    one.__name__: one
    for one in (
        linear,
        uneven_errors_in_y,
        errors_by_row,
        unequal_replicates,
        fifty_pairs,
        clusters,
        weights,
        misclassified,
        interactions,
        logistic,
        logistic_flips,
        poisson,
        curve,
        curve_of_150_rows,
        simex,
        kernel,
    )
}


def covers(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Whether the intervals of the corrected and the uncorrected fit contain the truth.

    Of a kernel fit, the share of points in its band, and whether the whole band holds.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = nj.fit(nj.table(rows.columns, target="y", **rows.known), rows.method)
    if isinstance(rows.method, nj.methods.Fourier):
        inside = [
            (low <= rows.truth) & (rows.truth <= high)
            for low, high in (fit.band(GRID), fit.band(GRID, simultaneous=True))
        ]
        error = np.abs(np.asarray(fit.uncorrected.predict(GRID)) - rows.truth)
        half = np.subtract(*fit.band(GRID)[::-1]) / 2
        return np.array([inside[0].mean(), inside[1].all()]), np.array([np.mean(error <= half)])
    return _inside(fit, np.array(rows.truth)), _inside(fit.uncorrected, np.array(rows.truth))


def _inside(fit, truth):
    low, high = (end[-len(truth) :] for end in fit.interval())  # behind an intercept
    return (low <= truth) & (truth <= high)


def one_table(name: str, number: int) -> list[np.ndarray] | str:
    """What `covers` finds in a table, and in the same table sorted by y; or the error."""
    rows = CASES[name](np.random.default_rng([11, number, *map(ord, name)]))
    try:
        found = [covers(rows), covers(rows.in_order(np.argsort(rows.columns["y"], kind="stable")))]
    except ValueError as error:
        return str(error)
    return [found[0][0], found[1][0], found[0][1]]


def some_tables(name: str, numbers: list[int]) -> list[Any]:
    """`one_table` of each number."""
    return [one_table(name, number) for number in numbers]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all by default")
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    print(f"{'case':20} {'random order':24} {'sorted by y':24} {'uncorrected':24} failed")
    with concurrent.futures.ProcessPoolExecutor(given.processes, context) as pool:
        for name in given.cases or CASES:
            parts = [list(range(k, given.tables, given.processes)) for k in range(given.processes)]
            found = [
                one
                for part in pool.map(functools.partial(some_tables, name), parts)
                for one in part
            ]
            made = [one for one in found if not isinstance(one, str)]
            shares = [
                " ".join(f"{share:.3f}" for share in np.mean([one[k] for one in made], axis=0))
                for k in range(3)
            ]
            print(f"{name:20} " + " ".join(f"{one:24}" for one in shares), len(found) - len(made))
            for text in {one for one in found if isinstance(one, str)}:
                print(f"    {text}")


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main()
