"""The scheduling language is all there, and works: every directive, in each of its signatures, does what its line of `scheduling_api.txt` says.

A line of that file: name ;; signature ;; what comes before ;; call ;; where ;; text. The text must be (`no`: must not be) in what `where` names,
and the other way round without the call: `nest`, what print_loop_nest() prints; `stmt`, the lowered statement; `said`, warnings; `refused`, the
message of the CompileError. `value`: the text is an expression that is true, and is not without the call.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scheduling_scene import scheduled  # noqa: E402

import halide_py as hl  # noqa: E402

LINES = [tuple(part.strip() for part in line.split(";;")) for line in (Path(__file__).parent / "scheduling_api.txt").read_text().splitlines()]


def printed(call: Callable[[], object], redirect: Any = contextlib.redirect_stderr) -> str:
    """What a call prints, its lines joined by " / "."""
    with redirect(io.StringIO()) as text:
        call()
    return " / ".join(line.strip() for line in text.getvalue().splitlines())


def planned(f: hl.Func) -> bool:
    """Whether an autoscheduler has all it needs to know of `f`."""
    try:
        return hl.Pipeline(f).apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams("Mullapudi2016")).schedule_source != ""
    except hl.CompileError as error:
        assert "estimate" in str(error)
        return False


def statement(names: dict[str, Any], folder: Path) -> str:
    names["q"].compile_to_lowered_stmt(str(folder / "h.stmt"), [names["im"], names["p"]])
    return re.sub(r"[$]\d+", "", " / ".join(line.strip() for line in (folder / "h.stmt").read_text().splitlines()))


def refusal(names: dict[str, Any], folder: Path) -> str:
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            statement(names, folder)
        except hl.CompileError as error:
            return str(error)
    return ""


def seen(where: str, folder: Path, *directives: str) -> str:
    """What `where` names, after these directives."""
    if where == "refused":
        try:
            return refusal(scheduled(hl, *directives), folder)
        except hl.CompileError as error:
            return str(error)
    names = scheduled(hl, *directives)
    if where == "nest":
        return printed(names["q"].print_loop_nest)
    if where == "said":
        return printed(lambda: statement(names, folder), contextlib.redirect_stdout)
    assert where == "stmt"
    return statement(names, folder)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_effect(line: tuple[str, ...], tmp_path: Path) -> None:
    _, _, before, call, where, text = line
    if where == "value":
        helpers = {"printed": printed, "planned": planned}
        assert eval(text, {**scheduled(hl, before, call), **helpers}) is True
        assert not call or eval(text, {**scheduled(hl, before), **helpers}) is not True
        return
    present = not where.startswith("no ")
    where = where.removeprefix("no ")
    assert (text in seen(where, tmp_path, before, call)) is present
    assert (text in seen(where, tmp_path, before)) is not present


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_signature(line: tuple[str, ...]) -> None:
    name, signature = line[:2]
    owner, _, attribute = name.partition(".")
    parameters = inspect.signature(getattr(getattr(hl, owner), attribute)).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        assert set(re.findall(r"(?<=[(,] )\w+(?=:)|(?<=\()\w+(?=:)", signature)) <= parameters.keys()


def test_every_directive_is_here() -> None:
    names = {line[0] for line in LINES}
    print(f"scheduling: {len(names)} names in {len(LINES)} forms")
    for owner in (hl.Func, hl.Stage):
        missing = {f"{owner.__name__}.{name}" for name in dir(owner) if not name.startswith("_")} - names
        assert {m.partition(".")[2] for m in missing} <= OTHER_AREAS


# What is no directive, or none of Halide's own; tables of the language and of compile_to have these.
OTHER_AREAS = set(
    "args define_extern defined dimensions eager_inline extern_function_name func_handle function has_update_definition infer_arguments infer_input_bounds is_extern "
    "num_update_definitions of output_buffer output_buffers outputs pipeline realize rvars split_vars type types update update_args update_value update_values value "
    "values name compile_jit compile_to compile_to_assembly compile_to_bitcode compile_to_c compile_to_callable compile_to_conceptual_stmt compile_to_file "
    "compile_to_header compile_to_llvm_assembly compile_to_lowered_stmt compile_to_module compile_to_multitarget_object_files compile_to_multitarget_static_library "
    "compile_to_object compile_to_shared_library compile_to_static_library dump_argument_list unscheduled".split())
