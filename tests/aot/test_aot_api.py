"""Files made ahead of time, Generators, Targets and Modules are all there, and work: every name with its signature gives what `aot_api.txt` says.

A line of that file: name ;; signatures ;; example ;; value.
"""

from __future__ import annotations

import contextvars
import inspect
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.generators.registry import GENERATORS

LINES = [tuple(part.strip() for part in line.split(";;")) for line in (Path(__file__).parent / "aot_api.txt").read_text().splitlines()]
x, y = hl.Var("x"), hl.Var("y")


before = dict(GENERATORS)  # Generators of this file are known to its tests only


@hl.alias(tripled={"factor": 3})
@hl.generator(name="doubled")
class Doubled:
    factor = hl.GeneratorParam(2)
    source = hl.InputBuffer(hl.Int(32), 1)
    output = hl.OutputBuffer(hl.Int(32), 1)

    def configure(self) -> None:
        self.add_input("extra", hl.InputScalar(hl.Int(32)))

    def generate(self) -> None:
        self.output[x] = self.source[x] * self.factor + self.extra


@hl.generator(name="two_out")
class TwoOut:
    k = hl.InputScalar(hl.Int(32))
    output = hl.OutputBuffer(hl.Int(32), 1)

    def configure(self) -> None:
        self.add_output("more", hl.OutputBuffer(hl.Int(32), 1))

    def generate(self) -> None:
        self.output[x] = self.k
        self.more[x] = self.k + 1


@hl.generator(name="limited")
class Limited:
    k = hl.InputScalar(hl.Int(32))
    output = hl.OutputBuffer(hl.Int(32), 1)

    def generate(self) -> None:
        self.add_requirement(self.k < 5, "k must be small:", self.k)
        self.output[x] = self.k


class Disorder:
    output = hl.OutputBuffer(hl.Int(32), 1)
    k = hl.InputScalar(hl.Int(32))

    def generate(self) -> None:
        self.output[x] = self.k


class Order(Disorder):
    def allow_out_of_order_inputs_and_outputs(self) -> bool:
        return True


Disordered, Ordered = hl.generator(name="disordered")(Disorder), hl.generator(name="ordered")(Order)


@hl.generator(name="asks")
class Asks:
    output = hl.OutputBuffer(hl.Int(32), 1)

    def generate(self) -> None:
        self.output[x] = x


@hl.generator(name="nothing_out")
class NothingOut:
    def generate(self) -> None: ...


@hl.generator(name="leaves_out")
class LeavesOut:
    output = hl.OutputBuffer(hl.Int(32), 1)

    def generate(self) -> None: ...


OURS = {name: made for name, made in GENERATORS.items() if name not in before}
for name in OURS:
    del GENERATORS[name]


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, made in OURS.items():
        monkeypatch.setitem(GENERATORS, name, made)
    with hl.GeneratorContext(hl.Target("host")):
        yield


def refusal(call: Callable[[], Any], error: type[Exception] = hl.HalideError) -> str:
    """The first line of the message of a refusal."""
    with pytest.raises(error) as caught:
        call()
    return str(caught.value).splitlines()[0].removeprefix("Error: ")


def outside(call: Callable[[], Any]) -> Any:
    """What a call gives where no GeneratorContext is active."""
    return contextvars.Context().run(call)


def in_context(call: Callable[[], Any]) -> Any:
    with hl.GeneratorContext(hl.Target("host"), hl.AutoschedulerParams("Adams2019")):
        return call()


def warned(generator: Any) -> int:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        generator({})
    return len(caught)


def set_attribute(owner: Any, name: str, value: Any) -> Any:
    setattr(owner, name, value)
    return getattr(owner, name)


def changed(target: hl.Target, method: str, *args: Any) -> str:
    getattr(target, method)(*args)
    return str(target)


def appended(to: hl.Module, *args: Any, **named: Any) -> hl.Module:
    to.append(*args, **named)
    return to


def plain(name: str) -> str:
    """A name without the number that makes it unique."""
    return name.partition("$")[0]


def renamed_argument(module: hl.Module) -> dict[str, str]:
    module.remap_metadata_name("f", "out")
    return module.get_metadata_name_map()


def results_kept(module: hl.Module) -> bool:
    results = hl.AutoSchedulerResults()
    module.set_auto_scheduler_results(results)
    return module.get_auto_scheduler_results() is results


def written(end: str, write: Callable[[str], Any], content: str = "") -> bool:
    """Whether a call writes a file that contains a text."""
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/file.{end}")
        return content.encode() in Path(folder, f"file.{end}").read_bytes()


def files_of(write: Callable[[str], Any]) -> list[str]:
    """The ends of the names of the files that a call writes."""
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/f")
        return sorted(name.removeprefix("f") for name in os.listdir(folder))


def saved(f: hl.Func) -> Path:
    path = Path(tempfile.mkdtemp()) / "saved.hlpipe"
    hl.serialize_pipeline(hl.Pipeline(f), path)
    return path


def realized(f: Any) -> list[int]:
    return np.asarray(f.realize([3])).tolist()


def filled(call: Any, *inputs: Any) -> list[int]:
    out = np.zeros(3, np.int32)
    call(*inputs, out)
    return out.tolist()


def as_number(e: hl.Expr) -> Any:
    return hl.evaluate(e)


def under(variable: str, value: str, call: Callable[[], Any]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variable, value)
        return str(call())


def exit_of(call: Callable[[], Any], argv: list[str]) -> str:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as caught:
        patch.setattr(sys, "argv", argv)
        call()
    return str(caught.value).splitlines()[0].removeprefix("Error: ")


def members(enum: Any) -> dict[str, int]:
    return {name: int(value) for name, value in enum.__members__.items()}


def fixtures() -> dict[str, Any]:
    """What examples may use besides the public names."""
    f, g, tabled, table = hl.Func("f"), hl.Func("g"), hl.Func("tabled"), hl.Buffer(np.arange(3, dtype=np.int32))
    im, k, host, image = hl.ImageParam(hl.UInt(8), 2, "im"), hl.Param(hl.Int(32), "k"), hl.Target("host"), np.arange(3, dtype=np.int32)
    f[x] = x
    g[x, y] = im[x, y] + k
    tabled[x] = table[hl.clamp(x, 0, 2)]
    k.set_range(1, 9)
    k.set_estimate(7)
    k.parameter().set_default_value(4)
    im.set_estimates([(0, 64), (0, 32)])
    clang = None if not shutil.which("clang") else True
    local = dict(locals())
    return {**{name: getattr(hl, name) for name in hl.__all__}, **{k: v for k, v in globals().items() if k != "Callable"}, **local}


def keywords(signature: str) -> set[str]:
    """The argument names that may be used as keywords."""
    return set(re.findall(r"(?<=[(,])\s*(\w+)(?=:)", re.sub(r"\[[^]]*\]", "", signature))) - {f"arg{i}" for i in range(9)}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_signature(line: tuple[str, ...]) -> None:
    name, signatures, _, _ = line
    owner, _, attribute = name.rpartition(".")
    if not signatures:
        return
    thing = getattr(getattr(hl, owner) if owner else hl, attribute)
    parameters = inspect.signature(thing).parameters
    if not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values()):
        assert keywords(signatures) <= parameters.keys()


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_example(line: tuple[str, ...]) -> None:
    names = fixtures()
    assert eval(line[2], names) == eval(line[3], names)


def test_coverage(capsys: pytest.CaptureFixture[str]) -> None:
    named = [line[0] for line in LINES]
    assert len(set(named)) == len(named) and all(line[2] and line[3] for line in LINES)
    with capsys.disabled():
        print(f"\nahead of time: {len(named)} of {len(named)} names, each with an example")
