"""The way from `nj.study` to the printed table: rooms in order, and checks once, at the door."""

import jax

import noisy_jax as nj
from tests.observed.observations.test_frames_walked import Walk

ROOMS = (
    *("studies study", "bounds/linear two_copies", "comparators/linear linear_ball"),
    *("montecarlo estimates_of", "rollouts checked_regret", "observation observe_block"),
    *("learners/gradient_descent step", "losses/loss __call__", "tables __str__"),
)
"""Each room by a function, at the end of its module's path."""


def test_a_study_goes_through_its_rooms_in_order_and_checks_once():
    noise = nj.noise.Gaussian(0.1)
    stream = nj.streams.linear(jax.random.key(0), 256, 3)
    moments = nj.bounds.moments(stream, noise)
    two = nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
    learners = {"two": two, "blind": nj.learners.uncorrected(radius=1.0)}
    best = nj.comparators.linear_ball(radius=1.0)
    options = {"num_seeds": 2, "horizons": [128, 256], "comparator": best}
    walk = Walk(lambda: str(nj.study(learners, stream, noise, jax.random.key(1), **options)))
    print(walk.shown())
    visits = [f"{module} {name}" for module, name in walk.calls]
    firsts = [next(i for i, one in enumerate(visits) if one.endswith(room)) for room in ROOMS]
    assert firsts == sorted(firsts)
    assert walk.times("sound_stream") == 1 + len(options["horizons"])  # a comparator is a door
    for check in ("check_loss", "check_noise", "seed_range", "checked_regret"):
        assert walk.times(check) == 1
    for check in ("check_run", "warn_of_sizes", "check_targets_of"):
        assert walk.times(check) == len(learners)
