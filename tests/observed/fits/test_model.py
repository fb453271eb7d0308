"""Fits of any model: equations against NumPy, other fits, what is printed, what raises."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import root
from scipy.special import stdtrit

import noisy_jax as nj
from noisy_jax.observed.fits import AssumptionWarning, model_equations
from noisy_jax.observed.fits.model_equations import estimate_for
from noisy_jax.observed.fits.trials import order_of
from noisy_jax.observed.observations import from_arrays
from tests.errors import one_line_error, raises
from tests.keys import SHIFT
from tests.observed.fits.curves import START, drawn, growth, left_out
from tests.observed.rows import answered, gaussians

COV = np.array([[0.25, 0.05], [0.05, 0.1]])
MANY = functools.partial(nj.unbiased.gaussian, draws=100)


def line(params, x):
    return params["a"] + params["w"] @ x


LINE = {"a": 0.0, "w": np.zeros(2)}


def noisy_line(rng, n, cov=COV):
    """Noisy rows `[n, 1, 2]` of y = 1 + 2 x1 − x2 + .2 e; the noise may have a covariance a row."""
    clean = rng.normal(size=(n, 2))
    noise = rng.normal(size=(n, 1, 2)) @ np.swapaxes(np.linalg.cholesky(cov), -1, -2)
    return clean[:, None] + noise, 1 + clean @ [2.0, -1.0] + 0.2 * rng.normal(size=n)


def draws_of(n, cov, count=16, seed=0):
    """What `nj.unbiased.gaussian` adds to each row, `[n, count, d]`."""
    d = cov.shape[-1]
    with jax.enable_x64(True):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(seed), np.arange(n))
        laws = jax.vmap(nj.noise.Gaussian)(np.broadcast_to(cov, (n, d, d)).astype(float))
        draw = jax.vmap(nj.noise.Gaussian.centred, (0, 0, None))
        return np.asarray(draw(laws, keys, np.zeros((count, d))))


def growth_scores(theta, points, weights, y):
    """Σ_j w_j ψ of `growth` at complex or real points `[n, P]`, in NumPy, `[3, n]`."""
    level, rate, size = theta
    waves = np.exp(rate * points)
    slopes = np.stack([np.ones_like(waves), size * points * waves, waves])
    return 2 * np.real((y[:, None] - level - size * waves) * slopes) @ weights


@pytest.mark.slow
def test_equations_with_known_noise_agree_with_numpy(rng, monkeypatch):
    """Of rows in three blocks."""
    monkeypatch.setattr(model_equations, "_ROWS", 250)
    x, y = drawn(rng)
    fit = nj.fit(from_arrays(x, y, noise=0.04), nj.methods.Model(growth, START))
    points = x[:, 0] + 1j * draws_of(len(y), np.array([0.04]))[..., 0]

    def scores(theta):
        return growth_scores(theta, points, np.full(16, 1 / 16), y).T

    found = root(lambda theta: scores(theta).sum(axis=0), fit.coefficients, tol=1e-13)
    np.testing.assert_allclose(fit.coefficients, found.x, rtol=1e-7)
    np.testing.assert_allclose(fit.covariance, left_out(scores, found.x), rtol=1e-4)
    seen = x[:, 0], np.ones(1), y
    plain = root(lambda theta: growth_scores(theta, *seen).sum(axis=1), found.x, tol=1e-13)
    np.testing.assert_allclose(fit.uncorrected.coefficients, plain.x, rtol=1e-7)
    assert np.abs(plain.x - found.x).max() > 0.01
    assert fit.share == 1


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["pair", "replicates"])
def test_equations_with_copies_agree_with_numpy(rng, estimate):
    x, y = drawn(rng, copies=2)
    chosen = {"estimate": nj.unbiased.pair} if estimate == "pair" else {}
    fit = nj.fit(from_arrays(x, y), nj.methods.Model(growth, START, **chosen))
    one, other = x[:, 0], x[:, 1]
    points, weights = (one + other) / 2 + 1j * (one - other) / 2, np.ones(1)
    if estimate == "replicates":
        a = (1 + np.sqrt(3)) / 2  # a² + (1 − a)² = 2
        twice = a * one + (1 - a) * other, a * other + (1 - a) * one
        points = np.hstack([(one + other) / 2, one, other, *twice])
        weights = np.array([16, -6, -6, 1, 1]) / 6
    total = growth_scores(fit.coefficients, points, weights, y).sum(axis=1)
    plain = growth_scores(fit.coefficients, points.real[:, :1], np.ones(1), y).sum(axis=1)
    np.testing.assert_allclose(total, 0, atol=1e-6)
    assert np.abs(plain).max() > 1
    assert fit.num_copies == 2


@pytest.mark.slow
def test_a_line_under_covariances_of_rows_agrees_with_numpy(rng):
    """β with Σ (xxᵀ − uuᵀ)β = Σ xy for the draws u of each row, `[n, c, d]`."""
    cov = rng.uniform(0.2, 1.5, (400, 1, 1)) * COV
    x, y = noisy_line(rng, 400, cov)
    method = nj.methods.Model(line, LINE, seed=3)
    fit = nj.fit(from_arrays(x, y, noise=gaussians(cov)), method)
    draws = draws_of(400, cov.astype(np.float32), seed=3)
    design = np.column_stack([np.ones(400), x[:, 0]])
    gram = design.T @ design
    gram[1:, 1:] -= np.einsum("nci,ncj->ij", draws, draws) / draws.shape[1]
    np.testing.assert_allclose(fit.coefficients, np.linalg.solve(gram, design.T @ y), rtol=1e-6)


@pytest.mark.slow
def test_predicts_and_prints(rng):
    x, y = drawn(rng)
    frame = pd.DataFrame({"dose": x[:, 0, 0]})
    method = nj.methods.Model(growth, START)
    fit = nj.fit(from_arrays(frame, y, noise=0.04, target="effect"), method)
    level, rate, size = fit.coefficients
    expected = level + size * np.exp(rate * x[:, 0, 0])
    np.testing.assert_allclose(fit.predict(frame), expected, rtol=1e-5)
    np.testing.assert_allclose(fit.predict([0.5]), level + size * np.exp(rate / 2), rtol=1e-5)
    assert fit.params["rate"] == rate
    freedom = fit.degrees_of_freedom
    quantile = 2 * stdtrit(freedom, 0.95)
    width = np.diff(fit.interval(0.9), axis=0)[0]
    np.testing.assert_allclose(width, quantile * fit.std_error, rtol=1e-9)
    slopes = np.array([1, size / 2 * np.exp(rate / 2), np.exp(rate / 2)])
    width = quantile.max() * (slopes @ fit.covariance @ slopes) ** 0.5
    value, low, high = fit.predict([0.5], interval=True, level=0.9)
    np.testing.assert_allclose([value - low, high - low], [width / 2, width], rtol=1e-4)
    assert "effect by a model of 1 feature, 600 noisy rows" in str(fit)
    assert f"Student's t with {freedom.min():.3g} to" in str(fit.summary())


@pytest.mark.slow
def test_the_order_follows_from_the_copies(rng):
    for copies, order in ((2, 1), (3, 1), (4, 2), (8, 2)):
        assert order_of(copies) == order
        rows = jnp.asarray(rng.normal(size=(copies, 1)))
        estimate = estimate_for(from_arrays(rng.normal(size=(9, copies, 1)), np.arange(9.0)))
        g = nj.unbiased.replicates(jnp.exp, order=order)
        assert g.next_order is not None
        wanted = (g if order == 2 else g.next_order)(rows)
        np.testing.assert_allclose(estimate(jnp.exp, 0)(rows), wanted, rtol=1e-5)


def test_noise_that_is_too_large_is_told(rng):
    x, y = noisy_line(rng, 500)
    with pytest.warns(AssumptionWarning, match="estimated below 0"):
        nj.fit(from_arrays(x[:, 0], y, noise=2 * COV), nj.methods.Model(line, LINE))


@pytest.mark.parametrize("start", [START, {"level": 0.0, "rate": 0.6, "size": 1.0}])
def test_exact_data_have_a_fit(rng, start):
    """The loss is 0 at the curve, so that a step must be compared with the parameters."""
    level = 0.0
    x = rng.normal(size=(200, 1))
    y = level + np.exp(0.6 * x[:, 0])
    fit = nj.fit(from_arrays(x, y, noise=0.0), nj.methods.Model(growth, start))
    np.testing.assert_allclose(fit.values, [level, 0.6, 1.0], atol=1e-12)
    assert np.all(fit.std_error < 1e-12)
    assert not fit.remarks


def test_names_of_parameters(rng):
    x, y = drawn(rng, 200)
    nested = {"outer": {"a": 0.0}, "w": np.zeros((1, 1))}
    cases = {
        ("params[0]", "params[1]"): (lambda p, x: p[0] + p[1] * x[0], [0.0, 1]),
        ("outer.a", "w[0, 0]"): (lambda p, x: p["outer"]["a"] + p["w"][0, 0] * x[0], nested),
    }
    for names, (curve, start) in cases.items():
        method = nj.methods.Model(curve, start)
        assert nj.fit(from_arrays(x, y, noise=0.0), method).labels == names


@pytest.mark.slow
def test_losses(rng):
    """A line by the Poisson loss is `methods.Poisson`: on exact rows, and as the draws grow."""
    x = rng.normal(size=(300, 1))
    y = rng.poisson(np.exp(0.2 + 0.6 * x[:, 0])) * 1.0
    table = from_arrays(x + 0.4 * rng.normal(size=x.shape), y, noise=0.16)
    options = {"loss": nj.losses.poisson(), "estimate": MANY}
    method = nj.methods.Model(lambda p, x: p[0] + p[1] * x[0], [0.0, 0.5], **options)
    fit, poisson = nj.fit(table, method), nj.fit(table, nj.methods.Poisson())
    np.testing.assert_allclose(fit.uncorrected.values, poisson.uncorrected.values, rtol=1e-6)
    np.testing.assert_allclose(fit.coefficients, poisson.values, atol=0.02)


@pytest.mark.slow
def test_what_cannot_be_fitted_raises(rng):
    x, y = drawn(rng, 100, copies=2)
    one = x[:, :1]

    def wrong(match, curve=growth, start=START, x=one, noise=0.04, y=y, cross=None, **options):
        table = from_arrays(x, y, noise=noise, cross_cov=cross)
        with one_line_error(match):
            nj.fit(table, nj.methods.Model(curve, start, **options))

    pair, laplace = nj.unbiased.pair, nj.noise.Laplace(0.1)
    sharp = "not analytic: write x.*any smooth function.*they need two copies of each row"
    wrong(sharp, lambda p, x: p * jnp.abs(x[0]), 1.0)
    wrong("'tanh'.*poles", lambda p, x: p * jnp.tanh(x[0]), 1.0)
    wrong("needs Gaussian noise, got Laplace: replicates", noise=laplace)
    wrong("for Gaussian noise, got Laplace", noise=laplace, x=x, estimate=pair)
    wrong("needs 2 copies of each row, but the table has 1", estimate=pair)
    wrong("needs the covariance", x=x, noise=None, estimate=nj.unbiased.gaussian)
    known = functools.partial(nj.unbiased.gaussian, noise=0.04)
    wrong("leave out the noise of estimate", estimate=known)
    wrong("independent of those in x", cross=[0.1])
    wrong("curve must be a function, got 1.0", 1.0)
    wrong("loss must be a function", loss="squared")
    wrong("smooth derivative", loss=nj.losses.huber())
    wrong("seed must be a whole number", seed=-1)
    wrong("leave out seed: this estimate draws nothing", x=x, noise=None, seed=1)
    wrong("errors must be 'sandwich' or 'jackknife'", errors="none")
    wrong("at least one number", lambda p, x: x[0], {})
    wrong("not finite at start", start={**START, "rate": 1e3})
    below = (
        f"not finite in {np.sum(one < 0)} of 100 rows, first in row {np.argmax(one < 0)}, where x1"
    )
    wrong(f"{below} = -.*powers, roots", lambda p, x: p[0] + x[0] ** p[1], [0.0, 0.5])
    apart = "tell 'params.[01].', 'params.[01].' apart"
    wrong(apart, lambda p, x: (p[0] + p[1]) * x[0], [0.0, 1.0])
    wrong("on 'params.1.' .* are .params, x.,", lambda p, x: p[0] * x[0] + 0 * p[1], [0.0, 1.0])
    wrong("at least 6 rows, got 5", x=one[:5], y=y[:5])
    table = nj.table({"x": one[:, 0, 0], "y": y}, target="y", noise={"x": 0.04, "y": 0.1})
    method = nj.methods.Model(growth, START, loss=lambda p, y: (p - y) ** 4)
    raises("without error: leave out its noise", nj.fit, table, method)


def test_a_stated_distribution_is_not_taken_as_gaussian_because_others_are_unknown(rng):
    """Beside columns of which the variance, or replicates of unknown noise, are known."""
    x, y = rng.laplace(size=(100, 4)), rng.normal(size=100)
    columns = {"a": x[:, 0], "b": x[:, 1], "c1": x[:, 2], "c2": x[:, 3], "y": y}
    laplace, replicates = nj.noise.Laplace(0.1), {"c": ["c1", "c2"]}
    incomplete = {**columns, "c2": np.where(np.arange(100) < 50, np.nan, x[:, 3])}
    linear = nj.methods.Model(lambda p, x: p @ x, np.zeros(3))

    def table(frame, law, noise, **options):
        return nj.table(frame, target="y", noise={"a": law, **noise}, **options)

    def tables(law):
        yield table({name: columns[name] for name in ("a", "b", "c1", "y")}, law, {"b": 0.1})
        yield table(columns, law, {"b": 0.1}, replicates=replicates)
        yield table(columns, law, {}, replicates=replicates)
        yield table(incomplete, 0.1, {"c": law}, replicates=replicates)

    for one in tables(laplace):
        raises("Gaussian noise, got Laplace: .* give the covariance", nj.fit, one, linear)
        assert one.not_gaussian() == one.rows(np.arange(50)).not_gaussian() == "Laplace"
    assert [one.not_gaussian() for one in tables(nj.noise.Gaussian(0.1))] == [None] * 4
    binary = dataclasses.replace(next(tables(laplace)), y=(y > 0).astype(float))
    raises("is for Gaussian noise, got Laplace", nj.fit, binary, nj.methods.Logistic())
    needs, message = nj.Needs(noise=nj.noise.Gaussian), "Gaussian noise, but the rows have Laplace"
    kind = nj.learners.known_covariance(radius=1.0)._replace(needs=needs)
    raises(f"built for {message}", nj.learn, kind, binary, jax.random.key(0))


def test_a_saved_fit_has_its_curve_again_from_the_method(tmp_path, rng):
    x, y = rng.normal(size=(400, 2)), rng.normal(size=400)
    method = nj.methods.Model(line, LINE)
    fit = nj.fit(from_arrays(x, y + x[:, 0], noise=0.1), method)
    path = tmp_path / "fit.json"
    fit.save(path)
    again = nj.load_fit(path)
    raises(r"read it by nj.load_fit\(path, nj.methods.Model\(curve", again.predict, x)
    few = nj.methods.Model(line, {"a": 0.0, "w": 0.0})
    raises(r"parameters 'a', 'w\[0\]', 'w\[1\]', but start has 'a'", nj.load_fit, path, few)
    nj.fit(from_arrays(x, y, noise=0.1)).save(path)
    raises("for a fit of it, got Model for a LinearFit", nj.load_fit, path, method)


@pytest.mark.slow
def test_weights_and_clusters_of_a_line_are_as_in_numpy(rng):
    """From copies nothing is drawn."""
    x, y = rng.normal(size=(240, 2, 2)), rng.normal(size=240)
    y += x[:, 0, 0]
    weights, labels = rng.integers(3, size=240), rng.integers(30, size=240)
    options = {"weights": weights * 1.0, "clusters": labels}
    fit = nj.fit(from_arrays(x, y), nj.methods.Model(line, LINE, **options))
    assert fit.num_rows == np.sum(weights > 0)
    design = np.concatenate([np.ones((240, 2, 1)), x], axis=2)
    crossed = np.einsum("ni,nj->nij", design[:, 0], design[:, 1])
    gram = (crossed + crossed.swapaxes(1, 2)) / 2
    right = design.mean(axis=1) * y[:, None]
    bread = np.linalg.inv(np.tensordot(weights, gram, 1))
    beta = bread @ (weights @ right)
    np.testing.assert_allclose(fit.coefficients, beta, rtol=1e-6)
    others = [(labels != label) * weights for label in range(30)]
    left = np.array([np.linalg.solve(np.tensordot(own, gram, 1), own @ right) for own in others])
    np.testing.assert_allclose(fit.covariance, (left - beta).T @ (left - beta), rtol=1e-5)
    assert (fit.degrees_of_freedom <= 29).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "estimate"), [("two values", None), ("Gaussian", nj.unbiased.pair)]
)
def test_incomplete_replicates_are_corrected_without_bias(law, estimate):
    """Exactly, by enumeration of the noise: the coefficients are the ones of the clean rows.

    The loss of a parabola is of the fourth degree in x, that of a line of the second.
    """
    nodes, chances = np.array([-1.0, 1]), np.full(2, 0.5)
    if law == "Gaussian":  # quadrature that is exact to the fifth degree
        nodes, chances = 3**0.5 * nodes, np.array([1 / 6, 2 / 3, 1 / 6])
        nodes = np.insert(nodes, 1, 0.0)
    parts, clean = [], np.linspace(-1, 1, 9)
    y, counts = np.exp(clean) + 0.1 * (-1.0) ** np.arange(9), np.arange(9) % 3 + 1
    for row, count in enumerate(counts):
        places = np.stack(np.meshgrid(*count * [np.arange(len(nodes))], indexing="ij"), axis=-1)
        places = places.reshape(-1, count)
        copies = np.full((len(places), 3), np.nan)
        copies[:, 3 - count :] = clean[row] + 0.4 * nodes[places]
        own = np.prod(chances[places], axis=1)
        parts.append(np.column_stack([copies, np.full(len(own), y[row]), own]))
    every = np.concatenate(parts)
    frame = dict(zip("abcy", every.T, strict=False))
    table = nj.table(frame, target="y", replicates={"x": ["a", "b", "c"]})
    start = [0.5, 0.5, 0.1][: len(nodes)]

    def curve(params, x):
        return sum(p * x[0] ** k for k, p in enumerate(params))

    options = {"weights": every[:, 4]}
    fit, messages = answered(table, nj.methods.Model(curve, start, estimate=estimate, **options))
    kept = counts > 1
    expected = np.linalg.lstsq(np.vander(clean, len(start), increasing=True)[kept], y[kept])[0]
    np.testing.assert_allclose(fit.coefficients, expected, rtol=1e-6)
    assert np.abs(fit.uncorrected.coefficients / expected - 1).max() > 0.02
    few = f"{3 * len(nodes)} of {len(every)} rows have too few"
    assert any(few in text for text in messages)
    assert "are left out" in " ".join(fit.remarks)


@pytest.mark.slow
@pytest.mark.statistical
def test_replicates_of_unknown_noise_stand_beside_known_noise():
    """Copies of `a`, and one of `b` with known variance: both slopes lose their bias."""
    rng = np.random.default_rng(7 + 1000 * SHIFT)
    a, b, *errors = rng.normal(size=(5, 3000))
    y = a + b + a * b + 0.3 * rng.normal(size=a.shape)
    frame = {"a1": a + 0.5 * errors[0], "a2": a + 0.5 * errors[1], "b": b + 0.5 * errors[2], "y": y}
    table = nj.table(frame, target="y", replicates={"a": ["a1", "a2"]}, noise={"b": 0.25})

    def curve(w, x):
        return w[0] * x[0] + w[1] * x[1] + w[2] * x[0] * x[1]

    fit = nj.fit(table, nj.methods.Model(curve, np.ones(3)))
    # The loss is of degree 2 in a: nothing of the bias is left.
    assert np.all(np.abs(fit.coefficients - 1) < 5 * fit.std_error)
    assert np.all(np.abs(fit.uncorrected.coefficients - 1) > 2 * fit.std_error)
    method = nj.methods.Model(curve, np.ones(3), estimate=nj.unbiased.pair)
    raises("leave out estimate: with replicates of unknown noise", nj.fit, table, method)
