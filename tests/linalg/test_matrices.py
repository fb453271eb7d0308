"""Factorizations: those of NumPy, one matrix a call, with derivatives in both modes."""

import ast
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import Mesh, PartitionSpec

import noisy_jax
from noisy_jax.linalg import matrices

pytestmark = pytest.mark.factorization

N, M, BATCH = 4, 6, 2
SPLIT = PartitionSpec("seeds")


def definite(a):
    """A positive definite matrix of `[M, N]` numbers."""
    return a.T @ a + np.diag(np.arange(1.0, N + 1))


def triangle(a):
    return a[:N] * np.tri(N) + 3 * np.eye(N)


def products(found):
    """What the signs of singular vectors do not change."""
    u, s, vt = found
    return s, u**2, vt**2, u[:, :1] * vt[:1]


def axes(found):
    values, vectors = found
    return values, vectors**2, vectors[:, :1] * vectors[:, 0][None]


def turned(found):
    """Q and R where R's diagonal is positive."""
    q, r = found
    sign = r.diagonal() / abs(r.diagonal())
    return q * sign[None], r * sign[:, None]


def indefinite(a):
    return (a[:N] + a[:N].T) / 2


def positive_part(a):
    values, vectors = np.linalg.eigh(a)
    return (vectors * np.maximum(values, 0)[None]) @ vectors.T


def pair(ours, numpy, of=lambda a: a, then=lambda found: found):
    """Both functions of a matrix `of` the numbers, and what is looked at of their results."""
    return lambda a: then(ours(of(a))), lambda a: then(numpy(of(a)))


# Functions of `[M, N]` numbers, and the same in NumPy.
OPERATIONS = {
    "cholesky": pair(matrices.cholesky, np.linalg.cholesky, definite),
    "solve_triangular": (
        lambda a: matrices.solve_triangular(triangle(a), a[N:].T),
        lambda a: np.linalg.solve(triangle(a), a[N:].T),
    ),
    "transposed": (
        lambda a: matrices.solve_triangular(triangle(a), a[N], transposed=True),
        lambda a: np.linalg.solve(triangle(a).T, a[N]),
    ),
    "solve_cholesky": (
        lambda a: matrices.solve_cholesky(triangle(a), a[N]),
        lambda a: np.linalg.solve(triangle(a) @ triangle(a).T, a[N]),
    ),
    "eigh": pair(matrices.eigh, np.linalg.eigh, definite, axes),
    "eigvalsh": pair(matrices.eigvalsh, np.linalg.eigvalsh, definite),
    "positive_part": pair(matrices.positive_part, positive_part, indefinite),
    "least_eigenvalue": (
        lambda a: matrices.least_eigenvalue(-definite(a), jnp.asarray(0.1)),
        lambda a: np.linalg.eigvalsh(-definite(a))[0],
    ),
    "least_eigenvalue, bounded": (
        lambda a: matrices.least_eigenvalue(definite(a), a[0, 0] - 9),
        lambda a: a[0, 0] - 9,
    ),
    "svd": pair(matrices.svd, partial(np.linalg.svd, full_matrices=False), then=products),
    "square svd": pair(matrices.svd, np.linalg.svd, lambda a: a[:N], products),
    "qr": pair(matrices.qr, np.linalg.qr, then=turned),
}


@pytest.fixture(params=OPERATIONS, ids=str)
def operation(request):
    return OPERATIONS[request.param]


def flat(outputs):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(outputs)])


@pytest.mark.slow
def test_batches_divided_over_devices_are_those_of_numpy(operation, rng, x64):
    """Under `vmap` twice, in a `shard_map` over two devices."""
    function, reference = operation
    a = rng.normal(size=(2, BATCH, M, N))
    mesh = Mesh(jax.devices()[:2], ("seeds",))
    twice = jax.vmap(jax.vmap(function))
    shards = jax.jit(jax.shard_map(twice, mesh=mesh, in_specs=SPLIT, out_specs=SPLIT))
    expected = [flat(reference(one)) for row in a for one in row]
    for found in jax.jit(twice)(a), shards(a):
        each = [flat([leaf[i] for leaf in jax.tree.leaves(found)]) for i in np.ndindex(2, BATCH)]
        np.testing.assert_allclose(each, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_both_modes_are_finite_differences(operation, rng, x64):
    function, reference = operation
    a, v = rng.normal(size=(2, BATCH, M, N))
    forward = jax.jit(jax.vmap(lambda a, v: jax.jvp(function, (a,), (v,))[1]))(a, v)
    tangents = [flat([leaf[i] for leaf in jax.tree.leaves(forward)]) for i in range(BATCH)]
    ahead, behind = ([flat(reference(one)) for one in a + step * v] for step in (1e-6, -1e-6))
    slopes = np.subtract(ahead, behind) / 2e-6
    np.testing.assert_allclose(tangents, slopes, rtol=1e-6, atol=1e-7)
    weights = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), forward)
    pulled = jax.jit(lambda a, w: jax.vjp(jax.vmap(function), a)[1](w)[0])(a, weights)
    along = jax.tree.map(lambda leaf, w: np.sum(leaf * w), forward, weights)
    np.testing.assert_allclose(np.sum(pulled * v), sum(jax.tree.leaves(along)), rtol=1e-12)


@pytest.mark.slow
def test_second_derivatives_are_finite_differences_of_first(operation, rng, x64):
    function, _ = operation
    a, v = rng.normal(size=(2, M, N))

    def cubes(a):
        return sum(jnp.sum(leaf**3) for leaf in jax.tree.leaves(function(a)))

    slope = jax.jit(jax.grad(cubes))
    expected = (slope(a + 1e-6 * v) - slope(a - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(jax.jvp(slope, (a,), (v,))[1], expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_a_batch_is_a_loop_on_cpus_and_one_call_on_others(operation, platform):
    function = jax.jit(jax.vmap(operation[0]))
    program = export.export(function, platforms=[platform])(np.ones((BATCH, M, N), np.float32))
    calls = [line for line in program.mlir_module().splitlines() if "custom_call @" in line]
    calls = [line for line in calls if "cu" in line or "lapack" in line or "blas" in line]
    assert platform == "cuda" or calls
    batched = [f"tensor<{BATCH}x" in line.partition(" : (")[2] for line in calls]
    assert batched == [platform == "cuda"] * len(calls)


def test_one_triangle_with_many_right_sides_is_solved_in_one_call(rng, x64):
    factor, b = triangle(rng.normal(size=(M, N))), rng.normal(size=(3, 5, N))
    solve = jax.jit(jax.vmap(jax.vmap(partial(matrices.solve_triangular, factor))))
    np.testing.assert_allclose(solve(b), np.linalg.solve(factor, b[..., None])[..., 0], rtol=1e-12)
    assert "while" not in solve.lower(b).as_text()


def test_no_factor_of_an_indefinite_matrix_and_no_derivative(x64):
    found, slope = jax.jit(jax.value_and_grad(lambda a: matrices.cholesky(a)[-1, -1]))(-np.eye(2))
    assert np.isnan(found)
    np.testing.assert_array_equal(slope, np.zeros((2, 2)))


def _factorizations(tree):
    """JAX's functions that factorize, as a module imports or calls them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("jax"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and node.attr != "norm":
            names = [ast.unparse(node)]
        else:
            continue
        for name in names:
            draws = name.endswith(("random.orthogonal", "random.multivariate_normal"))
            if draws or ("linalg." in name and not name.startswith(("np.", "jax.scipy.sparse"))):
                yield name


@pytest.mark.slow
def test_no_other_module_factorizes_by_jax():
    """A batched call of LAPACK can hang (jaxlib 0.10.0 to 0.11.0)."""
    package = Path(noisy_jax.__file__).parent
    calls = {
        str(file.relative_to(package)): list(_factorizations(ast.parse(file.read_text("utf-8"))))
        for file in sorted(package.rglob("*.py"))
    }
    assert len(calls.pop("linalg/matrices.py")) == 6
    assert not {file: names for file, names in calls.items() if names}


def test_the_least_eigenvalue_of_nan_is_nan():
    least = jax.jit(jax.vmap(matrices.least_eigenvalue, (None, 0)))
    assert np.all(np.isnan(least(jnp.full((2, 2), jnp.nan), jnp.array([0.0, 1.0]))))
