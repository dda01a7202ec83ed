"""The one table of what a Call may call besides Funcs and images: intrinsics, built-in math, the user's own C functions.

An `Intrinsic` is an operation of the compiler, found by name. An `ExternFunction` is a C function, found by name and
argument types: the built-in math functions are rows made here, `hl.extern` adds rows of the same kind. Both carry
their purity (as CallType), their types and a place for the gradient rule, which the autodiff floor fills.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import CompileError
from .nodes import Call, CallType, Expr
from .types import BOOL, Float, Type

Gradient = Callable[..., Any]


@dataclass(eq=False)
class Intrinsic:
    """An operation of the compiler. `arity` is -1 for any number. `gradient` is the vector-Jacobian product hook, None if it has none."""

    name: str
    arity: int
    call_type: CallType
    doc: str
    gradient: Gradient | None = None


@dataclass(eq=False)
class ExternFunction:
    """A C function callable from an Expr. Types are scalar; a call of vector type applies it lane by lane.

    Where the code comes from: `library` (a name or path to link), `source` (C text compiled into the pipeline's own
    translation unit), `objects` (object files or static libraries), `address`; all empty: the C math library or the runtime.
    """

    name: str
    result: Type
    args: tuple[Type, ...]
    c_name: str
    pure: bool = True
    prototype: str = ""
    source: str = ""
    library: str = ""
    objects: tuple[str, ...] = ()
    address: int = 0
    builtin: bool = False
    gradient: Gradient | None = None
    where: str = ""
    stage: bool = False  # an extern stage's: handles are buffers
    auto: bool = False  # without a rule of its own, its derivative is that of what its source says
    extra: dict[str, Any] = field(default_factory=dict)

    def names(self) -> list[str]:
        """What to call the arguments, in messages."""
        given = self.extra.get("names") or [""] * len(self.args)
        return [name if name.isidentifier() else f"a{i}" for i, name in enumerate(given)]

    def call_type(self) -> CallType:
        """PureExtern, or Extern for a function with effects."""
        return CallType.PureExtern if self.pure else CallType.Extern


INTRINSICS: dict[str, Intrinsic] = {}
EXTERNS: dict[tuple[str, tuple[Type, ...]], ExternFunction] = {}


def _intrinsic(names: str, arity: int, doc: str, pure: bool = True) -> None:
    for name in names.split():
        INTRINSICS[name] = Intrinsic(name, arity, CallType.PureIntrinsic if pure else CallType.Intrinsic, doc)


_intrinsic("abs", 1, "absolute value; of a signed integer the unsigned type of its width")
_intrinsic("absd", 2, "|a - b| without overflow, unsigned for integers")
_intrinsic("bitwise_and bitwise_or bitwise_xor", 2, "bit by bit")
_intrinsic("bitwise_not", 1, "bit by bit")
_intrinsic("shift_left shift_right", 2, "shift; a negative signed amount shifts the other way; right shifts of signed values are "
                                        "arithmetic")
_intrinsic("popcount count_leading_zeros count_trailing_zeros", 1, "bit counts; of 0 the zeros number the width")
_intrinsic("div_round_to_zero mod_round_to_zero", 2, "C's division and remainder, with x/0 = x%0 = 0")
_intrinsic("lerp", 3, "linear interpolation (zero_value, one_value, weight), exact for integers")
_intrinsic("likely likely_if_innermost", 1, "the identity; marks the steady state for loop partitioning")
_intrinsic("strict_float", 1, "the identity; arithmetic inside is exact IEEE, neither reassociated nor contracted")
_intrinsic("unsafe_promise_clamped", 3, "the first argument, promised to lie between the other two")
_intrinsic("undef", 0, "no value: a store of it is dropped")
_intrinsic("is_nan is_inf is_finite", 1, "IEEE classification, bool")
_intrinsic("if_then_else", -1, "condition, value, value: only the chosen one is evaluated")
_intrinsic("mux", -1, "index, values: the value at index, the last one if out of range")
_intrinsic("random", -1, "a hash of its uint32 arguments")
_intrinsic("widening_add widening_sub widening_mul widen_right_add widen_right_sub widen_right_mul", 2, "arithmetic at twice the width")
_intrinsic("widening_shift_left widening_shift_right rounding_shift_left rounding_shift_right", 2, "shifts")
_intrinsic("saturating_add saturating_sub halving_add halving_sub rounding_halving_add", 2, "fixed-point arithmetic")
_intrinsic("mul_shift_right rounding_mul_shift_right", 3, "fixed-point multiplication")
_intrinsic("saturating_cast", 1, "conversion that clamps to the range of the result type")
_intrinsic("concat_bits", -1, "narrow integers joined, the first lowest")
_intrinsic("extract_bits", 2, "part of an integer at a bit offset")
_intrinsic("gather scatter", -1, "several reads or writes in one update")
_intrinsic("target_arch_is target_os_is target_has_feature target_natural_vector_size", 1, "what the target is; answered when lowering")
_intrinsic("target_bits", 0, "width of the target's addresses")
_intrinsic("user_context_value", 0, "the user context the pipeline was called with")
_intrinsic("return_second", 2, "evaluate both, give the second", pure=False)
_intrinsic("require", 3, "condition, value, error call: the value, or leave the pipeline with the error's code", pure=False)
_intrinsic("print", -1, "print the arguments, give the first", pure=False)
_intrinsic("print_when", -1, "print the arguments after the first if it holds, give the second", pure=False)
_intrinsic("stringify", -1, "the arguments as text, joined by spaces (a handle to a C string)", pure=False)
_intrinsic("trace", -1, "report a load, store, realization or stage to the tracer", pure=False)
_intrinsic("memoize_tag", -1, "the first argument; the others key the memoization cache", pure=False)
_intrinsic("whole_buffer buffer_part", -1, "two corners of a Func or image: the buffer with what is between them, for an extern "
                                           "stage", pure=False)
_intrinsic("memo_fetch", -1, "copy what the memoization cache holds under a key to a realization (first and last element, key words): "
                             "whether it did", pure=False)
_intrinsic("memo_keep", -1, "copy a realization (first and last element) to the cache, with an eviction key, under key words", pure=False)
_intrinsic("async_window", 3, "mark of one iteration of a loop that a Func's folded storage moves along with: Func, which, room in "
                              "iterations", pure=False)
_intrinsic("semaphores", -1, "make the semaphores of a fork (a Load of its allocation, what each starts at)", pure=False)
_intrinsic("semaphore_acquire semaphore_release", 2, "take or give one (a Load of the fork's allocation, which): 0, or a failure's "
                                                     "code", pure=False)
_intrinsic("prefetch", 1, "hint that the element (a Load) will be read", pure=False)
_intrinsic("debug_to_file", -1, "write a region to a file (name, first element, of each dimension the extent and the second element): an "
                                "error code", pure=False)
# their Loads name places: nothing is read
PLACES = frozenset({"debug_to_file", "memo_fetch", "memo_keep", "semaphores", "semaphore_acquire", "semaphore_release", "prefetch"})
GRADIENT_MARKS = ("stop_gradient", "custom_gradient")
_intrinsic("stop_gradient", 1, "the identity; a constant to the derivative; dropped when Funcs are inlined")
_intrinsic("custom_gradient", -1, "the first argument; the gradient rule in `func` is for the others; dropped when Funcs are inlined")


def math_function(name: str, arity: int, spelling: str, result: Type | None = None) -> None:
    """Add the rows of a built-in math function for float16, float32 and float64. `spelling` is the C name for double; `f` is appended for
    float; half floats compute in float."""
    for bits in (16, 32, 64):
        t = Float(bits)
        row = ExternFunction(name, result or t, (t,) * arity, spelling if bits == 64 else spelling + "f", builtin=True)
        EXTERNS[name, row.args] = row


for _name in ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "log", "sqrt",
              "floor", "ceil", "trunc", "erf"]:
    math_function(_name, 1, _name)
math_function("round", 1, "nearbyint")  # halfway cases to even
math_function("pow", 2, "pow")
math_function("atan2", 2, "atan2")
math_function("hypot", 2, "hypot")
# Functions of the C library that the language has no name for: what C sources call. hl.extern of one of them gives the row.
C_LIBRARY = {
    "log1p": 1,
    "expm1": 1,
    "exp2": 1,
    "log2": 1,
    "log10": 1,
    "cbrt": 1,
    "erfc": 1,
    "fmod": 2,
    "remainder": 2,
    "copysign": 2,
    "fdim": 2,
    "fmin": 2,
    "fmax": 2,
    "fma": 3,
}
for _name, _arity in C_LIBRARY.items():
    math_function(_name, _arity, _name)
for _name, _arity in (
    ("fast_exp", 1), ("fast_log", 1), ("fast_pow", 2), ("fast_sin", 1), ("fast_cos", 1), ("fast_inverse", 1), ("fast_inverse_sqrt", 1)):
    _row = ExternFunction(_name, Float(32), (Float(32),) * _arity, f"halide_{_name}_f32", builtin=True)
    EXTERNS[_name, _row.args] = _row


def intrinsic(name: str, result: Type, *args: Expr) -> Expr:
    """A call of an intrinsic of the table. Raises KeyError for a name that is not in it (our bug)."""
    return Call(result, name, args, INTRINSICS[name].call_type)


def find_extern(name: str, args: tuple[Type, ...]) -> ExternFunction:
    """The row for a C function by name and scalar argument types. Raises CompileError listing the signatures known."""
    row = EXTERNS.get((name, args))
    if row is None:
        known = [f"{r.result} {r.name}({', '.join(map(str, r.args))})" for r in EXTERNS.values() if r.name == name]
        raise CompileError(f"No function {name}({', '.join(map(str, args))}); known: {'; '.join(known) or 'none of that name'}")
    return row


def call_extern(row: ExternFunction, *args: Expr) -> Expr:
    """A call of a C function; of vector type when an argument is a vector."""
    lanes = max([a.type.lanes() for a in args], default=1)
    return Call(row.result.with_lanes(lanes), row.name, args, row.call_type(), row)


def math_call(name: str, *args: Expr) -> Expr:
    """A call of a built-in math function at the element type of its first argument."""
    return call_extern(find_extern(name, tuple(a.type.element_of() for a in args)), *args)


def is_predicate(e: Expr) -> bool:
    """Whether an Expr is a condition."""
    return e.type.element_of() is BOOL
