"""`NAME_metadata()` of an ahead-of-time library: arguments, types, defaults and ranges as static data."""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.module import LoweredArgument, LoweredFunction
from ..ir.parameter import Parameter
from ..ir.types import Type
from .ctypes_of import c_string, constant
from .module import export, in_namespaces

_FIELD = {1: "b", 8: "u8", 16: "u16", 32: "u32", 64: "u64"}


def _scalar(name: str, t: Type, e: n.Expr | None, out: list[str]) -> str:
    """A static scalar value for a constant; its address, or null."""
    value = None if e is None else b.as_const(e)
    if value is None or e is None or t.is_handle() or (t.is_float() and t.bits() == 16):
        return "HL_NULL"
    member = f"f{t.bits()}" if t.is_float() else _FIELD[t.bits()].replace("u", "i" if t.is_int() else "u")
    out.append(f"static const struct halide_scalar_value_t {name} = {{{{.{member} = {constant(b.const(t, value))}}}}};")
    return f"&{name}"


def _estimates(name: str, a: LoweredArgument, out: list[str]) -> str:
    """The estimates of a buffer's dimensions: min and extent of each, null where there is none."""
    if a.param is None or not a.is_buffer():
        return "HL_NULL"
    entries = []
    for d, dim in enumerate(a.param.dims):
        for what, e in (("min", dim.min_estimate), ("extent", dim.extent_estimate)):
            value = None if e is None else b.as_int(e)
            if value is None:
                entries.append("HL_NULL")
            else:
                out.append(f"static const int64_t {name}_{what}_{d} = {value}ll;")
                entries.append(f"&{name}_{what}_{d}")
    if all(x == "HL_NULL" for x in entries):
        return "HL_NULL"
    out.append(f"static const int64_t *const {name}_estimates[] = {{{', '.join(entries)}}};")
    return f"{name}_estimates"


def metadata(f: LoweredFunction, target: str) -> str:
    """The text of the function and its data; '' for a function without."""
    if not f.has_metadata:
        return ""
    out: list[str] = []
    rows = []
    for i, a in enumerate(f.args):
        base, p = f"{f.name}_argument_{i}", a.param
        scalar = p if p is not None and not a.is_buffer() else Parameter(a.name, a.type, False)
        default = scalar.default if scalar.default is not None or scalar.value is None else b.const(a.type, scalar.value)
        parts = (("default", default), ("min", scalar.minimum), ("max", scalar.maximum), ("estimate", scalar.estimate))
        values = [_scalar(f"{base}_{what}", a.type, e, out) for what, e in parts]
        estimates = _estimates(base, a, out)
        code = f"{{(halide_type_code_t){int(a.type.code())}, {a.type.bits()}, 1}}"
        rows.append(f"    {{{c_string(a.shown)}, {int(a.kind)}, {a.dimensions}, {code}, {', '.join(values)}, {estimates}}},")
    table = [f"static const struct halide_filter_argument_t {f.name}_arguments[] = {{", *rows, "};"] if rows else []
    first = f"{f.name}_arguments" if rows else "HL_NULL"
    return "\n".join([*out, *table, f"static const struct halide_filter_metadata_t {f.name}_metadata_value = {{1, {len(f.args)}, {first}, "
                      f"{c_string(target)}, {c_string(f.display_name or f.name)}}};",
                      in_namespaces(f, f"{export(f)} const struct halide_filter_metadata_t *{f.simple}_metadata(void) {{\n"
                                       f"    return &{f.name}_metadata_value;\n}}\n")])
