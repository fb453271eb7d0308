"""Wrong arguments of the engine."""

from functools import partial

import jax.numpy as jnp
import pytest

import noisy_jax as nj
from noisy_jax.engine import Rule, Update, everything, expansion, growing, ring
from noisy_jax.engine.function_space import round_of_copies
from noisy_jax.engine.memory import Space
from tests.errors import raises

KERNEL = nj.kernels.gaussian(length_scale=1.0)
SPACE = Space(KERNEL.gram, KERNEL.gram)
LEARNER = partial(
    expansion, round_of=round_of_copies(lambda x: x, 1), copies=1, memory=everything(9)(SPACE),
    rule=Rule(lambda: (), lambda *seen: Update(jnp.zeros(()), 1.0, ())),
)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block": 0}, "block must be a whole number of at least 1, got 0"),
        ({"copies": 1.5}, "copies must be a whole number of at least 1, got 1.5"),
        ({"dim": 0}, "dim must be a whole number of at least 1, got 0"),
        ({"labels": "yes"}, "labels must be True or False, got 'yes'"),
        ({"flips": 2}, "flips must be two rates, False or None, got 2"),
        ({"targets": "all"}, "targets must be 'exact', 'independent' or 'any', got 'all'"),
        ({"noise": 0.1}, "noise must be a Noise, got 0.1"),
        ({"radius": -1.0}, "radius must be positive"),
        ({"radius": 1e-20}, r"radius must be above 3\.1\d+e-16 .* float32 cannot hold .* squares"),
        ({"radius": 2e19}, r"below 1\.8\d+e\+19, got 2e\+19: float32 cannot hold .* squares"),
        ({"memory": ring(5)(SPACE), "radius": 1.0}, "None with a memory that forgets atoms"),
        ({"memory": 1}, "memory must be a"),
        ({"round_of": 1}, "round_of must be a"),
        ({"rule": 1}, "rule must be a"),
        ({"estimates": 1}, "estimates must be a"),
    ],
)
def test_of_a_learner(options, message):
    raises(message, LEARNER, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: growing(9, start=0, excess=0.3), "start must be a whole number"),
        (lambda: growing(0, start=9, excess=0.3), "horizon must be a whole number"),
        (lambda: growing(9, start=9, excess=0.5), "excess must be above 0 and below"),
        (lambda: everything(0), "horizon must be a whole number of at least 1"),
        (lambda: everything(2, width=0), "width must be"),
        (lambda: ring(0), "size must be a whole number of at least 1"),
        (lambda: ring(10)(KERNEL), r"a Space, got Kernel: .* buffer=engine\.ring"),
        (lambda: everything(10)(KERNEL.gram), "space must be a Space, got function"),
        (lambda: growing(9, start=9, excess=0.3)(None), "space must be .* got None"),
    ],
)
def test_of_a_memory(call, message):
    raises(message, call)
