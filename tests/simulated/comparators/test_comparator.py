"""What the comparators can be called with."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.simulated.comparators import (
    convex_ball,
    kernel_ball,
    l1_ball,
    linear_ball,
    regularized,
    world_ball,
)
from tests.errors import raises

KERNEL = nj.kernels.gaussian(length_scale=1.0)
WORLD = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.2))
FEATURES = nj.worlds.fourier(jax.random.key(0), WORLD, 4)
STREAM = nj.Stream(np.ones((3, 2), np.float32), np.array([0.5, -1.0, 2.0], np.float32))
UPPER = np.triu(np.ones((2, 2)))
FLIPPED = losses.flipped(losses.hinge(), 0.1)
RIGHT = {
    linear_ball: {"stream": STREAM, "radius": 1.0},
    l1_ball: {"stream": STREAM, "radius": 1.0},
    convex_ball: {"stream": STREAM, "loss": losses.squared(), "radius": 1.0},
    world_ball: {"stream": STREAM, "world": WORLD, "radius": 1.0},
    kernel_ball: {"gram": np.eye(2), "y": [1.0, 2.0], "radius": 1.0},
    regularized: {
        "gram": np.eye(2),
        "y": [1.0, -1.0],
        "loss": losses.logistic(),
        "regularization": 0.1,
    },
}


@pytest.mark.parametrize(
    ("best", "wrong", "message"),
    [
        *((ball, {"radius": 0}, "radius must be positive and finite") for ball in [*RIGHT][:5]),
        (convex_ball, {"loss": losses.nu_huber(nu=0.5)}, "loss must be a Loss"),
        (convex_ball, {"loss": losses.hinge()}, "y must"),
        (convex_ball, {"loss": FLIPPED}, "loss must not be flipped here"),
        (
            world_ball,
            {"stream": STREAM._replace(x=np.ones((3, 1)))},
            "of dimension 2, got dim",
        ),
        (world_ball, {"stream": STREAM._replace(x=np.full((3, 2), np.nan))}, "x must be finite"),
        (world_ball, {"world": FEATURES}, "must be a World, got FourierWorld"),
        (world_ball, {"world": KERNEL}, "must be a World, got Kernel"),
        (kernel_ball, {"gram": KERNEL}, r"gram must be .* got Kernel; .* k\(x, x\)"),
        (kernel_ball, {"gram": np.eye(3)}, r"must be \[2, 2\], as y is \[2\], got \[3, 3\]"),
        (kernel_ball, {"gram": np.full((2, 2), np.nan)}, r"finite, but gram\[0, 0\] is nan"),
        (kernel_ball, {"gram": UPPER}, "gram must be symmetric"),
        (kernel_ball, {"gram": np.diag([1.0, -0.1])}, "gram must be positive semi-definite"),
        (kernel_ball, {"y": [1.0, np.nan]}, r"y must be finite, but y\[1\] is nan"),
        (kernel_ball, {"weights": [1.0, 0.0]}, "weights must be positive and finite"),
        (kernel_ball, {"surrogate": max}, r"surrogate must be .*; pass k\(x, x\)"),
        (kernel_ball, {"surrogate": np.eye(3)}, r"surrogate must be \[2, 2\]"),
        (regularized, {"regularization": 0.0}, "regularization must be positive and finite"),
        (regularized, {"gram": np.eye(3)}, r"gram must be \[2, 2\], as y is \[2\], got \[3, 3\]"),
        (regularized, {"gram": np.diag([1.0, -0.1])}, "gram must be positive semi-definite"),
        (regularized, {"y": [[1.0, 1.0]]}, r"y must be \[n\] with n >= 1, got \[1, 2\]"),
        (regularized, {"y": [0.0, 1.0]}, r"y must be labels −1 and \+1, got 0; 2y − 1 turns"),
        (regularized, {"loss": losses.logistic}, r"got function: losses\.squared\(\)"),
        (regularized, {"tolerance": 0.0}, "tolerance must be positive and finite"),
        (regularized, {"max_iterations": 0}, "max_iterations must be a whole number of at least 1"),
    ],
)
def test_wrong_arguments_are_named(best, wrong, message):
    raises(message, best, **RIGHT[best] | wrong)


@pytest.mark.parametrize(
    ("best", "name", "value"),
    [
        (world_ball, "stream", STREAM),
        (l1_ball, "radius", 1.0),
        (convex_ball, "radius", 1.0),
        (convex_ball, "tolerance", 1e-6),
        (regularized, "regularization", 0.1),
        (regularized, "tolerance", 0.1),
    ],
)
def test_what_is_solved_on_the_host_is_concrete(best, name, value):
    traced = jax.jit(lambda value: best(**RIGHT[best] | {name: value}))
    raises(rf"{name}\S* must be concrete, got a traced one", traced, value)
