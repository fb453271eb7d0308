"""The public names of noisy_jax, by room, and the pages of the reference that document them."""

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType

import noisy_jax


@cache
def rooms() -> dict[str, ModuleType]:
    """Public modules by the name under which users reach them, such as `noisy_jax.bounds`."""
    found = {"noisy_jax": noisy_jax}
    waiting = ["noisy_jax"]
    while waiting:
        parent = waiting.pop(0)
        for name in _public(found[parent]):
            value, path = getattr(found[parent], name), f"{parent}.{name}"
            if isinstance(value, ModuleType) and value not in found.values():
                found[path] = value
                waiting.append(path)
    found["noisy_jax.sklearn"] = importlib.import_module("noisy_jax.sklearn")  # an extra
    return found


def _public(room: ModuleType) -> list[str]:
    """`__all__`; without one what the module itself defines, without underscore."""
    defined = [n for n, v in vars(room).items() if getattr(v, "__module__", 0) == room.__name__]
    return list(getattr(room, "__all__", [n for n in defined if not n.startswith("_")]))


@cache
def homes() -> dict[str, str]:
    """Returns, by public name that is no room, its home: the first name of the same object."""
    found, first = {}, {}
    for room, module in rooms().items():
        for name in _public(module):
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                found[f"{room}.{name}"] = first.setdefault(id(value), f"{room}.{name}")
    return found


def target(text: str, room: str = "noisy_jax") -> str | None:
    """The full name that `text`, such as "nj.fit" or "bounds.two_copies", means in `room`."""
    name = text.removeprefix("nj.").removeprefix("noisy_jax.").removesuffix("(…)")
    for path in (f"{room}.{name}", f"noisy_jax.{name}"):
        if path in homes():
            return homes()[path]
        if path in rooms():
            return path
    word = name.rpartition(".")[2]
    among = {home for path, home in homes().items() if path.endswith(f".{name}")}
    # A word in small letters may be an argument: only types are looked for in other rooms.
    plain = name == word and not word[:1].isupper()
    return among.pop() if len(among) == 1 and not plain else None


def _assigned(room: ModuleType, name: str) -> tuple[str, str]:
    """Module that assigns `name`, below `room`, and the docstring after it."""
    below = [m.name for m in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]
    for path in below:
        body = ast.parse(inspect.getsource(importlib.import_module(path))).body
        for line, after in zip(body, [*body[1:], None], strict=True):
            assigned = (
                line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", 0)]
            )
            if any(isinstance(t, ast.Name) and t.id == name for t in assigned):
                return path, ast.literal_eval(after.value) if isinstance(after, ast.Expr) else ""
    raise LookupError(f"no module of {room.__name__} assigns {name}")


def _page(room: str, module: ModuleType, text) -> str:
    """The page of one room, in reStructuredText: its docstring, then its modules one by one."""
    title = room.replace("noisy_jax", "nj", 1)
    lines = [title, "=" * len(title), "", f".. py:module:: {room}", ""]
    lines += [f".. automodule:: {module.__name__}", "   :no-index:", ""]
    inside = [other for other in rooms() if other.rpartition(".")[0] == room]
    if room == "noisy_jax":
        lines += ["Rooms:", "", ".. toctree::", "   :maxdepth: 1", ""]
        lines += [f"   {other}" for other in rooms() if other != room] + [""]
    elif inside:
        lines += ["Rooms inside: " + ", ".join(f":py:mod:`{other}`" for other in inside) + ".", ""]
    elsewhere = {n: h for n, h in homes().items() if n.rpartition(".")[0] == room and h != n}
    if elsewhere:
        names = (f":py:obj:`{n.rpartition('.')[2]} <{h}>`" for n, h in elsewhere.items())
        lines += ["Also here: " + ", ".join(names) + ".", ""]
    sections = {}
    for name, home in homes().items():
        if name == home and name.rpartition(".")[0] == room:
            word = name.rpartition(".")[2]
            value = getattr(module, word)
            ours = getattr(value, "__module__", "").startswith("noisy_jax")
            if ours and (inspect.isclass(value) or inspect.isfunction(value)):
                kind = "class" if inspect.isclass(value) else "function"
                entry = [f".. auto{kind}:: {home}", *["   :members:"] * (kind == "class"), ""]
                sections.setdefault(value.__module__, []).extend(entry)
            else:
                where, doc = _assigned(module, word)
                entry = [f".. py:data:: {word}", ""]
                entry += [f"   {line}".rstrip() for line in text(doc, room)] + [""]
                sections.setdefault(where, []).extend(entry)
    for where, entries in sections.items():
        if where != module.__name__:
            heading = where.removeprefix(f"{module.__name__}.").removeprefix("noisy_jax.")
            lines += [heading, "-" * len(heading), ""]
            lines += [f".. automodule:: {where}", "   :no-index:", ""]
            lines += [f".. py:currentmodule:: {room}", ""]
        lines += entries
    return "\n".join(lines) + "\n"


def write_pages(folder: Path, text) -> None:
    """One page a room in `folder`; `text(docstring, room)` gives lines in reStructuredText."""
    folder.mkdir(parents=True, exist_ok=True)
    for room, module in rooms().items():
        page = _page(room, module, text)
        path = folder / f"{room}.rst"
        if not path.exists() or path.read_text("utf-8") != page:
            path.write_text(page, "utf-8")
