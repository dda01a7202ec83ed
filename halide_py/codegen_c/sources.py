"""The user's C sources in a translation unit: each in a namespace of its own, so that no name of one is seen by another, by the pipeline's
code, or by the linker.

Headers belong outside of the namespace: what a source says to the preprocessor comes twice, in front of the namespace and, in its place,
inside, where headers are there already. Macros of a source end with it. Compiled as C, which has no namespaces, names stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..ir.intrinsics import ExternFunction
from .machine import SOURCE_OF

# A call is spelled HL_IN(space, name). <math.h> declares what it does in C.
_HEAD = """#ifdef __cplusplus
#define HL_IN(space, name) space::name
#else
#define HL_IN(space, name) name
#endif
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS"""
_TAIL = "#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS"
_COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_DEFINE = re.compile(r"\s*#\s*define\s+(\w+)")
_UNSEEN = re.compile(r"\s*#\s*(pragma|line|ident)\b")


_UNDEFINED = re.compile(r"_ZN12_GLOBAL__N_1(\d+)(hl_source\w+)")


def declared_only(report: str) -> str:
    """What a source declares and nobody defines, by the message of a linker or loader about symbols; "" for other messages."""
    m = _UNDEFINED.search(report)
    if m is None:
        return ""
    length, name = re.match(r"(\d*)(.*)", m[2][int(m[1]):]).groups()  # type: ignore[union-attr]
    return name[:int(length)] if length else ""


def not_defined(name: str) -> str:
    """The advice for it."""
    return (f"A C source given to halide_py declares {name} and does not define it. Each source is private: include the header that "
            f'declares it, write `extern "C"` in front of the declaration (sources are compiled as C++), or put both into one source')


def space(number: int) -> str:
    """The namespace of a unit's source of that number."""
    return f"hl_source{number}"


def source_texts(rows: Iterable[ExternFunction], spaces: dict[str, str]) -> str:
    """All sources that some functions come from, each once, in its namespace."""
    sources: dict[str, list[ExternFunction]] = {}
    for row in rows:
        sources.setdefault(row.source, []).append(row)
    return "\n".join([_HEAD, *(_source(spaces[text], those) for text, those in sources.items()), _TAIL])


def _source(name: str, rows: Sequence[ExternFunction]) -> str:
    """One source. In the compiler's messages it has a name and lines of its own."""
    text, file = rows[0].source, f"{SOURCE_OF}{rows[0].name}"
    renamed = [r for r in rows if r.c_name != r.name]
    directives = _directives(text)
    macros = [f"#undef {m[1]}" for _, one in directives if (m := _DEFINE.match(one))]
    headers = any("include" in one for _, one in directives)
    return "\n".join([
        *([line for number, one in directives for line in (f'#line {number} "{file}"', one)] + macros if headers else []),
        "#ifdef __cplusplus",
        f"namespace {{ namespace {name} {{",
        "#endif",
        f'#line 1 "{file}"',
        *(f"#define {r.name} {r.c_name}" for r in renamed),
        f'#line 1 "{file}"',
        text,
        *(f"#undef {r.name}" for r in renamed),
        *macros,
        "#ifdef __cplusplus",
        *(line for r in rows if r.prototype and not r.stage for line in _agreement(r)),
        "} }",
        "#endif",
        '#line 1 "pipeline"',
    ])


def _agreement(r: ExternFunction) -> list[str]:
    """A function has the type of its prototype: C would convert arguments and results in silence."""
    return [
        f'#line 1 "{SOURCE_OF}{r.name}, which has to define `{r.prototype}`"',
        f"namespace hl_prototype {{ {r.prototype}; }}",
        f"[[maybe_unused]] static decltype(hl_prototype::{r.name}) *const hl_has_{r.c_name} = {r.c_name};",
    ]


def _directives(text: str) -> list[tuple[int, str]]:
    """What a text says to the preprocessor, with numbers of lines."""
    plain = _COMMENT.sub(lambda m: m[0] if m[0][0] in "\"'" else " " + "\n" * m[0].count("\n"), text)
    out: list[tuple[int, str]] = []
    lines = iter(enumerate(plain.split("\n"), 1))
    for number, line in lines:
        if not line.lstrip().startswith("#"):
            continue
        whole = [line]
        while whole[-1].endswith("\\"):
            whole.append(next(lines, (0, ""))[1])
        if not _UNSEEN.match(line):
            out.append((number, "\n".join(whole)))
    return out
