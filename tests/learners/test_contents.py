"""docs/contents.md has the table of learners that the learners themselves give.

`python -m tests.learners.test_contents` writes it again: names and first sentences of docstrings
from `nj.learners`, and the rest from the instance of that name in `tests.learners.registry`.
"""

import inspect
import re
from pathlib import Path

import jax
import jax.numpy as jnp

import noisy_jax as nj
from tests.learners.registry import DIM, LEARNERS, OPTIONS

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "contents.md"
TABLE = re.compile(r"(?<=<!-- made -->\n)\| learner .*?(?=\n<!-- end -->)", re.DOTALL)
NO_LEARNERS = {"gradient_descent", "leader"}
"""Functions of `nj.learners` without a row: parts of learners."""


def told(learner):
    """Returns what a learner is told of the noise; without it, a step raises ValueError."""
    if learner.needs.noise is not None:
        return "its distribution"
    sample = nj.Sample(jnp.zeros((learner.needs.copies, DIM)), jnp.ones(()))
    try:
        jax.eval_shape(learner.step, learner.init(DIM), sample, jax.random.key(0))
    except ValueError:
        return "its covariance"
    return "–"


def row(name):
    function, learner = getattr(nj.learners, name), inspect.unwrap(LEARNERS[name].make)(**OPTIONS)
    file = Path(inspect.getfile(inspect.unwrap(function))).relative_to(ROOT).as_posix()
    first = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    cells = f"[`{name}`](../{file})", first, learner.needs.copies, told(learner)
    flags = learner.needs.labels, learner.clean_estimates is not None
    return "| " + " | ".join(map(str, [*cells, *("yes" if flag else "–" for flag in flags)])) + " |"


def table():
    heads = "learner", "what it is", "copies", "it is told of the noise", "labels ±1"
    lines = ["| " + " | ".join([*heads, "clean estimates"]) + " |", "|" + "---|" * 6]
    return "\n".join([*lines, *(row(n) for n in nj.learners.__all__ if n not in NO_LEARNERS)])


def test_the_table_of_learners_is_that_of_the_learners():
    repair = "`python -m tests.learners.test_contents` writes it"
    assert TABLE.findall(PAGE.read_text("utf-8")) == [table()], repair


if __name__ == "__main__":
    made = table()
    PAGE.write_text(TABLE.sub(lambda _: made, PAGE.read_text("utf-8")), "utf-8")
