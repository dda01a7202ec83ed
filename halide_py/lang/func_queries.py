"""What a Func can be asked: its name, types, values and updates, its output buffers."""

from __future__ import annotations

from ..errors import user_error
from ..ir.function import Definition, Function
from ..ir.types import Type
from .expr import Expr
from .param import OutputImageParam
from .rdom import RVar
from .stage import Stage
from .var import Var


class FuncQueries:
    """The part of Func that changes nothing."""

    function: Function

    def name(self) -> str:
        """The name, unique in the process.

        >>> hl.Func("blur_x").name()[:6]
        'blur_x'
        """
        return self.function.name

    def defined(self) -> bool:
        """Whether it has a definition.

        >>> f = hl.Func()
        >>> f[x] = x
        >>> f.defined(), hl.Func().defined()
        (True, False)
        """
        return self.function.pure is not None

    def args(self) -> list[Var]:
        """The dimensions, innermost first; empty while undefined.

        >>> f = hl.Func()
        >>> f[x, y] = x
        >>> [v.name() for v in f.args()]
        ['x', 'y']
        """
        return [Var(a) for a in self.function.args]

    def dimensions(self) -> int:
        """Number of dimensions, or the number it was declared with.

        Raises CompileError where neither is known.

        >>> f = hl.Func()
        >>> f[x, y] = x
        >>> f.dimensions()
        2
        """
        f = self.function
        if f.pure is None and f.required_dimensions < 0:
            raise user_error(f'Can\'t call Func::dimensions on Func "{f.name}" because it is undefined or has no dimension requirements.')
        return len(f.args) if f.pure is not None else f.required_dimensions

    def _types(self, call: str) -> tuple[Type, ...]:
        f = self.function
        types = f.types if f.pure is not None else f.required_types
        if not types:
            raise user_error(f'Can\'t call Func::{call} on Func "{f.name}" because it is undefined or has no type requirements.')
        return types

    def type(self) -> Type:
        """The Type of the only value, or the one it was declared with.

        Raises CompileError where neither is known, and for several values.

        >>> f = hl.Func()
        >>> f[x] = hl.u8(x)
        >>> f.type() == hl.UInt(8)
        True
        """
        types = self._types("type")
        if len(types) > 1:
            raise user_error(f'Can\'t call Func::type on Func "{self.name()}" because it returns a Tuple; use types()')
        return types[0]

    def types(self) -> list[Type]:
        """The Type of each value, or those it was declared with.

        Raises CompileError where neither is known.

        >>> f = hl.Func()
        >>> f[x] = (x, hl.f32(x))
        >>> len(f.types())
        2
        """
        return list(self._types("types"))

    def outputs(self) -> int:
        """Number of values.

        Raises CompileError while undefined, unless types were declared.

        >>> f = hl.Func()
        >>> f[x] = (x, 2 * x)
        >>> f.outputs()
        2
        """
        return len(self._types("outputs"))

    def _pure(self, call: str) -> Definition:
        if self.function.pure is None:
            raise user_error(f"Can't call Func::{call}() on an undefined Func ({self.name()}). To check if a Func is defined, call "
                             "Func::defined()")
        return self.function.pure

    def value(self) -> Expr:
        """The only value of the pure definition.

        Raises CompileError while undefined, and for several values.

        >>> f = hl.Func()
        >>> f[x] = x + 1
        >>> f.value()
        <halide.Expr of type int32: (x + 1)>
        """
        values = self._pure("value").values
        if len(values) != 1:
            raise user_error(f'Can\'t call Func::value() on Func "{self.name()}", because it has multiple values; use values()')
        return Expr.of(values[0])

    def values(self) -> tuple[Expr, ...]:
        """The values of the pure definition.

        Raises CompileError while undefined.

        >>> f = hl.Func()
        >>> f[x] = (x, 2 * x)
        >>> len(f.values())
        2
        """
        return tuple(Expr.of(v) for v in self._pure("values").values)

    def has_update_definition(self) -> bool:
        """Whether there are updates.

        >>> f = hl.Func()
        >>> f[x] = x
        >>> f[0] += 5
        >>> f.has_update_definition()
        True
        """
        return bool(self.function.updates)

    def num_update_definitions(self) -> int:
        """How many updates there are.

        >>> f = hl.Func()
        >>> f[x] = x
        >>> f[0] += 5
        >>> f.num_update_definitions()
        1
        """
        return len(self.function.updates)

    def _update(self, call: str, idx: int) -> Definition:
        if self.function.with_updates is not None:
            self.function.with_updates()
        count = len(self.function.updates)
        if not 0 <= idx < count:
            raise user_error(f'Call to {call}({idx}) with index larger than last defined update stage for Func "{self.name()}", which has '
                             f'{count} update(s)')
        return self.function.updates[idx]

    def update(self, idx: int = 0) -> Stage:
        """The schedule of update number `idx`.

        Raises CompileError for one there is not.

        >>> f = hl.Func()
        >>> f[x] = x
        >>> f[x] += 5
        >>> f.update(0).vectorize(x, 8).name()[-10:]
        '.update(0)'
        """
        self._update("update", idx)
        return Stage(self, idx + 1)

    def update_args(self, idx: int = 0) -> list[Expr]:
        """The coordinates an update writes.

        >>> f = hl.Func()
        >>> f[x] = x
        >>> f[7] += 5
        >>> f.update_args(0)
        [<halide.Expr of type int32: 7>]
        """
        return [Expr.of(a) for a in self._update("update_args", idx).args]

    def update_value(self, idx: int = 0) -> Expr:
        """The only value of an update.

        Raises CompileError for several values.

        >>> f = hl.Func()
        >>> f[x] = x
        >>> f[7] = 2 * hl.Expr(3)
        >>> hl.evaluate(f.update_value(0))
        6
        """
        values = self._update("update_value", idx).values
        if len(values) != 1:
            raise user_error(f'Can\'t call Func::update_value() on Func "{self.name()}", because it has multiple values; use '
                             'update_values()')
        return Expr.of(values[0])

    def update_values(self, idx: int = 0) -> tuple[Expr, ...]:
        """The values of an update.

        >>> f = hl.Func()
        >>> f[x] = (x, x)
        >>> f[7] = (8, 9)
        >>> [hl.evaluate(v) for v in f.update_values(0)]
        [8, 9]
        """
        return tuple(Expr.of(v) for v in self._update("update_values", idx).values)

    def rvars(self, idx: int = 0) -> list[RVar]:
        """The RVars of an update.

        >>> f, r = hl.Func(), hl.RDom([(0, 4)], 'r')
        >>> f[x] = 0
        >>> f[x] += r.x
        >>> len(f.rvars(0))
        1
        """
        d = self._update("rvars", idx).rdom
        return [RVar.of(d, i) for i in range(len(d.variables))] if d else []

    def is_extern(self) -> bool:
        """Whether it is defined by an extern stage.

        >>> f = hl.Func()
        >>> f[x] = x
        >>> f.is_extern()
        False
        """
        return self.function.extern is not None

    def extern_function_name(self) -> str:
        """The C function of an extern stage. Raises CompileError for other Funcs.

        >>> f = hl.Func()
        >>> f.define_extern("solve", [], hl.Float(32), 1)
        >>> f.extern_function_name()
        'solve'
        """
        if self.function.extern is None:
            raise user_error(f"Func {self.name()} is not an extern stage, so it has no extern function name")
        return self.function.extern.row.name

    def output_buffer(self) -> OutputImageParam:
        """The output buffer, to constrain its shape or to use its bounds in expressions.

        Raises CompileError for an undefined Func without declared types and dimensions.

        >>> f = hl.Func()
        >>> f[x] = x
        >>> f.output_buffer().dimensions()
        1
        """
        return self.output_buffers()[0]

    def output_buffers(self) -> list[OutputImageParam]:
        """One a value.

        Raises CompileError for an undefined Func without declared types and dimensions.

        >>> f = hl.Func()
        >>> f[x] = (x, x)
        >>> len(f.output_buffers())
        2
        """
        f = self.function
        if f.pure is None and f.required_types and f.required_dimensions >= 0:
            f.declare_outputs(f.required_types, f.required_dimensions)
        else:
            self._pure("output_buffers")
        return [OutputImageParam.of(p) for p in f.output_params]
