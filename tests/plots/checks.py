"""What all pictures have in common: checks of a function `draw(axes=None)`.

`panels` is how many axes it draws; 0 where it draws on one pair of axes, and returns no sequence.
"""

import inspect
import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

ODD = "_price$in_$"  # matplotlib would leave it out of legends, and stop at the formula


def check_signature(picture):
    axes = inspect.signature(picture).parameters["axes"]
    assert (axes.kind, axes.default) == (axes.KEYWORD_ONLY, None)


def check_draws_on_given_axes(draw, panels, *, labelled=True):
    given = list(Figure().subplots(1, panels, squeeze=False)[0]) if panels else Figure().subplots()
    assert draw(axes=given) is given
    for ax in given if panels else [given]:
        assert ax.has_data()
        assert not labelled or (ax.get_xlabel() and ax.get_ylabel())
    if panels == 1:
        alone = Figure().subplots()
        assert draw(axes=alone)[0] is alone
        with pytest.raises(ValueError, match="axes must be 1, one for each panel, got 2"):
            draw(axes=Figure().subplots(1, 2))


def check_curves_differ_in_more_than_colour(draw, panels, *, legend=True):
    """As grey print has them, and the colour-blind: by line, or by marker."""
    axes = draw() if panels else [draw()]
    assert len(axes) == max(panels, 1)
    legends = [*axes[0].figure.legends, *(ax.get_legend() for ax in axes)]
    for each in filter(None, legends):
        looks = [(line.get_linestyle(), line.get_marker()) for line in each.get_lines()]
        assert len({*looks}) == len(looks) > 1
    assert any(legends) == legend


def check_shows_odd_names(axes, count):
    """The name `ODD` is shown letter by letter, so often."""
    figure = np.ravel(axes)[0].figure
    figure.savefig(io.BytesIO(), format="png")
    texts = [text.get_text() for text in {*figure.findobj(Text)} if text.get_visible()]
    assert " | ".join(text.replace(r"\$", "$") for text in texts).count(ODD) == count
    assert not any(text.startswith("_") for text in texts)
