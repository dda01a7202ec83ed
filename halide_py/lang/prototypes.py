"""C prototypes: read one with pycparser into the types of the language.

`parse("float soft_knee(float x, float k)")` gives name, result type, argument names and types. Typedefs of <stdint.h>, <stddef.h> and
<stdbool.h> are known. What a call inside an Expr cannot mean (void results, varargs, structs, pointers other than `void *`) is refused with
the prototype in the message. pycparser is imported when the first prototype is read.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any, NamedTuple

from ..errors import CompileError, user_error
from ..ir.types import Bool, Float, Handle, Int, Type, UInt

FIXED_TYPES = {**{f"int{w}_t": Int(w) for w in (8, 16, 32, 64)}, **{f"uint{w}_t": UInt(w) for w in (8, 16, 32, 64)},
          "size_t": UInt(64), "ptrdiff_t": Int(64), "intptr_t": Int(64), "uintptr_t": UInt(64), "ssize_t": Int(64), "bool": Bool()}
_PRELUDE = "".join(f"typedef int {name};" for name in FIXED_TYPES)


class Prototype(NamedTuple):
    """What a C declaration of a function says. `text` is the declaration as written, on one line."""

    text: str
    name: str
    result: Type
    names: tuple[str, ...]
    types: tuple[Type, ...]


@functools.cache
def _pycparser() -> tuple[Any, Any]:
    """pycparser's parser and syntax tree modules; not needed, and not imported, before the first prototype."""
    return importlib.import_module("pycparser.c_parser"), importlib.import_module("pycparser.c_ast")


def parse(text: str) -> Prototype:
    """Read a prototype. Raises CompileError, showing it, for anything that cannot be called from an Expr."""
    c_parser, c_ast = _pycparser()
    shown = " ".join(text.split()).rstrip("; ")
    try:
        declarations = [d for d in c_parser.CParser().parse(_PRELUDE + shown + ";").ext if not isinstance(d, c_ast.Typedef)]
    except c_parser.ParseError as e:
        problem = re.sub(r"^.*?:\d+:\d+:\s*", "", str(e))
        raise user_error(f"extern: cannot read the C prototype `{shown}`: {problem}. Write it as in C: \"float f(float x, int "
                         "n)\"") from None
    if len(declarations) != 1 or not isinstance(declarations[0], c_ast.Decl) or not isinstance(declarations[0].type, c_ast.FuncDecl):
        raise user_error(f"extern: `{shown}` is not the prototype of one function; write it as in C: \"float f(float x, int n)\"")
    function = declarations[0].type
    params = list(function.args.params) if function.args else []
    if len(params) == 1 and _is_void(params[0], c_ast):
        params = []
    names, types = [], []
    for i, p in enumerate(params):
        if isinstance(p, c_ast.EllipsisParam):
            raise _refused(shown, "takes a variable number of arguments", "declare a function of fixed arguments that calls it")
        if isinstance(p, c_ast.ID):
            raise _refused(shown, f"gives no type for argument {i + 1}, {p.name}", "write the type of each argument")
        name = getattr(p, "name", None) or f"argument {i + 1}"
        names.append(name)
        types.append(_type(p.type, f"argument {name}", shown, c_ast))
    if _is_void(function, c_ast):
        raise _refused(shown, "has no result (void), so a call of it has no value", "let it return one, 0 for instance")
    return Prototype(shown, declarations[0].name, _type(function.type, "the result", shown, c_ast), tuple(names), tuple(types))


def _refused(shown: str, problem: str, remedy: str) -> CompileError:
    return user_error(f"extern: `{shown}` {problem}; {remedy}")


def _is_void(declaration: Any, c_ast: Any) -> bool:
    t = getattr(declaration, "type", None)
    return isinstance(t, c_ast.TypeDecl) and isinstance(t.type, c_ast.IdentifierType) and t.type.names == ["void"]


def _type(t: Any, what: str, shown: str, c_ast: Any) -> Type:
    """The Type of one result or argument."""
    if isinstance(t, c_ast.PtrDecl):
        if _is_void(t, c_ast):
            return Handle()
        raise _refused(shown, f"has a pointer for {what}", "only `void *` can be passed, as an opaque handle; buffers go to extern stages")
    if isinstance(t, (c_ast.ArrayDecl, c_ast.FuncDecl)):
        raise _refused(shown, f"has an array or a function for {what}", "only scalars and `void *` can be passed")
    if not isinstance(t.type, c_ast.IdentifierType):
        raise _refused(shown, f"has a struct, union or enum for {what}", "only scalars and `void *` can be passed")
    found = scalar_type(t.type.names)
    if found is None:
        raise _refused(shown, f"has the type {' '.join(t.type.names)} for {what}, which has no counterpart in the language",
                       "use float, double, bool, or an integer such as int32_t")
    return found


def scalar_type(names: list[str]) -> Type | None:
    """The Type of C's type specifiers, in whatever order they are written; `long` has 64 bits, plain `char` is signed."""
    if len(names) == 1 and names[0] in FIXED_TYPES:
        return FIXED_TYPES[names[0]]
    words = sorted(names)
    unsigned = "unsigned" in words
    core = [w for w in words if w not in ("signed", "unsigned")]
    if core in (["float"], ["double"], ["_Bool"]) and len(core) == len(words):
        return {"float": Float(32), "double": Float(64), "_Bool": Bool()}[core[0]]
    bits = {
        "": 32,
        "int": 32,
        "char": 8,
        "short": 16,
        "int short": 16,
        "long": 64,
        "int long": 64,
        "long long": 64,
        "int long long": 64,
    }.get(" ".join(core))
    if bits is None:
        return None
    return UInt(bits) if unsigned else Int(bits)
