"""The whole gradient from one set of copies: against a NumPy loop, and by exact expectations."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

import noisy_jax as nj
from tests import quadrature
from tests.errors import raises
from tests.learners import references
from tests.learners.runs import unrolled

KEY, KERNEL = jax.random.key(0), nj.kernels.gaussian(length_scale=1.0)
PROBES = np.array([[-0.7], [0.2], [1.1]])
LOSSES = {
    "squared": (nj.losses.squared(), lambda p, y: 2 * (p - y)),
    "smoothed_hinge": (
        nj.losses.smoothed_hinge(sharpness=0.8),
        lambda p, y: y * (erf(0.8 * (y * p - 1)) - 1) / 2,
    ),
    "logistic": (nj.losses.logistic(), lambda p, y: -y / (1 + np.exp(y * p))),
}
MULTILEVEL = functools.partial(nj.unbiased.multilevel, levels=4, base=2, continue_with=0.7)
VARIANCES = 0.2, 0.05
ESTIMATES = {
    "replicates": None,
    "second order": functools.partial(nj.unbiased.replicates, copies=6, order=2),
    "mean": functools.partial(nj.unbiased.replicates, copies=3, order=0),
    "multilevel": MULTILEVEL,
    "pair": nj.unbiased.pair,
    "pair of three": functools.partial(nj.unbiased.pair, copies=3),
    "gaussian": functools.partial(nj.unbiased.gaussian, draws=3, copies=2),
}


def points_of(name, copies, key):
    """Points `[K, d]` and weights of one round, from the formulas of the ledger."""
    if name in ("pair", "pair of three"):
        contrast = (copies[0] - copies[1]) / (2 if name == "pair" else 6**0.5)  # Σ c² = 1/V
        return copies.mean(axis=0, keepdims=True) + 1j * contrast, np.ones(1)
    if name == "mean":
        return copies.mean(axis=0, keepdims=True), np.ones(1)
    if name == "replicates":  # 2F_4 − F_2
        halves = copies[:2].mean(axis=0), copies[2:].mean(axis=0)
        return np.array([copies.mean(axis=0), *halves]), np.array([2, -0.5, -0.5])
    if name == "second order":  # blocks of 6, 3 and 1: Σ w = 1, Σ w/m = Σ w/m² = 0
        rows = [np.ones(3), 1 / np.array([6, 3, 1]), 1 / np.array([6, 3, 1]) ** 2]
        w = np.linalg.solve(rows, [1, 0, 0])
        halves = copies[:3].mean(axis=0), copies[3:].mean(axis=0)
        points = np.array([copies.mean(axis=0), *halves, *copies])
        return points, np.repeat([w[0], w[1] / 2, w[2] / 6], [1, 2, 6])
    if name == "gaussian":
        noise = nj.noise.Gaussian(jnp.array(VARIANCES))
        drawn = noise.centred(key, jnp.zeros((3, 2))) / 2**0.5  # of the mean of two copies
        return copies.mean(axis=0) + 1j * np.asarray(drawn), np.full(3, 1 / 3)
    needed = int(MULTILEVEL(jnp.sum).copies_needed(key))
    first, level, r = copies[:2].mean(axis=0), int(np.log2(needed // 2)), 2**-1.5
    if not level:
        return np.array([first] * 4), np.array([1.0, 0, 0, 0])
    factor = 2 / (0.7 * r**3) if level == 4 else 1 / (0.7 * (1 - r) * r ** (level - 1))
    halves = copies[: needed // 2].mean(axis=0), copies[needed // 2 : needed].mean(axis=0)
    points = np.array([first, (halves[0] + halves[1]) / 2, *halves])
    return points, np.array([1, factor, -factor / 2, -factor / 2])


def learner_of(name, loss, **options):
    options = {"radius": 0.8, "horizon": 40, "block": 16, "estimate": ESTIMATES[name], **options}
    return nj.learners.unknown_noise(KERNEL, loss, **options)


@pytest.mark.slow
@pytest.mark.claim("EXT-WholeGradient")
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("replicates", "smoothed_hinge"),
        ("second order", "logistic"),
        ("mean", "squared"),
        ("multilevel", "squared"),
        ("pair of three", "smoothed_hinge"),
        ("gaussian", "squared"),
    ],
)
def test_equals_the_plain_loop(x64, rng, monkeypatch, name, loss):
    """Under noise of another covariance in each round, which the learner is not told."""
    monkeypatch.setattr("noisy_jax.engine.memory._CHUNK", 8)  # several chunks of stored rounds
    loss, derivative = LOSSES[loss]
    learner, rounds, dim = learner_of(name, loss), 40, 2
    x = rng.uniform(-1, 1, (rounds, dim))
    y = np.sign(np.sin(3 * x[:, 0]) + 0.5)
    scales = rng.uniform(0, 0.5, (rounds, 1, dim))
    copies = x[:, None] + scales * rng.normal(size=(rounds, learner.needs.copies, dim))
    all_keys = jax.random.split(jax.random.key(2), rounds)
    if name == "multilevel":  # copies that a round does not use are not measured
        needed = jax.vmap(MULTILEVEL(jnp.sum).copies_needed)(all_keys)
        copies[np.arange(learner.needs.copies) >= np.asarray(needed)[:, None]] = np.nan
    points, weights = zip(*map(functools.partial(points_of, name), copies, all_keys), strict=True)
    predictions, squared_norm, projected = references.unknown_noise(
        references.gaussian_kernel(1.0), derivative, np.array(points, complex), np.array(weights),
        x, y, 0.8,
    )  # fmt: skip
    cov = jnp.tile(jnp.array(VARIANCES), (rounds, 1)) if name == "gaussian" else None
    samples = nj.Sample(jnp.asarray(copies), jnp.asarray(y), cov)
    state, ours, read = learner.unroll(learner.init(dim), samples, jnp.asarray(x), all_keys)
    np.testing.assert_allclose(ours, predictions, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.squared_norm, squared_norm, rtol=1e-8)
    assert projected >= 3
    assert np.all(np.isfinite(read))


def clean_gradient(learner, state, kernel, x, y, derivative):
    """f(x), and the values of ℓ'(f(x), y) k(x, ·) at the probes."""
    f = float(learner.predict(state, jnp.array([x])))
    return f, derivative(f, y) * np.asarray(kernel(jnp.array([[x]]), PROBES))[0]


def estimates(learner, function, copies, y):
    """Ĝ at the probes, `[N, probes]`, and clean estimates, from copies `[N, V, d]` of one x.

    f is `function`; the step is so small that Ĝ is (f − f_{t+1})/η.
    """
    squares = 1e14
    rate = 2**0.5 * 1e3 / squares**0.5
    state = function._replace(rule=function.rule._replace(squares=jnp.asarray(squares)))
    before = learner.predict(state, PROBES)

    @jax.jit
    @jax.vmap
    def one(copies):
        sample = nj.Sample(copies, jnp.asarray(y))
        after = learner.predict(learner.step(state, sample, KEY), PROBES)
        return (before - after) / rate, learner.clean_estimates(state, sample, KEY)

    return one(jnp.asarray(copies))


def learned(rng, kernel, loss, estimate):
    """A learner in a large ball, and its state after six rounds without noise in a small one."""
    make = functools.partial(nj.learners.unknown_noise, kernel, loss, horizon=8, estimate=estimate)
    learner = make(radius=0.8)
    state, step = learner.init(1), jax.jit(learner.step)
    for x, y in zip(rng.uniform(-1, 1, (6, 1)), [1.0, -1, 1, -1, -1, 1], strict=True):
        sample = nj.Sample(jnp.tile(jnp.asarray(x), (learner.needs.copies, 1)), jnp.asarray(y))
        state = step(state, sample, KEY)
    return make(radius=1e3), state


@pytest.mark.slow
@pytest.mark.claim("EXT-WholeGradient")
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("order", "degree"), [(1, 1), (3, 2)])
def test_gradients_of_polynomials_are_exact_by_enumeration_of_two_point_noise(rng, order, degree):
    """2(f(x) − y)Ψ(x) of a kernel of degree k has degree 2k ≤ order + 1."""
    kernel = nj.kernels.polynomial(degree=degree)
    estimate = functools.partial(nj.unbiased.replicates, order=order)
    learner, state = learned(rng, kernel, nj.losses.squared(), estimate)
    noise = 0.4 * np.array(list(itertools.product([-1, 1.0], repeat=learner.needs.copies)))
    found, (value, square) = estimates(learner, state, 0.6 + noise[..., None], -0.3)
    f, clean = clean_gradient(learner, state, kernel, 0.6, -0.3, LOSSES["squared"][1])
    exact = functools.partial(np.testing.assert_allclose, rtol=1e-5)
    exact(found.mean(axis=0), clean)
    exact(value.mean(), f)
    exact(square.mean(), f**2)


@pytest.mark.slow
@pytest.mark.claim("EXT-WholeGradient")
def test_gradients_of_pairs_are_exact_by_quadrature(x64, rng):
    loss, derivative = LOSSES["smoothed_hinge"]
    learner, state = learned(rng, KERNEL, loss, nj.unbiased.pair)
    nodes, weights = quadrature.gauss_hermite(20, 0.1 * np.eye(2))
    found, (value, square) = estimates(learner, state, 0.6 + nodes[..., None], 1.0)
    f, clean = clean_gradient(learner, state, KERNEL, 0.6, 1.0, derivative)
    np.testing.assert_allclose(weights @ np.asarray(found), clean, rtol=1e-5)
    np.testing.assert_allclose(weights @ np.asarray(value), f, rtol=1e-6)
    np.testing.assert_allclose(weights @ np.asarray(square), f**2, rtol=1e-6)


def test_needs_follow_from_the_loss_and_the_estimate():
    squared = learner_of("replicates", nj.losses.squared()).needs
    assert (squared.copies, squared.horizon, squared.targets) == (4, 40, "independent")
    absolute = learner_of("pair", nj.losses.smoothed_absolute()).needs
    assert (absolute.copies, absolute.targets, absolute.labels) == (2, "exact", False)
    poisson = learner_of("multilevel", nj.losses.poisson()).needs
    assert (poisson.copies, poisson.targets) == (32, "independent")
    assert learner_of("mean", nj.losses.logistic()).needs.labels
    told = functools.partial(nj.unbiased.gaussian, noise=0.2)
    assert learner_of("gaussian", nj.losses.squared()).needs.noise is nj.noise.Gaussian
    assert learner_of("gaussian", nj.losses.squared(), estimate=told).needs.noise.cov == 0.2


@pytest.mark.slow
def test_pairs_far_from_the_origin_are_the_same_pairs():
    x = np.random.default_rng(0).normal(size=(20, 2, 2)).astype(np.float32).round(2)
    learner = learner_of("pair", nj.losses.squared())
    near, far = (unrolled(learner, c[:, 0], np.ones(20), copies=c)[1] for c in (x, x + 4096))
    np.testing.assert_allclose(far, near, rtol=0.02, atol=0.01)


@pytest.mark.parametrize(
    ("loss", "options", "message"),
    [
        (nj.losses.hinge(), {}, r"smooth derivative, got .* losses\.smoothed_hinge"),
        (
            nj.losses.logistic(),
            {"estimate": nj.unbiased.pair},
            "pair needs an entire function .*logistic",
        ),
        (nj.losses.squared(), {"radius": -1.0}, "radius must be positive"),
        (None, {}, "loss must be a Loss, got None"),
    ],
)
def test_bad_arguments_give_one_clear_line(loss, options, message):
    given = {"radius": 1.0, "horizon": 9, **options}
    raises(message, nj.learners.unknown_noise, KERNEL, loss, **given)


def test_a_kernel_that_is_not_entire_has_no_pairs():
    kernel, options = nj.kernels.laplacian(length_scale=1.0), {"radius": 1.0, "horizon": 9}
    learner = nj.learners.unknown_noise(
        kernel, nj.losses.squared(), estimate=nj.unbiased.pair, **options
    )
    sample = nj.Sample(jnp.ones((2, 2)), jnp.ones(()))
    raises("pair needs an entire function of x", learner.step, learner.init(2), sample, KEY)
