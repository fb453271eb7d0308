"""The corrected leader: its guarantee on every path, merging, and independence of λ_0."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample, unrolled
from noisy_jax.moments.fourier import Frequencies
from noisy_jax.moments.online import Sums
from tests.errors import told
from tests.learners.runs import gradient

T, DIM, EVERY = 96, 3, 8
KNOWN = nj.moments.known_covariance()
LEADER = nj.learners.corrected_ftrl(KNOWN, solve_every=EVERY)


def rounds(seed, copies=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(T, DIM)) / DIM**0.5
    y = x @ rng.normal(size=DIM) + 0.1 * rng.normal(size=T)
    noisy = x[:, None] + 0.5 * rng.normal(size=(T, copies, DIM))
    return x, y, Sample(jnp.asarray(noisy), jnp.asarray(y), jnp.full(T, 0.25))


def part(of, trees):
    """Some rounds of trees whose leaves are stacked along them."""
    return jax.tree.map(lambda leaf: leaf[of], trees)


@functools.cache
def compiled(learner):
    return jax.jit(unrolled(learner))


def run(learner, samples, x, state=None):
    state = learner.init(DIM) if state is None else state
    return compiled(learner)(state, samples, jnp.asarray(x), jnp.zeros((len(x), 2)))[:2]


def adversary(name):
    """One of the two adversaries that a learner from one copy cannot tell apart."""
    return getattr(nj.streams.one_copy_adversaries(jax.random.key(0), T), name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "radius", "number"),
    [
        (0, None, T),
        (7, None, 15),  # the last block is not complete
        (1, 0.5, T),
        ("two copies", 0.5, T),
        ("noiseless", 0.5, T),
        ("noisy", None, T),
    ],
)
def test_the_pathwise_inequality_holds_and_the_penalty_is_its_right_side(x64, seed, radius, number):
    moments = nj.moments.two_copies() if seed == "two copies" else KNOWN
    if seed in ("noiseless", "noisy"):
        stream, noise = adversary(seed)
        noisy = noise.sample(jax.random.key(1), stream.x)
        x, samples = stream.x, Sample(noisy[:, None], stream.y, jnp.full(T, noise.cov))
    else:
        x, _, samples = rounds(2, copies=2) if seed == "two copies" else rounds(seed)
    assert np.isfinite(check_pathwise(moments, *part(slice(number), (samples, x)), radius))


UNKNOWN = {
    "replicates": functools.partial(nj.unbiased.replicates, order=2),
    "multilevel": functools.partial(nj.unbiased.multilevel, levels=3),
    "pair": nj.unbiased.pair,
}


@pytest.mark.slow
@pytest.mark.claim("EXT-MomentsOfFeatures")
@pytest.mark.parametrize(
    ("name", "stream", "radius"),
    [
        ("replicates", "noisy", None),
        ("replicates", "heavy tails", 0.5),
        ("multilevel", "heavy tails", None),
        ("pair", "noiseless", 0.5),
    ],
)
def test_the_pathwise_inequality_holds_under_unknown_noise(x64, stream, name, radius):
    """For Fourier features. Where noise made S_t + Λ_{t−1} indefinite, the bound is NaN."""
    kernel = nj.kernels.gaussian(length_scale=1.0)
    features = nj.kernels.fourier_features(kernel, jax.random.key(0), num_features=6)
    moments = nj.moments.unbiased(features, UNKNOWN[name])
    if stream == "heavy tails":
        rng = np.random.default_rng(0)
        x = rng.normal(size=(T, DIM))
        freedom, size = (300, 0.2) if name == "pair" else (3, 0.3)  # pair is for Gaussian noise
        y, errors = np.sin(x[:, 0]), size * rng.standard_t(freedom, size=(T, 8, DIM))
    else:
        clean, noise = adversary(stream)
        x, y = np.asarray(clean.x), np.asarray(clean.y)
        errors = np.stack([noise.sample(jax.random.key(v), 0 * clean.x) for v in range(8)], axis=1)
    samples = Sample(jnp.asarray(x[:, None] + errors)[:, : moments.copies], jnp.asarray(y))
    bound = check_pathwise(moments, samples, x, radius, jax.random.split(jax.random.key(3), T))
    assert np.isfinite(bound) or stream == "noisy"


def check_pathwise(moments, samples, x, radius, keys=None):
    """The weights, the inequality and its penalty, block by block in NumPy; returns the penalty."""
    learner = nj.learners.corrected_ftrl(moments, radius=radius, solve_every=EVERY)
    state = learner.init(x.shape[1])
    dim = len(state.weights)
    gram, cross = np.zeros((dim, dim)), np.zeros(dim)
    loss, penalty = 0.0, 0.0
    advance, sums_of = jax.jit(learner.unroll), jax.jit(moments.sums)
    for start in range(0, len(x), EVERY):
        block, clean, drawn = part(slice(start, start + EVERY), (samples, jnp.asarray(x), keys))
        own = sums_of(block, jnp.ones(len(clean)), *((drawn,) if moments.random else ()))
        own_gram, own_cross = np.asarray(own.gram), np.asarray(own.cross)
        w, lam = np.asarray(state.weights), np.asarray(state.regularization)
        loss += w @ own_gram @ w - 2 * own_cross @ w
        gram, cross = gram + own_gram, cross + own_cross
        g = 2 * (own_gram @ w - own_cross)
        state = advance(state, block, clean, drawn)[0]
        state = learner.finish(state) if state.pending.count else state
        new = np.asarray(state.regularization)
        before = gram + np.diag(new if start == 0 else lam)  # w is 0 there under every Λ
        holds = np.linalg.eigvalsh(before)[0] > 0
        penalty += g @ np.linalg.solve(before, g) / 4 if holds else np.nan
        assert np.all(new >= lam)
        if radius is not None:
            assert np.linalg.norm(state.weights) <= radius * (1 + 1e-5)
        elif holds:
            regularized = gram + np.diag(new)
            np.testing.assert_allclose(regularized @ state.weights, cross, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(state.penalty, penalty, rtol=1e-9)
    if np.isnan(penalty):
        return penalty
    for u in np.random.default_rng(0).normal(size=(50, dim)):
        u = u if radius is None else u * radius / max(np.linalg.norm(u), radius)
        regret = loss - (u @ gram @ u - 2 * cross @ u)
        assert regret <= state.regularization @ u**2 + penalty + 1e-9
    return penalty


@pytest.mark.slow
def test_levels_are_drawn_by_the_key_of_the_round(x64):
    """`step`, `unroll` and `finish` agree; copies that a level does not use are not measured."""
    moments = nj.moments.unbiased(lambda x: x, functools.partial(nj.unbiased.multilevel, levels=2))
    learner = nj.learners.corrected_ftrl(moments, solve_every=EVERY)
    x, _, samples = rounds(8, copies=4)
    keys = jax.random.split(jax.random.key(0), T)
    needed = jax.vmap(nj.unbiased.multilevel(jnp.sum, levels=2).copies_needed)(keys)
    hidden = jnp.arange(4)[None] >= needed[:, None]
    samples = samples._replace(x=jnp.where(hidden[:, :, None], jnp.nan, samples.x))
    end = 2 * EVERY + 5
    some = part(slice(end), (samples, jnp.asarray(x), keys))
    with jax.debug_key_reuse(True):
        whole, _, estimates = jax.jit(learner.unroll)(learner.init(DIM), *some)
        jax.jit(learner.step)(learner.init(DIM), *part(0, (samples, keys)))
    by_step = jax.jit(unrolled(learner._replace(unroll=None)))
    state, _, found = by_step(learner.init(DIM), *some)
    np.testing.assert_allclose(found, estimates, atol=1e-9)
    total = jax.jit(moments.sums)(some[0], jnp.ones(end), some[2])
    for run in (whole, state):
        for a, b in zip(*map(jax.tree.leaves, (learner.finish(run).sums, total)), strict=True):
            np.testing.assert_allclose(a.sum(axis=0), b, atol=1e-9)
    np.testing.assert_allclose(state.weights, whole.weights, atol=1e-9)


@pytest.mark.slow
def test_halves_merge(x64):
    x, _, samples = rounds(5)
    leader = jax.jit(functools.partial(nj.learners.leader, KNOWN))
    expected = leader(run(LEADER, samples, x)[0].sums)
    halves = slice(0, T // 2), slice(T // 2, T)
    sums = [run(LEADER, *part(half, (samples, x)))[0].sums for half in halves]
    merged = leader(jax.tree.map(jnp.add, *sums))
    np.testing.assert_allclose(merged.weights, expected.weights, rtol=1e-9)
    np.testing.assert_allclose(merged.regularization, expected.regularization, rtol=1e-9)


@pytest.mark.slow
def test_units_of_x_and_y_have_no_effect(x64):
    """Both in thousandths, as the ball fixes the size of the weights: the same predictions."""
    x, _, samples = rounds(6)
    learner = nj.learners.corrected_ftrl(KNOWN, radius=0.5, solve_every=EVERY)
    predictions, small = run(learner, samples, x)[1], 2.0**-10
    scaled = Sample(samples.x * small, samples.y * small, samples.cov * small**2)
    found = run(learner, scaled, x * small)[1]
    np.testing.assert_allclose(found / small, predictions, rtol=1e-9)


SIZES = np.array([1000.0, 1.0, 0.003])


def in_other_units(samples, x):
    """Rounds whose columns are `SIZES` times as large."""
    cov = samples.cov[:, None, None] * np.diag(SIZES**2)[None]
    return samples._replace(x=samples.x * SIZES[None, None], cov=cov), x * SIZES[None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moments", "form"), [(KNOWN, "variances"), (nj.moments.two_copies(), "matrix")]
)
def test_units_of_single_columns_have_no_effect(x64, moments, form):
    x, _, samples = rounds(6, copies=2)
    learner = nj.learners.corrected_ftrl(moments, solve_every=EVERY)
    scaled, large = in_other_units(samples, x)
    if form == "variances":
        scaled = scaled._replace(cov=jnp.diagonal(scaled.cov, axis1=1, axis2=2))
    (state, own), (other, found) = run(learner, samples, x), run(learner, scaled, large)
    np.testing.assert_allclose(found, own, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.weights * SIZES, state.weights, rtol=1e-9)
    np.testing.assert_allclose(other.regularization / SIZES**2, state.regularization, rtol=1e-9)
    np.testing.assert_allclose(other.penalty, state.penalty, rtol=1e-9)


@pytest.mark.slow
def test_columns_of_different_sizes_keep_their_digits_in_float32():
    """The ball is in the units of the weights, of which one is 300,000 times another."""
    x, _, samples = rounds(6)
    learner = nj.learners.corrected_ftrl(KNOWN, radius=200.0, solve_every=EVERY)
    scaled, large = in_other_units(samples, x)
    state, predictions = run(learner, scaled, large)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), (scaled, large))
        exact, expected = run(learner, *wide)
    np.testing.assert_allclose(predictions, expected, atol=1e-4)
    np.testing.assert_allclose(state.weights, exact.weights, rtol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(state.weights), 200.0, rtol=1e-5)


@pytest.mark.parametrize("size", [1e-16, 1e17])
def test_features_of_any_size_have_weights_in_float32(size):
    """Squares of their moments would overflow."""
    x, _, samples = rounds(4)
    small = samples._replace(x=size * samples.x, cov=size**2 * samples.cov)
    state, scaled = (run(LEADER, *of)[0] for of in ((samples, x), (small, size * x)))
    np.testing.assert_allclose(scaled.weights * size, state.weights, rtol=1e-4)


def test_features_of_zero_at_first_leave_no_penalty_behind():
    """λ never decreases."""
    x, _, samples = rounds(4)
    small = samples._replace(x=1e-16 * samples.x, cov=1e-32 * samples.cov)
    state = run(LEADER, jax.tree.map(jnp.zeros_like, samples), 0 * x)[0]
    found = run(LEADER, small, x, state=state)[0].weights
    np.testing.assert_allclose(1e-16 * found, run(LEADER, samples, x)[0].weights, rtol=0.1)


def test_rounds_count_after_millions_of_others():
    """2^24 + 1 is no number of float32; each of 16 groups counts on."""
    learner = nj.learners.corrected_ftrl(KNOWN, solve_every=1)
    state = learner.init(DIM)
    state = state._replace(sums=jax.tree.map(lambda a: a + 2.0**24 / len(a), state.sums))
    x, _, samples = rounds(0)
    state = run(learner, samples, x, state=state)[0]
    assert np.sum(np.asarray(state.sums.count, np.float64)) == 2**24 + T


@pytest.mark.slow
def test_the_bound_needs_the_last_rounds_which_finish_counts(x64):
    x, _, samples = rounds(7)
    state = run(LEADER, *part(slice(15), (samples, x)))[0]
    assert np.isnan(nj.bounds.corrected_ftrl(state, comparator_norm=1.0))
    finished = LEADER.finish(state)
    bound = nj.bounds.corrected_ftrl(finished, comparator_norm=2.0)
    expected = 4 * finished.regularization.max() + finished.penalty
    np.testing.assert_allclose(bound, expected, rtol=1e-12)
    later = run(LEADER, *part(slice(15, 16), (samples, x)), state=finished)[0]
    assert later.penalty > finished.penalty
    np.testing.assert_allclose(later.sums.count.sum(), 16)


@pytest.mark.slow
def test_weights_stay_in_the_ball_where_the_estimated_moment_is_zero():
    """Two copies 1 ± 1: all 256 draws of four rounds, in a quarter of which the first product is 0
    and the other sums are not."""
    learner = nj.learners.corrected_ftrl(nj.moments.two_copies(), radius=1.0, solve_every=1)
    draws = np.array(list(itertools.product((0.0, 2.0), repeat=8)), np.float32)
    samples = nj.Sample(jnp.reshape(draws, (256, 4, 2, 1)), jnp.ones((256, 4)))

    def weights(samples):
        def one(state, sample):
            state = learner.step(state, sample, jax.random.key(0))
            return state, state.weights[0]

        return jax.lax.scan(one, learner.init(1), samples)[1]

    played = jax.jit(jax.vmap(weights))(samples)
    assert np.all(np.abs(played) <= 1 + 1e-5)
    first = samples.x[:, 0, :, 0]
    only_one = first.prod(axis=1) + first.sum(axis=1) == 2  # the moment is 0, the cross one is not
    np.testing.assert_allclose(played[only_one, 0], 1, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_penalty_of_fourier_features_is_a_quarter_of_their_standard_deviation(x64, rng):
    """‖Σ_g (A_g − s_g A)²‖^½ over G groups with shares s_g of the rows, times √(G/(G − 1))."""
    ones = jnp.ones((2, 2))
    known = Frequencies(jnp.array([[0.7], [1.5]]), jnp.array(0.5), ones[0], ones, ones)
    moments, counts = nj.moments.fourier(known, wiener=0.0), (8, 12, 20)
    samples = Sample(jnp.asarray(rng.normal(size=(20, 1, 1))), jnp.ones(20))
    sums_of = jax.jit(moments.sums)
    groups = [jax.device_get(sums_of(samples, 1.0 * (np.arange(20) < n))) for n in counts]
    grams = [np.asarray(moments.corrected(group)[0]) for group in groups]
    gram, cross = sum(grams), sum(np.asarray(moments.corrected(group)[1]) for group in groups)
    apart = [a - n / 40 * gram for a, n in zip(grams, counts, strict=True)]
    spread = np.linalg.norm(1.5 * sum(a @ a for a in apart), ord=2) ** 0.5
    sums = jax.tree.map(lambda *leaves: np.stack(leaves), *groups)
    found = jax.jit(lambda sums: nj.learners.leader(moments, sums, regularization=0.1))(sums)
    lam = 0.1 * np.trace(gram) / 40 + spread / 4
    np.testing.assert_allclose(found.regularization, lam, rtol=0.1)  # by power iteration
    weights = np.linalg.solve(gram + np.diag(found.regularization), cross)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-6)


@pytest.mark.slow
def test_a_run_is_the_same_in_any_pieces(x64):
    """The noise is in one direction in even rounds, in another one in odd rounds.

    Pieces end inside blocks, and are shorter than a block.
    """
    x, y, _ = rounds(7)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(DIM, DIM)))[0]
    axes = turn[np.arange(T) % 2]
    noisy = x + 2 * axes * np.random.default_rng(1).normal(size=(T, 1))
    cov = 4 * axes[:, :, None] * axes[:, None]
    samples = Sample(jnp.asarray(noisy[:, None]), jnp.asarray(y), jnp.asarray(cov))
    long = nj.learners.corrected_ftrl(KNOWN, solve_every=60)
    for learner, width in (long, 40), (LEADER, 1), (LEADER, 12):
        whole, expected = run(learner, samples, x)
        state, predictions = None, []
        for start in range(0, T, width):
            piece = part(slice(start, start + width), (samples, x))
            state, found = run(learner, *piece, state=state)
            predictions += [*found]
        np.testing.assert_allclose(predictions, expected, atol=1e-9)
        np.testing.assert_allclose(state.regularization, whole.regularization, rtol=1e-9)
        np.testing.assert_allclose(state.penalty, whole.penalty, rtol=1e-9)
    slack = whole.sums.slack.sum(axis=0)
    assert np.linalg.eigvalsh(np.diag(slack) - cov.sum(axis=0))[0] > -1e-9 * slack.max()


@jax.jit
def _leaders(grams, radius, previous):
    """λ and the weights for each of the Gram matrices of 16 rounds."""

    def leader(gram):
        sums = Sums(gram[None], jnp.ones((1, len(gram))), jnp.full(1, 16.0), jnp.zeros(1))
        found = nj.learners.leader(KNOWN, sums, radius=radius, previous=previous)
        return found.regularization, found.weights

    return jax.vmap(leader)(grams)


@pytest.mark.slow
@pytest.mark.parametrize("radius", [None, 0.5])
@pytest.mark.parametrize(
    ("eigenvalues", "previous"),
    [
        ([-160.0], 0.0),  # λ_min is a power of two, or a fraction with one, times the mean square
        ([-160.0], 250.0),
        ([-8.0, 4.0, 8.0], 0.0),
        ([-4.0, 4.0], 0.0),  # of trace zero
        ([0.0, 0.0, 16.0], 0.0),  # singular
        ([0.0, 0.0, 16.0], 0.1 + 1e-6),
        ([-4.0, -4.0, 16.0], 8.1),  # at the edge of what the last λ is enough for
        ([-4.0, -4.0, 16.0], 4.1),
    ],
)
def test_rounding_moves_the_penalty_by_rounding(eigenvalues, previous, radius):
    """λ = λ_0 + c max(0, −λ_min), or the last λ, in float32, however S is rounded.

    c is 2 without a ball: where S + λI is nearly singular a ball bounds w, or λ must.
    """
    rng, values = np.random.default_rng(0), np.array(eigenvalues)
    dim = len(values)
    axes = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    change = rng.normal(size=(64, dim, dim))
    exact = ((axes * values) @ axes.T)[None]
    rounded = exact + 1e-7 * np.abs(values).max() * (change + change.transpose(0, 2, 1))
    gram = np.concatenate([exact, rounded]).astype(np.float32)

    found, weights = _leaders(gram, radius, previous)
    least = 0.1 * abs(values.sum()) / 16 + (2 if radius is None else 1) * max(0, -values[0])
    expected = max(previous, least)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5 * np.abs(values).max())
    assert np.all(np.isfinite(weights))


def fourier_moments():
    options = {"dim": 2, "length_scale": 1.0, "characteristic": nj.noise.Gaussian(0.3)}
    return nj.moments.fourier(nj.moments.gaussian_frequencies(jax.random.key(0), 8, **options))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "radius", "by_step"),
    [
        (nj.moments.known_covariance, 0.5, False),
        (nj.moments.known_covariance, 0.5, True),
        (nj.moments.two_copies, None, False),
        (fourier_moments, 50.0, False),
    ],
)
def test_both_modes_are_finite_differences(x64, make, radius, by_step):
    """By the stream, the noise and the radius, which binds, or does not."""
    moments, noise_key = make(), jax.random.key(2)

    def loss(stream, variance, size):
        size = None if radius is None else size
        learner = nj.learners.corrected_ftrl(moments, radius=size, solve_every=8)
        learner = learner._replace(unroll=None) if by_step else learner
        run = nj.rollout(learner, stream, nj.noise.Gaussian(variance), noise_key)
        return jnp.mean((run.predictions - stream.y) ** 2)

    x = np.random.default_rng(11).normal(size=(24, 2))
    given = nj.Stream(x, 3 * x[:, 0]), 0.3, 1.0 if radius is None else radius
    reverse = gradient(loss, given, np.random.default_rng(3), step=1e-6, rtol=1e-5)
    assert (reverse[2] != 0) == (radius == 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slack": -1.0}, "slack must be"),
        ({"previous": np.nan}, "previous must be"),
        ({"previous": np.ones(3)}, "previous must be [2]"),
        ({"slack": iter([0.1, 0.1, 0.1])}, "slack must be [2]"),
    ],
)
def test_the_leader_of_wrong_numbers(options, message):
    moments = nj.moments.known_covariance()
    state = nj.learners.corrected_ftrl(moments).init(2)
    with told(message):
        nj.learners.leader(moments, state.sums, **options)
    with told("a leading axis of groups"):
        nj.learners.leader(moments, state.pending)
    features = nj.moments.unbiased(lambda x: x)
    with told("sums must be of these moments"):
        nj.learners.leader(features, state.sums)
