import numpy as np

from paid_features_picture import draw_payments


def test_payments_of_the_last_rounds_beside_the_least_losses():
    """Student's t has 3.182 for four seeds."""
    rows = [
        {"variance": name, "horizon": t, "num_seeds": 4, "payment": paid / t}
        | {"regret": scale * t**0.6, "std_error": 2.0}
        for name, paid, scale in (("known", 1.0, 3.0), ("unknown", 2.0, 5.0))
        for t in (64, 16)
    ]
    grid, losses = np.array([0.0, 0.1, 0.2]), np.array([0.3, 0.2, 0.4])
    left, right = draw_payments(rows, grid, losses)
    np.testing.assert_array_equal(left.lines[0].get_xydata(), np.stack([grid, losses], axis=1))
    assert [line.get_xdata()[0] for line in left.lines[1:]] == [1 / 64, 2 / 64]
    assert all("T = 64" in line.get_label() for line in left.lines[1:])
    for place, (scale, power) in enumerate(((3.0, 0.5), (5.0, 2 / 3))):
        measured, promised = right.lines[2 * place : 2 * place + 2]
        rounds = np.array([64.0, 16.0])
        np.testing.assert_allclose(
            measured.get_xydata(), np.stack([rounds, scale * rounds**0.6], axis=1)
        )
        expected = scale * 64**0.6 * (rounds / 64) ** power
        np.testing.assert_allclose(promised.get_ydata(), expected)
        corners = right.collections[place].get_paths()[0].vertices
        ends = corners[corners[:, 0] == 16, 1]
        half = 2 * 3.182446305
        np.testing.assert_allclose(
            [ends.min(), ends.max()], scale * 16**0.6 + np.array([-half, half])
        )
