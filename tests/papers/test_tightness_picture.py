from tightness_picture import draw_ratios


def test_the_ratio_is_the_largest_of_all_noise_levels():
    def row(horizon, ratio, bound="corrected", learner="a"):
        shared = {"learner": learner, "radius": 1.0}
        return {**shared, "bound": bound, "horizon": horizon, "ratio": ratio}

    rows = [row(16, 0.2), row(16, 0.6), row(16, 0.4), row(64, 0.9), row(64, 0.1)]
    rows += [row(16, 1.3, "printed"), row(16, 1.1, "printed"), row(16, 7.0, "after the run")]
    rows += [row(64, 0.3, "self-bounding")]
    ours, printed = draw_ratios(rows)
    curves = {line.get_label(): line.get_xydata().tolist() for line in ours.lines[:-1]}
    assert curves == {"a": [[16, 0.6], [64, 0.9]], "a, self-bounding": [[64, 0.3]]}
    assert printed.lines[0].get_xydata().tolist() == [[16, 1.3]]
    assert [ax.lines[-1].get_ydata()[0] for ax in (ours, printed)] == [1, 1]  # false above it
    assert all(len(ax.lines) == 1 for ax in draw_ratios([]))
