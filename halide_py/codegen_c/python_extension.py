"""C text of a CPython extension module whose functions are pipelines: `import blur; blur.blur(image, out)` where halide_py is not
installed.

Compile it as C or C++ with Python's headers and link it with the pipelines' object or static library. The macros are Halide's:
`HALIDE_PYTHON_EXTENSION_MODULE_NAME` and `HALIDE_PYTHON_EXTENSION_FUNCTIONS` (`X(blur) X(sharpen)`) make one module of several files, all
but one compiled with `HALIDE_PYTHON_EXTENSION_OMIT_MODULE_DEFINITION`.
"""

from __future__ import annotations

import re

from ..errors import CompileError
from ..ir.module import USER_CONTEXT, LoweredArgument, LoweredFunction, LoweredModule
from .ctypes_of import c_string, is_half, memory_type
from .module import declaration

_HEAD = """/* {names}: a Python extension made by halide_py. Compile it with Python's headers and link it with the pipelines. */
#include <Python.h>
#define HL_OWN_DECLARATIONS
#include "hl_runtime.h"
#include "hl_vector.h"
#include "hl_python.h"

"""
_OPEN = """
#ifdef __cplusplus
extern "C" {
#endif

"""
_MODULE = """
#ifndef HALIDE_PYTHON_EXTENSION_OMIT_MODULE_DEFINITION
#ifndef HALIDE_PYTHON_EXTENSION_MODULE_NAME
#define HALIDE_PYTHON_EXTENSION_MODULE_NAME {module}
#endif
#ifndef HALIDE_PYTHON_EXTENSION_FUNCTIONS
#define HALIDE_PYTHON_EXTENSION_FUNCTIONS {functions}
#endif
#define X(name) PyObject *hl_python_##name(PyObject *module, PyObject *args, PyObject *kwargs);
HALIDE_PYTHON_EXTENSION_FUNCTIONS
#undef X

static PyMethodDef hl_python_methods[] = {{
#define X(name) {{#name, (PyCFunction)(void (*)(void))hl_python_##name, METH_VARARGS | METH_KEYWORDS, NULL}},
    HALIDE_PYTHON_EXTENSION_FUNCTIONS
#undef X
    {{NULL, NULL, 0, NULL}},
}};

static struct PyModuleDef hl_python_module = {{
    PyModuleDef_HEAD_INIT, HL_PYTHON_TEXT(HALIDE_PYTHON_EXTENSION_MODULE_NAME), NULL, -1, hl_python_methods, NULL, NULL, NULL, NULL,
}};

__attribute__((visibility("default"))) PyObject *HL_PYTHON_JOIN(PyInit_, HALIDE_PYTHON_EXTENSION_MODULE_NAME)(void);
__attribute__((visibility("default"))) PyObject *HL_PYTHON_JOIN(PyInit_, HALIDE_PYTHON_EXTENSION_MODULE_NAME)(void) {{
    return hl_python_start(&hl_python_module);
}}
#endif
"""
_TAIL = """
#ifdef __cplusplus
}
#endif
"""


def _take(i: int, a: LoweredArgument) -> tuple[str, str, str]:
    """Of one argument: the declaration of its C value, the condition that fails (an exception is set then), and what the pipeline is
    given."""
    name, source = c_string(a.shown), f"objects[{i}]"
    if a.is_buffer():
        writable = int(a.kind.name == "OutputBuffer")
        return f"hl_python_buffer b{i};", f"hl_python_take({source}, {name}, {a.dimensions}, {writable}, &b{i}) < 0", f"b{i}.buffer"
    if a.type.is_handle():
        if a.name != USER_CONTEXT:
            raise CompileError(f"A Python extension cannot pass the pointer {a.shown}; only buffers and numbers")
        return "", "", f"({source} == Py_None ? NULL : (void *){source})"
    if is_half(a.type):
        raise CompileError(f"A Python extension cannot pass the {a.type} scalar {a.shown}; make it a float32 and cast it in the pipeline")
    if a.type.is_float():
        return f"double v{i} = 0;", f"hl_python_float({source}, {name}, &v{i}) < 0", f"({memory_type(a.type)})v{i}"
    if a.type.is_bool():
        return f"int v{i} = 0;", f"hl_python_bool({source}, {name}, &v{i}) < 0", f"v{i} != 0"
    check = f"hl_python_int({source}, {name}, {int(a.type.is_int())}, {a.type.bits()}, &v{i}) < 0"
    return f"int64_t v{i} = 0;", check, f"({memory_type(a.type)})v{i}"


def _wrapper(f: LoweredFunction) -> str:
    """The function that Python calls."""
    names = [re.sub(r"\W", "_", a.shown) for a in f.args]
    buffers = [i for i, a in enumerate(f.args) if a.is_buffer()]
    parts = [_take(i, a) for i, a in enumerate(f.args)]
    count, keywords = len(f.args), "".join(f'(char *)"{name}", ' for name in names)
    targets = "".join(f", &objects[{i}]" for i in range(count))
    conditions = [f"    if ({check}) {{\n        goto done;\n    }}" for _, check, _ in parts if check]
    return "\n".join([
        f"/* {f.qualified}({', '.join(names)}) */",
        f"PyObject *hl_python_{f.simple}(PyObject *module, PyObject *args, PyObject *kwargs);",
        f"PyObject *hl_python_{f.simple}(PyObject *module, PyObject *args, PyObject *kwargs) {{",
        f"    static char *names[] = {{{keywords}NULL}};",
        f"    PyObject *objects[{max(count, 1)}], *result = NULL;",
        *(f"    {declared}" for declared, _, _ in parts if declared),
        "    int code = 0;",
        "    (void)module;",
        "    (void)objects;",
        *(f"    b{i}.has_view = 0;" for i in buffers),
        f'    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "{"O" * count}:{f.simple}", names{targets})) {{',
        "        return NULL;",
        "    }",
        *conditions,
        "    Py_BEGIN_ALLOW_THREADS",
        f"    code = {f.qualified}({', '.join(value for _, _, value in parts)});",
        "    Py_END_ALLOW_THREADS",
        "    result = code ? hl_python_fail(code) : Py_NewRef(Py_None);",
        *(["done:"] if conditions else []),
        *(f"    hl_python_release(&b{i});" for i in buffers),
        "    return result;",
        "}", ""])


def python_extension(module: LoweredModule) -> str:
    """The text of the extension; it includes `hl_runtime.h` and `hl_python.h`. Raises CompileError for arguments that Python cannot
    pass."""
    functions = " ".join(f"X({f.simple})" for f in module.functions)
    return "".join(
        [
            _HEAD.format(names=", ".join(f.qualified for f in module.functions)),
            *(f"{declaration(f)}" for f in module.functions),
            _OPEN,
            "\n".join(_wrapper(f) for f in module.functions),
            _MODULE.format(module=module.name, functions=functions),
            _TAIL,
        ]
    )

