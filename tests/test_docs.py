"""The site: what its pages are made of; those marked `site` read what `.ci/run docs` has built."""

import ast
import inspect
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import noisy_jax as nj

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "docs" / "_build" / "html"


@pytest.fixture(autouse=True)
def _modules_of_docs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    yield
    for name in ("pages", "names", "docstrings"):
        sys.modules.pop(name, None)


def public_names(module=nj, path="noisy_jax", above=()):
    """All paths by which users reach something public that is no module."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if not isinstance(value, ModuleType):
            yield f"{path}.{name}"
        elif value not in above:
            yield from public_names(value, f"{path}.{name}", (*above, value))


def test_pages_show_all_of_the_readme_and_nothing_twice():
    import pages

    text = (ROOT / "README.md").read_text("utf-8")
    own = [page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md"))]
    parts = sorted((part for page in own for part in pages.included(page, text)), key=text.index)
    assert "".join(parts) == text


def messages():
    """All texts in the code, with … for what is filled in."""

    def text(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)

    for path in (ROOT / "noisy_jax").rglob("*.py"):
        yield from map(text, ast.walk(ast.parse(path.read_text("utf-8"))))


def test_messages_that_are_quoted_exist():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    known = [*messages()]
    assert len(quoted) > 20
    assert [quote for quote in quoted if not any(quote in message for message in known)] == []


def test_each_public_name_has_one_home():
    import names

    homes = [id(_value(home)) for home in {*names.homes().values()}]
    assert {*homes} >= {id(_value(path)) for path in public_names()}
    assert len({*homes}) == len(homes)


def test_each_public_name_is_in_a_guide_a_notebook_or_a_script():
    """And there are at most 250 of them: `import noisy_jax.sklearn` adds seven."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    pages += [*(ROOT / "colabs").glob("*.ipynb"), *(ROOT / "colabs" / "papers").glob("*.py")]
    words = {*re.findall(r"\w+", " ".join(page.read_text("utf-8") for page in pages))}
    first = {id(_value(path)): path.rpartition(".")[2] for path in public_names()}
    assert {*first.values()} - words == set()
    assert len(first) <= 250 - 7


def _value(path):
    value = nj
    for word in path.split(".")[1:]:
        value = getattr(value, word)
    return value


def test_docstrings_become_restructured_text():
    import docstrings

    doc = """Rate of `bounds.two_copies`, |n| wide, from `radius`.

        η = 1/√T

    Args:
        radius: B, x* of `[d]`
            and more.
        start: one of `first,
            second`, or none.

    Returns:
        A rate: η.

    Example:
        >>> 1
        1
    """
    assert docstrings.converted(doc, "noisy_jax.learners") == [
        "Rate of :py:obj:`bounds.two_copies <noisy_jax.bounds.two_copies>`, \\|n\\| wide, "
        "from ``radius``.",
        *["", "::", "", "    η = 1/√T", "", ""],
        *["", ":param radius: B, x\\* of ``[d]``", "        and more."],
        *[":param start: one of ``first, second``, or none.", "", ""],
        *[":returns: A rate: η.", "", "", ".. rubric:: Example", "", ">>> 1", "1"],
    ]


def test_links_of_the_repository_lead_to_pages():
    import pages

    text = "[a](#how-to-cite) [b](colabs/errata.ipynb) [c](CLAIMS.md) ![d](.images/regret.png)"
    content = [text + " [e](https://x.org) [f](CONTRIBUTING.md) [g](docs/engineer.md#learners)"]
    pages.relinked(None, Path("../README.md"), "index", content)
    blob = f"{pages.REPOSITORY}/blob/main/CLAIMS.md"
    assert re.findall(r"\((.*?)\)", content[0]) == [
        *["sources.md#how-to-cite", "colabs/errata.ipynb", blob, "../.images/regret.png"],
        *["https://x.org", "contributing.md", "engineer.md#learners"],
    ]
    guide = ["[a](../README.md#a-study-of-learners) [b](../colabs/errata.ipynb) [c](engineer.md)"]
    pages.guide_relinked(None, "researcher", guide)
    assert re.findall(r"\((.*?)\)", guide[0]) == [
        *["index.md#a-study-of-learners", "colabs/errata.ipynb", "engineer.md"]
    ]


@pytest.mark.parametrize("count", [0, 2])
def test_history_of_benchmarks(tmp_path, count):
    import pages

    for i in range(count):
        run = {"commit": f"{i}abcdef0123", "date": f"2026-11-2{i}", "quick": False}
        run |= {"machine": {"processor": "AMD EPYC", "cores": 2}, "versions": {"jax": "0.10"}}
        run |= {"ratios": {"two_copies": 2.0 + i, f"new {i}": 0.5}}
        run |= {"requirements": {"two_copies": {"required": "≥ 2", "met": True}}}
        (tmp_path / f"{9 - i}.json").write_text(json.dumps(run))
    page = pages.benchmarks(pages.history(tmp_path), tmp_path)
    assert ("no stored runs" in page) == (count == 0)
    assert (f"| two_copies | {1 + count} | ≥ 2 | yes |" in page) == (count > 0)
    assert (tmp_path / "ratios.png").exists() == (count > 1)


class _Page(HTMLParser):
    """Links, and what they can lead to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.links += [given[name] for name in ("href", "src") if given.get(name)]
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}


@pytest.mark.site
def test_links_inside_the_site_lead_somewhere():
    found = {path.resolve(): _Page(path) for path in BUILT.rglob("*.html")}
    assert len(found) > 40
    broken = []
    for path, page in found.items():
        for link in page.links:
            to, _, word = unquote(link).partition("#")
            if re.match(r"\w+:|//", to):
                assert not link.endswith(".png"), f"{path.name}: {link}"
                continue
            there = (path.parent / to.partition("?")[0]).resolve() if to else path
            known = found[there].anchors | {"", "top"} if there in found else {word}
            if not there.is_file() or word not in known:
                broken.append(f"{path.name}: {link}")
    assert broken == []


@pytest.mark.site
def test_the_reference_has_every_public_name():
    import names
    from sphinx.util.inventory import InventoryFile

    with (BUILT / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    documented = {name for kind, found in inventory.items() if kind[:3] == "py:" for name in found}
    assert {*names.homes().values()} <= documented
    classes = [v for v in map(_value, names.homes().values()) if inspect.isclass(v)]
    assert len(classes) > 40


@pytest.mark.site
def test_the_search_finds_replicates():
    text = (BUILT / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    pages = index["terms"]["replic"]  # its stem
    assert {"practitioner", "troubleshooting"} <= {index["docnames"][page] for page in pages}
