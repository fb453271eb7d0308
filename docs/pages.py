"""Pages that are made before a build: notebooks, the gallery, the history of the benchmarks.

Also where the links of README, CONTRIBUTING, CHANGELOG and the guides, written for the repository,
lead on the site.
"""

import ast
import base64
import json
import re
import shutil
from pathlib import Path

REPOSITORY = "https://github.com/noisy-jax/noisy_jax"
ROOT = Path(__file__).parent.parent
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PAGES |= {"colabs": "gallery.md", "README.md": "index.md"}
NOT_SHOWN = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections() -> dict[str, str]:
    """Returns, by anchor of a heading of README, the page that shows it, with its anchor."""
    text, found = (ROOT / "README.md").read_text("utf-8"), {}
    for page in sorted(Path(__file__).parent.glob("*.md")):
        own = page.read_text("utf-8")
        for part in included(own, text):
            for heading in re.findall(r"^##+ (.*)$", part, re.MULTILINE):
                first = part.startswith("#") and part.partition("\n")[0].endswith(f"# {heading}")
                shown = not first or re.search(rf"^#+ {re.escape(heading)}$", own, re.MULTILINE)
                found[anchor(heading)] = page.name + (f"#{anchor(heading)}" if shown else "")
    return found


def included(page: str, text: str) -> list[str]:
    """The parts of README's `text` that the directives of a page include, with their headings."""
    parts = []
    for options in re.findall(r"```\{include\} \.\./README\.md\n(.*?)```", page, re.DOTALL):
        given = dict(re.findall(r':([\w-]+): "?(.*?)"?$', options, re.MULTILINE))
        start = text.index(given["start-after"] + "\n") if "start-after" in given else 0
        last = text.index(given["end-before"] + "\n", start) if "end-before" in given else None
        parts.append(text[start:last])
    return parts


def relinked(app, path, docname, content):
    """Links of an included file lead to the site's pages, or to the repository."""
    if path.suffix != ".txt":  # made for the site
        own = path.name == "README.md"
        content[0] = re.sub(
            r"\]\(([^)\s]+)\)", lambda link: f"]({_on_the_site(link[1], own)})", content[0]
        )


def guide_relinked(app, docname, content):
    """The same for the links of a page in `docs/` that leave this folder."""
    if "/" not in docname:
        links = re.compile(r"\]\(\.\./([^)\s]+)\)")
        content[0] = links.sub(lambda link: f"]({_on_the_site(link[1], False)})", content[0])


def _on_the_site(whole: str, in_readme: bool) -> str:
    """Returns the place on the site to which a link of a file in the root leads."""
    link, hash_, word = whole.partition("#")
    if re.match(r"\w+:", link):
        return whole
    if word and link in ([""] if in_readme else ["README.md"]):
        return sections().get(word, whole)
    if link.startswith(".images/"):
        return f"../{link}"
    if re.fullmatch(r"docs/\w+\.md", link):
        return whole.removeprefix("docs/")
    if not link or link in PAGES or re.fullmatch(r"colabs/\w+\.(ipynb|md)", link):
        return PAGES.get(link, link) + hash_ + word
    return f"{REPOSITORY}/{'tree' if (ROOT / link).is_dir() else 'blob'}/main/{whole}"


def notebooks() -> list[str]:
    """Names of the notebooks, in the order in which each leads to the next."""
    order, ends = ["quickstart"], re.compile(r"^Next: \[`\w+`\]\((\w+)\.ipynb\)", re.MULTILINE)
    while found := ends.search(_cells(order[-1])[-1][1]):
        order.append(found[1])
    return order


def _cells(name: str) -> list[tuple[str, str, list[str]]]:
    """Kind, source and pictures (in base64) of each cell of a notebook."""
    cells = json.loads((ROOT / "colabs" / f"{name}.ipynb").read_text("utf-8"))["cells"]
    outputs = [[out.get("data", {}) for out in cell.get("outputs", [])] for cell in cells]
    pictures = [[each["image/png"] for each in out if "image/png" in each] for out in outputs]
    sources = ["".join(cell["source"]) for cell in cells]
    return [(c["cell_type"], *rest) for c, *rest in zip(cells, sources, pictures, strict=True)]


def write(folder: Path) -> None:
    """Copies and makes these pages in `folder`, the source of the site."""
    shutil.rmtree(folder / "colabs", ignore_errors=True)
    (folder / "colabs").mkdir()
    for path in [*(ROOT / "colabs").glob("*.ipynb"), *(ROOT / "colabs").glob("*.md")]:
        text = re.sub(  # scripts are no pages
            r"\]\((papers/\w+\.py)\)",
            rf"]({REPOSITORY}/blob/main/colabs/\1)",
            path.read_text("utf-8").replace("](../docs/", "](../"),  # guides are one folder above
        )
        (folder / "colabs" / path.name).write_text(text, "utf-8")
    (folder / "colabs" / "gallery.txt").write_text(gallery(folder / "colabs"), "utf-8")
    runs = history(folder / "benchmarks")
    (folder / "colabs" / "benchmarks.txt").write_text(benchmarks(runs, folder / "colabs"), "utf-8")


def gallery(folder: Path) -> str:
    """All pictures of the notebooks, and the scripts that draw those of the papers."""
    lines = []
    for name in notebooks():
        cells = _cells(name)
        title = re.search(r"^# (.*)$", cells[0][1], re.MULTILINE)[1]
        lines += [f"## [{title}](colabs/{name}.ipynb)", ""]
        heading, drawn = title, []
        for kind, source, pictures in cells:
            if kind == "markdown" and (found := re.findall(r"^##+ (.*)$", source, re.MULTILINE)):
                heading = re.sub(r"[\[\]$]", "", found[-1])
            for picture in pictures:
                path = folder / f"{name}_{len(drawn)}.png"
                path.write_bytes(base64.b64decode(picture))
                drawn.append(f"![{heading}](colabs/{path.name})")
        lines += [*drawn, ""] if drawn else ["No pictures.", ""]
    lines += ["## Scripts for figures of the papers", "", "| script | what it shows |", "|---|---|"]
    for path in sorted((ROOT / "colabs" / "papers").glob("*.py")):
        text = path.read_text("utf-8")
        if "__main__" in text:
            first = ast.get_docstring(ast.parse(text)).partition("\n\n")[0].replace("\n", " ")
            link = f"{REPOSITORY}/blob/main/colabs/papers/{path.name}"
            lines.append(f"| [`{path.stem}`]({link}) | {first} |")
    return "\n".join(lines) + "\n"


def history(folder: Path) -> list[dict]:
    """The stored whole runs of `python tests/benchmarks`, oldest first."""
    runs = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    return sorted((run for run in runs if not run["quick"]), key=lambda run: run["date"])


def benchmarks(runs: list[dict], folder: Path) -> str:
    """The last run's ratios as a table, and from two runs on a picture of each over the commits."""
    if not runs:
        return "There are no stored runs yet. `python tests/benchmarks` makes one.\n"
    last = runs[-1]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    machine = ", ".join(f"{name} {value}" for name, value in last["machine"].items())
    commit = last["commit"] or "unknown"
    lines = [
        f"{len(runs)} stored runs; the last one is of {last['date']}, commit `{commit[:9]}`, "
        f"{machine}, {versions}. A required ratio `≥ 2` is of speeds: this library is at least "
        "twice as fast. One of `≤ 2` is of times or memory: it takes at most twice as much.",
        "",
        "| comparison | ratio | required | met |",
        "|---|---|---|---|",
    ]
    for name, ratio in last["ratios"].items():
        line = last["requirements"].get(name)
        required = f"{line['required']} | {'yes' if line['met'] else 'no'}" if line else " | "
        lines.append(f"| {name} | {ratio:.3g} | {required} |")
    if len(runs) > 1:
        _draw(runs, folder / "ratios.png")
        lines += ["", "![Each ratio over the commits.](colabs/ratios.png)"]
    return "\n".join(lines) + "\n"


def _draw(runs: list[dict], path: Path) -> None:
    """One small panel a ratio, over the commits, on a logarithmic axis."""
    from matplotlib.figure import Figure

    every = sorted({name for run in runs for name in run["ratios"]})
    columns = 3
    rows = -(-len(every) // columns)
    figure = Figure(figsize=(10, 2.2 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flat
    for axes, name in zip(grid, every, strict=False):
        known = [(i, run["ratios"][name]) for i, run in enumerate(runs) if name in run["ratios"]]
        axes.semilogy(*zip(*known, strict=True), marker="o")
        axes.axhline(1, color="gray", linestyle=":")
        axes.set_title(name, fontsize=8, wrap=True)
        axes.set_xticks(
            range(len(runs)), [(run["commit"] or "?")[:7] for run in runs], rotation=45, fontsize=7
        )
    for axes in figure.axes[len(every) :]:
        axes.set_axis_off()
    figure.savefig(path, dpi=110)
