"""`schedule_source`: executed on the same pipeline, made anew, it gives the same loops."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import halide_py as hl
from halide_py.lower.print_loop_nest import loop_nest_text

sys.path.insert(0, str(Path(__file__).parent))

from unscheduled import MAKERS, SCHEDULERS, Case, blur, harris, long_chain  # noqa: E402


def loops(case: Case) -> str:
    """The loop nest, without the numbers that make names unique."""
    text = loop_nest_text([f.function for f in case.outputs])
    return re.sub(r"(?<=for )r\d+|_\d+(?=_adjoint)|\$\d+", "", text)


def scheduled(case: Case, scheduler: str) -> str:
    return hl.Pipeline(case.outputs).apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams(scheduler, {"parallelism": 8})).schedule_source


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
def test_pasted_text_gives_the_same_loops(maker: Callable[[], Case], scheduler: str) -> None:
    first, second, bare = maker(), maker(), maker()
    for f in bare.roots:
        f.compute_root()
    text = scheduled(first, scheduler)
    exec(compile(text, "<schedule>", "exec"), {"hl": hl, "pipeline": hl.Pipeline(second.outputs)})
    assert loops(first) == loops(second)
    assert loops(second) != loops(bare)
    assert max(map(len, text.splitlines()[1:])) <= 140


def test_text_is_readable() -> None:
    text = scheduled(harris(), "Mullapudi2016")
    head, *lines = text.splitlines()
    assert head.startswith("# Schedule by Mullapudi2016 for ") and "parallelism=8" in head
    assert any(line.startswith("harris = pipeline.get_func(") for line in lines)
    assert "Ix.compute_at(harris, x_o)" in text and ".parallel(y_o)" in text


def test_groups_keep_their_vectors() -> None:
    """Sums of rows run in vectors over many rows, not number by number for each row of what reads them."""
    rows, r = hl.ImageParam(hl.Float(32), 2, "rows"), hl.RDom([(0, 1024)], "r")
    rows.set_estimates([(0, 1024), (0, 1024)])
    x, y = hl.vars("x y")
    total, out = hl.Func("total"), hl.Func("out")
    total[y] = hl.f32(0)
    total[y] += hl.exp(rows[r, y])
    out[x, y] = hl.exp(rows[x, y]) / total[y]
    out.set_estimates([(0, 1024), (0, 1024)])
    text = hl.Pipeline(out).apply_autoscheduler(hl.Target("x86-64-linux-avx2"), hl.AutoschedulerParams("Mullapudi2016")).schedule_source
    assert "total.compute_root()" in text and "vectorize(y_vi)" in text


def test_names_that_python_cannot_have() -> None:
    v, w = hl.Var("lambda"), hl.Var("hl")
    f, g = hl.Func("class"), hl.Func("pipeline")
    f[v, w] = hl.sqrt(hl.f32(v * w))
    g[v, w] = f[v, w] + f[v + 1, w] + f[v, w + 1]
    g.set_estimates([(0, 512), (0, 512)])
    pipeline = hl.Pipeline(g)
    text = pipeline.apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams("Li2018")).schedule_source
    compile(text, "<schedule>", "exec")
    assert "class_ = pipeline.get_func(0)" in text and "pipeline_ = pipeline.get_func(1)" in text and "lambda_ = " in text


def test_functions_are_numbered_producers_first() -> None:
    case = blur()
    pipeline = hl.Pipeline(case.outputs)
    names = [pipeline.get_func(i).name().partition("$")[0] for i in range(3)]
    assert names == ["repeat_edge", "rows", "blur"]
    with pytest.raises(hl.CompileError, match="Index value passed is 3; however, there are only 3 functions"):
        pipeline.get_func(3)
    assert len({hl.Pipeline(long_chain().outputs).get_func(i).name() for i in range(51)}) == 51


GENERATOR = '''
import halide_py as hl
x, y = hl.vars("x y")

@hl.alias(smooth_auto={"autoscheduler": "Mullapudi2016"})
@hl.generator(name="smooth")
class Smooth:
    image = hl.InputBuffer(hl.Float(32), 2)
    output = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self):
        near = hl.BoundaryConditions.repeat_edge(self.image)
        rows = hl.Func("rows")
        rows[x, y] = near[x - 1, y] + near[x + 1, y]
        self.output[x, y] = rows[x, y - 1] * rows[x, y + 1]
        self.image.set_estimates([(0, 1024), (0, 1024)])
        self.output.set_estimates([(0, 1024), (0, 1024)])
        if not self.using_autoscheduler():
            rows.compute_root()

hl.main()
'''


def test_generators_write_their_schedule(tmp_path: Path) -> None:
    program = tmp_path / "smooth.py"
    program.write_text(GENERATOR)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(program), "-o", str(tmp_path), "target=host", "-e", "schedule,c_header", *words], capture_output=True, text=True)

    for words in (
            ("-g", "smooth_auto", "-f", "a"), ("-g", "smooth", "-f", "b", "autoscheduler=Mullapudi2016", "autoscheduler.parallelism=32", "-p", "autoschedule_mullapudi2016"),
            ("-g", "smooth", "-f", "c", "autoscheduler=Adams2019", "autoscheduler.beam_size=4", "-p", "autoschedule_adams2019")):
        done = run(*words)
        assert done.returncode == 0, done.stderr
    a, b, c = ((tmp_path / f"{name}.schedule.py").read_text() for name in "abc")
    assert "Schedule by Adams2019" in c and "beam_size=4" in c and "parallel" in c
    assert "def apply_schedule_a(pipeline):" in a and "parallelism=32" in b and "compute_root()" in a
    assert run("-g", "smooth", "-f", "plain").returncode == 0
    assert "No autoscheduler has been run" in (tmp_path / "plain.schedule.py").read_text()
    for words, message in ((("autoscheduler=Anderson2021",), "Anderson2021 is not available.*Adams2019 and Li2018"),
                           (("autoscheduler=Li2018", "autoscheduler.balance=3"), "Li2018 has no parameter balance; it has parallelism")):
        done = run("-g", "smooth", "-f", "c", *words)
        assert done.returncode != 0
        assert re.search(message, done.stderr), done.stderr
