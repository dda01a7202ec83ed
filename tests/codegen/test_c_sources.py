"""C sources of the user's: nothing of one is seen by another, by the pipeline's code, or by the linker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import halide_py as hl

x = hl.Var("x")


def values(f: hl.Func, count: int = 3) -> list[float]:
    return list(np.array(f.realize([count])))


def source(entry: str, factor: int) -> str:
    """An entry with a helper, a variable, a type and a macro whose names other sources have, too; x is a name in the pipeline's code."""
    return f"""#include <math.h>
#define FACTOR {factor}
#define x (FACTOR +\\
    1)
struct pair {{ double first, second; }};
int calls;
double helper(double v) {{ struct pair p = {{v, FACTOR}}; calls++; return sqrt(p.first * p.first) * p.second + x; }}
double {entry}(double v) {{ return helper(v); }}
"""


def test_sources_share_no_names() -> None:
    one, two = (hl.extern(f"double {name}(double v)", source=source(name, k)) for name, k in (("first_source", 2), ("second_source", 10)))
    f = hl.Func("f")
    f[x] = one(hl.f64(x)) + 100 * two(hl.f64(x))
    f.vectorize(x, 4)
    assert values(f, 8) == [v * 2 + 3 + 100 * (v * 10 + 11) for v in range(8)]


def test_nothing_of_a_source_is_for_the_linker(tmp_path: Path) -> None:
    one = hl.extern("double quiet_source(double v)", source=source("quiet_source", 3))
    f = hl.Func("f")
    f[x] = one(hl.f64(x))
    f.compile_to_object(str(tmp_path / "f.o"), [], "quiet")
    symbols = subprocess.run(["nm", "-g", "--defined-only", str(tmp_path / "f.o")], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in symbols.splitlines() if line}
    assert "quiet_argv" in names
    assert not any(part in name for part in ("hl_source", "quiet_source", "helperd") for name in names) and not {"helper", "calls"} & names


@pytest.mark.parametrize("text", [
    "#ifndef GUARD_H\n#define GUARD_H\n#include <math.h>\n#define N 3\nstatic double odd_{n}(double v) {{ return N * sqrt(v); }}\n#endif",
    "/* #include <absent.h>\n*/ // #include <absent.h>\n#include <math.h> // for sqrt\n#define QUOTE \"/*\"\n"
    "static double odd_{n}(double v) {{ return 3 * sqrt(v) + (QUOTE[0] != '/'); }}",
    "#if 0\n#include <absent.h>\n#elif 1\n#  include <math.h>\n#endif\n#pragma GCC optimize(\"O1\")\ndouble odd_{n}(double v) {{ return 3 * sqrt(v); }}",
    "#ifdef __cplusplus\nextern \"C\"\n#endif\ndouble sqrt(double);\ndouble odd_{n}(double v) {{ return 3 * sqrt(v); }}",
], ids=["guard", "comments", "conditions", "declared"])
def test_what_the_preprocessor_is_told(text: str, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    odd = hl.extern(f"double odd_{name}(double v)", source=text.format(n=name))
    f = hl.Func("f")
    f[x] = odd(hl.f64(x * x))
    assert values(f) == [0, 3, 6]


@pytest.mark.parametrize("declared, use, name", [("double somewhere(double);", "somewhere(v)", "somewhere"), ("extern int place;", "v + place", "place")])
def test_what_nobody_defines_is_named(declared: str, use: str, name: str) -> None:
    lost = hl.extern(f"double lost_{name}(double v)", source=f"{declared}\nstatic double lost_{name}(double v) {{ return {use}; }}")
    f = hl.Func("f")
    f[x] = lost(hl.f64(x))
    with pytest.raises(hl.CompileError, match=f'C source .* declares {name} and does not define it.*include the header.*extern "C"'):
        f.realize([2])


def test_faults_are_found_at_their_lines() -> None:
    bad = hl.extern("double bad_line(double v)", source="#include <math.h>\n\n#define A 1\ndouble bad_line(double v) { return missing; }")
    f = hl.Func("f")
    f[x] = bad(hl.f64(x))
    with pytest.raises(hl.CompileError, match=r"bad_line:4:.*missing"):
        f.realize([2])
    absent = hl.extern("double bad_header(double v)", source="\n#include <absent.h>\ndouble bad_header(double v) { return v; }")
    g = hl.Func("g")
    g[x] = absent(hl.f64(x))
    with pytest.raises(hl.CompileError, match=r"bad_header:2:.*absent.h"):
        g.realize([2])
