"""halide_py: a language for image and array processing embedded in Python, compiled to C.

    import halide_py as hl
    x, y = hl.vars("x y")
    f = hl.Func("f")
    f[x, y] = x + y
    f.vectorize(x, 8)
    print(f.realize([640, 480]))

The public names and nothing else; each comes with its own documentation (`help(hl.Func)`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .deferred import deferred
from .driver.abi import get_num_threads, install_dir, memoization_cache_cleanup, memoization_cache_evict, memoization_cache_set_size, set_num_threads
from .driver.file_types import OutputFileType, StmtOutputFormat
from .errors import CompileError, HalideError, HalideWarning, InternalError, PipelineError
from .ir.function import LoopAlignStrategy, PrefetchBoundStrategy, TailStrategy
from .ir.module import ArgumentKind, LinkageType, NameMangling, RuntimeLinkage
from .ir.nodes import MemoryType, Partition
from .ir.target import (
    Target,
    get_host_target,
    get_jit_target_from_environment,
    get_target_from_environment,
    host_supports_target_device,
    target_feature_for_device_api,
)
from .ir.target_words import DeviceAPI, TargetArch, TargetFeature, TargetOS, TargetProcessorTune
from .ir.types import BFloat, Bool, Float, Handle, Int, Type, TypeCode, UInt
from .lang import boundary_conditions as BoundaryConditions
from .lang.argument import Argument
from .lang.autoscheduler_params import AutoschedulerParams, AutoSchedulerResults
from .lang.bits import (
    concat_bits,
    count_leading_zeros,
    count_trailing_zeros,
    div_round_to_zero,
    extract_bits,
    halving_add,
    halving_sub,
    mod_round_to_zero,
    mul_shift_right,
    popcount,
    rounding_halving_add,
    rounding_mul_shift_right,
    rounding_shift_left,
    rounding_shift_right,
    saturating_add,
    saturating_sub,
    widen_right_add,
    widen_right_mul,
    widen_right_sub,
    widening_add,
    widening_mul,
    widening_shift_left,
    widening_shift_right,
    widening_sub,
)
from .lang.buffer import Buffer, BufferDimension
from .lang.callable import Callable
from .lang.effects import gather, memoize_tag, print, print_when, random_float, random_int, random_uint, require, scatter
from .lang.estimates import ArgumentEstimates
from .lang.eviction import EvictionKey
from .lang.expr import Expr
from .lang.extern import ExternFunctionHandle, extern
from .lang.float_math import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    fast_cos,
    fast_exp,
    fast_inverse,
    fast_inverse_sqrt,
    fast_log,
    fast_pow,
    fast_sin,
    floor,
    fract,
    hypot,
    is_finite,
    is_inf,
    is_nan,
    log,
    pow,
    round,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from .lang.func import Func, FuncRef, FuncTupleElementRef, evaluate, evaluate_may_gpu, funcs, lambda_func
from .lang.loop_level import LoopLevel
from .lang.module import Module, compile_standalone_runtime, link_modules, load_plugin
from .lang.ops import (
    abs,
    absd,
    cast,
    clamp,
    f16,
    f32,
    f64,
    i8,
    i8_sat,
    i16,
    i16_sat,
    i32,
    i32_sat,
    i64,
    i64_sat,
    lerp,
    likely,
    likely_if_innermost,
    logical_not,
    max,
    min,
    mux,
    reinterpret,
    saturating_cast,
    select,
    strict_float,
    u8,
    u8_sat,
    u16,
    u16_sat,
    u32,
    u32_sat,
    u64,
    u64_sat,
    undef,
    unsafe_promise_clamped,
)
from .lang.param import Dimension, ImageParam, OutputImageParam, Param
from .lang.parameter import Parameter
from .lang.pipeline import Pipeline
from .lang.rdom import Range, RDom, RVar, VarOrRVar
from .lang.reductions import argmax, argmin, maximum, minimum, product, sum
from .lang.stage import Stage
from .lang.target_queries import (
    target_arch_is,
    target_bits,
    target_has_feature,
    target_natural_vector_size,
    target_os_is,
    user_context_value,
)
from .lang.tuples import Tuple
from .lang.var import Var, _, _0, _1, _2, _3, _4, _5, _6, _7, _8, _9, vars

if TYPE_CHECKING:
    from . import nn
    from .autodiff.checks import GradientReport, check_dot_product, check_gradients
    from .autodiff.custom import CustomGradient, custom_gradient, stop_gradient, with_gradient
    from .autodiff.derivative import Derivative, propagate_adjoints, schedule_gradients
    from .autodiff.opaque import register_extern_stage_gradient, register_extern_stage_tangent
    from .autodiff.pytorch import compile_to_pytorch
    from .autodiff.rules import gradient_rules, register_gradient
    from .autodiff.tangents import propagate_tangents
    from .driver.handlers import TraceEvent, TraceEventCode, handlers
    from .driver.profiler import profiler_report, profiler_reset, profiler_results
    from .generators.command_line import main
    from .generators.context import GeneratorContext, active_generator_context
    from .generators.fields import ArgInfo, ArgInfoDirection, ArgInfoKind, GeneratorParam, InputBuffer, InputScalar, OutputBuffer, OutputScalar
    from .generators.generator import Generator
    from .generators.registry import alias, create_callable_from_generator, generator
    from .lang.extern_stage import ExternFuncArgument
    from .lang.library import load_library
    from .lang.serialization import deserialize_parameters, deserialize_pipeline, serialize_pipeline

__getattr__ = deferred(__name__, {
    "driver.handlers": "TraceEvent TraceEventCode handlers",
    "nn": "nn",
    "lang.library": "load_library",
    "driver.profiler": "profiler_report profiler_reset profiler_results",
    "autodiff.checks": "check_dot_product check_gradients GradientReport",
    "autodiff.custom": "custom_gradient CustomGradient stop_gradient with_gradient",
    "autodiff.derivative": "Derivative propagate_adjoints schedule_gradients",
    "autodiff.opaque": "register_extern_stage_gradient register_extern_stage_tangent",
    "autodiff.pytorch": "compile_to_pytorch",
    "autodiff.rules": "gradient_rules register_gradient",
    "autodiff.tangents": "propagate_tangents",
    "generators.command_line": "main",
    "generators.context": "active_generator_context GeneratorContext",
    "generators.fields": "ArgInfo ArgInfoDirection ArgInfoKind GeneratorParam InputBuffer InputScalar OutputBuffer OutputScalar",
    "generators.generator": "Generator",
    "generators.registry": "alias create_callable_from_generator generator",
    "lang.extern_stage": "ExternFuncArgument",
    "lang.serialization": "deserialize_parameters deserialize_pipeline serialize_pipeline",
})

__all__ = [
    "handlers", "TraceEvent", "TraceEventCode",
    "AutoSchedulerResults", "LinkageType", "load_library", "load_plugin", "NameMangling", "profiler_report", "profiler_reset",
    "profiler_results",
    "_", "_0", "_1", "_2", "_3", "_4", "_5", "_6", "_7", "_8", "_9", "abs", "absd", "acos", "acosh", "argmax", "argmin", "Argument",
    "ArgumentEstimates", "ArgumentKind", "asin", "asinh", "atan", "atan2", "atanh", "BFloat", "Bool", "BoundaryConditions", "Buffer",
    "BufferDimension", "Callable", "cast", "ceil", "clamp", "compile_standalone_runtime", "compile_to_pytorch", "CompileError", "concat_bits", "cos", "cosh",
    "count_leading_zeros", "count_trailing_zeros", "custom_gradient", "CustomGradient", "Derivative", "DeviceAPI", "Dimension",
    "div_round_to_zero", "erf", "evaluate", "evaluate_may_gpu", "EvictionKey", "exp", "Expr", "extern", "ExternFuncArgument", "ExternFunctionHandle", "extract_bits", "f16",
    "f32", "f64", "fast_cos", "fast_exp", "fast_inverse", "fast_inverse_sqrt", "fast_log", "fast_pow", "fast_sin", "Float", "floor",
    "fract", "Func", "FuncRef", "funcs", "FuncTupleElementRef", "gather", "get_host_target", "get_jit_target_from_environment",
    "get_num_threads", "get_target_from_environment", "gradient_rules", "HalideError", "HalideWarning", "halving_add", "halving_sub",
    "Handle", "host_supports_target_device", "hypot", "i16", "i16_sat", "i32", "i32_sat", "i64", "i64_sat", "i8", "i8_sat", "ImageParam",
    "Int", "InternalError", "is_finite", "is_inf", "is_nan", "lambda_func", "lerp", "likely", "likely_if_innermost", "link_modules", "log", "LoopAlignStrategy",
    "logical_not", "LoopLevel", "max", "maximum", "memoization_cache_cleanup", "memoization_cache_evict", "memoization_cache_set_size",
    "memoize_tag", "MemoryType", "min", "minimum", "mod_round_to_zero", "Module",
    "mul_shift_right", "mux", "OutputFileType", "OutputImageParam", "Param", "Parameter", "Partition", "Pipeline", "PipelineError",
    "popcount", "pow", "print", "PrefetchBoundStrategy", "print_when", "product", "propagate_adjoints", "random_float", "random_int", "random_uint", "Range", "RDom",
    "register_extern_stage_gradient", "register_extern_stage_tangent",
    "register_gradient", "reinterpret", "require", "round", "rounding_halving_add", "rounding_mul_shift_right", "rounding_shift_left",
    "rounding_shift_right", "RuntimeLinkage", "RVar", "saturating_add", "saturating_cast", "saturating_sub", "scatter", "select", "set_num_threads", "sin",
    "sinh", "sqrt", "Stage", "StmtOutputFormat", "stop_gradient", "strict_float", "sum", "TailStrategy", "tan", "tanh", "Target",
    "target_arch_is", "target_bits", "target_feature_for_device_api",
    "target_has_feature", "target_natural_vector_size", "target_os_is", "TargetArch", "TargetFeature", "TargetOS", "TargetProcessorTune", "trunc", "Tuple", "Type", "TypeCode",
    "u16", "u16_sat", "u32", "u32_sat", "u64", "u64_sat", "u8", "u8_sat", "UInt", "undef", "unsafe_promise_clamped", "user_context_value",
    "Var", "VarOrRVar",
    "check_dot_product", "check_gradients", "GradientReport", "propagate_tangents", "nn", "schedule_gradients",
    "vars", "widen_right_add", "widen_right_mul", "widen_right_sub", "widening_add", "widening_mul", "widening_shift_left",
    "widening_shift_right", "widening_sub",
    "with_gradient",
    "active_generator_context", "alias", "ArgInfo", "ArgInfoDirection", "ArgInfoKind", "AutoschedulerParams",
    "create_callable_from_generator", "Generator", "generator", "GeneratorContext", "GeneratorParam", "InputBuffer", "InputScalar",
    "install_dir", "main", "OutputBuffer", "OutputScalar",
    "deserialize_parameters", "deserialize_pipeline", "serialize_pipeline",
]


def __dir__() -> list[str]:
    """What completion offers: also the names whose module is not loaded yet."""
    return sorted({*globals(), *__all__})
