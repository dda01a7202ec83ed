"""Every Python snippet of README.md runs, in order, as one program; its other promises about files and commands hold."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def snippets(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_readme_snippets_run(tmp_path: Path) -> None:
    parts = snippets(README, "python")
    assert len(parts) >= 4
    program = tmp_path / "readme.py"
    program.write_text("\n".join(parts))
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Input buffer photo is accessed at 4, which is beyond the max (3) in dimension 0" in done.stdout
    assert (tmp_path / "brighter.so").exists() and (tmp_path / "brighter.h").exists()


@pytest.mark.slow
def test_snippets_of_the_tutorial_run(tmp_path: Path) -> None:
    program = tmp_path / "gradients.py"
    program.write_text("\n".join(snippets((ROOT / "docs" / "gradients.md").read_text(), "python")))
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, overflowed, *rest = done.stdout.splitlines()
    assert "-0.829" in first and "nan" in overflowed and "5 derivatives, 0 differ" in done.stdout and "3.8102965" in rest[-2] and "select(" in rest[-1]


@pytest.mark.slow
def test_snippets_about_autoschedulers_run(tmp_path: Path) -> None:
    program = tmp_path / "autoschedulers.py"
    program.write_text("\n".join(snippets((ROOT / "docs" / "autoschedulers.md").read_text(), "python")))
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "sharp.set_estimate(x, 0, 1024)" in done.stdout and "columns.compute_at(sharp, " in done.stdout and "sums are taken in parts" in done.stdout


def test_make_targets_that_are_mentioned_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for document in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / document).read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document} mentions make {target}"


def test_links_lead_somewhere() -> None:
    for document in ("README.md", "CONTRIBUTING.md", "docs/gradients.md", "docs/autoschedulers.md"):
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / document).read_text()):
            assert (ROOT / link).exists(), f"{document} links to {link}"


def test_message_without_a_compiler_is_the_one_shown(tmp_path: Path) -> None:
    program = "import halide_py as hl\nf = hl.Func('f')\nx = hl.Var('x')\nf[x] = x\nf.realize([4])\n"
    hide = "import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda name, *a: None if name == 'ziglang' else find(name, *a)\n"
    env = {"PATH": str(tmp_path), "HL_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", hide + program], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode != 0
    (shown,) = (t.strip() for t in snippets(README, "text"))
    assert shown in done.stderr, done.stderr
