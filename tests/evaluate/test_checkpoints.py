import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import checkpoints
from noisy_jax.evaluate.montecarlo import monte_carlo

KEY = jax.random.key(7)


def run(key):
    a, b = jax.random.split(key)
    return {"a": jax.random.normal(a, (3,)), "b": (jax.random.bernoulli(b, 0.3), jnp.int32(2))}


class InterruptedRunError(Exception):
    pass


def test_resumes_exactly_and_loses_at_most_a_batch(tmp_path):
    def interrupt(done, total):
        if done == 8:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        monte_carlo(run, KEY, 22, batch_size=4, checkpoint=tmp_path / "c", progress=interrupt)
    batches = []
    resumed = monte_carlo(
        run, KEY, 22, batch_size=4, checkpoint=tmp_path / "c",
        progress=lambda done, _: batches.append(done),
    )  # fmt: skip
    assert batches == [12, 16, 20, 22]
    chex.assert_trees_all_equal(resumed, monte_carlo(run, KEY, 22, batch_size=4))


def test_more_seeds_can_be_added_later(tmp_path):
    monte_carlo(run, KEY, 10, batch_size=4, checkpoint=tmp_path)
    more = monte_carlo(run, KEY, 25, batch_size=4, checkpoint=tmp_path)
    chex.assert_trees_all_close(more, monte_carlo(run, KEY, 25), atol=1e-6)
    with pytest.raises(ValueError, match="already holds 25 seeds, more than the 12 asked for"):
        monte_carlo(run, KEY, 12, checkpoint=tmp_path)


def shifted(shift):
    return lambda key: shift + jax.random.normal(key, (3,))


@pytest.mark.parametrize(
    ("other", "key"),
    [
        (shifted(np.float32(0.5)), KEY),  # another number in the run
        (lambda key: jax.random.uniform(key, (3,)), KEY),  # another run of the same shapes
        (shifted(np.float32(1.0)), jax.random.key(8)),  # another key
        (jax.tree_util.Partial(lambda s, key: s + jax.random.normal(key, (3,)), 1.5), KEY),
        (run, KEY),  # another structure
    ],
    ids=["number", "run", "key", "leaf", "structure"],
)
def test_refuses_a_checkpoint_of_another_configuration(tmp_path, other, key):
    monte_carlo(shifted(np.float32(1.0)), KEY, 4, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="made by another configuration"):
        monte_carlo(other, key, 8, checkpoint=tmp_path)
    monte_carlo(shifted(np.float32(1.0)), KEY, 8, checkpoint=tmp_path)  # a new closure, same run


def jitted(shift):
    constant = jnp.full(3, shift)  # closed over inside an inner jit, inside a scan

    @jax.jit
    def inner(total, key):
        return total + constant + jax.random.normal(key, (3,)), None

    return lambda key: jax.lax.scan(inner, jnp.zeros(3), jax.random.split(key, 2))[0]


def test_refuses_a_checkpoint_where_an_inner_constant_differs(tmp_path):
    monte_carlo(jitted(1.0), KEY, 4, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="made by another configuration"):
        monte_carlo(jitted(2.0), KEY, 8, checkpoint=tmp_path)
    monte_carlo(jitted(1.0), KEY, 8, checkpoint=tmp_path)


def test_refuses_a_checkpoint_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot write to the folder"):
        monte_carlo(run, KEY, 4, checkpoint=tmp_path / "file" / "below")


@pytest.mark.parametrize("damage", ["truncated", "foreign", "empty"])
def test_refuses_a_damaged_checkpoint(tmp_path, damage):
    monte_carlo(run, KEY, 4, checkpoint=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(
        {"truncated": whole[: len(whole) // 2], "foreign": b"hello", "empty": b""}[damage]
    )
    with pytest.raises(ValueError, match=r"not a readable checkpoint .* delete it"):
        monte_carlo(run, KEY, 8, checkpoint=tmp_path)


def test_a_write_that_breaks_off_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    monte_carlo(run, KEY, 4, batch_size=4, checkpoint=tmp_path)

    def breaks_off(file, **arrays):
        file.write(b"half a file")
        raise InterruptedRunError

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.np, "savez", breaks_off)
        with pytest.raises(InterruptedRunError):
            monte_carlo(run, KEY, 8, batch_size=4, checkpoint=tmp_path)
    resumed = monte_carlo(run, KEY, 8, batch_size=4, checkpoint=tmp_path)
    chex.assert_trees_all_equal(resumed, monte_carlo(run, KEY, 8, batch_size=4))
