"""Random schedules draw every directive of Func and Stage in ways that are accepted, and every way to say how."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import build  # noqa: E402
from pipelines import random_script  # noqa: E402
from stage_directives import FOCI  # noqa: E402

import halide_py as hl  # noqa: E402

NO_DIRECTIVES = set(
    "args define_extern defined dimensions dump_argument_list extern_function_name func_handle has_update_definition infer_arguments infer_input_bounds is_extern "
    "name num_update_definitions of output_buffer output_buffers outputs pipeline print_loop_nest realize rvars split_vars type types update update_args update_value "
    "update_values value values".split())
NOT_DRAWN = {
    **dict.fromkeys(["gpu", "gpu_blocks", "gpu_lanes", "gpu_single_thread", "gpu_threads", "gpu_tile", "hexagon", "copy_to_device"], "there is no such backend"),
    "debug_to_file": "writes files; tests/lower/test_debug_files.py",
}
CHOICES = {
    "TailStrategy": hl.TailStrategy, "LoopAlignStrategy": hl.LoopAlignStrategy, "Partition": hl.Partition, "PrefetchBoundStrategy": hl.PrefetchBoundStrategy,
    "MemoryType": [m for m in hl.MemoryType if m <= hl.MemoryType.Register],
}


def directives() -> set[str]:
    """The names of all directives there are."""
    names = {name for owner in (hl.Func, hl.Stage) for name in dir(owner) if callable(getattr(owner, name)) and not name.startswith(("_", "compile_"))}
    return names - NO_DIRECTIVES


@pytest.fixture(scope="module")
def accepted() -> str:
    """The schedule lines of many scripts that were accepted."""
    lines = []
    for seed in range(400):
        script = random_script(seed, focus=FOCI[seed % len(FOCI)])
        build(script)
        lines += script.schedule
    return "\n".join(lines)


def test_every_directive_is_drawn(accepted: str) -> None:
    drawn = set(re.findall(r"\.(\w+)\(", accepted))
    assert directives() - drawn - NOT_DRAWN.keys() == set()
    assert not drawn & NOT_DRAWN.keys(), "drawn after all"
    print(f"random schedules: {len(directives() & drawn)} of {len(directives())} directives; the others: {', '.join(sorted(NOT_DRAWN))}")


@pytest.mark.parametrize("kind", CHOICES)
def test_every_choice_is_drawn(accepted: str, kind: str) -> None:
    assert {m.name for m in CHOICES[kind]} - set(re.findall(rf"hl\.{kind}\.(\w+)", accepted)) == set()


def test_loops_in_vectors_are_nested(accepted: str) -> None:
    assert re.search(r"^(\w+)\.(?:split\(.*\)\.)?vectorize.*\n(?:.*\n)*?\1\.(?:split\(.*\)\.)?vectorize", accepted, re.M)
