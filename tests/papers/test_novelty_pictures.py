import numpy as np
import pytest

from novelty_pictures import draw_alarm_rates, draw_rejections


def test_rejections_stand_row_by_row_with_their_captions(rng):
    images = rng.uniform(-1, 1, (7, 8, 8))
    captions = [f"{i}" for i in range(7)]
    axes = draw_rejections(
        {"alarms": (images, captions), "worst": (2 * images[:1], ["9"]), "none": (images[:0], [])},
        columns=3,
    )
    assert [ax.get_title() for ax in axes] == ["alarms", "worst", "none"]
    drawn = axes[0].get_images()
    np.testing.assert_array_equal([image.get_array() for image in drawn], images)
    assert [text.get_text() for text in axes[0].texts] == captions
    for i, (image, text) in enumerate(zip(drawn, axes[0].texts, strict=True)):
        left, right, bottom, top = image.get_extent()
        assert i % 3 < left < right < i % 3 + 1
        assert left < text.get_position()[0] < right
        assert i // 3 * 1.25 <= top < bottom < text.get_position()[1] < (i // 3 + 1) * 1.25
        np.testing.assert_allclose(bottom - top, right - left)  # square pixels
    greys = {image.get_clim() for ax in axes for image in ax.get_images()}
    assert greys == {(min(images.min(), 2 * images[0].min()), 2 * images[0].max())}
    assert axes[0].get_ylim() == axes[1].get_ylim() == (3 * 1.25, 0)


def test_rejections_want_a_caption_for_each_image():
    with pytest.raises(ValueError, match=r"'worst' must have one caption .* got 1 for 2"):
        draw_rejections({"worst": (np.zeros((2, 8, 8)), ["1"])})


def test_alarm_rates_with_their_intervals_beside_the_diagonal():
    nus = [0.01, 0.1]
    exact = [0.01, 0.1]
    rates = {"always": ([0.02, 0.1], [0.01, 0.1], [0.04, 0.1]), "on alarms": (exact, exact, exact)}
    axes = draw_alarm_rates(nus, rates)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["ν", "always", "on alarms"]
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[0.01, 0.01], [0.1, 0.1]])
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), [0.02, 0.1])
    corners = axes.collections[0].get_paths()[0].vertices
    ends = corners[corners[:, 0] == 0.01, 1]
    np.testing.assert_allclose([ends.min(), ends.max()], [0.01, 0.04])


def test_alarm_rates_of_less_than_a_decade_have_few_tick_labels():
    nus = [0.05, 0.1, 0.2]
    axes = draw_alarm_rates(nus, {"always": (nus, nus, nus)})
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.05", "0.1", "0.2"]
    assert not [*axes.get_xticks(minor=True), *axes.get_yticks(minor=True)]
    low, high = axes.get_ylim()
    np.testing.assert_allclose([t for t in axes.get_yticks() if low < t < high], nus)
