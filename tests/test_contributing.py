"""The worked examples of CONTRIBUTING.md run as they stand."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
EXAMPLES = dict(
    re.findall(r"^## Add (.*?)\n.*?```python\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["a learner", "a noise distribution", "a loss", "a kernel", "a world", "a figure"]
)
def test_worked_examples_run(name):
    assert EXAMPLES[name].count("\n") <= 60
    exec(EXAMPLES[name], {"__name__": "example"})
