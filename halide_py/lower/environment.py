"""Which Functions a set of outputs needs, in which order they are realized, and what the compiled function takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.module import ArgumentKind, LoweredArgument
from ..ir.parameter import Parameter
from ..ir.traverse import nodes_of
from .wrappers import call_wrappers

Environment = dict[str, Function]


def definition_roots(d: Definition) -> tuple[n.Expr, ...]:
    """Every Expr of a definition, the bounds of its reduction domain included."""
    bounds = tuple(e for v in d.rdom.variables for e in (v.min, v.extent)) if d.rdom else ()
    return (*d.values, *d.args, d.predicate, *bounds)


def callees(f: Function) -> list[Function]:
    """The Functions called in the definitions of `f` (itself left out), in order of first use."""
    found: dict[str, Function] = {}
    roots = [e for d in f.stages() for e in definition_roots(d)]
    for call in nodes_of(roots, n.Call):
        if call.call_type is n.CallType.Halide and call.func is not None and call.name != f.name:
            found.setdefault(call.name, call.func)
    return list(found.values())


def _walk(outputs: Iterable[Function], instead: Mapping[str, Function]) -> Environment:
    """The outputs and all Functions they call, producers before consumers. `instead`: by name, the versions of Functions to use."""
    env: Environment = {}
    stack: list[tuple[Function, Iterable[Function]]] = []
    entered: set[str] = set()

    def enter(f: Function) -> None:
        if f.pure is None:
            raise CompileError(f"Func {f.name} has no definition, but is used or realized; define it: {f.name}[x, ...] = ...")
        entered.add(f.name)
        stack.append((f, iter(callees(f))))

    for output in outputs:
        if output.name not in entered:
            enter(instead.get(output.name, output))
        while stack:
            f, rest = stack[-1]
            for callee in rest:
                if callee.name not in entered:
                    enter(instead.get(callee.name, callee))
                    break
                if callee.name in env and not instead and env[callee.name].pure is not callee.pure:
                    raise CompileError(f"Two different Funcs are named {callee.name}")
            else:
                env[f.name] = f
                stack.pop()
    return env


def _check_wrappers(env: Environment) -> None:
    """A caller for which a Function was wrapped must call it: by itself, or through the wrappers of what it calls."""
    wrapped = [(f, env[caller]) for f in env.values() for caller in f.wrappers if caller in env]
    for f, caller in wrapped:
        direct = callees(caller)
        called = set()
        for callee in direct:
            g: Function | None = env[callee.name]
            while g is not None and g.name not in called:
                called.add(g.name)
                g = g.wrappers.get(caller.name)
        if f.name not in called:
            raise CompileError(f'Cannot wrap "{f.name}" in "{caller.name}" because "{caller.name}" does not call "{f.name}"; '
                               f'the Funcs it calls are: {", ".join(g.name for g in direct) or "none"} ({f.wrappers[caller.name].where})')


def environment(outputs: Sequence[Function], wrapped: bool = True) -> Environment:
    """The outputs and all Functions they call, by name, producers before consumers (the realization order).

    Callers for which a wrapper was made (`in_`, `clone_in`) call it, unless `wrapped` is False: then this is the algorithm alone.
    Raises CompileError for a Function without a definition, for two Functions of one name, and for a wrapper that no call goes through.
    """
    env = _walk(outputs, {})
    if not wrapped or not (Parameter.any_wrapped or any(f.wrappers for f in env.values())):
        return env
    _check_wrappers(env)
    while True:
        images = _wrapped_images(env) if Parameter.any_wrapped else {}
        wrappers = [x for f in env.values() for x in f.wrappers.items()] + [x for p in images.values() for x in p.wrappers.items()]
        missing = [w for caller, w in wrappers if w.name not in env and (not caller or caller in env)]
        if not missing:
            return _walk(outputs, call_wrappers(env, images))
        env = _walk([*env.values(), *missing], {})


def _wrapped_images(env: Environment) -> dict[str, Parameter]:
    """The images read that have wrappers, by name; also those that only their wrappers read."""
    roots = [e for f in env.values() for d in f.stages() for e in definition_roots(d)]
    read = {c.param for c in nodes_of(roots, n.Call) if c.param is not None}
    images = [p.owner() if p.owner is not None else p for p in read]
    return {p.name: p for p in images if p is not None and p.wrappers and not p.stands_in}


def topological_order(outputs: Sequence[Function]) -> list[Function]:
    """The outputs and all Functions they call, producers before consumers, in the order by which Halide numbers them.

    Among what one Function calls, names without their numbers decide, then which is met first.
    """
    env = environment(outputs, wrapped=False)
    met: dict[str, int] = {}
    stack = list(reversed(outputs))
    while stack:
        f = stack.pop()
        if f.name not in met:
            met[f.name] = len(met)
            stack.extend(reversed(callees(f)))
    order: dict[str, Function] = {}
    work: list[tuple[Function, bool]] = [(f, False) for f in reversed(outputs)]
    while work:
        f, entered = work.pop()
        if entered:
            order.setdefault(f.name, f)
        elif f.name not in order:
            work.append((f, True))
            inner = sorted(callees(f), key=lambda g: (g.name.partition("$")[0].rstrip("0123456789"), met[g.name]))
            work.extend((env[g.name], False) for g in reversed(inner))
    return list(order.values())


def with_outputs(outputs: Sequence[Function], args: Sequence[LoweredArgument]) -> tuple[LoweredArgument, ...]:
    """The arguments of the compiled function: the inputs as given, then one buffer for each element of each output."""
    out = list(args)
    for f in outputs:
        for i, t in enumerate(f.types):
            param = f.output_params[i] if i < len(f.output_params) else None
            out.append(LoweredArgument(f.buffer_name(i), ArgumentKind.OutputBuffer, t, len(f.args), param))
    return tuple(out)
