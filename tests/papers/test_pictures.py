"""What the pictures of all scripts have in common, and what each of them shows."""

from functools import partial

import numpy as np
import pytest
from matplotlib.figure import Figure

from contamination_picture import draw_errors
from drift_picture import draw_mistakes
from noisy_jax import kernels, losses, noise, worlds
from novelty_pictures import draw_alarm_rates, draw_rejections
from one_copy import draw_one_copy
from paid_features_picture import draw_payments
from scale import draw_scale
from tests.errors import raises
from tests.plots import checks
from tests.plots.cases import study
from tests.plots.checks import ODD
from tightness_picture import draw_ratios
from tuning import draw_rates
from unknown_noise_picture import draw_price
from worlds_picture import draw_worlds

AGAINST = [
    {"learner": name, "horizon": t, "maximum": v, "low": v - 0.02, "high": v + 0.02}
    for name, v in {"a": 0.6, "b": 0.1}.items()
    for t in (16, 64)
]
LOSSES = {"squared": losses.squared(), "hinge": losses.hinge()}
RATES = np.array([[0.1, 0.2, 0.4]]) * [[1.0], [0.9], [1.1]]
ERRORS = {name: [(0.1, 1e-6, 0.15), (2.0, 1.9, 2.1)] for name in ("ridge", "oracle")}
PAID = [
    {"variance": name, "horizon": t, "regret": t**0.6, "std_error": 0.1, "num_seeds": 4}
    | {"payment": payment / t}
    for name, payment in (("known", 1.0), ("unknown", 2.0))
    for t in (64, 16)
]
PAYMENTS, LEAST = np.array([0.0, 0.1, 0.2]), np.array([0.3, 0.2, 0.4])
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
    "one_copy": (partial(draw_one_copy, radius=1.5), 2, (AGAINST, LOSSES)),
    "rates": (draw_rates, 1, (rates("a", 1.0, 3.0, "adaptive"),)),
    "errors": (draw_errors, 1, (RATES[0, :2], {"gross": ERRORS})),
    "payments": (draw_payments, 2, (PAID, PAYMENTS, LEAST)),
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
    "one_copy": (([AGAINST[0] | {"learner": ODD}], {ODD: losses.squared()}), 3),
    "errors": ((RATES[0, :2], {ODD: {ODD: ERRORS["ridge"]}}), 2),
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


def ends_at(axes, place, x):
    """The lowest and the highest point at x of the band that is drawn in this place."""
    corners = axes.collections[place].get_paths()[0].vertices
    at_x = corners[corners[:, 0] == x, 1]
    return at_x.min(), at_x.max()


def legend_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def titles_of(axes):
    return [ax.get_title() for ax in axes]


def test_mistakes_are_curves_with_their_intervals():
    rounds, few = [1, 50, 100], {"A": RATES / 100}
    axes = draw_mistakes(rounds, {"drift": {"A0": 2 * RATES, "A": RATES}, "switch": few})
    assert axes[1].get_ylim()[1] < 0.2 * axes[0].get_ylim()[1]  # the panel of small numbers is seen
    assert titles_of(axes) == ["drift", "switch"]
    assert legend_of(axes[0]) == ["A0", "A"]
    assert axes[0].lines[0].get_color() == axes[0].lines[1].get_color()
    np.testing.assert_array_equal(axes[0].lines[1].get_data(), [rounds, RATES[0]])
    np.testing.assert_allclose(ends_at(axes[0], 1, 100), RATES[1:, 2])


def test_alarm_rates_have_their_intervals_beside_the_diagonal():
    nus = RATES[0]
    axes = draw_alarm_rates(nus, {"always": RATES, "on alarms": RATES})
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert legend_of(axes) == ["ν", "always", "on alarms"]
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), np.stack([nus, nus], axis=1))
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), RATES[0])
    np.testing.assert_allclose(ends_at(axes, 0, 0.1), RATES[1:, 0])
    # Within less than a decade there would be many labels.
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.1", "0.2", "0.4"]
    assert not [*axes.get_xticks(minor=True), *axes.get_yticks(minor=True)]


def test_rejections_stand_row_by_row_with_their_captions(rng):
    images = rng.uniform(-1, 1, (7, 8, 8))
    captions = [f"{i}" for i in range(7)]
    shown = {"alarms": (images, captions), "worst": (2 * images[:1], ["9"])}
    axes = draw_rejections(shown | {"none": (images[:0], [])}, columns=3)
    assert titles_of(axes) == ["alarms", "worst", "none"]
    drawn = axes[0].get_images()
    np.testing.assert_array_equal([image.get_array() for image in drawn], images)
    assert [text.get_text() for text in axes[0].texts] == captions
    for i, (image, text) in enumerate(zip(drawn, axes[0].texts, strict=True)):
        left, right, bottom, top = image.get_extent()
        assert i % 3 < left < right < i % 3 + 1
        assert left < text.get_position()[0] < right
        assert i // 3 * 1.25 <= top < bottom < text.get_position()[1] < (i // 3 + 1) * 1.25
    greys = {image.get_clim() for ax in axes for image in ax.get_images()}
    assert greys == {(min(images.min(), 2 * images[0].min()), 2 * images[0].max())}
    message = "'worst' must have one caption .* got 0 for 1"
    raises(message, draw_rejections, {"worst": (images[:1], [])})


def test_one_copy_has_regrets_the_lower_bound_and_excesses():
    left, right = draw_one_copy(AGAINST, LOSSES, radius=1.5)
    assert left.get_ylim() == right.get_ylim()  # the lower bound stands at one height in both
    blind, two, lowest = left.lines
    np.testing.assert_allclose(blind.get_ydata(), [0.6, 0.6])
    np.testing.assert_allclose(two.get_xdata(), [16, 64])
    np.testing.assert_allclose(lowest.get_ydata(), 0.305572809, rtol=1e-8)
    assert legend_of(left) == ["a", "b", "lower bound for one copy: 0.306"]
    of_a, of_b, point = right.lines[:3]
    w = of_a.get_xdata()
    np.testing.assert_allclose(of_a.get_ydata(), 5 * (w - 0.2) ** 2, atol=1e-14)
    np.testing.assert_allclose(of_b.get_ydata(), (w - 1) ** 2, atol=1e-14)
    np.testing.assert_allclose([*point.get_xdata(), *point.get_ydata()], [5**-0.5, 0.305572809])
    assert legend_of(right)[1] == "hinge: 0.222 at $w$ = 0.778"
    grid = Figure().subplots(2, 1, squeeze=False)
    assert list(draw_one_copy(AGAINST, LOSSES, radius=1.5, axes=grid)) == list(grid[:, 0])
    raises("radius must be positive", draw_one_copy, AGAINST, LOSSES, radius=0.0)
    message = "axes must be 2, one for each panel, got 1"
    raises(message, draw_one_copy, AGAINST, LOSSES, radius=1.5, axes=grid[0])


def test_fixed_rates_are_a_curve_with_its_interval_and_others_are_lines():
    """At the last horizon; Student's t has 2.365 for eight seeds."""
    early = [row | {"horizon": 4, "regret": 99.0} for row in rates("a", 0.3, "adaptive")]
    first, second = draw_rates(
        early + rates("a", 0.3, "adaptive", 1.0) + rates("b", 0.3, "mixture")
    )
    np.testing.assert_array_equal(first.lines[0].get_xydata(), [[0.3, 2.0], [1.0, 4.0]])
    np.testing.assert_allclose(ends_at(first, 0, 0.3), [1.763538, 2.236462], rtol=1e-6)
    found = [(line.get_label(), *line.get_ydata()) for line in first.lines[1:]]
    assert found == [("adaptive", 3.0, 3.0)]
    assert [line.get_label() for line in second.lines] == ["fixed rate", "mixture"]
    assert titles_of((first, second)) == ["a, a", "b, b"]
    assert first.get_ylabel() == "regret in 8 rounds"


def test_errors_say_once_what_they_share():
    axes = draw_errors([0.0, 0.1], {f"adversary {i}": ERRORS for i in range(7)})
    assert titles_of(axes) == [f"adversary {i}" for i in range(7)]
    figure = axes[0].figure
    assert list(figure.axes) == list(axes)  # no empty frames for the three that are not there
    figure.draw_without_rendering()
    of_x = [ax.get_xlabel() for ax in axes if ax.xaxis.label.get_visible()]
    of_y = [ax.get_ylabel() for ax in axes if ax.yaxis.label.get_visible()]
    assert of_x == ["share ε of corrupted rows"] * 5  # above the three as well
    assert of_y == ["error on clean data (RMSE)"] * 2
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ridge", "oracle"]
    np.testing.assert_array_equal(axes[6].lines[0].get_xydata(), [[0.0, 0.1], [0.1, 2.0]])
    # An interval that reaches below zero is cut off, and the curves are seen.
    assert 0.01 < axes[0].get_ylim()[0] < 0.1


def test_payments_of_the_last_rounds_stand_beside_the_least_losses():
    """Student's t has 3.182 for four seeds."""
    left, right = draw_payments(PAID, PAYMENTS, LEAST)
    np.testing.assert_array_equal(left.lines[0].get_xydata(), np.stack([PAYMENTS, LEAST], axis=1))
    assert [line.get_xdata()[0] for line in left.lines[1:]] == [1 / 64, 2 / 64]
    assert all("T = 64" in line.get_label() for line in left.lines[1:])
    rounds = np.array([64.0, 16.0])
    for place, power in enumerate((0.5, 2 / 3)):
        measured, promised = right.lines[2 * place : 2 * place + 2]
        np.testing.assert_allclose(measured.get_xydata(), np.stack([rounds, rounds**0.6], axis=1))
        np.testing.assert_allclose(promised.get_ydata(), 64**0.6 * (rounds / 64) ** power)
        ends = 16**0.6 + np.array([-0.1, 0.1]) * 3.182446305
        np.testing.assert_allclose(ends_at(right, place, 16), ends)


def test_ratios_are_the_largest_of_all_noise_levels():
    def row(horizon, ratio, bound="corrected"):
        return TIGHT[0] | {"bound": bound, "horizon": horizon, "ratio": ratio}

    rows = [row(16, 0.2), row(16, 0.6), row(16, 0.4), row(64, 0.9), row(64, 0.1)]
    rows += [row(16, 1.3, "printed"), row(16, 1.1, "printed"), row(16, 7.0, "after the run")]
    rows += [row(64, 0.3, "self-bounding")]
    ours, printed = draw_ratios(rows)
    curves = {line.get_label(): line.get_xydata().tolist() for line in ours.lines[:-1]}
    assert curves == {"a": [[16, 0.6], [64, 0.9]], "a, self-bounding": [[64, 0.3]]}
    assert printed.lines[0].get_xydata().tolist() == [[16, 1.3]]
    assert [ax.lines[-1].get_ydata()[0] for ax in (ours, printed)] == [1, 1]  # false above it
    assert all(len(ax.lines) == 1 for ax in draw_ratios([]))


def test_worlds_have_their_three_kernels():
    kernel = kernels.rational(length_scale=2**0.5)
    (axes,) = draw_worlds(WORLD, kernel, distances=np.array([0, 1.25**0.5]))
    assert axes.get_title() == "world"
    g, k, surrogate = (line.get_ydata() for line in axes.lines)
    np.testing.assert_allclose(g, [1, 1 / 1.3125], rtol=1e-6)
    np.testing.assert_allclose(k, [1 - np.exp(-2), 0.7067125660691417], rtol=1e-5)
    np.testing.assert_allclose(surrogate, [1.1714357833666746, 0.8698979821417705], rtol=1e-5)
