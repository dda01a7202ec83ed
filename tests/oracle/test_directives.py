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


# Ways to use directives that matter by themselves: what a line of a schedule looks like; \n for several lines of one script.
FORMS = {
    "split without a tail": r"\.split\([^()]*, \d\)", "split, a name kept": r"\.split\((\w+), (?:\1|\w+, \1),", "split by a parameter": r"\.split\(.*hl\.max\(",
    "fuse, a name kept": r"\.fuse\((\S+), (\S+), (?:\1|\2)\)", "fuse a Var with an RVar": r"\.fuse\((?=.*\br\d+\.)(?=.*\b[xyz]\b)",
    "tile of lists": r"\.tile\(\[", "tile of 8 arguments": r"\.tile\((?:\w+, ){8}", "reorder of a list": r"\.reorder\(\[",
    "parallel with a task size": r"\.parallel\([^,()]+, \d", "parallel with a task size and a tail": r"\.parallel\([^,()]+, \d, hl",
    "vectorize all of an RVar": r"\.vectorize\(r\d+\.\w\)", "unroll all of an RVar": r"\.unroll\(r\d+\.\w\)",
    "vectorized reduction": r"\.atomic\(\)\.vectorize", "parallel reduction": r"\.atomic\(\)\.parallel",
    "vectors in vectors": r"^(\w+)\.(?:split\(.*\)\.)?vectorize.*\n(?:.*\n)*?\1\.(?:split\(.*\)\.)?vectorize",
    "rfactor of a list": r"\.rfactor\(\[", "rfactor of two": r"\.rfactor\(\[.*\), \(", "rfactor kept inside": r"^partial\d+\.compute_at",
    "rfactor of a tuple": r"RFACTOR OF A TUPLE",
    "compute_at by LoopLevel of an update": r"\.compute_at\(hl\.LoopLevel\(\w+, \S+, [1-9]", "LoopLevel set late": r"\.set\(hl\.LoopLevel", "LoopLevel.root()": r"LoopLevel\.root\(\)",
    "LoopLevel.inlined()": r"LoopLevel\.inlined\(\)", "compute_with a list": r"\.compute_with\(.*\[\(", "compute_with by LoopLevel": r"\.compute_with\(hl\.LoopLevel",
    "compute_with of an update": r"\.update\(\d\)\.compute_with", "compute_with placed inside": r"^(\w+)\.compute_at\((.*)\); \w+\.compute_at\(\2\)",
    "fold_storage backwards": r"\.fold_storage\(.*False", "async with fold_storage": r"^(\w+)\.fold_storage(?:.*\n)+?\1\.async_", "async inside": r"^(\w+)\.compute_at.*\n(?:.*\n)*?\1\.async_",
    "async with ring_buffer": r"^(\w+)\.ring_buffer(?:.*\n)+?\1\.async_", "hoist_storage at a loop": r"\.hoist_storage\(", "store_at late or by LoopLevel": r"\.store_at\((level|hl)",
    "in_ of several": r"\.in_\(\[\w+, ", "in_ of all": r"^w\d+ = f\d+\.in_\(\)", "clone_in of several": r"\.clone_in\(\[\w+, ", "wrapped image": r"= im\d+\.in_\(\)",
    "specialize in specialize": r"^s\d+ = s\d+\.specialize", "specialize_fail": r"\.specialize_fail", "memoize with a key": r"\.memoize\(hl", "prefetch of an image": r"\.prefetch\(im",
    "boundary condition computed": r"^b\d+\.compute_(root|at)", "bound of an inner Func": r"\.bound\(\w+, -24", "align_bounds with a remainder": r"\.align_bounds\([^()]*, \d, [1-9]",
}


@pytest.fixture(scope="module")
def accepted() -> list[str]:
    """The schedule of each of many scripts, as far as it was accepted."""
    texts = []
    for seed in range(420):
        script = random_script(seed, focus=FOCI[seed % len(FOCI)])
        build(script)
        tuples = "|".join(f.name for f in script.funcs if len(f.types) > 1) or "$"
        texts.append("\n".join(["RFACTOR OF A TUPLE" * bool(re.search(rf"= ({tuples})\..*rfactor", line)) + line for line in script.schedule]))
    return texts


def seeds(accepted: list[str], pattern: str) -> int:
    """How many scripts use what the pattern finds."""
    return sum(re.search(pattern, text, re.M) is not None for text in accepted)


def test_every_directive_is_drawn(accepted: list[str]) -> None:
    drawn = set(re.findall(r"\.(\w+)\(", "\n".join(accepted)))
    assert directives() - drawn - NOT_DRAWN.keys() == set()
    assert not drawn & NOT_DRAWN.keys(), "drawn after all"
    print(f"random schedules: {len(directives() & drawn)} of {len(directives())} directives; the others: {', '.join(sorted(NOT_DRAWN))}")
    counts = {name: seeds(accepted, rf"\.{name}\(") for name in sorted(directives() & drawn)}
    print(f"of {len(accepted)} scripts use: {', '.join(f'{name} {n}' for name, n in counts.items())}")
    assert min(counts.values()) >= 4, counts


def test_every_form_is_drawn(accepted: list[str]) -> None:
    counts = {name: seeds(accepted, form) for name, form in FORMS.items()}
    print(f"of {len(accepted)} scripts have: {', '.join(f'{name} {n}' for name, n in counts.items())}")
    assert min(counts.values()) >= 1, counts


@pytest.mark.parametrize("kind", CHOICES)
def test_every_choice_is_drawn(accepted: list[str], kind: str) -> None:
    counts = {m.name: seeds(accepted, rf"hl\.{kind}\.{m.name}\b") for m in CHOICES[kind]}
    print(f"of {len(accepted)} scripts have {kind}: {', '.join(f'{name} {n}' for name, n in counts.items())}")
    assert min(counts.values()) >= 2, counts
