"""NORMA with bad arguments, and with those that give a warning."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.engine import everything, weight_vector
from noisy_jax.engine.memory import Space
from noisy_jax.learners import norma, perceptron
from tests.errors import raises
from tests.learners.norma_runs import DIM, KERNEL, LENGTH_SCALE, T, labelled
from tests.learners.runs import inputs, unrolled

MEMORY = weight_vector()(Space(KERNEL.gram, KERNEL.gram))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 10.0}, r"rate must be below 1/regularization = 10\.0, got 10\.0"),
        ({"learning_rate": lambda t: 11.0 / (t + 1)}, r"below 1/regularization = 10\.0, got 11\.0"),
        ({"learning_rate": lambda t: t**-0.5}, "at round 0 must be finite .* counted from 0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": np.ones(2)}, r"learning_rate must be one number, got shape \[2\]"),
        ({"regularization": -1.0}, "regularization must be finite and >= 0"),
        ({"buffer": 0}, "buffer must be a whole number of at least 1, got 0"),
        (
            {"buffer": MEMORY},
            r"buffer .* got Memory: .* \(or a memory such as engine\.ring",
        ),
        ({"loss": losses.squared}, "loss must be one such as losses.hinge"),
        ({"loss": losses.novelty(nu=0.9), "offset": True}, "offset must be False with the novelty"),
        ({"kernel": lambda x, z: x @ z.T}, "kernel must be a Kernel, a World or a FourierWorld"),
        ({"decay": "never"}, "decay must be 'always' or 'on_update', got 'never'"),
        ({"copies": 3}, "copies must be 1 or 2, got 3"),
    ],
)
def test_rejects_bad_arguments(options, message):
    valid = {"kernel": KERNEL, "loss": losses.hinge(), "learning_rate": 0.1, "buffer": 10}
    raises(message, norma, **{**valid, "regularization": 0.1, **options})


UNBOUNDED = {
    "offset": (KERNEL, {"buffer": 60, "offset": True}),
    "linear": (nj.kernels.linear(), {"buffer": nj.engine.weight_vector()}),
    "large": (nj.kernels.polynomial(degree=2), {"buffer": nj.engine.everything(T)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNBOUNDED)
def test_the_default_rate_holds_for_the_squared_loss(name):
    """Without the norm in the rate the first step is 1/λ, and the squared error 10¹⁰ or more."""
    kernel, options = UNBOUNDED[name]
    x = 3 * np.random.default_rng(0).normal(size=(T, DIM))
    y = x[:, 0] / 3
    learner = norma(kernel, losses.squared(), regularization=1e-4, **options)
    predictions = unrolled(learner, x, y)[1]
    assert np.mean((predictions - y) ** 2) < 2 * np.mean(y**2)
    assert np.abs(predictions).max() < 20


@pytest.mark.parametrize("loss", [losses.poisson(), losses.exponential()], ids=str)
def test_other_losses_without_a_bounded_slope_need_a_rate(loss):
    raises("learning_rate must be given with .*no bound", norma, KERNEL, loss,
           regularization=0.1, buffer=10)  # fmt: skip
    norma(KERNEL, loss, regularization=0.1, buffer=10, learning_rate=0.01)


def test_features_reject_a_buffer():
    features = nj.worlds.fourier_gaussian(
        jax.random.key(0), 8, dim=DIM, length_scale=LENGTH_SCALE, noise=nj.noise.Gaussian(0.0)
    )
    raises("buffer must be None with random features", perceptron, features, buffer=10)


def test_a_schedule_may_start_where_all_would_be_forgotten(rng):
    (x, y), regularization = labelled(rng), 0.293  # 0.293 · (1/0.293) > 1 in float32
    learner = norma(
        KERNEL, losses.hinge(), learning_rate=lambda t: 1 / regularization / jnp.sqrt(t + 1),
        regularization=regularization, buffer=T,
    )  # fmt: skip
    assert np.all(np.isfinite(unrolled(learner, x, y)[1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "values"),
    [
        (lambda nu: {"loss": losses.nu_hinge(nu=nu)}, [0.9, 1.0, 0.0]),
        (lambda rate: {"learning_rate": rate}, [0.9, 1.1, -0.1]),
    ],
)
def test_a_bad_traced_share_or_rate_is_reported(rng, options, values):
    x, y = labelled(rng)
    valid = {"loss": losses.hinge(), "learning_rate": 0.1}

    @jax.jit
    @jax.vmap
    def predictions(value):
        learner = norma(KERNEL, regularization=1.0, buffer=8, **(valid | options(value)))
        return learner.unroll(learner.init(DIM), *inputs(x, y))[1]

    sound, *wrong = np.isfinite(predictions(jnp.array(values)))
    assert np.all(sound)
    assert not np.any(np.array(wrong)[:, 2:])


def falling(t):
    """η_t of Figure 3."""
    return (t + 1.0) ** -0.5


@pytest.mark.claim("NORMA-Eq20", "NORMA-Fig3")
@pytest.mark.parametrize(
    ("rate", "buffer", "decay", "warns"),
    [
        (0.002, 5000, "always", True),
        (0.002, 5000, "on_update", False),
        (0.0004, 5000, "always", False),
        (falling, 5000, "always", True),
        (falling, everything(5000), "always", True),
        (falling, 10**7, "always", False),
        (falling, 5000, "on_update", False),
    ],
)
def test_warns_where_decay_leaves_few_support_vectors(rate, buffer, decay, warns):
    message = "nu = 0.01 is too small for a decay .* than 25"
    options = {"learning_rate": rate, "regularization": 1.0, "buffer": buffer, "decay": decay}
    with pytest.warns(UserWarning, match=message) if warns else contextlib.nullcontext():
        norma(KERNEL, losses.novelty(nu=0.01), **options)


@pytest.mark.parametrize(
    ("rate", "advice"),
    [(0.002, r"a nu of at least 0\.05, less decay, or"), (0.05, r"Use less decay")],
)
def test_the_warning_names_a_share_only_where_there_is_one(rate, advice):
    with pytest.warns(UserWarning, match=f"support vectors stay in memory.*{advice}"):
        norma(KERNEL, losses.novelty(nu=0.01), learning_rate=rate, regularization=1.0, buffer=9)


@pytest.mark.parametrize(
    ("kernel", "buffer", "message"),
    [
        (
            nj.kernels.gaussian(length_scale=0.5**0.5),
            weight_vector(),
            "holds linear functions",
        ),
        (nj.kernels.polynomial(degree=1), weight_vector(), "holds linear functions"),
        (nj.kernels.linear(), lambda space: 5, "must make a Memory from a space"),
    ],
)
def test_a_buffer_must_hold_the_functions_of_the_kernel(kernel, buffer, message):
    raises(message, perceptron, kernel, buffer=buffer)
