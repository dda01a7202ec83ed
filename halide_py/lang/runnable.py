"""Running and compiling a Func: all through a Pipeline of this Func alone, which keeps what was compiled."""

from __future__ import annotations

from typing import Any

from .pipeline import Pipeline


class Runnable:
    """What a Func passes on to its own Pipeline; see the methods of the same names there."""

    def __init__(self) -> None:
        self._pipeline: Pipeline | None = None

    def pipeline(self) -> Pipeline:
        """The Pipeline whose only output this is."""
        if self._pipeline is None:
            self._pipeline = Pipeline(self)
        return self._pipeline

    def realize(self, *args: Any, **kwargs: Any) -> Any:
        """Compile if needed and run: `realize([width, height])` gives a Buffer (a tuple of them for a tuple-valued Func),
        `realize(buffer)` fills one."""
        return self.pipeline().realize(*args, **kwargs)

    def compile_jit(self, *args: Any, **kwargs: Any) -> None:
        """Compile now rather than at the first realize."""
        self.pipeline().compile_jit(*args, **kwargs)

    def compile_to_callable(self, *args: Any, **kwargs: Any) -> Any:
        """A Python function of the given arguments and the outputs."""
        return self.pipeline().compile_to_callable(*args, **kwargs)

    def infer_arguments(self) -> Any:
        """The arguments the pipeline needs."""
        return self.pipeline().infer_arguments()

    def infer_input_bounds(self, *args: Any, **kwargs: Any) -> None:
        """Find the shapes the unset ImageParams need and allocate them."""
        self.pipeline().infer_input_bounds(*args, **kwargs)

    def print_loop_nest(self) -> None:
        """Print the scheduled loops to standard error; see `Pipeline.print_loop_nest`."""
        self.pipeline().print_loop_nest()

    def compile_to(self, *args: Any, **kwargs: Any) -> None:
        """Write several kinds of output at once."""
        self.pipeline().compile_to(*args, **kwargs)

    def compile_to_lowered_stmt(self, *args: Any, **kwargs: Any) -> None:
        """Write the loop IR."""
        self.pipeline().compile_to_lowered_stmt(*args, **kwargs)

    def compile_to_c(self, *args: Any, **kwargs: Any) -> None:
        """Write the generated C."""
        self.pipeline().compile_to_c(*args, **kwargs)

    def compile_to_header(self, *args: Any, **kwargs: Any) -> None:
        """Write the C header."""
        self.pipeline().compile_to_header(*args, **kwargs)

    def compile_to_object(self, *args: Any, **kwargs: Any) -> None:
        """Write an object file."""
        self.pipeline().compile_to_object(*args, **kwargs)

    def compile_to_file(self, *args: Any, **kwargs: Any) -> None:
        """Write an object file and its header."""
        self.pipeline().compile_to_file(*args, **kwargs)

    def compile_to_static_library(self, *args: Any, **kwargs: Any) -> None:
        """Write a static library and its header."""
        self.pipeline().compile_to_static_library(*args, **kwargs)

    def compile_to_shared_library(self, *args: Any, **kwargs: Any) -> None:
        """Write a shared library and its header."""
        self.pipeline().compile_to_shared_library(*args, **kwargs)

    def compile_to_assembly(self, *args: Any, **kwargs: Any) -> None:
        """Write the machine's assembly."""
        self.pipeline().compile_to_assembly(*args, **kwargs)

    def compile_to_bitcode(self, *args: Any, **kwargs: Any) -> None:
        """Write LLVM bitcode."""
        self.pipeline().compile_to_bitcode(*args, **kwargs)

    def compile_to_llvm_assembly(self, *args: Any, **kwargs: Any) -> None:
        """Write LLVM's intermediate code as text."""
        self.pipeline().compile_to_llvm_assembly(*args, **kwargs)

    def compile_to_multitarget_static_library(self, *args: Any, **kwargs: Any) -> None:
        """Write a static library for several targets."""
        self.pipeline().compile_to_multitarget_static_library(*args, **kwargs)

    def compile_to_multitarget_object_files(self, *args: Any, **kwargs: Any) -> None:
        """Write object files for several targets."""
        self.pipeline().compile_to_multitarget_object_files(*args, **kwargs)

    def compile_to_conceptual_stmt(self, *args: Any, **kwargs: Any) -> None:
        """Write the loops as scheduled, before they are made efficient."""
        self.pipeline().compile_to_conceptual_stmt(*args, **kwargs)

    def compile_to_module(self, *args: Any, **kwargs: Any) -> Any:
        """The compiled code as a Module, to be linked with others and written later."""
        return self.pipeline().compile_to_module(*args, **kwargs)
