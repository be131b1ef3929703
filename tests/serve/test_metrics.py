"""The metrics of servers, parsed by Prometheus's own parser and compared with the counts of a
client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import onecopy
from tests.support.raw_http import Line, request
from tests.support.serving import ROOT, Serving


def _read(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """The values in a text of metrics, keyed by their name and their labels."""
    values = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation.endswith("."), family.name
        assert family.type in ("counter", "gauge", "histogram"), family.name
        for sample in family.samples:
            key = (sample.name, tuple(sample.labels.values()))
            assert key not in values
            values[key] = sample.value
    return values


def _done(text: str) -> float:
    return _read(text)["onecopy_http_requests_total", ("2xx", "done")]


def _app(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    start({"/304": "304 Not Modified", "/404": "404 Not Found"}.get(path, "200 OK"), [])
    if path == "/rows":
        return onecopy.connect("sqlite::memory:").execute("select 1 union all select 2").csv()
    if path == "/file":
        wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](open(__file__, "rb"))  # noqa: SIM115
        return wrapped
    if path == "/items":
        return (b"item" for _ in range(100))
    return [environ["wsgi.input"].read() or b"hello"]


def _all_that_comes(server: onecopy.Server, data: bytes) -> bytes:
    """Sends ``data`` on a new connection; returns all bytes up to the end of the connection."""
    with Line(server.address, 60) as line:
        line.send(data)
        come = b""
        while more := line.read(1):
            come += more
        return come


def test_counters_match_those_of_a_client() -> None:
    close = b"Connection: close"
    sent = [
        request() * 5 + request("/", close),
        request("/304") + request("/404", close),
        request("/", method="HEAD") + request("/file", close),
        request("/rows", close),
        request("/items", close),
        request("/", b"Content-Length: 5", b"Expect: 100-continue", close, method="POST", body=b"12345"),
        b"GET / HTTP/1.1\nHost: a\n\n",
        request("/", *[b"X: 1"] * 200),
    ]
    with onecopy.Server(_app, "127.0.0.1:0") as server:
        come = [_all_that_comes(server, data) for data in sent]
        server.stop()
        counters = _read(server.metrics())
    requests = {labels: n for (name, labels), n in counters.items() if name == "onecopy_http_requests_total"}
    assert requests == {("2xx", "done"): 11, ("3xx", "done"): 1, ("4xx", "done"): 1, ("4xx", "refused"): 2}
    statuses = [int(status) for data in come for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]
    assert len([status for status in statuses if status != 100]) == 15
    assert counters["onecopy_http_sent_bytes_total", ()] == sum(map(len, come))
    assert counters["onecopy_http_received_bytes_total", ()] == sum(map(len, sent))
    assert counters["onecopy_http_rows_total", ()] == 2
    assert counters["onecopy_http_connections_accepted_total", ()] == len(sent)
    assert counters["onecopy_http_request_duration_seconds_count", ()] == 15
    assert counters["onecopy_http_request_duration_seconds_bucket", ("+Inf",)] == 15
    assert 0 < counters["onecopy_http_request_duration_seconds_sum", ()] < 60
    for gauge in ("connections", "handlers_running", "requests_waiting", "row_streams"):
        assert counters[f"onecopy_http_{gauge}", ()] == 0


def test_buckets_only_grow() -> None:
    with onecopy.Server(_app, "127.0.0.1:0") as server:
        for _ in range(20):
            urllib.request.urlopen(server.url, timeout=60).read()
        server.stop()
        counters = _read(server.metrics())
    buckets = [
        (float(labels[0]), n)
        for (name, labels), n in counters.items()
        if name == "onecopy_http_request_duration_seconds_bucket"
    ]
    assert buckets == sorted(buckets) and [n for _, n in buckets] == sorted(n for _, n in buckets)
    assert buckets[-1] == (float("inf"), 20)


def test_a_running_handler_is_counted() -> None:
    seen: list[str] = []

    def app(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        seen.append(server.metrics())
        start("200 OK", [])
        return [b""]

    with onecopy.Server(app, "127.0.0.1:0") as server:
        urllib.request.urlopen(server.url, timeout=60).read()
    counters = _read(seen[0])
    assert counters["onecopy_http_handlers_running", ()] == counters["onecopy_http_connections", ()] == 1


def test_run_serves_metrics_at_a_separate_address() -> None:
    with Serving("--metrics", "127.0.0.1:0") as serving:
        serving.must_serve()
        found = re.search(r"metrics are served at (http://127\.0\.0\.1:\d+/metrics)", serving.said())
        assert found, serving.said()

        def scrape() -> str:
            with urllib.request.urlopen(found[1], timeout=60) as answer:
                assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
                return str(answer.read(), "utf-8")

        # A request is counted when it is finished, and its response may be read before.
        while not _done(text := scrape()):
            pass
        # Neither on the metrics server's own counters, nor at the application's address.
        assert _read(text)["onecopy_http_servers", ()] == 1
        assert serving.ask("/metrics").status == 404
        for url, method, status in ((found[1][:-1], "GET", 404), (found[1], "POST", 405)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60)
            assert refused.value.code == status
            refused.value.close()


def test_two_processes_count_in_one_area() -> None:
    metrics = onecopy.Metrics(servers=2)
    command = [sys.executable, "-m", "onecopy", "run", "tests.serve.app:app", "--bind", "127.0.0.1:0"]

    def worker() -> tuple[subprocess.Popen[str], str]:
        number = str(metrics.descriptor)
        process = subprocess.Popen(
            [*command, "--metrics-fd", number],
            pass_fds=[metrics.descriptor],
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stderr.readline())
        assert found
        return process, found[0]

    def ended(process: subprocess.Popen[str]) -> None:
        process.wait(60)
        assert process.stderr is not None
        process.stderr.close()

    workers = [worker() for _ in range(2)]
    try:
        lines = []
        for _, url in workers:
            host, port = url[7:-1].split(":")
            lines.append(Line((host, int(port)), 60))
            for _ in range(10):
                lines[-1].send(request())
                assert lines[-1].answer().status == 200
        # A worker is killed: its counters are kept, its connection is not.
        workers[0][0].kill()
        ended(workers[0][0])
        counters = _read(metrics.text())
        assert counters["onecopy_http_servers", ()] == counters["onecopy_http_connections", ()] == 1
        # Its replacement continues to count.
        workers[0] = worker()
        for _ in range(5):
            urllib.request.urlopen(f"{workers[0][1]}hello", timeout=60).read()
    finally:
        for process, _ in workers:
            process.terminate()
            ended(process)
    for line in lines:
        line.close()
    assert [process.returncode for process, _ in workers] == [0, 0]
    counters = _read(metrics.text())
    assert counters["onecopy_http_requests_total", ("2xx", "done")] in (24, 25), (
        "the last one of a killed worker may be missing"
    )
    assert counters["onecopy_http_servers", ()] == counters["onecopy_http_connections", ()] == 0


def test_slots_are_limited_and_descriptors_are_checked(tmp_path: Path) -> None:
    metrics = onecopy.Metrics(servers=1)
    with onecopy.Server(_app, "127.0.0.1:0", metrics=metrics) as server:
        with pytest.raises(RuntimeError, match="larger `servers`"):
            onecopy.Server(_app, "127.0.0.1:0", metrics=metrics)
        urllib.request.urlopen(server.url, timeout=60).read()
        again = onecopy.Metrics.of_descriptor(metrics.descriptor)
        server.stop()
        assert _done(again.text()) == _done(metrics.text()) == _done(server.metrics()) == 1
    with open(tmp_path / "file", "w+b") as file:
        file.write(bytes(8192))
        with pytest.raises(ValueError, match="has no metrics"):
            onecopy.Metrics.of_descriptor(file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        onecopy.Metrics.of_descriptor(1 << 20)
