"""Configuration of the site: `sphinx-build -W --keep-going docs docs/_build/html`.

Its pages are the guides of this folder, README, CONTRIBUTING and CHANGELOG (by include), the
notebooks of `colabs/` as they are stored, and docstrings. What is made before a build lies in
`docs/api` and `docs/colabs`.
"""

import inspect
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import docstrings  # noqa: E402
import names  # noqa: E402
import pages  # noqa: E402

import noisy_jax  # noqa: E402

project = "noisy_jax"
author = copyright = "The noisy_jax developers"
version = release = noisy_jax.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
suppress_warnings = [
    "myst.header",  # an included section may begin at its third level
    "misc.highlighting_failure",  # `%pip` inside an `if` of a notebook
    "ref.python",  # Fit is the result of tables and of robust.subquantile: rooms tell them apart
]
highlight_language = "none"
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(jax|jnp|np|numpy|chex|optax|os|collections)\..*"),  # types of others
    (
        r"py:.*",
        r"([A-Za-z_]+|noisy_jax\.reports\.tables\.Table|noisy_jax\..*\._\w+|"
        r"noisy_jax\.observed\.\w+\.(template\.Method|categories\.Categories))",
    ),  # types of the standard library, private ones
]
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"noisy_jax {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_baseurl = "https://noisy-jax.github.io/noisy_jax/"
html_copy_source = html_show_sourcelink = False


def _room(name: str) -> str:
    """The room of a documented name: its longest prefix that is one."""
    while name not in names.rooms():
        name = name.rpartition(".")[0] or "noisy_jax"
    return name


def _docstring(app, what, name, value, options, lines):
    lines[:] = docstrings.converted("\n".join(lines), _room(_public_module(name)))


def _public_module(name: str) -> str:
    """`noisy_jax.simulated.bounds.linear` -> `noisy_jax.bounds.linear`."""
    modules = sorted(names.rooms().items(), key=lambda each: -len(each[1].__name__))
    for room, module in modules:
        if name == module.__name__ or name.startswith(f"{module.__name__}."):
            return room + name.removeprefix(module.__name__)
    return name


def _signature(app, what, name, value, options, arguments, result):
    if what == "class":
        written = docstrings.class_signature(value)
        return (written, "") if written else None
    return docstrings.signature(value)


def _skip(app, what, name, value, skip, options):
    return True if (inspect.getdoc(value) or "").startswith("Alias for field number") else None


def _reference(app, env, node, content):
    """Types in signatures are written as the code imports them: links by their last word."""
    written = node["reftarget"]
    found = names.target(written) or names.target(written.rpartition(".")[2])
    if found is None:
        return None
    domain = env.get_domain("py")
    docname = env.temp_data.get("docname") or node.get("refdoc")
    return domain.resolve_xref(env, docname, app.builder, "obj", found, node, content)


def _assemble(app):
    names.write_pages(HERE / "api", docstrings.converted)
    pages.write(HERE)


def setup(app):
    """Makes the pages before a build, and reads docstrings in the style of the house."""
    app.connect("builder-inited", _assemble)
    app.connect("include-read", pages.relinked)
    app.connect("source-read", pages.guide_relinked)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skip)
    app.connect("missing-reference", _reference)
