"""C text as a syntax tree: preprocessed by the system's C compiler, rid of what headers and GNU C add to it, read by pycparser.

Whatever a system header declares is left out; its macros have done their work (`M_PI`, `INFINITY`, `isnan`) and its usual types are known.
Lines and columns are the user's.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from typing import Any

from ...driver import c_compiler, toolchain
from ...driver.abi import INCLUDE_DIR
from ...errors import CompileError
from ..prototypes import FIXED_TYPES

_MARKER = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"(.*?)"((?:\s+\d+)*)\s*$')
_WORDS = re.compile(r"\b(__inline__|__inline|__restrict__|__restrict|__extension__|__const)\b")
_ATTRIBUTE = re.compile(r"\b__attribute__\s*(?=\()")
_PRELUDE = "".join(f"typedef int {name}; " for name in FIXED_TYPES) + "typedef float float_t; typedef double double_t; "


class Refusal(Exception):
    """What cannot be translated, and where: `node` is a syntax tree or a place of pycparser's, None for the place of what is being
    translated."""

    def __init__(self, message: str, node: Any = None) -> None:
        super().__init__(message)
        self.message, self.coord = message, getattr(node, "coord", node)


@dataclass
class CSource:
    """The declarations of a C text. `constants` are the global variables, in their order."""

    text: str
    title: str
    functions: dict[str, Any] = field(default_factory=dict)
    prototypes: dict[str, Any] = field(default_factory=dict)
    globals: dict[str, Any] = field(default_factory=dict)
    typedefs: dict[str, Any] = field(default_factory=dict)
    enums: list[Any] = field(default_factory=list)

    def line(self, number: int) -> str:
        """A line of the text as the user wrote it."""
        lines = self.text.splitlines()
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def syntax() -> Any:
    """pycparser's classes of syntax trees."""
    return importlib.import_module("pycparser.c_ast")


def read(text: str, title: str) -> CSource:
    """Read a C text, which messages call `title`. Raises Refusal for what is no C, CompileError without a C compiler."""
    parser = importlib.import_module("pycparser.c_parser")
    c_ast = syntax()
    source = CSource(text, title)
    cleaned = _PRELUDE + "\n" + _without_headers(_preprocessed(text, title), title)
    try:
        tree = parser.CParser().parse(cleaned, title)
    except parser.ParseError as e:
        raise _no_c(str(e), text, title) from None
    for d in tree.ext:
        if isinstance(d, c_ast.FuncDef):
            source.functions[d.decl.name] = d
        elif isinstance(d, c_ast.Typedef):
            if d.name not in FIXED_TYPES:
                source.typedefs[d.name] = d.type
        elif isinstance(d, c_ast.Decl) and isinstance(d.type, c_ast.FuncDecl):
            source.prototypes[d.name] = d
        elif isinstance(d, c_ast.Decl) and d.name is not None:
            source.globals[d.name] = d
        source.enums += _enums(d, c_ast)
    return source


def _enums(d: Any, c_ast: Any) -> list[Any]:
    t = getattr(d, "type", None)
    while t is not None and not isinstance(t, c_ast.Enum):
        t = getattr(t, "type", None)
    return [t] if t is not None and t.values is not None else []


def _no_c(problem: str, text: str, title: str) -> Refusal:
    """What is wrong with a text: in the C compiler's words if it has any, else it is C that the parser does not know."""
    done = c_compiler.run(
        [*toolchain.find_compiler(), "-fsyntax-only", "-x", "c", "-std=gnu11", "-I", INCLUDE_DIR, "-"], _titled(text, title)
    )
    for pattern, start in ((r"^(.*?):(\d+):(\d+): error: (.*)$", "it is no C: "), (r"^(.*?):(\d+):(\d+):\s*(.*)$", "C that is not "
                                                                                                                   "understood: ")):
        found = re.search(pattern, done.stderr if "error" in pattern else problem, re.MULTILINE)
        if found is not None:
            return Refusal(start + found[4].strip(), Place(int(found[2]), int(found[3]), title))
    return Refusal(f"C that is not understood: {problem}")


@dataclass(frozen=True)
class Place:
    """A line and column, as pycparser gives them."""

    line: int
    column: int
    file: str


def _preprocessed(text: str, title: str) -> str:
    done = c_compiler.run([*toolchain.find_compiler(), "-E", "-x", "c", "-std=gnu11", "-DNDEBUG", "-I", INCLUDE_DIR, "-"],
                          _titled(text, title))
    if done.returncode:
        lines = [x for x in done.stderr.splitlines() if "error" in x] or done.stderr.splitlines() or [f"status {done.returncode}"]
        raise CompileError(f"The C compiler cannot preprocess {title}: {lines[0].strip()}")
    return done.stdout


def _quoted(title: str) -> str:
    return title.replace("\\", "/").replace('"', "'")


def _titled(text: str, title: str) -> str:
    return f'#line 1 "{_quoted(title)}"\n{text}\n'


def _without_headers(text: str, title: str) -> str:
    """The text without what system headers declare. What they put into the user's lines by macros stays."""
    quoted = _quoted(title)
    out, kept = [], True
    for line in text.splitlines():
        marker = _MARKER.match(line)
        if marker is None:
            if kept:
                out.append(line)
            continue
        kept = marker[2] == quoted or "3" not in marker[3].split() and not marker[2].startswith("<")
        if kept:
            out.append(f'# {marker[1]} "{marker[2]}"')
    return _blanked(_WORDS.sub(lambda m: " " * len(m[0]) if "inline" not in m[0] else "inline".ljust(len(m[0])), "\n".join(out)))


def _blanked(text: str) -> str:
    """Spaces in place of attributes."""
    while (found := _ATTRIBUTE.search(text)) is not None:
        end, depth = found.end(), 0
        while end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        text = text[:found.start()] + re.sub(r"[^\n]", " ", text[found.start():end]) + text[end:]
    return text
