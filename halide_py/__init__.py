"""halide_py: a Halide-style compiler for image, array and differentiable programs, in Python: pipelines become vectorized C.

`import halide_py as hl` runs programs written for `import halide as hl`.
"""

from .driver.abi import set_num_threads
from .errors import CompileError, HalideError, HalideWarning, InternalError, PipelineError
from .ir.function import TailStrategy
from .ir.module import ArgumentKind
from .ir.nodes import MemoryType, Partition
from .ir.target import Target, TargetArch, TargetFeature, TargetOS, TargetProcessorTune
from .ir.types import BFloat, Bool, Float, Handle, Int, Type, TypeCode, UInt
from .lang import boundary_conditions as BoundaryConditions
from .lang.argument import Argument
from .lang.buffer import Buffer, BufferDimension
from .lang.callable import Callable
from .lang.expr import Expr
from .lang.func import Func, FuncRef, FuncTupleElementRef, evaluate, funcs, lambda_func
from .lang.func_schedule import LoopLevel
from .lang.ops import (
    abs, absd, acos, acosh, asin, asinh, atan, atan2, atanh, cast, ceil, clamp, cos, cosh, count_leading_zeros, count_trailing_zeros, div_round_to_zero, erf,
    exp, f16, f32, f64, fast_cos, fast_exp, fast_inverse, fast_inverse_sqrt, fast_log, fast_pow, fast_sin, floor, fract, gather, hypot, i8, i8_sat, i16, i16_sat,
    i32, i32_sat, i64, i64_sat, is_finite, is_inf, is_nan, lerp, likely, likely_if_innermost, log, logical_not, max, memoize_tag, min, mod_round_to_zero, mux,
    popcount, pow, print, print_when, reinterpret, require, round, saturating_cast, select, sin, sinh, sqrt, strict_float, tan, tanh, trunc, u8, u8_sat, u16,
    u16_sat, u32, u32_sat, u64, u64_sat, undef, unsafe_promise_clamped)
from .lang.param import Dimension, ImageParam, OutputImageParam, Param
from .lang.pipeline import Pipeline
from .lang.reductions import argmax, argmin, maximum, minimum, product, sum
from .lang.stage import Stage
from .lang.target import get_host_target, get_jit_target_from_environment, get_target_from_environment, host_supports_target_device
from .lang.tuples import Tuple
from .lang.var import RDom, Range, RVar, Var, VarOrRVar, _, _0, _1, _2, _3, _4, _5, _6, _7, _8, _9, vars

__version__ = "0.1.0"
