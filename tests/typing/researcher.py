"""A researcher: regret on clean data under simulated noise."""

# pyright: strict

from typing import assert_type

import jax

import noisy_jax as nj

stream = assert_type(nj.streams.linear(jax.random.key(0), 64, 3), nj.Stream)
learner = assert_type(nj.learners.two_copies(radius=1.0), nj.Learner)
noise = nj.noise.Gaussian(0.1)
rollout = nj.rollout(learner, stream, noise, jax.random.key(1))
print(rollout.predictions.shape)
