"""Finds the streams in this folder again.

Run `python -m tests.simulated.adversaries.certificates.make`.

Each beats a bound as printed; `test_search` checks them with new noise.
"""

from pathlib import Path

import jax
import numpy as np

import noisy_jax as nj

FOLDER = Path(__file__).parent
ONE, TWO = 1.0, 2.0


def one_copy():
    """Algorithm 1 for one copy as printed, noise ±2, |x| ≤ 1, |y| ≤ 2, B_w = 1, 2,048 rounds."""
    noise, horizon = nj.noise.Rademacher(2.0), 2048
    largest = nj.Stream(np.full((1, 1), ONE, np.float32), np.full(1, TWO, np.float32))
    moments = nj.bounds.moments(largest, noise)
    bound = nj.bounds.as_printed.known_covariance(moments, horizon=horizon, radius=ONE)
    options = {"learning_rate": bound.learning_rate, "as_printed": True}
    learner = nj.learners.known_covariance(radius=ONE, **options)
    return learner, noise, bound, {"radius": ONE, "y_size": TWO}, horizon


def noisy_kernel():
    """Theorem 4 as printed for the linear kernel and the squared loss, B_w = 0.01, 128 rounds."""
    noise, horizon, radius = nj.noise.Rademacher(1.0), 128, 0.1
    sizes = {"radius": radius, "x_second_moment": 2.0, "y_largest": TWO}
    estimator = nj.unbiased.kernel_gradient(nj.kernels.linear(), nj.losses.squared(), **sizes)
    bound = nj.bounds.as_printed.random_truncation(estimator, horizon=horizon)
    rate = bound.learning_rate
    learner = nj.learners.random_truncation(estimator, horizon=horizon, learning_rate=rate)
    return learner, noise, bound, {"radius": radius, "y_size": TWO}, horizon


CERTIFICATES = {"one_copy": one_copy, "noisy_kernel": noisy_kernel}


def main() -> None:
    """Writes one file for each certificate."""
    for name, make in CERTIFICATES.items():
        learner, noise, bound, options, horizon = make()
        if name == "noisy_kernel":  # the same learner with weights, which has a reverse mode
            rate = float(bound.learning_rate)
            learner = nj.learners.two_copies(radius=options["radius"], learning_rate=rate)
        options |= {"key": jax.random.key(0), "guarantee": bound}
        found = nj.adversaries.worst(learner, noise, horizon, **options)
        print(f"{name}: {found.regret:.1f} {found.interval}, bound {found.guarantee:.1f}")
        x, y = (np.asarray(leaf, np.float16) for leaf in found.stream)
        np.savez_compressed(FOLDER / f"{name}.npz", x=x, y=y)


if __name__ == "__main__":
    main()
