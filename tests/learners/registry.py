"""All learners that the contract's tests run through, each in one line of `LEARNERS`."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

import noisy_jax as nj

OPTIONS = {"radius": 0.7, "learning_rate": 0.1}
NOISE = nj.noise.Gaussian(0.2)
T, DIM = 48, 4  # three blocks of 16: a remainder would compile a second program


def averaged(**options):
    return nj.wrappers.averaged(nj.learners.two_copies(**options))


def paired(**options):
    return nj.wrappers.paired(*(case.make(**options) for case in LEARNERS.values() if case.linear))


def world(copies=1):
    return nj.worlds.gaussian(dim=DIM, length_scale=1.0, noise=NOISE.cloned(copies))


def parallel_worlds(copies=1, **options):
    return nj.learners.parallel_worlds(world(copies), horizon=T, block=16, **options)


def cloned(**options):
    return nj.wrappers.cloned(parallel_worlds(copies=2, **options), NOISE)


def fourier_worlds(**options):
    features = nj.worlds.fourier(jax.random.key(7), world(), 8)
    return nj.learners.fourier_worlds(features, block=16, **options)


def uncorrected_kernel(**options):
    kernel = nj.kernels.gaussian(length_scale=1.0)
    return nj.learners.uncorrected_kernel(kernel, horizon=T, block=16, **options)


def random_truncation(*, radius, learning_rate=None):
    kernel, loss = nj.kernels.polynomial(degree=2), nj.losses.squared()
    estimator = nj.unbiased.kernel_gradient(kernel, loss, radius=radius, x_second_moment=1.8)
    options = {"horizon": T, "learning_rate": learning_rate, "block": 16}
    return nj.learners.random_truncation(estimator, **options)


def of_signs(make):
    """Decorates a maker of learners of labels: they are shown the signs of values."""

    def shown(way):
        def run(state, samples, *rest):
            return way(state, samples._replace(y=jnp.sign(samples.y)), *rest)

        return run

    @functools.wraps(make)  # docs/contents.md shows the learner itself
    def made(**options):
        learner = make(**options)
        needs = learner.needs._replace(labels=False)
        return learner._replace(step=shown(learner.step), unroll=shown(learner.unroll), needs=needs)

    return made


@of_signs
def analytic_worlds(*, radius, learning_rate):
    loss, bounds = nj.losses.smoothed_hinge(sharpness=0.5), {"loss_order": 2, "max_bias": 1.0}
    estimator = nj.unbiased.kernel_gradient(world(), loss, radius=radius, **bounds)
    options = {"horizon": T, "learning_rate": learning_rate, "block": 16}
    return nj.learners.random_truncation(estimator, **options)


def unknown_noise(kernel, transformation, **options):
    estimate = functools.partial(transformation, **options)
    make = functools.partial(nj.learners.unknown_noise, kernel, nj.losses.squared(), horizon=T)
    return adaptive(functools.partial(make, estimate=estimate, block=16))


def adaptive(make):
    """At the default rate, whatever the rate that is asked for."""
    return lambda *, radius, learning_rate: make(radius=radius)


def averaged_kernel(**options):
    return nj.wrappers.averaged(parallel_worlds(**options))


def mixture(*, radius, learning_rate):
    rates = jnp.array([1.0, 2.0]) * learning_rate
    return nj.wrappers.mixture(
        nj.wrappers.swept(lambda rate: parallel_worlds(radius=radius, learning_rate=rate), rates)
    )


def norma(*, radius, learning_rate):
    del radius  # regularization takes its place
    return nj.learners.norma(
        nj.kernels.gaussian(length_scale=1.0), nj.losses.nu_huber(nu=0.3, tracker="joint"),
        learning_rate=learning_rate, regularization=0.5, buffer=20, offset=True,
    )  # fmt: skip


def norma_in_a_world(*, radius, learning_rate):
    del radius
    return nj.learners.norma(
        world(), nj.losses.novelty(nu=0.3), decay="on_update", block=16,
        learning_rate=lambda t: learning_rate / jnp.sqrt(t + 1), regularization=0.5, buffer=T,
    )  # fmt: skip


@of_signs
def perceptron(*, radius, learning_rate):
    del radius, learning_rate  # it has no parameters
    return nj.learners.perceptron(nj.kernels.gaussian(length_scale=1.0), buffer=20)


@of_signs
def alma(*, radius, learning_rate):
    kernel = nj.kernels.polynomial(degree=2)
    return nj.learners.alma(kernel, threshold=radius, scale=learning_rate, buffer=20)


def parameter_free(*, radius, learning_rate):
    del learning_rate  # and no radius: ε takes its place
    return nj.learners.parameter_free(
        nj.kernels.gaussian(length_scale=1.0), nj.losses.huber(), unit=radius, block=16,
        buffer=nj.engine.everything(T),
    )  # fmt: skip


def parameter_free_in_a_world(*, radius, learning_rate):
    del learning_rate
    features = nj.worlds.fourier(jax.random.key(7), world(), 8)
    return nj.learners.parameter_free(features, nj.losses.huber(), unit=radius, block=16)


def as_printed(**options):
    return nj.learners.known_covariance(as_printed=True, **options)


def model(*, radius, learning_rate):
    """A model with curved features, linear in its parameters, from a random number of copies."""
    del learning_rate  # the rate is adaptive
    frequencies = jnp.arange(2.0 * DIM).reshape(DIM, 2) / DIM
    return nj.learners.model(
        lambda params, x: jnp.sin(x @ frequencies) @ params["w"] + params["b"],
        {"w": jnp.zeros(2), "b": jnp.zeros(())}, nj.losses.squared(), radius=radius,
        estimate=functools.partial(nj.unbiased.multilevel, levels=3),
    )  # fmt: skip


def corrected_ftrl(*, radius, learning_rate):
    del learning_rate  # it has none
    return nj.learners.corrected_ftrl(nj.moments.known_covariance(), radius=radius, solve_every=8)


class Case(NamedTuple):
    """A learner for the tests of the contract.

    Attributes:
        make: `(radius, learning_rate) -> Learner`, which may ignore what the learner does not take.
        projected: whether its predictors stay in a ball of `radius`.
        linear: whether it is one of the plain linear learners.
        squares: whether it needs the square of the radius, which may overflow.
        adaptive: whether its rate is adaptive, whatever `learning_rate` is.
        reads: whether it has `Learner.clean_estimates`.
    """

    make: Callable[..., nj.Learner]
    projected: bool = True
    linear: bool = False
    squares: bool = False
    adaptive: bool = False
    reads: bool = True


LEARNERS = {
    "two_copies": Case(nj.learners.two_copies, linear=True),
    "known_covariance": Case(nj.learners.known_covariance, linear=True),
    "as_printed": Case(as_printed, linear=True),
    "uncorrected": Case(nj.learners.uncorrected, linear=True),
    "several_copies": Case(functools.partial(nj.learners.several_copies, copies=3), linear=True),
    "parallel_worlds": Case(parallel_worlds, squares=True),
    "cloned": Case(cloned, squares=True),
    "fourier_worlds": Case(fourier_worlds, squares=True),
    "uncorrected_kernel": Case(uncorrected_kernel, squares=True, reads=False),
    "random_truncation": Case(random_truncation, squares=True),
    "analytic_worlds": Case(analytic_worlds, squares=True),
    "averaged": Case(averaged),
    "averaged_kernel": Case(averaged_kernel, squares=True),
    "mixture": Case(mixture, squares=True, reads=False),
    "paired": Case(paired),
    "adaptive": Case(adaptive(nj.learners.two_copies), adaptive=True),
    "adaptive kernel": Case(adaptive(parallel_worlds), adaptive=True),
    "adaptive random truncation": Case(adaptive(random_truncation), adaptive=True),
    "unknown_noise": Case(
        unknown_noise(nj.kernels.polynomial(degree=2), nj.unbiased.replicates, order=2),
        adaptive=True,
    ),
    "multilevel": Case(
        unknown_noise(
            nj.kernels.gaussian(length_scale=1.0), nj.unbiased.multilevel, base=16, levels=1
        ),
        adaptive=True,
    ),
    "pair": Case(
        unknown_noise(nj.kernels.gaussian(length_scale=1.0), nj.unbiased.pair),
        adaptive=True,
    ),
    "norma": Case(norma, projected=False, reads=False),
    "norma_in_a_world": Case(norma_in_a_world, projected=False),
    "perceptron": Case(perceptron, projected=False, reads=False),
    "alma": Case(alma, projected=False, reads=False),
    "parameter_free": Case(parameter_free, projected=False, reads=False),
    "parameter_free_in_a_world": Case(parameter_free_in_a_world, projected=False),
    "model": Case(model, adaptive=True),
    "corrected_ftrl": Case(corrected_ftrl, adaptive=True),
    "exponentiated_gradient": Case(adaptive(nj.learners.exponentiated_gradient), adaptive=True),
}
"""By name. A new learner is one line here, under its name in `nj.learners`."""
