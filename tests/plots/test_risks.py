import jax
import numpy as np

import noisy_jax as nj


def test_the_lowest_risk_is_at_the_top_with_its_interval(rng):
    x = rng.normal(size=(200, 1))
    table = nj.observations.from_arrays(x, x[:, 0] + 0.1 * rng.normal(size=200), noise=0.1)
    candidates = {
        "fit": nj.fit,
        "uncorrected": lambda rows: nj.fit(rows).uncorrected,
    }
    found = nj.select(candidates, table, jax.random.key(0))
    axes = nj.plots.risks(found)
    order = np.argsort(found.risk)
    drawn = np.concatenate([line.get_xydata() for line in axes.lines[:1]])
    np.testing.assert_array_equal(drawn[np.argsort(-drawn[:, 1]), 0], found.risk[order])
    ends = np.concatenate([each.get_segments() for each in axes.collections])[..., 0]
    expected = np.transpose(found.interval())
    np.testing.assert_allclose(ends[np.argsort(ends[:, 0])], expected[np.argsort(expected[:, 0])])
    assert axes.lines[1].get_xdata()[0] == found.risk[found.names.index(found.best)]
