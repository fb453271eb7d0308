"""Regret of learners that may pay for less noise in their features.

Source: Merlis, Jang and Cesa-Bianchi, Online Linear Regression with Paid Stochastic Features
(AAAI 2026), whose optimal rates are √T and T^(2/3) up to logarithms. Standard deviations replace
the constants of its confidence bounds, and the regularization is that of `corrected_ftrl`.
"""

import dataclasses
import functools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, over_seeds, picture, script
from noisy_jax.command.settings import INTERVALS, SeededSettings, option
from noisy_jax.linalg.matrices import cholesky, eigh, solve_cholesky
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.simulated.results import growth
from noisy_jax.validation.numbers import positive
from paid_features_picture import draw_payments

_BLOCK = 16  # rounds with one payment and one predictor
_PAYMENTS = 101  # between which the learner that knows Σ(c) chooses


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """What it costs to learn how much to pay for less noise.

    In each round the learner chooses a payment c, sees the features with Gaussian noise of variance
    V/(1 + c/p) on each (as the mean of 1 + c/p measurements has), and predicts from what it sees.
    Its loss is (y − ⟨w, x̃⟩)² + c, its regret that of the best pair (w, c), in expectation over rows
    of a table drawn with replacement. One learner knows the variance: the corrected second moments
    of all rounds tell it the loss of every pair. The other does not: it compares T^(1/3) payments,
    each by its own rounds. Optimal rates are √T and T^(2/3), up to logarithms, for the worst data.
    Writes paid_features.csv, config.json and paid_features.png.

    Examples:
      python colabs/papers/paid_features.py
      python colabs/papers/paid_features.py --data breast_cancer --price 0.001 --seeds 64
    """

    data: str = option("diabetes", f"{regret.TABLES}, or a numeric CSV file", "NAME|FILE.csv")
    target: str | None = option(None, "name of the target's column in the CSV file", "COLUMN")
    noise_variance: float = option(
        0.1, "variance V of one measurement; rows have norm at most 1", "V", positive
    )
    price: float = option(0.002, "payment p for one more measurement", "P", positive)
    largest: float = option(0.064, "largest payment", "C", positive)
    horizons: tuple[int, ...] = regret.horizons((1024, 4096, 16384, 65536), fast=(64, 256))
    seeds: int = option(16, "independent draws of rows and noise", "N", INTERVALS, fast=2)


class Problem(NamedTuple):
    """A table, the second moments of its rows, and what noise costs.

    Attributes:
        table: rows that are drawn with replacement.
        gram: `[d, d]`, mean of xxᵀ.
        cross: `[d]`, mean of yx.
        square: `[]`, mean of y².
        variance: `[]`, V.
        price: `[]`, p.
        largest: `[]`, the largest payment.
    """

    table: Stream
    gram: Any
    cross: Any
    square: Any
    variance: Any
    price: Any
    largest: Any

    def noise(self, payment):
        """V/(1 + c/p), the variance of the noise on each feature."""
        return self.variance / (1 + payment / self.price)

    def loss(self, weights, payment):
        """E(y − ⟨w, x̃⟩)² + c over rows and noise."""
        fit = self.square - 2 * weights @ self.cross + weights @ self.gram @ weights
        return fit + self.noise(payment) * jnp.sum(weights**2) + payment

    def best(self):
        """The payments `[P]` between 0 and the largest, and the least loss at each of them."""
        payments = jnp.linspace(0, self.largest, _PAYMENTS)
        eigenvalues, axes = eigh(self.gram)
        squares = ((self.cross @ axes) ** 2)[None] / (
            eigenvalues[None] + self.noise(payments)[:, None]
        )
        return payments, self.square - squares.sum(axis=1) + payments


def problem_of(table: Stream, variance: float, price: float, largest: float) -> Problem:
    """The problem of drawing rows of a table under noise."""
    x, y = np.asarray(table.x, np.float64), np.asarray(table.y, np.float64)
    pairs = ((x, x), (x, y), (y, y))
    gram, cross, square = (jnp.asarray(a.T @ b / len(y), float) for a, b in pairs)
    return Problem(table, gram, cross, square, variance, price, largest)


def known(problem: Problem, horizon: int, key: jax.Array):
    """Regret and mean payment of the learner that knows the variance of the noise.

    From Ŝ = Σ_t (x̃_t x̃_tᵀ − Σ(c_t)) and b̂ = Σ_t y_t x̃_t over all n rounds so far, the loss of every
    pair is estimated, up to a constant, as (wᵀŜw − 2⟨b̂, w⟩)/n + wᵀΣ(c)w + c; the least is played.
    Ŝ is regularized as in `learners.corrected_ftrl`: by a tenth of the mean of ‖x‖², twice the size
    of a negative eigenvalue, and what a block may take away.
    """
    payments, _ = problem.best()
    noise = problem.noise(payments)

    def choose(state):
        (gram, cross, _), count = state
        eigenvalues, axes = eigh(gram)
        size = jnp.maximum(eigenvalues.sum(), 0) / jnp.maximum(count, 1)
        ridge = 0.1 * size + jnp.maximum(-2 * eigenvalues[0], 0) + _BLOCK * noise[0]
        divisors = (eigenvalues + ridge)[None] + count * noise[:, None]
        along = cross @ axes
        values = payments - jnp.sum(along[None] ** 2 / divisors, axis=1) / jnp.maximum(count, 1)
        arm = jnp.argmin(values)
        return axes @ (along / divisors[arm]), payments[arm], 0

    def update(state, _, sums, payment, errors):
        (gram, cross, square), count = state
        new, more, squares = sums
        new = new - _BLOCK * problem.noise(payment) * jnp.eye(len(cross))
        return (gram + new, cross + more, square + squares), count + _BLOCK

    dim = len(problem.cross)
    start = ((jnp.zeros((dim, dim)), jnp.zeros(dim), jnp.zeros(())), jnp.zeros(()))
    return _played(problem, horizon, key, start, choose, update)


def unknown(problem: Problem, horizon: int, key: jax.Array):
    """Regret and mean payment of the learner that does not know the variance of the noise.

    It compares K = ⌈T^(1/3)⌉ payments. Each has its own rounds and its own least squares on noisy
    features. It plays the payment with the smallest lower confidence bound of the loss: the mean
    squared error of its least squares on its n rounds, plus the payment, minus s √(2 log T/n), with
    the standard deviation s of the losses in these rounds.
    """
    arms = int(np.ceil(horizon ** (1 / 3)))
    payments, dim = jnp.linspace(0, problem.largest, arms), len(problem.cross)

    def choose(state):
        gram, cross, square, count, losses, squares = state
        rounds = jnp.maximum(count, 1)
        size = jnp.trace(gram, axis1=1, axis2=2) / rounds
        ridge = (0.1 * size + (count == 0))[:, None, None] * jnp.eye(dim)[None]
        weights = jax.vmap(lambda a, b: solve_cholesky(cholesky(a), b))(gram + ridge, cross)
        fitted = square - 2 * jnp.sum(weights * cross, axis=1)
        fitted = fitted + jnp.einsum("ki,kij,kj->k", weights, gram, weights)
        deviation = jnp.sqrt(jnp.maximum(squares / rounds - (losses / rounds) ** 2, 0))
        bonus = deviation * jnp.sqrt(2 * np.log(horizon) / rounds)
        arm = jnp.argmin(jnp.where(count > 0, fitted / rounds + payments - bonus, -jnp.inf))
        return weights[arm], payments[arm], arm

    def update(state, arm, sums, payment, errors):
        new = (*sums, float(_BLOCK), errors.sum(), jnp.sum(errors**2))
        return tuple(leaf.at[arm].add(more) for leaf, more in zip(state, new, strict=True))

    start = (jnp.zeros((arms, dim, dim)), jnp.zeros((arms, dim)), *jnp.zeros((4, arms)))
    return _played(problem, horizon, key, start, choose, update)


@jax.default_matmul_precision("highest")
def _played(problem: Problem, horizon, key, state, choose, update):
    """Blocks of rounds: `choose(state) -> (w, c, arm)`, then `update` from noisy sums."""
    table, least = problem.table, problem.best()[1].min()

    def block(state, key):
        weights, payment, arm = choose(state)
        rows_key, noise_key = jax.random.split(key)
        rows = jax.random.randint(rows_key, (_BLOCK,), 0, len(table.y))
        x, y = table.x[rows], table.y[rows]
        x = x + jnp.sqrt(problem.noise(payment)) * jax.random.normal(noise_key, x.shape)
        errors = (y - x @ weights) ** 2
        state = update(state, arm, (x.T @ x, y @ x, y @ y), payment, errors)
        return state, (_BLOCK * (problem.loss(weights, payment) - least), payment)

    keys = jax.random.split(key, horizon // _BLOCK)
    _, (excess, payments) = jax.lax.scan(block, state, keys)
    return excess.sum(), payments.mean()


LEARNERS = {"known": known, "unknown": unknown}
"""By what they know of the variance of the noise."""


def run(settings: Settings) -> Iterator[Report]:
    """Both learners at all horizons, and the losses of all payments."""
    for horizon in settings.horizons:
        if horizon % _BLOCK:
            raise ValueError(f"--horizons must be multiples of {_BLOCK}, got {horizon}")
    table = regret.load(settings.data, settings.target)
    problem = problem_of(table, settings.noise_variance, settings.price, settings.largest)
    payments, losses = (np.asarray(part) for part in problem.best())
    key, rows = jax.random.key(settings.seed), []
    for name, play in LEARNERS.items():
        for horizon in settings.horizons:
            found = over_seeds(
                functools.partial(play, problem, horizon),
                jax.random.fold_in(key, horizon),
                settings.seeds,
                f"{name}, T = {horizon:,}",
            )
            (mean, payment), (error, _) = found.mean, found.std_error
            row = {"variance": name, "horizon": horizon, "num_seeds": settings.seeds}
            row |= {"regret": float(mean), "std_error": float(error), "payment": float(payment)}
            rows.append(row)
    best, free = losses.argmin(), losses[0]
    columns = [
        ("variance", "{variance}"),
        ("T", "{horizon:,}"),
        ("regret", "{regret:.2f}"),
        ("± 95%", plus_minus("std_error", ".2f")),
        ("mean payment", "{payment:.4f}"),
    ]
    title = "expected regret against the best predictor with the best payment"
    result = Table(rows, columns, title)
    words = (
        f"The best payment is {payments[best]:.4f}, with a loss of {losses[best]:.4f}; without "
        f"payment it is {free:.4f}."
    )
    for name in LEARNERS if len(settings.horizons) > 1 else ():
        own = [row for row in rows if row["variance"] == name]
        regrets, errors = ([row[column] for row in own] for column in ("regret", "std_error"))
        fit = growth(settings.horizons, regrets, errors, settings.seeds)
        words += f" With {name} variance the regret grows like T^a, a = {fit.exponent:.2f} "
        words += f"[{fit.low:.2f}, {fit.high:.2f}]."
    draw = picture(draw_payments, rows, payments, losses)
    config = {"best_payment": float(payments[best]), "least_loss": float(losses[best])}
    yield Report(f"{result}\n\n{words}", {"paid_features": result}, {"paid_features": draw}, config)


if __name__ == "__main__":
    sys.exit(script(Settings, run))
