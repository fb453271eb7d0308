"""The argument `estimate`: one spelling in learners, moments and fits."""

import functools

import jax
import jax.numpy as jnp
import pytest

import noisy_jax as nj
from noisy_jax.unbiased.estimates import Estimate
from tests.errors import raises

KERNEL, LOSS = nj.kernels.gaussian(length_scale=1.0), nj.losses.squared()
TAKERS = {
    "model": lambda how: (
        nj.learners.model(
            lambda w, x: jnp.sin(x) @ w, jnp.zeros(2), LOSS, radius=1.0, estimate=how
        ).needs
    ),
    "unknown_noise": lambda how: (
        nj.learners.unknown_noise(KERNEL, LOSS, radius=1.0, horizon=9, estimate=how).needs
    ),
    "moments": lambda how: nj.moments.unbiased(jnp.sin, how),
}
every_taker = pytest.mark.parametrize("taker", TAKERS)
HOW = {
    "default": (None, 4, None),
    "replicates": (nj.unbiased.replicates, 2, None),
    "order": (functools.partial(nj.unbiased.replicates, order=3), 8, None),
    "copies": (functools.partial(nj.unbiased.replicates, copies=5), 5, None),
    "multilevel": (functools.partial(nj.unbiased.multilevel, levels=2, base=3), 12, None),
    "pair": (nj.unbiased.pair, 2, nj.noise.Gaussian),
    "gaussian": (nj.unbiased.gaussian, 1, nj.noise.Gaussian),
    "one's own": (lambda f, argnum: nj.unbiased.pair(f, argnum, copies=3), 3, nj.noise.Gaussian),
}


@every_taker
@pytest.mark.parametrize("name", HOW)
def test_copies_and_noise_follow_from_the_estimate(taker, name):
    how, copies, noise = HOW[name]
    needs = TAKERS[taker](how)
    assert (needs.copies, needs.noise) == (copies, noise)


@every_taker
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("multilevel", r"estimate='multilevel' left .* write estimate=nj\.unbiased\.multilevel"),
        ("mean", "estimate must be a function such as nj.unbiased.replicates, .* got 'mean'"),
        (3, "estimate must be a function such as .* got 3"),
        (jnp.cos, "estimate must be a function such as .* got "),
        (nj.unbiased.pair(jnp.sum), "such as nj.unbiased.pair, not what it returns"),
        (lambda f, argnum: f, "estimate's result must be a Transformed"),
        (functools.partial(nj.unbiased.pair, order=1), "pair takes 'copies', but not 'order'"),
        (functools.partial(nj.unbiased.multilevel, copies=8), "takes 'levels', .* not 'copies'"),
        (functools.partial(nj.unbiased.replicates, order=3, copies=4), "copies must be .* least 8"),
        (functools.partial(nj.unbiased.pair, copies=1), "copies must be .* at least 2"),
    ],
)
def test_what_is_no_estimate_gives_one_clear_line(taker, how, message):
    raises(message, TAKERS[taker], how)


def test_a_fit_says_the_same():
    table = nj.observations.from_arrays(jnp.ones((9, 1)).at[0].set(2.0), jnp.ones(9), noise=0.1)
    for how, message in {
        "pair": "write estimate=nj.unbiased.pair",
        functools.partial(nj.unbiased.gaussian, order=2): "'draws', 'copies', but not 'order'",
    }.items():
        method = functools.partial(nj.methods.Model, lambda p, x: p * x[0], 1.0, estimate=how)
        raises(message, lambda method=method: nj.fit(table, method()))


def test_options_that_are_now_the_estimates_say_so():
    model = functools.partial(nj.learners.model, lambda w, x: x @ w, jnp.ones(2), LOSS, radius=1.0)
    with pytest.raises(TypeError, match=r"model\(…, copies=…\) left .*replicates, copies=…\)"):
        model(copies=2)
    for name in ("copies", "order", "base", "continue_with"):
        with pytest.raises(TypeError, match=f"left in version 0.4.0: .* {name}=…"):
            nj.learners.unknown_noise(KERNEL, LOSS, radius=1.0, horizon=9, **{name: 1})


def test_the_covariance_is_read_with_the_data():
    estimate, f = Estimate.of(nj.unbiased.gaussian), lambda x: jnp.sum(x**2)
    sample = nj.Sample(jnp.ones((1, 2)), jnp.zeros(()), 0.3)
    found = estimate.for_sample(f, sample)(sample.x, key=jax.random.key(0))
    assert found == nj.unbiased.gaussian(f, 0.3)(sample.x, key=jax.random.key(0))
    raises("needs sample.cov", estimate.for_sample, f, sample._replace(cov=None))
    told = Estimate.of(functools.partial(nj.unbiased.gaussian, noise=0.2))
    assert told.probed(f).noise.cov == 0.2
