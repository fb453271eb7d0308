"""What the pictures of all scripts have in common."""

from functools import partial

import matplotlib
import numpy as np
import pytest

from drift_picture import draw_mistakes
from novelty_pictures import draw_alarm_rates, draw_rejections
from tests.plots import checks
from tests.plots.checks import ODD

matplotlib.use("agg")

RATES = np.array([[0.1, 0.2, 0.4]]) * [[1.0], [0.9], [1.1]]
PICTURES = {  # by name: the function, how many panels it draws, and what it is called with
    "mistakes": (draw_mistakes, 1, ([1, 50, 100], {"drift": dict.fromkeys(("A0", "A"), RATES)})),
    "alarm_rates": (draw_alarm_rates, 0, (RATES[0], {"a": RATES, "b": RATES})),
    "rejections": (draw_rejections, 1, ({"alarms": (np.ones((1, 8, 8)), ["7"])},)),
}
WITHOUT_LEGEND = {"rejections"}
OF_ODD_NAMES = {  # calls with an odd name, and how often the picture shows it
    "mistakes": (([1, 50, 100], {ODD: {ODD: RATES}}), 2),
    "alarm_rates": ((RATES[0], {ODD: RATES}), 1),
    "rejections": (({ODD: (np.ones((1, 8, 8)), [ODD])},), 2),
}


@pytest.mark.parametrize("name", PICTURES)
def test_draws_on_the_axes_it_is_given_or_on_new_ones(name):
    picture, panels, arguments = PICTURES[name]
    plain = name in WITHOUT_LEGEND
    checks.check_signature(picture)
    checks.check_draws_on_given_axes(partial(picture, *arguments), panels, labelled=not plain)
    checks.check_curves_differ_in_more_than_colour(
        partial(picture, *arguments), panels, legend=not plain
    )


@pytest.mark.parametrize("name", OF_ODD_NAMES)
def test_odd_names_are_shown_letter_by_letter(name):
    arguments, count = OF_ODD_NAMES[name]
    checks.check_shows_odd_names(PICTURES[name][0](*arguments), count)
