"""Speed of subquantile minimization: `python tests/benchmarks/subquantile.py`.

The data sets share their covariates, as replicates of a study of corrupted labels do: one Gram
matrix serves all of them. The peer refits scikit-learn's `KernelRidge` on the rows kept, from zero,
until they no longer change, one data set after the other, with the Gram matrix given as well.
"""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from timing import faster, limited, median_time, report

import noisy_jax as nj

ROWS, DATA_SETS, PEER_DATA_SETS, DIM = 2_000, 64, 4, 2
SHARE, ALPHA, LENGTH_SCALE = 0.3, 0.3, 0.5  # ALPHA as scikit-learn has it
QUICK = {"ROWS": 500, "DATA_SETS": 16, "PEER_DATA_SETS": 2}
KEY = jax.random.key(0)


def corrupted(key, x):
    """Labels of sin 2x_0 + 0.3 x_1 with noise, 30% of them gross."""
    keys = jax.random.split(key, 4)
    clean = jnp.sin(2 * x[:, 0]) + 0.3 * x[:, 1]
    y = clean + 0.1 * jax.random.normal(keys[0], clean.shape)
    size = jax.random.uniform(keys[2], y.shape, minval=5.0, maxval=20.0)
    bad = jax.random.permutation(keys[3], len(y)) < SHARE * len(y)
    return jnp.where(bad, clean + jax.random.rademacher(keys[1], y.shape) * size, y)


@jax.jit
def fits(gram, y):
    """`Fit`s from zero of one Gram matrix and labels `[S, n]`; alpha = mλ/2 of the m rows kept."""
    options = {"contamination": SHARE, "solver": "alternation", "start": "zero"}
    options["regularization"] = 2 * ALPHA / round((1 - SHARE) * ROWS)
    return jax.vmap(lambda labels: nj.robust.subquantile.ridge(gram, labels, **options))(y)


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


def rows():
    """All data sets at once, against scikit-learn one after the other."""
    x = jax.random.uniform(KEY, (ROWS, DIM), minval=-3.0, maxval=3.0)
    gram = nj.kernels.gaussian(length_scale=LENGTH_SCALE)(x, x)
    y = jax.vmap(corrupted, in_axes=(0, None))(jax.random.split(KEY, DATA_SETS), x)
    some = np.asarray(gram), np.asarray(y[:PEER_DATA_SETS])  # float32, as ours
    theirs = median_time(lambda: [peer(some[0], labels) for labels in some[1]], repeats=3)
    theirs *= DATA_SETS / PEER_DATA_SETS
    reached = [peer(some[0].astype(float), labels.astype(float)) for labels in some[1]]
    objectives = fits(gram, y).objective[:PEER_DATA_SETS]
    excess = float(np.max(objectives / np.array(reached))) - 1
    return [
        limited("alternation, objective above scikit-learn's", excess, "share", 1e-5),
        faster("scikit-learn / alternation", median_time(lambda: fits(gram, y)), theirs, 10),
    ]


if __name__ == "__main__":
    report(
        f"float32, n = {ROWS:,}, d = {DIM}, Gaussian kernel of length scale {LENGTH_SCALE}, "
        f"alpha = {ALPHA}, {SHARE:.0%} gross labels, start at zero, tolerance 1e-6",
        rows,
    )
