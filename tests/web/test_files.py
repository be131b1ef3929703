"""`onecopy.files` under gunicorn: the responses are those of onecopy's server, and gunicorn sends
whole files with sendfile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.raw_http import request
from tests.support.serving import Serving


@pytest.fixture(
    scope="module", params=[[], ["--worker-class", "gthread", "--threads", "2"], ["-k", "onecopy.gunicorn.Worker"]]
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("gunicorn")
    (folder / "large").write_bytes(bytes(range(256)) * 20_000)
    (folder / "application.py").write_text(f"import onecopy\napp = onecopy.files({str(folder)!r})\n")
    words = ["gunicorn", "--no-control-socket", "--bind", "127.0.0.1:0", "--graceful-timeout", "1", *request.param]
    with Serving(module=[*words, "--pythonpath", str(folder), "application:app"], patience_s=60) as serving:
        yield serving


@pytest.mark.parametrize(
    ("byte_range", "status", "first", "end"),
    [
        (b"", 200, 0, 5_120_000),
        (b"bytes=1000-2999", 206, 1000, 3000),
        (b"bytes=5000000-", 206, 5_000_000, 5_120_000),
        (b"bytes=-1", 206, 5_119_999, 5_120_000),
    ],
)
def test_it_answers_as_under_our_server(server: Serving, byte_range: bytes, status: int, first: int, end: int) -> None:
    whole = bytes(range(256)) * 20_000
    with server.connect() as line:
        line.send(request("/large", b"Connection: close", *([b"Range: " + byte_range] if byte_range else [])))
        answer = line.answer()
        assert (answer.status, answer.whole, answer.body) == (status, True, whole[first:end])
        assert line.ends(60)


def test_missing_files_and_multipart_ranges(server: Serving) -> None:
    assert server.ask("/../large", b"Connection: close").status == 404
    assert (
        server.ask("/large", b"Connection: close", b"Range: bytes=5120000-").one("content-range") == b"bytes */5120000"
    )
    several = server.ask("/large", b"Connection: close", b"Range: bytes=0-1,1000000-2999999")
    assert several.status == 206 and several.whole and len(several.body) > 2_000_000
