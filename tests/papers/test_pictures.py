"""What the pictures of all scripts have in common."""

from functools import partial

import numpy as np
import pytest

from contamination_picture import draw_errors
from drift_picture import draw_mistakes
from noisy_jax import kernels, losses, noise, worlds
from novelty_pictures import draw_alarm_rates, draw_rejections
from one_copy import draw_one_copy
from paid_features_picture import draw_payments
from scale import draw_scale
from tests.plots import checks
from tests.plots.cases import study
from tests.plots.checks import ODD
from tightness_picture import draw_ratios
from tuning import draw_rates
from unknown_noise_picture import draw_price
from worlds_picture import draw_worlds

AGAINST = {"learner": "a", "horizon": 16, "maximum": 0.6, "low": 0.58, "high": 0.62}
OTHER = AGAINST | {"learner": "b"}
LOSSES = {"squared": losses.squared(), "hinge": losses.hinge()}
RATES = np.array([[0.1, 0.2, 0.4]]) * [[1.0], [0.9], [1.1]]
ERRORS = {name: [(0.1, 0.05, 0.15)] * 3 for name in ("ridge", "oracle")}
PAID = [
    {"variance": name, "horizon": t, "regret": t**0.6, "std_error": 0.1, "num_seeds": 4}
    | {"payment": payment / t}
    for name, payment in (("known", 1.0), ("unknown", 2.0))
    for t in (16, 64)
]
COSTS = [
    {"learner": name, "horizon": t, "regret": t**0.6, "std_error": 0.1, "num_seeds": 4}
    | {"microseconds": cost}
    for name, cost in (("a", 1.0), ("b", 20.0))
    for t in (16, 64)
]
TIGHT = [
    {"learner": name, "bound": bound, "radius": 1.0, "horizon": 16, "ratio": 0.5}
    for name in "ab"
    for bound in ("corrected", "printed")
]


def rates(name, *ways):
    """Rows for `draw_rates`: regret by each way to choose a rate."""
    row = {"data": name, "learner": name, "horizon": 8, "std_error": 0.1, "num_seeds": 8}
    return [row | {"rate": way, "regret": 2.0 + at} for at, way in enumerate(ways)]


WORLD = {"world": worlds.rational(dim=4, noise=noise.Gaussian(0.36), cutoff=0.5)}
STUDIES = {ODD: study({ODD: 0.5, "blind": 1.0})}
COPIES = {ODD: {ODD: 1.0, "blind": 2.0}}

PICTURES = {  # by name: the function, how many panels it draws, and what it is called with
    "mistakes": (draw_mistakes, 1, ([1, 50, 100], {"drift": dict.fromkeys(("A0", "A"), RATES)})),
    "alarm_rates": (draw_alarm_rates, 0, (RATES[0], {"a": RATES, "b": RATES})),
    "rejections": (draw_rejections, 1, ({"alarms": (np.ones((1, 8, 8)), ["7"])},)),
    "one_copy": (partial(draw_one_copy, radius=1.5), 2, ([AGAINST, OTHER], LOSSES)),
    "rates": (draw_rates, 1, (rates("a", 1.0, 3.0, "adaptive"),)),
    "errors": (draw_errors, 1, (RATES[0], {"gross": ERRORS})),
    "payments": (draw_payments, 2, (PAID, np.array([0.0, 0.1, 0.2]), np.array([0.3, 0.2, 0.4]))),
    "scale": (draw_scale, 2, (COSTS,)),
    "ratios": (draw_ratios, 2, (TIGHT,)),
    "price": (draw_price, 1, (STUDIES, COPIES)),
    "worlds": (draw_worlds, 1, (WORLD, kernels.rational(length_scale=2**0.5))),
}
WITHOUT_LEGEND = {"rejections"}
OF_ODD_NAMES = {  # calls with an odd name, and how often the picture shows it
    "mistakes": (([1, 50, 100], {ODD: {ODD: RATES}}), 2),
    "alarm_rates": ((RATES[0], {ODD: RATES}), 1),
    "rejections": (({ODD: (np.ones((1, 8, 8)), [ODD])},), 2),
    "rates": ((rates(ODD, 1.0, 3.0, ODD),), 3),
    "one_copy": (([AGAINST | {"learner": ODD}], {ODD: losses.squared()}), 3),
    "errors": ((RATES[0], {ODD: {ODD: ERRORS["ridge"]}}), 2),
    "scale": (([row | {"learner": ODD} for row in COSTS[:2]],), 2),
    "ratios": (([TIGHT[0] | {"learner": ODD, "bound": ODD}],), 2),
    "price": ((STUDIES, COPIES), 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_draws_on_the_axes_it_is_given_or_on_new_ones(name):
    picture, panels, arguments = PICTURES[name]
    plain = name in WITHOUT_LEGEND
    checks.check_signature(picture)
    draw = partial(picture, *arguments)
    checks.check_draws_on_given_axes(draw, panels, labelled=not plain)
    checks.check_curves_differ_in_more_than_colour(draw, panels, legend=not plain)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_ODD_NAMES)
def test_odd_names_are_shown_letter_by_letter(name):
    arguments, count = OF_ODD_NAMES[name]
    checks.check_shows_odd_names(PICTURES[name][0](*arguments), count)
