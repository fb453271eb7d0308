import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.robust.subquantile import chunked_gram, ridge
from noisy_jax.robust.subquantile.gram import dense_gram, solver
from tests.errors import raises
from tests.robust.subquantile import trimmed
from tests.robust.subquantile.trimmed import closed_form, regression


@pytest.mark.parametrize("kind", ["gaussian", "linear", "isolated", "scaled", "zero"])
def test_norm_is_bounded_from_above_and_closely(x64, rng, kind):
    x = rng.normal(size=(60, 2))
    gram = {
        "gaussian": regression(rng, n=60)[0],
        "linear": x @ x.T,
        "isolated": np.eye(60),
        "scaled": np.outer(*[10.0 ** np.linspace(-9, 3, 60)] * 2),
        "zero": np.zeros((60, 60)),
    }[kind]
    exact = np.linalg.norm(gram, 2)
    bound = float(dense_gram(gram).norm)
    assert exact * (1 - 1e-12) <= bound <= 1.3 * exact
    vector = np.ones(60)  # power iteration is no bound
    for _ in range(3):
        vector = gram @ vector / max(np.linalg.norm(gram @ vector), 1e-300)
    assert kind not in ("gaussian", "linear") or vector @ gram @ vector < exact * (1 - 1e-12)


@pytest.mark.parametrize("unit", [2.0**-100, 2.0**100])
def test_norm_does_not_depend_on_the_units_of_the_kernel(rng, unit):
    """In float32 the squares of these entries underflow and overflow."""
    gram = np.float32(np.diag(np.geomspace(1e-3, 1, 60)) + 0.1)
    scaled = dense_gram(np.float32(unit) * gram).norm / np.float32(unit)
    np.testing.assert_allclose(scaled, dense_gram(gram).norm, rtol=1e-6)


@pytest.mark.slow
def test_fits_need_no_gram_matrix(rng):
    """Ridge on the rows kept, from chunks, for two targets that share them."""
    x = rng.uniform(-3, 3, size=(50, 1))
    y = np.stack([np.sin(2 * x[:, 0]), np.cos(x[:, 0])]) + 0.1 * rng.normal(size=(2, 50))
    y[:, :8] += 9
    kernel = nj.kernels.gaussian(length_scale=0.5)
    gram = np.asarray(kernel(x, x), float)
    v, chunks = rng.normal(size=50), chunked_gram(kernel, x, chunk=16)
    np.testing.assert_allclose(chunks.norm, dense_gram(gram).norm, rtol=1e-5)
    exact = np.linalg.solve(gram + 0.3 * np.eye(50), v)
    np.testing.assert_allclose(solver(chunks, 0.3)(v), exact, atol=1e-3)  # of the starts
    for name, start in (("accelerated", "zero"), ("alternation", "huber")):

        def fit(y, name=name, start=start):
            options = {"contamination": 0.2, "solver": name, "start": start}
            return ridge(chunked_gram(kernel, x, chunk=16), y, regularization=0.015, **options)

        fits = jax.tree.map(np.asarray, jax.jit(jax.vmap(fit))(y))
        assert np.all(fits.converged)
        assert not np.any(fits.kept[:, :8])
        for labels, kept, objective in zip(y, fits.kept, fits.objective, strict=True):
            a = closed_form(gram, labels, kept, 0.015)
            assert set(trimmed.rows("ridge", gram @ a, labels, 40)) == set(np.flatnonzero(kept))
            exact = trimmed.objective("ridge", gram, labels, 40, 0.015, a)
            np.testing.assert_allclose(objective, exact, rtol=1e-5)


LINEAR, ROWS = nj.kernels.linear(), np.ones((3, 1))


@pytest.mark.parametrize(
    ("kernel", "x", "options", "message"),
    [
        (LINEAR, np.ones(3), {}, r"x must be \[n, d\] .* got \[3\]"),
        (LINEAR, [[1.0], [np.nan]], {}, r"x must be finite, but x\[1, 0\] is nan"),
        (LINEAR, ROWS, {"chunk": 0}, "chunk must be a whole number of at least 1"),
        (np.eye(3), ROWS, {}, "kernel must be a function .* pass a matrix as it is"),
        (lambda x, z: x[:, 0], ROWS, {}, r"kernel\(x, x\) must be \[3, 3\], .* got \[3\]"),
        (ROWS, LINEAR, {}, r"kernel must be a function .* got an array \[3, 1\]"),
    ],
)
def test_chunked_gram_raises_on_bad_input(kernel, x, options, message):
    raises(message, chunked_gram, kernel, x, **options)
