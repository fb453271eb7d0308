"""Speed of subquantile minimization: `python tests/benchmarks/subquantile.py`.

The data sets share their covariates, as replicates of a study of corrupted labels do: one Gram
matrix serves all of them. The peer refits scikit-learn's `KernelRidge` on the rows kept, from zero,
until they no longer change, one data set after the other, with the Gram matrix given as well.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from timing import Row, faster, limited, median_time, memory, report

import noisy_jax as nj

ROWS, DATA_SETS, PEER_DATA_SETS, DIM = 2_000, 64, 4, 2
SHARE, ALPHA, LENGTH_SCALE = 0.3, 0.3, 0.5  # ALPHA as scikit-learn has it
LARGE, CHUNK = 10_000, 512
QUICK = {"ROWS": 500, "DATA_SETS": 16, "PEER_DATA_SETS": 2, "LARGE": 2_000}
KEY = jax.random.key(0)


def corrupted(key, x):
    """Labels of sin 2x_0 + 0.3 x_1 with noise, 30% of them gross."""
    keys = jax.random.split(key, 4)
    clean = jnp.sin(2 * x[:, 0]) + 0.3 * x[:, 1]
    y = clean + 0.1 * jax.random.normal(keys[0], clean.shape)
    size = jax.random.uniform(keys[2], y.shape, minval=5.0, maxval=20.0)
    bad = jax.random.permutation(keys[3], len(y)) < SHARE * len(y)
    return jnp.where(bad, clean + jax.random.rademacher(keys[1], y.shape) * size, y)


def regularization(rows):
    """λ of a fit that keeps m rows: alpha = mλ/2."""
    return 2 * ALPHA / round((1 - SHARE) * rows)


def covariates(rows):
    """Points of a square, `[rows, DIM]`."""
    return jax.random.uniform(KEY, (rows, DIM), minval=-3.0, maxval=3.0)


def ridge(gram, y, solver, **options):
    """The fit of one data set from zero."""
    options |= {"contamination": SHARE, "regularization": regularization(len(y)), "solver": solver}
    return nj.robust.subquantile.ridge(gram, y, start="zero", **options)


def fits(solver):
    """A jitted function of one Gram matrix and labels `[S, n]` to `Fit`s from zero."""
    one = functools.partial(ridge, solver=solver, iterations=20_000)
    return jax.jit(jax.vmap(one, in_axes=(None, 0)))


def peer(gram, y):
    """Objective, reached by refits of scikit-learn's ridge until the rows kept do not change."""
    count = round((1 - SHARE) * len(y))
    kept = np.sort(np.argsort(y**2, kind="stable")[:count])
    while True:
        model = KernelRidge(alpha=ALPHA, kernel="precomputed")
        model.fit(gram[np.ix_(kept, kept)], y[kept])
        losses = (model.predict(gram[:, kept]) - y) ** 2
        after = np.sort(np.argsort(losses, kind="stable")[:count])
        if np.array_equal(after, kept):
            break
        kept = after
    a = model.dual_coef_
    return (losses[kept].sum() + ALPHA * a @ gram[np.ix_(kept, kept)] @ a) / count


def many_data_sets():
    """Rows on 64 data sets at once, against scikit-learn and by solver."""
    x = covariates(ROWS)
    gram = nj.kernels.gaussian(length_scale=LENGTH_SCALE)(x, x)
    y = jax.vmap(corrupted, in_axes=(0, None))(jax.random.split(KEY, DATA_SETS), x)
    some = np.asarray(gram), np.asarray(y[:PEER_DATA_SETS])  # float32, as ours
    theirs = median_time(lambda: [peer(some[0], labels) for labels in some[1]], repeats=3)
    theirs *= DATA_SETS / PEER_DATA_SETS
    reached = [peer(some[0].astype(float), labels.astype(float)) for labels in some[1]]

    rows = []
    for solver, bound in (("accelerated", None), ("alternation", 10)):
        fit = fits(solver)
        found = fit(gram, y)
        seconds = median_time(functools.partial(fit, gram, y), repeats=3)
        excess = float(np.max(found.objective[:PEER_DATA_SETS] / np.array(reached))) - 1
        rows += [
            Row(f"{solver}, iterations", float(np.mean(found.iterations)), "mean"),
            Row(f"{solver}, converged", float(np.mean(found.converged)), "share"),
            limited(f"{solver}, objective above scikit-learn's", excess, "share", 1e-5),
            faster(f"scikit-learn / {solver}", seconds, theirs, bound),
        ]
    return rows


def without_a_matrix():
    """Rows on one large data set whose Gram matrix is never held."""
    x = covariates(LARGE)
    y, kernel = corrupted(KEY, x), nj.kernels.gaussian(length_scale=LENGTH_SCALE)

    @jax.jit
    def fit(x, y):
        gram = nj.robust.subquantile.chunked_gram(kernel, x, chunk=CHUNK)
        return ridge(gram, y, "alternation")

    found = fit(x, y)
    held = memory(fit.lower(x, y).compile())
    setting = f"alternation, n = {LARGE:,}, chunks of {CHUNK}"
    return [
        Row(setting, median_time(lambda: fit(x, y), repeats=1), "s"),
        Row(f"{setting}, converged", float(found.converged), "share"),
        Row(f"{setting}, memory", held / 2**20, "MiB"),
    ]


def rows():
    return [*many_data_sets(), *without_a_matrix()]


if __name__ == "__main__":
    report(
        f"float32, n = {ROWS:,}, d = {DIM}, Gaussian kernel of length scale {LENGTH_SCALE}, "
        f"alpha = {ALPHA}, {SHARE:.0%} gross labels, start at zero, tolerance 1e-6",
        rows,
    )
