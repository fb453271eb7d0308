"""What the bounds can be called with: wrong arguments, and traced ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import bounds, kernels, losses, noise
from noisy_jax.simulated.bounds import as_printed
from noisy_jax.simulated.bounds.guarantee import at_rate_factor
from tests.errors import raises

KERNEL, SQUARED = kernels.gaussian(length_scale=1.0), losses.squared()
MOMENTS = bounds.DataMoments(2.0, 5.0, 1.5, 0.1)
ZERO, HUGE = bounds.DataMoments(0.0, 0.0, 0.0, 0.0), bounds.DataMoments(1e38, 1e38, 1e38, 1.0)
STREAM = nj.Stream(np.ones((3, 2)), np.ones(3))
HEAVY = bounds.moments(STREAM, noise.StudentT(df=3.0, scale=1.0))
"""Noise without a fourth moment, of which the bound of two copies needs none."""
GUARANTEE = bounds.Guarantee(0.1, 1.0, 4.0)
STILL = bounds.Drift(norm=2.0, length=0.0, squared_length=0.0)
COUNTED = bounds.mistakes(1.0, STILL, horizon=10, comparator_margin=1.0, comparator_loss=0.0)
ESTIMATOR = nj.unbiased.kernel_gradient(
    kernels.linear(), SQUARED, radius=0.5, x_second_moment=0.5, max_bias=1e-4
)
WORLD = nj.worlds.world_of(KERNEL, KERNEL, dim=1, diagonal=1.0, ratio=2.0)
UNBOUNDED = nj.worlds.world_of(KERNEL, KERNEL, dim=1, diagonal=1.0)
TURNED = np.diag([1.0, -0.5])  # of these two weights no norm is negative, a step is
BENT = [[2.0, 1.0], [2.0, -1.0]]


@noise.register_distribution
class WithoutFourthMoment(noise.Noise):
    mean: float = 0.0
    cov = 0.1

    def centred(self, key, x):
        return x + 0.1**0.5 * jax.random.normal(key, x.shape)


OF_MOMENTS = {"moments": MOMENTS, "horizon": 100.0, "radius": 1.0}
OF_WORLDS = {"diagonal": 1.0, "horizon": 100.0, "radius": 1.0, "y_second_moment": 1.0}
RISK = {"diagonal": 1.0, "slope": 1.0, "regularization": 0.5, "learning_rate": 1.0}
MARGINS = {"diagonal": 1.0, "drift": STILL, "horizon": 9.0, "comparator_margin": 1.0}
GAUSSIAN = {"noise": noise.Gaussian(0.1), "dim": 2}
RIGHT = {  # what each can be called with
    bounds.moments: {"stream": STREAM, "noise": noise.Gaussian(0.1)},
    bounds.two_copies: OF_MOMENTS,
    bounds.known_covariance: OF_MOMENTS,
    bounds.uncorrected: OF_MOMENTS,
    bounds.self_bounding: OF_MOMENTS,
    bounds.parallel_worlds: OF_WORLDS,
    bounds.surrogate_radius: {"world": WORLD, "norm": 1.0, "angle": 0.5},
    as_printed.surrogate_radius: {"world": WORLD, "norm": 1.0, "angle": 0.5},
    bounds.random_truncation: {"estimator": ESTIMATOR, "horizon": 1000.0},
    bounds.unknown_noise: GAUSSIAN | OF_WORLDS | {"length_scale": 1.0},
    bounds.multilevel: GAUSSIAN | {"length_scale": 1.0},
    bounds.regularized_risk: RISK | {"horizon": 9.0},
    bounds.online_to_batch: RISK
    | {"horizon": 9.0, "largest_risk": 2.5, "failure_probability": 0.1},
    bounds.truncation_error: RISK | {"buffer": 3, "rounds": 9},
    bounds.margin_errors: MARGINS | {"margin": 0.5, "comparator_loss": 1.0},
    bounds.mistakes: MARGINS | {"comparator_loss": 1.0},
    bounds.alma: {"threshold": 0.0, "comparator_margin": 0.1},
    bounds.drift: {"weights": np.ones((3, 2))},
    bounds.one_copy_lower_bound: {"loss": SQUARED, "radius": 1.0},
    bounds.one_copy_excess: {"loss": SQUARED, "weights": 0.5, "radius": 1.0},
    bounds.rate_of: {},
    bounds.at_adaptive_rate: {},
    bounds.high_probability: {"horizon": 100, "radius": 1.0, "failure_probability": 0.1},
    at_rate_factor: {"guarantee": GUARANTEE, "rate_factor": 1.0},
}
del RIGHT[bounds.unknown_noise]["diagonal"]


@pytest.mark.parametrize(
    ("bound", "wrong", "message"),
    [
        (bounds.moments, {"stream": tuple(STREAM)}, "stream must be a Stream, got tuple"),
        (bounds.moments, {"y_noise": noise.Gaussian(np.ones(2))}, r"scalar distribution, got \[2"),
        (bounds.two_copies, {"horizon": 0}, "horizon must be positive and finite, got 0"),
        (bounds.two_copies, {"radius": -1.0}, r"radius must be positive and finite, got -1\.0"),
        (bounds.two_copies, {"moments": ZERO}, "second moment .* must be positive and finite"),
        (bounds.two_copies, {"moments": HUGE}, "must be positive .* R² overflow float32"),
        (bounds.known_covariance, {"moments": HEAVY}, "moments.x_fourth_moment must be positive"),
        (
            bounds.uncorrected,
            {"moments": MOMENTS._replace(noise_norm=-1.0)},
            "moments.noise_norm must be",
        ),
        *(
            (bounds.self_bounding, {"moments": MOMENTS._replace(**{name: -1.0})}, f"{name} must be")
            for name in ("x_second_moment", "y_second_moment", "noise_norm")
        ),
        (bounds.parallel_worlds, {"diagonal": 0.0}, r"diagonal must be positive and finite, got 0"),
        (bounds.parallel_worlds, {"diagonal": WORLD}, r"number R², such as .* the World itself$"),
        (bounds.parallel_worlds, {"y_second_moment": -1.0}, "y_second_moment must be .* got -1"),
        (bounds.surrogate_radius, {"world": UNBOUNDED}, "take the lifted_norm of a comparator"),
        (bounds.surrogate_radius, {"world": 2.0}, r"world must be a World, got 2\.0"),
        (bounds.surrogate_radius, {"angle": 0.0}, r"angle must be positive, got 0\.0"),
        (bounds.surrogate_radius, {"angle": 60.0}, r"in radians, in \[0, π\], got 60\.0"),
        (bounds.surrogate_radius, {"norm": 0.0}, "norm must be positive and finite, got 0"),
        (as_printed.surrogate_radius, {"world": UNBOUNDED}, "world must have a finite ratio"),
        (as_printed.surrogate_radius, {"angle": 0.0}, "angle must be positive"),
        (bounds.random_truncation, {"horizon": 0}, "horizon must be positive"),
        (bounds.random_truncation, {"p": 1.0, "closed_form": True}, "p must be above 1"),
        (bounds.random_truncation, {"p": 2.0}, "p has no effect without closed_form=True"),
        (bounds.random_truncation, {"estimator": KERNEL}, "GradientEstimator, got Kernel: unbias"),
        (bounds.unknown_noise, {"noise": 0.1}, "noise must be a Noise"),
        (bounds.unknown_noise, {"base": 0}, "base must be a whole number of at least 1, got 0"),
        (bounds.unknown_noise, {"radius": 0.0}, "radius must be positive"),
        (bounds.multilevel, {"length_scale": None}, "length_scale, of a Gaussian kernel, or lips"),
        (bounds.multilevel, {"length_scale": None, "lipschitz": 1.0}, "first, a bound on"),
        (bounds.multilevel, {"first": 1.0}, "first has no effect with length_scale"),
        (bounds.multilevel, {"continue_with": 0.0}, "continue_with must be positive"),
        (
            bounds.multilevel,
            {"continue_with": 0.5, "ratio": 0.3, "price": 1.0},
            "price has no effect where continue_with and ratio are given",
        ),
        *(
            (bounds.multilevel, {"noise": each}, "needs a finite `excess_kurtosis`")
            for each in (WithoutFourthMoment(), noise.StudentT(4.0, 0.1), noise.Multiplicative(0.1))
        ),
        (bounds.regularized_risk, {"learning_rate": 2.0}, "above 0 and below 1, got 1"),
        (bounds.regularized_risk, {"slope": np.inf}, "slope must be positive and finite"),
        (bounds.regularized_risk, {"diagonal": 0.0}, "diagonal must be positive and finite, got 0"),
        (bounds.online_to_batch, {"largest_risk": 0.0}, "largest_risk must be positive and finite"),
        (bounds.online_to_batch, {"failure_probability": 1.0}, "above 0 and below 1, got 1"),
        (bounds.truncation_error, {"learning_rate": 2.5}, "below 1, got 1.25"),
        (bounds.truncation_error, {"buffer": -1}, "buffer must be finite and >= 0, got -1"),
        (bounds.truncation_error, {"diagonal": 0.0}, "diagonal must be positive and finite, got 0"),
        (bounds.margin_errors, {"margin": -0.1}, "margin must be finite and >= 0"),
        (bounds.margin_errors, {"margin": 1.0}, "comparator_margin - margin must be positive"),
        (bounds.mistakes, {"diagonal": 0.0}, "diagonal must be positive and finite, got 0"),
        (bounds.mistakes, {"drift": STILL._replace(norm=0.0)}, r"drift\.norm must be positive"),
        (bounds.mistakes, {"drift": tuple(STILL)}, "drift must be a Drift, got tuple: bounds"),
        (bounds.mistakes, {"comparator_margin": 0.0}, "comparator_margin must be positive"),
        (bounds.alma, {"threshold": -1.0}, "threshold must be finite and >= 0, got -1"),
        (bounds.alma, {"scale": 0.0}, "scale must be positive and finite, got 0"),
        (bounds.alma, {"comparator_loss": -1.0}, "comparator_loss must be finite and >= 0"),
        (bounds.drift, {"weights": np.ones(3)}, r"be \[m, n\], got \[3\]: one comparator a row"),
        (bounds.drift, {"weights": np.full((2, 2), np.nan)}, r"finite, but weights\[0, 0\] is nan"),
        (bounds.drift, {"gram": np.eye(3)}, r"\[2, 2\], as weights are \[m, 2\], got \[3, 3\]"),
        (bounds.drift, {"gram": -np.eye(2)}, r"semi-definite, but it gives ‖g_t‖² as low as -2;"),
        (bounds.drift, {"weights": BENT, "gram": TURNED}, r"‖g_{t\+1} − g_t‖² as low as -2;"),
        (bounds.drift, {"gram": np.triu(np.ones((2, 2)))}, "gram must be symmetric"),
        (bounds.one_copy_lower_bound, {"radius": 0.0}, "radius must be"),
        (bounds.one_copy_lower_bound, {"loss": "squared"}, "loss must be a Loss, got 'squared'"),
        (bounds.one_copy_excess, {"weights": [0.0, np.nan]}, "weights must be finite"),
        (bounds.rate_of, {"bound": 1.0}, "bound must be a function"),
        (at_rate_factor, {"rate_factor": 0}, "rate_factor must be positive and finite, got 0"),
        (at_rate_factor, {"guarantee": COUNTED}, "must bound the regret .* got MistakeGuarantee"),
        *(
            (bounds.at_adaptive_rate, {"guarantee": GUARANTEE._replace(**{n: "0.1"})}, rf"\.{n} mu")
            for n in ("learning_rate", "regret")
        ),
        *(
            (bounds.high_probability, {"guarantee": GUARANTEE._replace(**{n: v})}, rf"\.{n} must b")
            for n, v in {"regret": None, "second_moment": -1.0}.items()
        ),
    ],
)
def test_wrong_arguments_are_named(bound, wrong, message):
    raises(message, bound, **RIGHT[bound] | wrong)


@pytest.mark.parametrize(
    ("bound", "name"),
    [
        *((bounds.multilevel, n) for n in ("length_scale", "continue_with", "ratio", "price")),
        *((bounds.unknown_noise, n) for n in ("length_scale", "radius", "y_second_moment")),
        (bounds.one_copy_lower_bound, "radius"),
        (bounds.one_copy_excess, "weights"),
    ],
)
def test_numbers_that_are_used_on_the_host_are_concrete(bound, name):
    traced = jax.jit(lambda value: bound(**RIGHT[bound] | {name: value}))
    raises(f"{name} must be concrete, got a traced one: it is used on the host", traced, 0.5)


SWEPT = {
    bounds.two_copies: "horizon",
    bounds.known_covariance: "horizon",
    bounds.uncorrected: "horizon",
    bounds.parallel_worlds: "diagonal",
    bounds.random_truncation: "horizon",
    bounds.unknown_noise: "horizon",
    bounds.regularized_risk: "regularization",
    bounds.truncation_error: "regularization",
    bounds.margin_errors: "margin",
}


@pytest.mark.parametrize("bound", SWEPT)
def test_a_sweep_gives_what_single_calls_give(bound):
    def of(value):
        return bound(**RIGHT[bound] | {SWEPT[bound]: value})

    right = RIGHT[bound][SWEPT[bound]]
    swept = jax.jit(jax.vmap(of))(jnp.array([right / 2, right]))
    for i, value in enumerate((right / 2, right)):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], swept)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), one, of(value))


def test_two_copies_need_no_fourth_moment():
    assert np.isfinite(bounds.two_copies(HEAVY, horizon=100.0, radius=1.0).regret)
