"""The access log of `onecopy run` and of `Server`: the contents of its lines, and that no line is
lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import onecopy
from tests.support.raw_http import Answer, request
from tests.support.serving import ROOT, Serving

#: Apache's own pattern of a line: https://httpd.apache.org/docs/2.4/logs.html#common
COMMON = re.compile(
    r"(?P<host>\S+) - - \[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000)\] "
    r'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}|0) (?P<bytes>\d+|-)'
    r'(?: "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)")?'
)


def _app(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/rows":
        start("200 OK", [])
        return onecopy.connect("sqlite::memory:").execute("select 1 union all select 2").ndjson()
    if environ["PATH_INFO"] == "/fails":
        raise RuntimeError("raised by the application")
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


def _lines(path: Path) -> list[str]:
    text = path.read_text("ascii")
    assert not text or text.endswith("\n")
    return text.splitlines()


def _common(path: Path) -> list[re.Match[str]]:
    found = [(line, COMMON.fullmatch(line)) for line in _lines(path)]
    assert [line for line, match in found if match is None] == []
    return [match for _, match in found if match]


#: The requests of `_ask_all`, in order: the request line, and the outcome.
ASKED = [
    ("GET /hello HTTP/1.1", "done"),
    ("GET /hello HTTP/1.1", "done"),
    ("HEAD /hello HTTP/1.1", "done"),
    ("GET /bodiless/304 HTTP/1.1", "done"),
    ("GET /file HTTP/1.1", "done"),
    ("GET /generator HTTP/1.1", "done"),
    ('GET /a"b\\c HTTP/1.1', "done"),
    ("-", "refused"),
    ("-", "refused"),
    ("GET /raises/before HTTP/1.1", "done"),
]


def _ask_all(serving: Serving) -> list[Answer]:
    hostile = b'GET /a"b\\c?secret="x" HTTP/1.1\r\nHost: a\r\nUser-Agent: \x9b31m" 200 1\r\nReferer: r\r\n\r\n'
    requests = [
        (request("/hello?secret=1") + request("/hello"), 2, "GET"),
        (request("/hello", method="HEAD"), 1, "HEAD"),
        (request("/bodiless/304"), 1, "GET"),
        (request("/file"), 1, "GET"),
        (request("/generator"), 1, "GET"),
        (hostile, 1, "GET"),
        (b"GET /x\n127.0.0.1 - - [forged] HTTP/1.1\r\n\r\n", 1, "GET"),
        (request("/hello", *[b"X: 1"] * 200), 1, "GET"),
        (request("/raises/before"), 1, "GET"),
    ]
    answers = []
    for data, n, method in requests:
        with serving.connect() as line:
            line.send(data)
            answers += [line.answer(method) for _ in range(n)]
    return answers


@pytest.mark.parametrize("form", ["common", "combined", "json"])
def test_each_answer_has_its_line(form: str, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    serving = Serving("--access-log", str(log), "--access-log-format", form)
    try:
        answers = _ask_all(serving)
    finally:
        assert serving.stop() == 0
    assert "secret" not in log.read_text("ascii")
    # A client gets its response before its line is written, so lines of several connections may be
    # reordered.
    if form == "json":
        records = [json.loads(line) for line in _lines(log)]
        assert {line["peer"] for line in records} == {"127.0.0.1"}
        words = [[line.get(word) for word in ("method", "path", "protocol")] for line in records]
        seen = [
            (" ".join(filter(None, word)) or "-", line["status"], line["outcome"])
            for word, line in zip(words, records, strict=True)
        ]
        expected = [(line, a.status, outcome) for (line, outcome), a in zip(ASKED, answers, strict=True)]
        assert sorted(seen) == sorted(expected)
        return
    # The bytes are those of the body; with a chunked body, including its framing.
    chunked = len(b"4\r\none,\r\n4\r\ntwo,\r\n5\r\nthree\r\n0\r\n\r\n")
    sizes = [chunked if a.framing == "chunked" else len(a.body) for a in answers]
    expected_lines = [
        (line.replace("\\", "\\\\").replace('"', '\\"'), str(a.status), str(n) if n else "-")
        for (line, _), a, n in zip(ASKED, answers, sizes, strict=True)
    ]
    lines = _common(log)
    assert sorted((m["request"], m["status"], m["bytes"]) for m in lines) == sorted(expected_lines)
    agents = sorted({(m["referer"], m["agent"]) for m in lines}, key=str)
    assert agents == ([(None, None)] if form == "common" else [("-", "-"), ("r", r"\x9b31m\" 200 1")])


def test_the_query_is_logged_by_option(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with onecopy.Server(_app, "127.0.0.1:0", access_log=onecopy.AccessLog(log, query=True)) as server:
        urllib.request.urlopen(f"{server.url}a?b=c", timeout=60).read()
    (line,) = _common(log)
    assert line["request"] == "GET /a?b=c HTTP/1.1"


def test_rows_and_failures_are_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "access.log"
    with onecopy.Server(_app, "127.0.0.1:0", access_log=onecopy.AccessLog(log, "json")) as server:
        body = urllib.request.urlopen(f"{server.url}rows", timeout=60).read()
        with pytest.raises(urllib.error.HTTPError) as failed:
            urllib.request.urlopen(f"{server.url}fails", timeout=60)
        failed.value.close()
    rows, fails = sorted((json.loads(line) for line in _lines(log)), key=lambda line: int(line["status"]))
    assert rows["rows"] == body.count(b"\n") == 2
    assert rows["bytes"] > len(body) and 0 < rows["duration"] < 60
    assert (fails["status"], fails["path"]) == (500, "/fails")
    assert "raised by the application" in capsys.readouterr().err, "tracebacks go where they went"


def test_it_is_appended_to_and_a_path_is_the_common_format(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    for _ in range(2):
        with onecopy.Server(_app, "127.0.0.1:0", access_log=log) as server:
            urllib.request.urlopen(server.url, timeout=60).read()
    assert [match["request"] for match in _common(log)] == ["GET / HTTP/1.1"] * 2


def test_standard_output_gets_lines_for_a_dash() -> None:
    program = (
        "import onecopy, urllib.request\n"
        "def app(environ, start):\n"
        "    start('200 OK', [])\n"
        "    return [b'x']\n"
        "with onecopy.Server(app, '127.0.0.1:0', access_log='-') as server:\n"
        "    for _ in range(3):\n"
        "        urllib.request.urlopen(server.url).read()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert len(done.stdout.splitlines()) == 3
    assert all(COMMON.fullmatch(line) for line in done.stdout.splitlines())


def test_a_signal_opens_the_file_anew_and_two_processes_share_one(tmp_path: Path) -> None:
    log, moved = tmp_path / "access.log", tmp_path / "access.log.1"
    both = [Serving("--access-log", str(log)) for _ in range(2)]
    try:
        for serving in both:
            for k in range(50):
                assert serving.ask(f"/hello/{k}").status == 200
        os.rename(log, moved)
        for serving in both:
            serving.process.send_signal(signal.SIGUSR1)
            assert serving.ask("/hello/after").status == 200
    finally:
        codes = [serving.stop() for serving in both]
    assert codes == [0, 0]
    # Where a line goes that was on its way when the signal came is not said; none is lost, and the
    # file is there again.
    lines = [match["request"] for path in (moved, log) for match in _common(path)]
    expected = [*(f"GET /hello/{k} HTTP/1.1" for k in range(50)), "GET /hello/after HTTP/1.1"] * 2
    assert sorted(lines) == sorted(expected)
    assert _lines(log)


def test_a_program_opens_the_file_anew(tmp_path: Path) -> None:
    log, moved = tmp_path / "access.log", tmp_path / "access.log.1"
    with onecopy.Server(_app, "127.0.0.1:0", access_log=log) as server:
        os.rename(log, moved)
        server.reopen_access_log()
        urllib.request.urlopen(server.url, timeout=60).read()
    assert _lines(moved) == [] and len(_common(log)) == 1


def test_a_log_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        onecopy.Server(_app, "127.0.0.1:0", access_log=tmp_path / "nowhere" / "log")
    with pytest.raises(ValueError, match="write `common`, `combined` or `json`"):
        onecopy.Server(_app, "127.0.0.1:0", access_log=onecopy.AccessLog("-", "xml"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pass the name of a file"):
        onecopy.Server(_app, "127.0.0.1:0", access_log=True)  # type: ignore[arg-type]
    done = subprocess.run(
        [sys.executable, "-m", "onecopy", "run", "tests.serve.app:app", "--access-log", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 2 and f"`{tmp_path}` cannot be opened: Is a directory" in done.stderr
