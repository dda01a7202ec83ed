"""Generators as classes: fields, parameters, calls, callables, the command line; what is wrong is said with the Generator's and the field's name."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.generators.command_line import parse, run

x, y = hl.Var("x"), hl.Var("y")
U8, F32 = hl.UInt(8), hl.Float(32)


@hl.alias(half_of_doubled={"factor": 0.5, "label": "half"})
@hl.generator(name="scaled")
class Scaled:
    factor = hl.GeneratorParam(2.0)
    inverted = hl.GeneratorParam(False)
    label = hl.GeneratorParam("plain")
    kind = hl.GeneratorParam(hl.Int(16))
    copies = hl.GeneratorParam(0)
    images = [hl.InputBuffer(U8, 1) for _ in range(2)]
    source = hl.InputBuffer(None, None)
    bias = hl.InputScalar(int)
    output = hl.OutputBuffer(None, 1)
    total = hl.OutputScalar(F32)

    def configure(self) -> None:
        for i in range(self.copies):
            self.add_output(f"copy_{i}", hl.OutputBuffer(F32, 1))

    def generate(self) -> None:
        factor = 1 / self.factor if self.inverted else self.factor
        self.output[x] = hl.cast(self.output.type(), self.source[x] * factor + self.bias + self.images[0][x] - self.images[1][x])
        self.total[()] = hl.f32(self.bias) * 2
        for i in range(self.copies):
            getattr(self, f"copy_{i}")[x] = hl.f32(x + i)
        self.add_requirement(self.bias >= 0, "the bias is", self.bias)
        self.output.compute_root().vectorize(x, self.natural_vector_size(self.output.type()), hl.TailStrategy.GuardWithIf)


OPEN = {"source.type": "float32", "source.dim": 1, "output.type": F32}


@pytest.fixture(autouse=True)
def context() -> Iterator[hl.GeneratorContext]:
    with hl.GeneratorContext(hl.get_jit_target_from_environment()) as c:
        yield c


def array(*values: float, dtype: Any = np.float32) -> hl.Buffer:
    return hl.Buffer(np.array(values, dtype))


ONES, ZEROS = array(1, 1, dtype=np.uint8), array(0, 0, dtype=np.uint8)


def test_call_gives_funcs_that_other_pipelines_use() -> None:
    out, total = Scaled.call([ONES, ZEROS], array(3, 4), bias=1, generator_params=OPEN)
    g = hl.Func("g")
    g[x] = out[x] + total[()]
    assert list(np.array(g.realize([2]))) == [3 * 2 + 1 + 1 + 2, 4 * 2 + 1 + 1 + 2]
    out, _, first, second = Scaled.call([ONES, ZEROS], array(3, 4), 0, generator_params={**OPEN, "inverted": "true", "factor": "4", "copies": 2})
    assert list(np.array(out.realize([2]))) == [3 / 4 + 1, 4 / 4 + 1]
    assert list(np.array(second.realize([2]))) == [1, 2]


def test_callables_are_named_by_the_fields(context: hl.GeneratorContext) -> None:
    for _ in range(2):  # the second instance has the same names
        f = hl.create_callable_from_generator(context, "half_of_doubled", OPEN)
        out, total = np.zeros(2, np.float32), np.zeros((), np.float32)
        f(images_1=ZEROS, images_0=ONES, source=array(3, 4), bias=1, output=out, total=total)
        assert list(out) == [3.5, 4.0] and total == 2.0
    with pytest.raises(hl.HalideError, match="the bias is -1"):
        f(ONES, ZEROS, array(3, 4), -1, out, total)
    with pytest.raises(hl.CompileError, match="Generator not found: nobody\nDid you mean:\n    scaled"):
        hl.create_callable_from_generator(hl.get_host_target(), "nobody")


class Base(hl.Generator):
    output = hl.OutputBuffer(U8, 1)

    def generate(self) -> None:
        self.output[x] = hl.u8(x)


def variant(**members: Any) -> type[hl.Generator]:
    """A Generator like Base with some members, under a name of its own."""
    return hl.generator(name=f"variant{len(hl.generators.registry.GENERATORS)}")(type("Variant", (Base,), members))


def reassigns(self: Any) -> None:
    self.output = hl.Func("other")


def adds(*args: Any) -> Any:
    return lambda self: self.add_input(*args)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: Scaled.call(ONES, generator_params=OPEN), hl.CompileError, "requires 3 args, but 1 were"),
    (lambda: Scaled.call(), hl.CompileError, "No type has been specified for source. Try"),
    (lambda: Scaled({**OPEN, "typo": 1}), hl.CompileError, r"Generator scaled has no GeneratorParam\(s\) named: \['typo'\]"),
    (lambda: Scaled({**OPEN, "copies": "many"}), hl.CompileError, "GeneratorParam copies takes a value of type int, not 'many'"),
    (lambda: Scaled({**OPEN, "copies": 1.5}), hl.CompileError, "copies takes a value of type int, not 1.5"),
    (lambda: Scaled({**OPEN, "inverted": "perhaps"}), hl.CompileError, "inverted takes true or false"),
    (lambda: Scaled({**OPEN, "kind": "int7"}), hl.CompileError, "int7 cannot be parsed as a Type; there are bool"),
    (lambda: Scaled({**OPEN, "total.type": F32}), hl.CompileError, "total.type for scaled because the value is explicitly"),
    (lambda: Scaled({"source.type": F32, "output.type": F32}), hl.CompileError, "setting 'source.dim' as a GeneratorParam"),
    (lambda: Scaled({**OPEN, "source.type": "int8,int8"}), hl.CompileError, "Input source has one type, but 2"),
    (lambda: Scaled.call([ONES], array(1), 0, generator_params=OPEN), hl.CompileError, "Input images requires a list of 2"),
    (lambda: Scaled.call([ONES, ONES], ONES, 0, generator_params=OPEN), hl.CompileError, "Type mismatch for source:0: expected float32 saw uint8"),
    (lambda: Scaled.call([ONES, ONES], array(1), "no", generator_params=OPEN), hl.CompileError, "Input bias requires a Param"),
    (lambda: Scaled([1]), hl.CompileError, "must be a dict"),
    (lambda: variant(generate=lambda self: None)().build(), hl.CompileError, "Output 'output' was not defined"),
    (lambda: variant(generate=reassigns)().build(), AttributeError, "Invalid write to field 'output'"),
    (lambda: variant(configure=adds("output", hl.InputScalar(int)))(), hl.CompileError, "'output' is used more than once"),
    (lambda: variant(configure=adds("generate", hl.InputScalar(int)))(), hl.CompileError, "already has a member of that name"),
    (lambda: variant(configure=adds("more", hl.OutputScalar(int)))(), hl.CompileError, "it takes InputBuffer or InputScalar"),
    (lambda: variant(generate=adds("more", hl.InputScalar(int)))().build(), hl.CompileError, "only call add_input.. from the configure"),
    (lambda: variant(_hidden=hl.OutputScalar(int))(), hl.CompileError, "'_hidden' is not valid"),
    (lambda: variant(output=None)(), hl.CompileError, "must declare at least one output"),
    (lambda: hl.generator(name="scaled")(Base), hl.CompileError, "The Generator name scaled is already in use"),
    (lambda: hl.alias(another={})(Base), hl.CompileError, "in conjunction with @generator"),
    (lambda: hl.InputBuffer("uint8", 1), hl.CompileError, "Expected a Halide Type"),
    (lambda: hl.InputBuffer(U8, "1"), TypeError, "number of dimensions of an input or output is an int from 0 on, or None, not '1'"),
    (lambda: hl.OutputBuffer(U8, -2), TypeError, "not -2"),
    (lambda: hl.generator(name="idle")(type("Idle", (), {"output": hl.OutputBuffer(U8, 1)})).call(), hl.CompileError, r"idle has no generate\(\)"),
    (lambda: Limited.call(array(1), 11), hl.CompileError, "Input bias was given 11, and its maximum is 10"),
])
def test_mistakes_are_named(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@hl.generator(name="limited")
class Limited:
    """Its own `__init__` takes nothing, and it constrains an output before it is defined."""
    factor = hl.GeneratorParam(1)
    source = hl.InputBuffer(F32, 1)
    bias = hl.InputScalar(int)
    output = hl.OutputBuffer(F32, 1)

    def __init__(self) -> None:
        super().__init__()
        self.extra = 1

    def generate(self) -> None:
        self.bias.set_range(0, 10)
        self.output.output_buffer().dim(0).set_min(0)
        self.output[x] = self.source[x % 3] * self.factor + self.bias + self.extra


@hl.generator(name="containing")
class Containing:
    image = hl.InputBuffer(F32, 1)
    output = hl.OutputBuffer(F32, 1)

    def generate(self) -> None:
        table = Limited.call(array(10, 20, 30), 2, generator_params={"factor": 3})
        self.output[x] = self.image[x] + table[x]


def test_numbers_and_buffers_given_to_a_call_are_part_of_the_pipeline(tmp_path: Path) -> None:
    run(parse(f"-g containing -o {tmp_path} -e shared_library,stmt,hlpipe target=host".split()))
    saved = hl.deserialize_pipeline(tmp_path / "containing.hlpipe")
    saved.compile_to_shared_library(str(tmp_path / "again"), [a for a in saved.infer_arguments() if a.name == "image"], "again")
    for name in ("containing.so", "again.so"):
        out = np.zeros(4, np.float32)
        hl.load_library(tmp_path / name)(np.array([1, 2, 3, 4], np.float32), out)
        assert out.tolist() == [34, 65, 96, 37]
    assert "bias" not in (tmp_path / "containing.stmt").read_text()
    with pytest.raises(hl.HalideError, match="min"):
        Limited.call(array(1, 2, 3), 1).realize(hl.Buffer.make_with_shape_of(shifted(array(1, 2))))


def shifted(b: hl.Buffer) -> hl.Buffer:
    b.set_min([1])
    return b


def test_usage_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    hl.main(["file.py", "--help"])
    assert capsys.readouterr().out.startswith("usage: [-g GENERATOR]")


def test_inputs_after_outputs_warn() -> None:
    late = variant(late=hl.InputScalar(int))
    with pytest.warns(UserWarning, match="declares an Input after an Output"):
        g = late()
    g.build()
    assert [p.name() for p in g.input_parameters()] == ["late"]


def test_a_context_is_needed_and_passed_on() -> None:
    outer = variant(generate=lambda self: self.output.__setitem__(x, Base2.call()[x]))
    Base2 = variant()  # noqa: N806
    assert list(np.array(outer().build().realize([3]))) == [0, 1, 2]
    with pytest.raises(hl.CompileError, match="There is no active GeneratorContext; make Generators inside"):
        contextvars.Context().run(hl.active_generator_context)


def test_command_line_writes_what_it_is_asked(tmp_path: Path) -> None:
    words = ["-g", "scaled", "-f", "my_scaled", "-o", str(tmp_path), "-e", "c_header,o,registration,stmt", "target=host-no_runtime", "source.type=float32",
             "source.dim=1", "output.type=float32", "copies=1"]
    names = run(parse(words))
    assert sorted(Path(n).name for n in names) == ["my_scaled.h", "my_scaled.o", "my_scaled.registration.cpp", "my_scaled.stmt"]
    header = (tmp_path / "my_scaled.h").read_text()
    assert "int my_scaled(struct halide_buffer_t *_images_0_buffer, struct halide_buffer_t *_images_1_buffer, struct halide_buffer_t *_source_buffer, " \
           "int32_t bias, struct halide_buffer_t *_output_buffer, struct halide_buffer_t *_total_buffer, struct halide_buffer_t *_copy_0_buffer);" in header
    run(parse(["-r", "alone", "-o", str(tmp_path), "-e", "static_library", "target=host"]))
    assert (tmp_path / "alone.a").stat().st_size > 1000


def test_several_targets_from_the_command_line(tmp_path: Path) -> None:
    """The targets are named in files as they are written, whatever the order of their features."""
    kinds = "static_library,shared_library,object,c_header,c_source,assembly,stmt,compiler_log,python_extension,registration"
    words = f"-g scaled -f my_scaled -o {tmp_path} -e {kinds} target=x86-64-linux-avx2-sse41-avx,x86-64-linux source.type=float32 source.dim=1"
    names = run(parse([*words.split(), "output.type=float32"]))
    of_each = {f"my_scaled-x86-64-linux{isa}.{end}" for isa in ("-avx2-sse41-avx", "")
               for end in ("o", "s", "stmt", "halide_compiler_log", "halide_generated.cpp")}
    of_all = {f"my_scaled{end}" for end in (
        ".a", ".so", ".h", ".py.cpp", ".registration.cpp", "_wrapper.halide_generated.cpp", "_wrapper.o", "_runtime.o")}
    assert {Path(n).name for n in names} == {p.name for p in tmp_path.iterdir()} == of_each | of_all
    text = (tmp_path / "my_scaled_wrapper.halide_generated.cpp").read_text()
    assert "| 1u << hl_has_avx2)) return my_scaled_x86_64_linux_avx2_sse41_avx(" in text
    assert "ymm" in (tmp_path / "my_scaled-x86-64-linux-avx2-sse41-avx.s").read_text()
    assert "ymm" not in (tmp_path / "my_scaled-x86-64-linux.s").read_text()
    out, total = np.zeros(3, np.float32), np.zeros((), np.float32)
    images = np.array([5, 6, 7], np.uint8), np.array([1, 1, 1], np.uint8)
    hl.load_library(tmp_path / "my_scaled.so")(*images, np.array([1, 2, 3], np.float32), 10, out, total)
    assert out.tolist() == [16, 19, 22] and total == 20


@pytest.mark.parametrize(("words", "message"), [
    (["-x", "1"], "Unknown flag -x\nusage"), (["-g"], "No value after -g"), (["radius"], "'radius' is not NAME=VALUE"), (["-v", "2"], "-v must be 0 or 1"),
    (["-t", "soon"], "-t takes a number"), ([], "available Generators are:\n    scaled"), (["-g", "scaled", "target=host"], "-o must name"),
    (["-g", "scaled", "-o", "."], "target=... must be specified"), (["-g", "scaled", "-o", ".", "target=host", "-e", "o,exe"], "exe is not one of [assembly"),
    (["-g", "scaled", "-o", ".", "target=moon"], "'moon' is unknown"), (["-g", "other", "-o", ".", "target=host"], "Generator not found: other"),
    (["-g", "scaled", "-o", ".", "target=x86-64-linux-sse41,x86-64-linux", "-e", "hlpipe", "source.type=int8", "source.dim=1", "output.type=int8"],
     "there are no hlpipe files; there are assembly, "),
    (["-g", "scaled", "-o", ".", "-f", "a/b", "target=host"], "plain file name"),
])
def test_command_line_mistakes(words: list[str], message: str) -> None:
    with pytest.raises(hl.CompileError) as e:
        run(parse(words))
    assert message in str(e.value)


def test_main_ends_with_a_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["file.py", "-g", "unknown", "-o", str(tmp_path), "target=host"])
    with pytest.raises(SystemExit, match="Generator not found: unknown"):
        hl.main()


def test_runtime_prefixes_from_the_command_line(tmp_path: Path) -> None:
    words = f"-g scaled -o {tmp_path} -e c_source,object -n one target=host-no_runtime source.type=float32 source.dim=1 output.type=float32"
    run(parse([*words.split(), "runtime_prefixes.import=mine_"]))
    assert "#define halide_error_bad_type mine_error_bad_type\n" in (tmp_path / "one.halide_generated.cpp").read_text()
    run(parse(f"-r runtime -o {tmp_path} -e static_library target=host runtime_prefixes.export=mine_ runtime_prefixes.internal=inner_".split()))
    runtime = (tmp_path / "runtime.a").read_bytes()
    assert b"mine_malloc" in runtime and b"\0halide_malloc\0" not in runtime and b"inner_hl_memory_after_fork" in runtime
    for words, message in (("runtime_prefixes.exports=a", "runtime_prefixes.exports is none of"), ("runtime_prefixes.import=1a", "cannot begin a C identifier")):
        with pytest.raises(hl.CompileError, match=message):
            run(parse(f"-r runtime -o {tmp_path} target=host {words}".split()))


@hl.generator(name="blended")
class Blended:
    a = hl.InputBuffer(F32, 2)
    b = hl.InputBuffer(U8, 2)
    k = hl.InputScalar(F32)
    output = hl.OutputBuffer(F32, 2)

    def generate(self) -> None:
        self.output[x, y] = self.a[x, y] * self.a[x, y] * self.k + self.b[x, y]


def test_gradients_from_the_command_line(tmp_path: Path) -> None:
    run(parse(f"-g blended -f blended_grad -d 1 -o {tmp_path} -e c_header,python_extension,hlpipe,static_library target=host".split()))
    names = ["a", "b", "k", "_grad_loss_for_output", "_grad_loss_output_wrt_a", "_dummy_grad_loss_output_wrt_b"]
    extension = (tmp_path / "blended_grad.py.cpp").read_text()
    assert ", ".join(f'(char *)"{name}"' for name in names) in extension
    pipeline = hl.deserialize_pipeline(tmp_path / "blended_grad.hlpipe")
    names_of = {p.name().partition("$")[0]: p for p in hl.deserialize_parameters(tmp_path / "blended_grad.hlpipe").values()}
    assert set(names_of) == {"a", "k", "_grad_loss_for_output"} and len(pipeline.outputs()) == 2
    a, loss = np.random.default_rng(1).random((3, 4), np.float32), np.random.default_rng(2).random((3, 4), np.float32)
    call = pipeline.compile_to_callable(list(pipeline.infer_arguments()))
    given = {"a": a, "k": 2.5, "_grad_loss_for_output": loss}
    wrt_a, wrt_b = np.zeros((3, 4), np.float32), np.ones((3, 4), np.float32)
    call(*(given[i.name.partition("$")[0]] for i in pipeline.infer_arguments()), wrt_a, wrt_b)
    np.testing.assert_allclose(wrt_a, 2 * a * 2.5 * loss, rtol=1e-6)
    assert not wrt_b.any()
    plain = f"-g blended -o {tmp_path} -e hlpipe target=host"
    run(parse(plain.split()))
    assert hl.deserialize_pipeline(tmp_path / "blended.hlpipe").outputs()[0].name().startswith("output")
    for words, message in (("-s Adams2019", "-s no longer sets"), ("auto_schedule=true", "say autoscheduler=NAME"), ("machine_params=1", "autoscheduler.FIELD=VALUE"),
                           ("-p libmine.so", "made for Halide's own library"), ("-e cpp_stub", "stubs are for Generators in C"), ("-d 2", "-d must be 0 or 1")):
        with pytest.raises(hl.CompileError, match=message):
            run(parse([*plain.split(), *words.split()]))
    with pytest.raises(hl.CompileError, match="module m is lowered"):
        pipeline.compile_to_module(pipeline.infer_arguments(), "m").compile({hl.OutputFileType.hlpipe: str(tmp_path / "m.hlpipe")})
