"""The demo runs: its parts on a small piece of the photograph; the whole of it, with the table, among the slow tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("skimage")
pytest.importorskip("imageio")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

DEMO = Path(__file__).parents[2] / "demo"

PART = """
import sys
sys.path.insert(0, {demo!r})
from pathlib import Path
import photo
photo.OUTPUT = Path({output!r})
import {part}
{part}.OUTPUT = photo.OUTPUT
{part}.{call}
"""


def run_part(tmp_path: Path, part: str, call: str) -> str:
    """Run one part in a process of its own; gives what it printed."""
    program = PART.format(demo=str(DEMO), output=str(tmp_path), part=part, call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sharpened_photograph_is_right(tmp_path: Path) -> None:
    text = run_part(tmp_path, "sharpen", """table = lambda picture: None
picture = photo.load(None)[100:180, 200:296]
sharpen.run(picture)
import numpy as np, imageio.v3 as iio
from filters import numpy_blur
expected = numpy_blur(photo.planar(picture)).transpose(1, 2, 0)
print("same" if (iio.imread(photo.OUTPUT / "blur.png") == expected).all() else "different")
""")
    assert text.endswith("same\n") and (tmp_path / "unsharp.png").exists()


def test_tone_curve_is_found(tmp_path: Path) -> None:
    text = run_part(tmp_path, "tone_curve", "run(photo.load(None)[::8, ::8])")
    assert "found: gain 1.900, knee 0.550" in text and (tmp_path / "tone_curve.png").exists()


def test_c_program_gives_the_same_bytes(tmp_path: Path) -> None:
    text = run_part(tmp_path, "ahead_of_time", "run(photo.load(None)[50:117, 200:301])")
    assert text.count("differ from") == 2 and text.count(": 0 of 20301") == 2


@pytest.mark.slow
def test_classifiers_of_digits_train_as_in_double_precision(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    text = run_part(tmp_path, "digits", "run(samples=512, steps=40)")
    assert text.count("NumPy in double precision") == 2 and (tmp_path / "digits.png").exists()


@pytest.mark.slow
def test_whole_demo(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(DEMO / "run.py")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scheduled" in done.stdout
