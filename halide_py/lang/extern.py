"""extern: C functions of the user's own, called inside Exprs, with a derivative if they are given one.

A call is an ordinary node: a Call of CallType PureExtern (or Extern, for functions with effects) whose `func` is a row of the one table of
functions, `ir.intrinsics.EXTERNS`, in which built-in math lives too. The reverse pass finds the gradient hook in that row.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

from .. import lang
from ..errors import expect, user_error, user_location
from ..ir import nodes as n
from ..ir.build import const
from ..ir.intrinsics import C_LIBRARY, EXTERNS, ExternFunction, call_extern
from ..ir.printer import to_text
from ..ir.types import Type
from .addresses import check_signature, function_address
from .edits import count_edit
from .expr import Expr, to_node
from .promotion import exact, literal, lossless
from .prototypes import Prototype, parse

Hook = Callable[..., Any]
_C_NAMES: dict[str, ExternFunction] = {}  # who has a C name


class ExternFunctionHandle:
    """A C function that can be called in Exprs: `f[x] = soft_knee(image[x], k)`. Made by `extern`."""

    def __init__(self, row: ExternFunction, prototype: Prototype) -> None:
        self.row, self._prototype = row, prototype

    def name(self) -> str:
        """The name of the C function."""
        return self.row.name

    def prototype(self) -> str:
        """The C prototype, as written."""
        return self._prototype.text

    def __call__(self, *args: Any) -> Expr:
        """A call. Python numbers take the type of their parameter and must fit it; Exprs are converted only where nothing can be lost.

        Raises CompileError, naming the argument and the prototype, for a wrong number of arguments and for one that does not fit.
        """
        p = self._prototype
        if len(args) != len(p.types):
            raise user_error(f"{p.name}() takes {len(p.types)} arguments, but is given {len(args)}; its prototype is `{p.text}`")
        nodes = tuple(self._argument(i, a) for i, a in enumerate(args))
        node = call_extern(self.row, *nodes)
        if not self.row.pure:  # equal nodes are one: a number keeps calls with effects apart
            node = n.Call(node.type, self.row.name, nodes, n.CallType.Extern, self.row, next(self.row.extra["calls"]))
        return Expr.of(node)

    def as_expr(self, *args: Any) -> Expr:
        """What a call computes, as an Expr read from the C source: what `gradient="auto"` differentiates. Arguments as for a call.

        Raises CompileError, with line and column of the C source, for what has no Expr, and for a function without source.
        """
        call = self(*args).as_node()
        assert isinstance(call, n.Call)
        if not self.row.source:
            raise user_error(f"{self.name()}.as_expr(): the function `{self.prototype()}` has no C source; give hl.extern() its source=")
        return Expr.of(lang.c_functions.as_expr(self.row, call.args))

    def _argument(self, i: int, given: Any) -> Any:
        p, t = self._prototype, self._prototype.types[i]
        value = literal(given)
        if value is not None:
            if t.is_float() and (isinstance(value, float) or exact(t, int(value))):
                return const(t, value)
            if isinstance(value, int) and t.is_int_or_uint() and t.can_represent_value(int(value)):
                return const(t, int(value))
            raise user_error(f"Argument {p.names[i]} of {p.name}() is {t}, which cannot hold {given!r}; its prototype is `{p.text}`")
        e = to_node(given)
        found = e if e.type.element_of() is t else lossless(t.with_lanes(e.type.lanes()), e)
        if found is None:
            raise user_error(f"Argument {p.names[i]} of {p.name}() is {t}, but is given {to_text(e)} of type {e.type}; cast it: "
                             f"hl.cast({_spelling(t)}, ...). Its prototype is `{p.text}`")
        return found

    def gradient(self, hook: Hook) -> Hook:
        """Register the vector-Jacobian product: `hook(adjoint, result, *args)` gives the adjoint of each argument.

        All are Exprs: the adjoint of the result, the result, the arguments of the call. It returns one Expr for a function of one
        argument, else a tuple with one entry an argument, None for those it is not differentiable in. Also a decorator: `@f.gradient`.
        A later registration replaces the earlier one.
        """
        if not callable(hook):
            raise TypeError(f"{self.name()}.gradient() takes a function (adjoint, result, {', '.join(self._prototype.names)}), not "
                            f"{hook!r}")
        self.row.gradient = hook
        return hook

    def __repr__(self) -> str:
        return f"<halide.extern '{self._prototype.text}'>"


def extern(prototype: str, *, source: str | os.PathLike[str] | None = None, library: str | os.PathLike[str] | None = None,
           objects: Any = (), address: Any = None, pure: bool = True, gradient: Hook | str | None = None) -> ExternFunctionHandle:
    """A C function for use in Exprs, given by its C prototype and where its code is.

    `source`: C text, or the path of a C file; it becomes part of the pipeline's own translation unit, so the C compiler may inline and
    vectorize it. It is compiled as C++ in a namespace of its own: its functions, variables and macros are seen by nothing else, in files
    made ahead of time neither. What it calls from elsewhere comes from headers, or is declared `extern "C"`.
    `library`: the name (`"m"`) or path of a shared library. `objects`: object files or static libraries to link. `address`: the machine
    address of the function: an int, a ctypes or cffi function, a Numba `@cfunc`; such pipelines cannot be compiled ahead of time. With none
    of them the symbol is taken from the process and the C library.

    `pure=False` is for functions with effects: their calls are never duplicated, merged, reordered or dropped.

    `gradient`: the rule, as for `ExternFunctionHandle.gradient`; or "auto", with `source`: the derivative is that of what the C text says
    (see `as_expr`), for functions made of arithmetic, variables, branches, loops whose number of turns is bounded by a constant, arrays of
    constant size, and calls of functions of the same source, of the C library, and of others declared before that have a rule. A rule given
    by hand goes first. The call remains one of the C function.

    Arguments and result are scalars, or `void *`, an opaque handle. Declaring a function again with the same code gives the same function;
    with other C source or another address it gives a new one for the Exprs built from then on. Raises CompileError for a prototype that
    cannot be called from an Expr (it is shown), for more than one origin, for the name of a built-in function of the same argument types,
    and, with line and column, for C that gradient="auto" cannot differentiate.

    >>> j0 = hl.extern("double j0(double x)", library="m")
    >>> j1 = hl.extern("double j1(double x)", library="m")
    >>> j0.gradient(lambda adjoint, result, x: -adjoint * j1(x))
    """
    p = parse(expect(prototype, str, "extern()"))
    paths = tuple(os.fspath(o) for o in ([objects] if isinstance(objects, (str, os.PathLike)) else objects))
    given = [
        name
        for name, value in (("source", source), ("library", library), ("objects", paths), ("address", address))
        if value not in (None, ())
    ]
    if len(given) > 1:
        raise user_error(f"extern: `{p.text}` is given {' and '.join(given)}; its code can come from one of them")
    if not (gradient in (None, "auto") or callable(gradient)):
        raise TypeError(f'extern: gradient= takes a rule (adjoint, result, {", ".join(p.names)}) or "auto", not {gradient!r}')
    text = source_text(source, p.text)
    file = "" if source is None or text is source else os.fspath(source)
    check_signature(address, p)
    row = ExternFunction(
        p.name,
        p.result,
        p.types,
        p.name,
        bool(pure),
        p.text,
        text,
        linker_path(library),
        tuple(map(linker_path, paths)),
        function_address(address, p.text),
        where=user_location(),
        extra={"alive": address, "calls": itertools.count(), "file": file, "names": p.names},
    )
    if gradient == "auto":
        if not row.source:
            raise user_error(f"extern: `{p.text}` has gradient=\"auto\", which reads the function's C text; give it as source=, or give a "
                             f"rule: {p.name}.gradient(lambda adjoint, result, {', '.join(p.names)}: ...)")
        lang.c_functions.translation(row)
    found = _register(row)
    if gradient == "auto" and not found.auto:
        found.auto = True
        found.extra.update(row.extra)
    elif callable(gradient):
        found.gradient = gradient
    return ExternFunctionHandle(found, p)


def _register(new: ExternFunction) -> ExternFunction:
    """Put a row into the table; the row that is there already when both are the same function."""
    old = EXTERNS.get((new.name, new.args))
    if (
        old is not None
        and old.builtin
        and new.name in C_LIBRARY
        and not new.source
        and not new.objects
        and not new.address
        and new.library in ("", "m")
    ):
        return old
    if old is not None and old.builtin and new.name in C_LIBRARY:
        raise user_error(f"extern: `{new.prototype}` has the name of a function of the C library, which is known; declare it without "
                         "source, objects or address, or give your function another name")
    if old is not None and old.builtin:
        raise user_error(f"extern: `{new.prototype}` has the name and argument types of the built-in function {new.name}; use "
                         f"hl.{new.name}, or give your function another name")
    if old is not None and _code(old) == _code(new):
        return old
    holder = _C_NAMES.get(new.c_name)
    if holder is not None:
        if new.source or new.address:  # both versions may meet in one translation unit
            new.c_name = f"{new.name}_{sum(r.name == new.name for r in _C_NAMES.values())}"
        else:
            raise user_error(f"extern: `{new.prototype}` is declared already as `{holder.prototype}` from another place ({holder.where}); "
                             "a C symbol has one type and one origin in a process")
    _C_NAMES[new.c_name] = new
    EXTERNS[new.name, new.args] = new
    count_edit()
    return new


def _code(r: ExternFunction) -> tuple[Any, ...]:
    """What makes a function the same one when it is declared again."""
    return r.result, r.pure, r.source, r.library, r.objects, r.address


def _spelling(t: Type) -> str:
    kind = "Float" if t.is_float() else "Int" if t.is_int() else "UInt"
    return "hl.Handle()" if t.is_handle() else "hl.Bool()" if t.is_bool() else f"hl.{kind}({t.bits()})"


def source_text(source: str | os.PathLike[str] | None, prototype: str) -> str:
    """C text from text or from a file. A string without a line break, brace or semicolon is a path."""
    if source is None:
        return ""
    text = os.fspath(source)
    if isinstance(source, str) and any(c in source for c in "\n{;"):
        return source
    try:
        with open(text, encoding="utf-8") as file:
            return file.read()
    except OSError as e:
        raise user_error(f"extern: `{prototype}`: cannot read the C file {text!r}: {e.strerror}") from None


def linker_path(given: str | os.PathLike[str] | None) -> str:
    """A library's bare name as it is, a path made absolute; a bare file name (`libm.so.6`) as the linker is told to search for it,
    `:libm.so.6`."""
    if given is None:
        return ""
    text = os.fspath(given)
    if os.path.sep in text or not isinstance(given, str) or os.path.exists(text):
        return os.path.abspath(text)
    return f":{text}" if text.endswith(".so") or ".so." in text else text
