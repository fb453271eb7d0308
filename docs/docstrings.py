"""Conversion of docstrings to reStructuredText: `code`, links to public names, equations."""

import ast
import inspect
import re
import textwrap

import names

_FIELDS = {"Args:": "param", "Attributes:": "ivar", "Raises:": "raises"}
_TITLES = {"Example:", "Examples:"}
_TEXTS = {"Returns:": "returns", "Yields:": "yields"}
_CODE = r"(?<!`)`([^`]+)`(?!`)"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _prose(text: str, room: str, arguments: set[str]) -> str:
    """One paragraph: a name in backticks becomes a link, other code literal, the rest is plain."""
    parts = re.split(_CODE, text)
    for i, part in enumerate(parts):
        if i % 2:
            code = " ".join(part.split())
            found = None if code in arguments else names.target(code, room)
            before = "\\ " if re.search(r"[^\s(\[{<'\"/:–—-]$", parts[i - 1]) else ""
            after = "\\ " if parts[i + 1][:1].isalnum() else ""
            code = f":py:obj:`{code} <{found}>`" if found else f"``{code}``"
            parts[i] = before + code + after
        else:
            part = part.replace("\\", "\\\\").replace("|", "\\|")
            part = re.sub(r"_(?!\w)", r"\\_", part)
            part = re.sub(r"\*\*(?=\w+(?![^*]*\*\*))", r"\\*\\*", part)  # **options, not bold
            parts[i] = re.sub(r"(?<![*\\])\*(?!\*)", r"\\*", part)
    return "".join(parts)


def converted(doc: str, room: str) -> list[str]:
    """Lines in reStructuredText. An indented block after an empty line is an equation."""
    lines = inspect.cleandoc(doc).splitlines() if doc else []
    arguments = {found[1] for line in lines if (found := re.match(r"    (\w+): ", line))}
    result, field, deep, i = [], None, 0, 0  # the section, and the indent of its paragraphs
    while i < len(lines):
        line = lines[i]
        indent = _indent(line)
        if not line.strip():
            result.append("")
            i += 1
        elif line in _TITLES or line in _TEXTS or line in _FIELDS:
            result += ["", f".. rubric:: {line[:-1]}", ""] if line in _TITLES else [""]
            field, deep = line, 0
            i += 1
        elif field in _TITLES and indent:
            block = []
            while i < len(lines) and lines[i].strip():
                block.append(lines[i][4:])
                i += 1
            plain = not block[0].startswith((">>>", " "))
            result += _prose("\n".join(block), room, arguments).split("\n") if plain else block
        elif line.startswith(">>>"):
            while i < len(lines) and lines[i].strip():
                result.append(lines[i])
                i += 1
        else:
            if not indent:
                field, deep = None, 0
            equation = result[-1:] == [""] and indent > deep and field is None
            equation |= result[-1:] == [""] and field in (*_FIELDS, *_TEXTS) and indent > 8
            end = i
            if equation:
                while end < len(lines) and (
                    not lines[end].strip() or _indent(lines[end]) >= indent
                ):
                    end += 1
                if not (len(result) > 1 and result[-2].endswith("::")):
                    result += [" " * (indent - 4) + "::", ""]
                result += [*lines[i:end], ""]
            else:
                while end < len(lines) and lines[end].strip() and lines[end] not in _TEXTS:
                    end += 1
                result += _paragraph(lines[i:end], field, room, arguments, result)
                if field in _TEXTS:
                    field, deep = field + " ", 4
            i = end
    return result


def _paragraph(block, field, room, arguments, result) -> list[str]:
    """A paragraph; in a section its items, or its first line, begin with the name of a field."""
    whole = re.sub(_CODE, lambda found: " ".join(found[0].split()), "\n".join(block))
    block, text = whole.split("\n"), _prose(whole, room, arguments).split("\n")
    if field in _FIELDS:
        for i, line in enumerate(block):
            if _indent(line) == 4 and (found := re.match(r"    ([\w., *\\]+?): ?(.*)$", text[i])):
                text[i] = f":{_FIELDS[field]} {found[1].strip()}: {found[2]}"
    elif field in _TEXTS:
        text[0] = f":{_TEXTS[field]}: {text[0].strip()}"
    return text


def signature(value) -> tuple[str, str] | None:
    """Arguments and result as the source writes them, with its short names of types."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    if isinstance(tree, ast.FunctionDef):
        arguments = tree.args
        if arguments.args and arguments.args[0].arg in ("self", "cls"):
            del arguments.args[0]
        return f"({ast.unparse(arguments)})", ast.unparse(tree.returns) if tree.returns else ""
    return None


def class_signature(value) -> str | None:
    """Fields of a NamedTuple or a dataclass, or the arguments of `__init__`, as written."""
    if "__init__" in vars(value) and not hasattr(value, "__dataclass_fields__"):
        found = signature(value.__init__)
        return found and found[0]
    fields = {}
    for base in reversed(value.__mro__):
        if base.__module__.startswith("noisy_jax"):
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body
            for line in body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    fields[line.target.id] = line
    named_tuple = value._fields if issubclass(value, tuple) else ()
    known = getattr(value, "__dataclass_fields__", named_tuple)
    shown = [_field(fields[name]) for name in known if name in fields and _init(value, name)]
    return f"({', '.join(shown)})" if shown else None


def _init(value, name: str) -> bool:
    fields = getattr(value, "__dataclass_fields__", {})
    return name not in fields or fields[name].init


def _field(line: ast.AnnAssign) -> str:
    default = f" = {ast.unparse(line.value)}" if line.value else ""
    return f"{line.target.id}: {ast.unparse(line.annotation)}{default}"
