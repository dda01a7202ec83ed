"""`hl.main()`: the command line of a file of Generators.

    python blur.py -g blur -o build -f my_blur -e static_library,c_header target=host radius=2
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from .. import driver
from ..autodiff.pipelines import gradients_by_output, reversed_outputs
from ..driver.file_types import EXTENSIONS, OutputFileType, extension
from ..errors import CompileError, HalideError
from ..ir.module import ArgumentKind, RuntimeLinkage
from ..ir.parameter import by_name
from ..ir.target import Target
from ..lang.module import compile_standalone_runtime, load_plugin
from ..lang.pipeline import Pipeline
from .context import GeneratorContext
from .generator import Generator
from .registry import GENERATORS, create_generator

_FLAGS = {
    "-g": "generator",
    "-f": "function",
    "-o": "folder",
    "-e": "emit",
    "-n": "base",
    "-p": "plugins",
    "-r": "runtime",
    "-d": "gradient",
    "-v": "verbose",
    "-t": "timeout",
}
_DEFAULT_OUTPUTS = "c_header,static_library,registration"
_SHORT = {"cpp": "c_source", "h": "c_header", "o": "object", "html": "stmt_html", "py.c": "python_extension"}
_REPLACED = {"auto_schedule": "autoscheduler=NAME", "machine_params": "autoscheduler.FIELD=VALUE"}
_USAGE = f"""usage: [-g GENERATOR] [-f FUNCTION] [-o FOLDER] [-e KINDS] [-n FILE_BASE_NAME] [-r RUNTIME_NAME] [-d 0|1] [-p PLUGINS] [-v 0|1]
       [-t SECONDS]
       target=TARGET[,TARGET...] [GENERATOR_PARAM=VALUE ...]
 -g  the Generator's name
 -f  the C function's name (default: the Generator's)
 -o  where files are written
 -e  comma-separated kinds of files: {', '.join(k.name for k in EXTENSIONS)} (default: {_DEFAULT_OUTPUTS})
 -n  the files' name without extension (default: the function's)
 -p  comma-separated plugins of autoschedulers; those there are need none: autoscheduler=NAME chooses one,
     autoscheduler.OPTION=VALUE sets its options
 -r  write the C runtime alone under this name
 -d  1: write the pipeline's gradient instead: derivatives _grad_loss_for_OUT of a loss for the outputs are inputs behind the
     others, those for each input buffer, _grad_loss_OUT_wrt_IN, are its outputs
 -v  1: print the name of each file written
 -t  seconds after which to give up (default: 0, never)"""


@dataclass
class Command:
    """A command line, taken apart."""

    generator: str = ""
    function: str = ""
    folder: str = ""
    emit: str = ""
    base: str = ""
    plugins: str = ""
    runtime: str = ""
    gradient: str = "0"
    verbose: str = "0"
    timeout: str = "0"
    target: str = ""
    params: dict[str, str] = field(default_factory=dict)


def parse(words: Sequence[str]) -> Command:
    """Take a command line apart. Raises CompileError with the usage for what it does not know."""
    command, rest = Command(), list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            if word == "-s":
                raise CompileError(f"-s no longer sets the autoscheduler; say autoscheduler=NAME instead\n{_USAGE}")
            if word not in _FLAGS or not rest:
                raise CompileError(f"{'Unknown flag' if word not in _FLAGS else 'No value after'} {word}\n{_USAGE}")
            setattr(command, _FLAGS[word], rest.pop(0))
            continue
        name, equals, value = word.partition("=")
        if not name or not equals or not value:
            raise CompileError(f"{word!r} is not NAME=VALUE\n{_USAGE}")
        if name in _REPLACED:
            raise CompileError(f"{name}={value} is no longer supported; say {_REPLACED[name]} instead\n{_USAGE}")
        if name == "target":
            command.target = value
        else:
            command.params[name] = value
    for flag, value in (("-d", command.gradient), ("-v", command.verbose)):
        if value not in ("0", "1"):
            raise CompileError(f"{flag} must be 0 or 1, not {value}\n{_USAGE}")
    if not command.timeout.isdigit():
        raise CompileError(f"-t takes a number of seconds, not {command.timeout}\n{_USAGE}")
    return command


def _kinds(emit: str) -> list[OutputFileType]:
    extra = os.environ.get("HL_EXTRA_OUTPUTS", "")
    words = [w for w in f"{emit or _DEFAULT_OUTPUTS},{extra}".split(",") if w]
    names = {k.name: k for k in EXTENSIONS}
    for word in words:
        if _SHORT.get(word, word) not in names:
            raise CompileError(f"Unrecognized emit option: {word} is not one of [{' '.join(names)}]\n{_USAGE}")
    return list(dict.fromkeys(names[_SHORT.get(w, w)] for w in words))


def _file_names(folder: str, base: str, kinds: Sequence[OutputFileType], target: Target) -> dict[OutputFileType, str]:
    if os.path.basename(base) != base:
        raise CompileError(f"{base!r} must be a plain file name; -o names the folder")
    return {k: os.path.join(folder, base + extension(k, target)) for k in kinds}


def _prefixes(command: Command) -> dict[RuntimeLinkage, str]:
    """What `runtime_prefixes.import=my_` and the like ask for; they are no parameters of the Generator."""
    found, names = {}, {linkage.name.lower(): linkage for linkage in RuntimeLinkage}
    for key in [k for k in command.params if k.startswith("runtime_prefixes.")]:
        linkage = names.get(key.partition(".")[2])
        if linkage is None:
            raise CompileError(f"{key} is none of {', '.join(f'runtime_prefixes.{n}' for n in names)}\n{_USAGE}")
        found[linkage] = command.params.pop(key)
    return driver.runtime_names.checked_prefixes(found)


def _write_pipeline(
    command: Command, targets: Sequence[Target], prefixes: dict[RuntimeLinkage, str], files: dict[OutputFileType, str]
) -> list[str]:
    """Write the files of a Generator, which is made anew for each target. Gives their paths."""
    def unit(name: str, target: Target) -> driver.aot.Unit:
        generator = create_generator(command.generator, GeneratorContext(target), command.params)
        pipeline, inputs, outputs = (
            _gradient(generator) if command.gradient == "1" else (generator.build(), generator.input_parameters(), ())
        )
        _schedule(generator, pipeline)
        pipeline.prefixes = prefixes
        made = pipeline.unit("hl.main()", inputs, name, target)
        given = [a.shown for a in made.entries[0].public.args if a.kind is ArgumentKind.OutputBuffer]
        return made.with_names(dict(zip(given, outputs)))

    made = driver.multitarget.compile_for(unit, command.function or command.generator, targets, command.target.split(","))
    return made.write(files)


def _gradient(generator: Generator) -> tuple[Pipeline, list[Any], Sequence[str]]:
    """The gradient of a Generator's pipeline, its inputs, and the names of its outputs."""
    outputs, inputs = generator.build().outputs(), generator.input_parameters()
    reverse = reversed_outputs(outputs)
    made = gradients_by_output(reverse, by_name([p.param for p in inputs if p.param is not None]))
    if not made:
        raise CompileError(f"-d 1: Generator {generator.registered_name} has no input buffers to differentiate by")
    return Pipeline(list(made.values())), [*inputs, *(image for r in reverse for image in r.adjoints)], list(made)


def _schedule(generator: Generator, pipeline: Pipeline) -> None:
    """By the autoscheduler that was asked for, if one was."""
    if generator.using_autoscheduler():
        pipeline.apply_autoscheduler(generator.target(), generator.autoscheduler())


def run(command: Command) -> list[str]:
    """Do what a command line asks; gives the names of the files written."""
    if not GENERATORS and not command.runtime:
        raise CompileError(f"No generators have been registered and not compiling a standalone runtime\n{_USAGE}")
    if not command.generator and not command.runtime:
        raise CompileError("Either -g <name> or -r must be specified; available Generators "
                           "are:" + "".join(f"\n    {n}" for n in GENERATORS))
    for plugin in filter(None, command.plugins.split(",")):
        load_plugin(plugin)
    if not command.folder:
        raise CompileError(f"-o must name the folder for the files\n{_USAGE}")
    if not command.target:
        raise CompileError(f"target=... must be specified, for example target=host\n{_USAGE}")
    targets, kinds, prefixes = [Target(t) for t in command.target.split(",")], _kinds(command.emit), _prefixes(command)
    written: list[str] = []
    if command.runtime:
        files = _file_names(
            command.folder, command.runtime, [k for k in kinds if k in (OutputFileType.object, OutputFileType.static_library)], targets[-1]
        )
        compile_standalone_runtime(files, targets[-1], prefixes)
        written += files.values()
    if command.generator:
        name = command.base or (command.function or command.generator).rpartition("::")[2]
        files = _file_names(command.folder, name, kinds, targets[-1])
        written += _write_pipeline(command, targets, prefixes, files)
    return written


def _give_up(number: int, frame: FrameType | None) -> NoReturn:
    raise CompileError("The Generator did not finish in the time that -t allows")


def main(argv: Sequence[str] | None = None) -> None:
    """Compile a Generator as `sys.argv` says, or other words after the name of a program; ends the process with a message when that is not
    possible. Call it at the end of a file of Generators.

    `python file.py -g NAME -o FOLDER [-f FUNCTION] [-e KINDS] [-n BASE] target=host [PARAM=VALUE ...]`
    """
    try:
        words = (sys.argv if argv is None else argv)[1:]
        if words in (["-h"], ["--help"]):
            print(_USAGE)
            return
        command = parse(words)
        if command.timeout != "0":
            signal.signal(signal.SIGALRM, _give_up)
            signal.alarm(int(command.timeout))
        for path in run(command):
            if command.verbose == "1":
                print(f"Generated file: {path}")
    except HalideError as e:
        sys.exit(str(e))
    finally:
        signal.alarm(0)
