"""What must hold for each adversary, of the library and of the scripts."""

import jax
import numpy as np

from tests.keys import SHIFT, key

ROWS, DIM, SHARE = 40, 2, 0.25


def _table():
    rng = np.random.default_rng(7 + 1000 * SHIFT)
    x = rng.normal(size=(ROWS, DIM)).astype(np.float32)
    return x, x[:, 0] + 0.1 * rng.normal(size=ROWS).astype(np.float32), x[:, 0]


TABLE = X, Y, _ = _table()
"""x `[40, 2]`, y, and y without noise."""
BIG = np.zeros((4000, DIM)), np.zeros(4000), np.zeros(4000)


def compiled(corrupt, target=None):
    """`(key, x, y, share, target)` to corrupted rows; `target` names the argument that takes it."""
    if target is None:
        return jax.jit(lambda key, x, y, share, aim: corrupt(key, x, y, share))
    return jax.jit(lambda key, x, y, share, aim: corrupt(key, x, y, share, **{target: aim}))


def corrupted(run, table=TABLE, share=SHARE, key=None):
    """Corrupted rows of a table on the host, by a `compiled` adversary."""
    x, y, target = table
    return jax.device_get(run(jax.random.key(0) if key is None else key, x, y, share, target))


def check_rows(run, moves):
    """The share that is trimmed is corrupted and nothing else; x only where the adversary moves."""
    for share in (0.0, 0.1, 0.26, 0.45):  # 0.26 of 40 rows are 10.4
        made = corrupted(run, share=share)
        assert made.corrupted.sum() == ROWS - np.ceil(ROWS * (1 - share) - 1e-4)
        honest = ~made.corrupted
        np.testing.assert_array_equal(made.x[honest], X[honest])
        np.testing.assert_array_equal(made.y[honest], Y[honest])
        assert np.all((made.x != X)[made.corrupted] == moves)


def check_keys(run):
    """No key is used twice."""
    x, y, target = np.ones((4, 2)), np.ones(4), np.zeros(4)
    with jax.debug_key_reuse(True):
        jax.make_jaxpr(run)(jax.random.key(0), x, y, SHARE, target)
        run(jax.random.key(0), x, y, SHARE, target)


def check_independence(run):
    """Of one corrupted row of four: its index, instance, and the size and sign of its label."""
    runs, x, y = 10_000, np.zeros((4, 2), np.float32), np.zeros(4, np.float32)
    many = jax.vmap(run, in_axes=(0, None, None, None, None))
    made = jax.device_get(many(jax.random.split(key(2), runs), x, y, SHARE, y))
    row, index = made.corrupted, made.corrupted.argmax(axis=1)
    labels = made.y[row]
    drawn = np.column_stack([index == 0, index == 3, made.x[row], abs(labels), labels > 0])
    drawn = drawn[:, drawn.std(axis=0) > 0].astype(float)
    correlation = np.corrcoef(drawn, rowvar=False)
    correlation[0, 1] = correlation[1, 0] = 0  # two indices of the same row exclude each other
    assert np.abs(correlation - np.eye(len(correlation))).max() < 5 / runs**0.5
