"""Every snippet of the README and the guides runs, in order, in an empty folder, and prints the
documented output.

Conventions of a page: ```python blocks share one namespace; ```sh blocks run in bash; a ```text
block directly after a block is the expected output of that block; `<!-- file: NAME -->` writes the
next block to a file; `<!-- background: URL -->` starts the next block and waits until URL responds;
`<!-- not run: why -->` skips the next block. Port 8000 is replaced by a free one.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.process import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *(page for page in sorted((ROOT / "docs" / "concepts").glob("*.md")) if "```python" in page.read_text("utf-8")),
]
# The programs of these pages are compiled and run by `java/tests`.
PAGES = [page for page in PAGES if "```java\n" not in page.read_text("utf-8")]
# This program is compiled and run by crates/capi/tests/guide.rs, where the library is built.
PAGES.remove(ROOT / "docs" / "guide" / "c.md")
if importlib.util.find_spec("duckdb") is None:
    # Other CPythons are tested without consumers of Arrow streams.
    PAGES.remove(ROOT / "docs" / "guide" / "arrow.md")
if importlib.util.find_spec("flask") is None:
    # And without web frameworks and their servers.
    PAGES.remove(ROOT / "docs" / "guide" / "web.md")
    PAGES.remove(ROOT / "docs" / "guide" / "deploy.md")
if not all(importlib.util.find_spec(name) for name in ("pysail", "ray")):
    # `make engines` runs the examples of this page.
    PAGES.remove(ROOT / "docs" / "guide" / "engines.md")
_FENCE = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """A fenced code block, the HTML comment before it (a directive), and its expected output."""

    language: str
    text: str
    mark: str
    prints: str | None
    line: int


def blocks(page: str) -> list[Block]:
    """The code blocks of a page; a `text` block is the expected output of the block before it."""
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(page):
        line = page.count("\n", 0, match.start()) + 1
        follows = not page[end : match.start()].strip()
        if match["language"] == "text":
            if found and follows:
                found[-1] = found[-1]._replace(prints=match["text"])
        else:
            found.append(Block(match["language"], match["text"], match["mark"] or "", None, line))
        end = match.end()
    return found


def _answers(url: str, process: subprocess.Popen[bytes]) -> None:
    """Waits until the server process responds to a request for ``url``; fails if the process
    ends."""
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except urllib.error.URLError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.05)
    raise AssertionError(f"the server (exit code {process.returncode}) has not answered {url}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_snippet_runs_and_prints_the_documented_output(page: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    port = str(free_port())
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    namespace: dict[str, Any] = {"__name__": "__snippet__"}
    background: list[subprocess.Popen[bytes]] = []
    ran = 0
    try:
        for block in blocks(page.read_text(encoding="utf-8")):
            where = f"{page.name}:{block.line}"
            text = block.text.replace("8000", port)
            if block.mark.startswith("not run: "):
                continue
            if block.mark.startswith("file: "):
                (tmp_path / block.mark.removeprefix("file: ")).write_text(text, encoding="utf-8")
                continue
            if block.mark.startswith("background: "):
                text = text.strip().replace("onecopy serve", f"exec onecopy serve --port {port}")
                background.append(subprocess.Popen(["bash", "-c", text], env=environment))
                _answers(block.mark.removeprefix("background: ").replace("8000", port), background[-1])
                ran += 1
                continue
            if block.language == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile("\n" * block.line + text, str(page), "exec"), namespace)
                printed = out.getvalue()
            elif block.language == "sh":
                done = subprocess.run(
                    ["bash", "-ec", text], env=environment, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{where}: {done.stderr}"
                printed = done.stdout
            else:
                continue
            ran += 1
            if block.prints is not None:
                assert printed.rstrip("\n") == block.prints.replace("8000", port).rstrip("\n"), where
    finally:
        for process in background:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
    assert ran, f"{page.name} has no snippet that runs"
