"""The HTML viewer: one file, and a loop, a Func or an allocation has the same name in loops, C source and table."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from processes import run_program

import halide_py as hl


class Page(HTMLParser):
    """The names in each pane, and what the tags say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: dict[str, set[str]] = {"header": set(), "loops": set(), "c": set()}
        self.pane, self.stack, self.outside, self.cells = "", list[str](), list[str](), list[str]()
        self.feed(text)
        assert not self.stack, f"unclosed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in ("meta",):
            self.stack.append(tag)
        self.pane = "header" if tag == "header" else str(given.get("id", self.pane)) if tag == "section" else self.pane
        if given.get("data-name"):
            self.names[self.pane].add(str(given["data-name"]))
        self.outside += [str(v) for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack[-1:] == ["td"]:
            self.cells.append(data)


def page(path: Path) -> str:
    x, y = hl.Var("x"), hl.Var("y")
    rows, small, out = hl.Func("rows"), hl.Func("small"), hl.Func("out")
    rows[x, y] = hl.select(x < y, x, y)  # has a < to escape
    small[x, y] = rows[x, y] + rows[x, y + 1]
    out[x, y] = small[x, y] + small[x, y + 1]
    rows.compute_root()
    small.compute_at(out, x)
    out.parallel(y).compile_to_lowered_stmt(str(path), [], hl.StmtOutputFormat.HTML)
    return path.read_text()


def test_the_panes_are_linked(tmp_path: Path) -> None:
    found = Page(page(tmp_path / "out.html"))
    assert not found.outside, "needs other files"
    both = found.names["loops"] & found.names["c"]
    assert any(name.endswith(".s0.y") for name in both) and any(name.startswith("rows") and "." not in name for name in both), both
    assert len(found.names["header"]) == 2 and found.names["header"] <= both
    assert "heap" in found.cells and "stack" in found.cells and "8" in found.cells  # small is one column of two int32


BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH")
def test_a_click_marks_the_same_name_in_the_other_panes(tmp_path: Path) -> None:
    text = page(tmp_path / "out.html")
    top = "[...document.querySelectorAll('section')].map(s => s.scrollTop > 0 && s.querySelector('[data-name]').getBoundingClientRect().top < innerHeight)"
    click = (f"<script>const seen = {top}; document.querySelector('header [data-name]').click();"
             "document.title = document.querySelectorAll('.on').length + ' ' + seen</script></body>")
    (tmp_path / "clicked.html").write_text(text.replace("</body>", click))
    dump = run_program([str(BROWSER), "--headless", "--no-sandbox", "--dump-dom", f"file://{tmp_path}/clicked.html"])
    marked, begins = dump.stdout.split("<title>")[1].split("</title>")[0].split()
    assert int(marked) >= 3
    assert begins == "true,true", "each pane shows the first loop"
