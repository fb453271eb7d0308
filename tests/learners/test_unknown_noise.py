"""The whole gradient from one set of copies: against a NumPy loop, and by exact expectations."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

import noisy_jax as nj
from tests import keys, quadrature
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
    if name == "replicates":  # 2F_4 − F_2
        halves = copies[:2].mean(axis=0), copies[2:].mean(axis=0)
        return np.array([copies.mean(axis=0), *halves]), np.array([2, -0.5, -0.5])
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
        ("replicates", "logistic"),
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


def learned(rng, kernel, loss, estimate):
    """A learner in a large ball, and its state after six rounds without noise in a small one."""
    make = functools.partial(nj.learners.unknown_noise, kernel, loss, horizon=8, estimate=estimate)
    learner = make(radius=0.8)
    state, step = learner.init(1), jax.jit(learner.step)
    for x, y in zip(rng.uniform(-1, 1, (6, 1)), [1.0, -1, 1, -1, -1, 1], strict=True):
        sample = nj.Sample(jnp.tile(jnp.asarray(x), (learner.needs.copies, 1)), jnp.asarray(y))
        state = step(state, sample, KEY)
    return make(radius=1e3), state


def two_point(copies):
    nodes = 0.4 * np.array(list(itertools.product([-1, 1.0], repeat=copies)))
    return nodes, np.full(len(nodes), 1 / len(nodes))


def replicates(order):
    return functools.partial(nj.unbiased.replicates, order=order)


@pytest.mark.slow
@pytest.mark.claim("EXT-WholeGradient")
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("kernel", "loss", "estimate", "rule"),
    [
        # 2(f(x) − y)Ψ(x) of a kernel of degree k has degree 2k ≤ order + 1.
        (nj.kernels.polynomial(degree=1), "squared", replicates(1), two_point),
        (nj.kernels.polynomial(degree=2), "squared", replicates(3), two_point),
        (
            KERNEL,
            "smoothed_hinge",
            nj.unbiased.pair,
            lambda copies: quadrature.gauss_hermite(20, 0.1 * np.eye(copies)),
        ),
    ],
)
def test_gradients_and_clean_estimates_are_exact_on_average(rng, kernel, loss, estimate, rule):
    """At probes. The step is so small that Ĝ is (f − f_{t+1})/η."""
    loss, derivative = LOSSES[loss]
    learner, state = learned(rng, kernel, loss, estimate)
    squares, x, y = 1e14, 0.6, 1.0
    state = state._replace(rule=state.rule._replace(squares=jnp.asarray(squares)))
    before, rate = learner.predict(state, PROBES), 2**0.5 * 1e3 / squares**0.5
    nodes, weights = rule(learner.needs.copies)

    @jax.jit
    @jax.vmap
    def one(copies):
        sample = nj.Sample(copies, jnp.asarray(y))
        after = learner.predict(learner.step(state, sample, KEY), PROBES)
        return (before - after) / rate, learner.clean_estimates(state, sample, KEY)

    found = jax.tree.map(lambda leaf: weights @ np.asarray(leaf), one(x + nodes[..., None]))
    f = float(learner.predict(state, jnp.array([x])))
    gradient = derivative(f, y) * np.asarray(kernel(jnp.array([[x]]), PROBES))[0]
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5), found, (gradient, (f, f**2))
    )


def test_needs_follow_from_the_loss_and_the_estimate():
    squared = learner_of("replicates", nj.losses.squared()).needs
    assert (squared.copies, squared.horizon, squared.labels) == (4, 40, False)
    poisson = learner_of("multilevel", nj.losses.poisson()).needs
    assert (poisson.copies, poisson.targets) == (32, "independent")
    assert learner_of("replicates", nj.losses.logistic()).needs.labels
    told = functools.partial(nj.unbiased.gaussian, noise=0.2)
    assert learner_of("gaussian", nj.losses.squared()).needs.noise is nj.noise.Gaussian
    assert learner_of("gaussian", nj.losses.squared(), estimate=told).needs.noise.cov == 0.2


@pytest.mark.slow
def test_pairs_far_from_the_origin_are_the_same_pairs():
    x = np.random.default_rng(0).normal(size=(20, 2, 2)).astype(np.float32).round(2)
    learner = learner_of("pair", nj.losses.squared())
    near, far = (unrolled(learner, c[:, 0], np.ones(20), copies=c)[1] for c in (x, x + 4096))
    np.testing.assert_allclose(far, near, rtol=0.02, atol=0.01)


HORIZON, SEEDS = 512, 16


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-WholeGradient")
def test_corrections_of_four_copies_beat_their_mean():
    """On the diabetes data; also if the covariance changes in each round, and nobody tells it."""
    kernel, loss = nj.kernels.gaussian(length_scale=1.0), nj.losses.squared()
    stream = nj.streams.resampled(jax.random.key(0), nj.streams.dataset("diabetes"), HORIZON)
    changing = 0.6 * jax.random.uniform(jax.random.key(1), (HORIZON, 10))
    variances = jnp.stack([jnp.full((HORIZON, 10), 0.3), changing])

    def learner(**options):
        estimate = functools.partial(nj.unbiased.replicates, copies=4, **options)
        return nj.learners.unknown_noise(
            kernel, loss, radius=1.0, horizon=HORIZON, estimate=estimate
        )

    learners = nj.wrappers.paired(learner(order=0), learner())

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    @functools.partial(jax.vmap, in_axes=(None, 0))
    def losses(variances, key):
        noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(variances))
        run = nj.rollout(learners, stream, noise, key)
        return jnp.sum((run.predictions - stream.y[:, None]) ** 2, axis=0)

    found = np.asarray(losses(variances, jax.random.split(keys.key(3), SEEDS)))
    gain = found[:, :, 0] - found[:, :, 1]
    print("gain in standard errors:", gain.mean(axis=1) / gain.std(axis=1, ddof=1) * SEEDS**0.5)
    assert np.all(gain.mean(axis=1) > 5 * gain.std(axis=1, ddof=1) / SEEDS**0.5)
