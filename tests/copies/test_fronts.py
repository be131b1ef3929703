"""The ledger of the command (to a pipe, a file and a terminal) and of the gateway, compared with
the copy counter.

The ledger is read from the output of `--ledger`, the copy counter writes its counts when a process
exits; both count the whole process. The start of a process copies and allocates too (for example a
description of each argument of the command). These bytes are measured and subtracted: a build
without link-time optimisation copies twice as many of them, more than the tolerance.
"""

from __future__ import annotations

import csv
import http.client
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.copies.counting import (
    FREED_BYTES,
    N_ROWS,
    PARTS,
    ROOT,
    TEXTS,
    Counted,
    Setting,
    agree,
    cell,
    check,
    check_ledger,
    check_red,
    dumped,
    handled,
    payload,
    printed_ledger,
)
from tests.support.bson import documents
from tests.support.gateway import Gateway

FORMATS = ["json", "ndjson", "csv"]
#: Output formats of the command, and destinations: BSON is refused on a terminal.
COMMAND = [
    (form, to)
    for form in [*FORMATS, "bson"]
    for to in ("pipe", "file", "terminal")
    if (form, to) != ("bson", "terminal")
]
WIDE = ["tds_msodbc", "tds_freetds", "tds_rust"]
#: Requests to the gateway: the cost of a connection is small compared with the responses.
N_REQUESTS = 3


def values(body: bytes, form: str) -> Sequence[object]:
    """The texts in a response of the given format."""
    if form == "bson":
        return [row["x"].value for row in documents(body)]
    if form == "csv":
        return [row[0] for row in csv.reader(io.StringIO(body.decode("utf-8"), newline=""))][1:]
    rows = json.loads(body) if form == "json" else [json.loads(line) for line in body.splitlines()]
    return [row["x"] for row in rows]


def _read_all(descriptor: int, into: bytearray) -> None:
    """Appends the output of a terminal to ``into`` until its other end is closed."""
    while True:
        try:
            part = os.read(descriptor, 1 << 16)
        except OSError:  # EIO: the other end is closed.
            return
        if not part:
            return
        into += part


#: The counts of the startup that are subtracted.
_OF_A_START = ("copied_bytes", "moved_bytes", "allocated_bytes")
_STARTS: dict[str, dict[str, int]] = {}


def _start(setting: Setting, folder: Path) -> dict[str, int]:
    """The bytes that the start of the command copies, moves and allocates.

    They are measured with a result of one row with one character.
    """
    if setting.module not in _STARTS:
        dump = folder / "start"
        dump.mkdir()
        command = [sys.executable, "-m", "onecopy", "query", "sqlite::memory:", "select 'x' as x", "--format", "csv"]
        environment = setting.with_fault("none").environment(dump)
        subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=120, check=True)
        counts = dumped(dump)
        _STARTS[setting.module] = {name: counts[name] for name in _OF_A_START}
    return _STARTS[setting.module]


def by_command(setting: Setting, folder: Path, to: str, form: str, target: str, sql: str) -> tuple[bytes, Counted]:
    """Runs `onecopy query` to a pipe, a file or a terminal; returns its output and the counts."""
    dump = folder / "dump"
    dump.mkdir()
    (folder / "target").write_text(target, encoding="utf-8")
    command = [sys.executable, "-m", "onecopy", "query", f"@{folder / 'target'}", sql, "--format", form, "--ledger"]
    environment = setting.environment(dump) | {"TERM": "dumb"}
    out = bytearray()
    if to == "terminal":
        ours, theirs = os.openpty()
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=theirs, stderr=subprocess.PIPE)
        os.close(theirs)
        reader = threading.Thread(target=_read_all, args=(ours, out))
        reader.start()
        _, stderr = process.communicate(timeout=120)
        reader.join()
        os.close(ours)
        code = process.returncode
        body = bytes(out).replace(b"\r\n", b"\n")  # As a terminal shows it.
    else:
        more = ["--output", str(folder / "rows")] if to == "file" else []
        done = subprocess.run(
            [*command, *more], env=environment, cwd=ROOT, capture_output=True, timeout=120, check=False
        )
        code, stderr = done.returncode, done.stderr
        body = (folder / "rows").read_bytes() if to == "file" else done.stdout
    said = stderr.decode("utf-8")
    assert code == 0, said
    counter = dumped(dump)
    for name, n in _start(setting, folder).items():
        counter[name] -= n
    return body, Counted(*printed_ledger(said), counter)


def _served(
    setting: Setting, folder: Path, form: str, target: str, sql: str, n_requests: int
) -> tuple[list[bytes], str, Path]:
    """Runs `onecopy serve` and sends requests; returns the responses, its stderr, and the folder
    with the counts."""
    dump = folder / "dump"
    dump.mkdir(parents=True)
    (folder / "url").write_text(target, encoding="utf-8")
    config = f'[databases.d]\nurl_file = "url"\n[queries.x]\nsql = """{sql}"""\n'
    (folder / "c.toml").write_text(config, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "onecopy", "serve", str(folder / "c.toml"), "--port", "0", "--ledger"],
        env=setting.environment(dump), cwd=ROOT, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    gateway = Gateway(process)
    bodies = []
    try:
        connection = http.client.HTTPConnection(gateway.address, timeout=60)
        for _ in range(n_requests):
            connection.request("GET", f"/x.{form}")
            response = connection.getresponse()
            bodies.append(response.read())
            assert response.status == 200, bodies
        connection.close()
    finally:
        code = gateway.stop()
    said = "".join(gateway.said)
    assert code == 0, said
    return bodies, said, dump


_IDLE: dict[str, dict[str, int]] = {}


def _idle(setting: Setting, folder: Path) -> dict[str, int]:
    """The bytes that a process of `onecopy serve` copies, moves and allocates without any
    request."""
    if setting.module not in _IDLE:
        _, _, dump = _served(setting.with_fault("none"), folder / "idle", "csv", "sqlite::memory:", "select 1 as x", 0)
        counts = dumped(dump)
        _IDLE[setting.module] = {name: counts[name] for name in _OF_A_START}
    return _IDLE[setting.module]


def over_http(setting: Setting, folder: Path, form: str, target: str, sql: str) -> tuple[list[bytes], Counted]:
    """Sends several requests to `onecopy serve`; returns the responses, and the counts of its
    processes."""
    bodies, said, dump = _served(setting, folder, form, target, sql, N_REQUESTS)
    counter = dumped(dump)
    n_processes = len(list(dump.glob("*.json")))
    for name, n in _idle(setting, folder).items():
        counter[name] -= n_processes * n
    return bodies, Counted(*printed_ledger(said), counter)


@pytest.mark.parametrize(("form", "to"), COMMAND)
def test_ledger_and_counter_agree_on_the_command(
    setting: Setting, texts: str, tmp_path: Path, form: str, to: str
) -> None:
    body, counted = by_command(setting, tmp_path, to, form, texts, "select x from cyrillic")
    assert values(body, form) == [cell("cyrillic", k) for k in range(N_ROWS)]
    check(counted, payload("cyrillic"), handled(form, "cyrillic", "utf-8"))
    # The counter has seen the module send all of it.
    assert counted.counter["sent_bytes"] >= len(body)


@pytest.mark.parametrize("form", FORMATS)
def test_ledger_and_counter_agree_over_http(setting: Setting, texts: str, tmp_path: Path, form: str) -> None:
    bodies, counted = over_http(setting, tmp_path, form, texts, "select x from cyrillic")
    for body in bodies:
        assert values(body, form) == [cell("cyrillic", k) for k in range(N_ROWS)]
    _check_http(counted, payload("cyrillic"), handled(form, "cyrillic", "utf-8"))
    assert counted.counter["sent_bytes"] >= sum(map(len, bodies))


def _check_http_ledger(counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1) -> None:
    head = counted.stages["head"]
    # A head is copied once, into the output buffer; some 300 bytes.
    assert head["taken"] == head["copied"] and head["converted"] == 0
    assert 100 * N_REQUESTS < head["taken"] < 1000 * N_REQUESTS
    check_ledger(counted, N_REQUESTS * size, how, N_REQUESTS * n_texts, parts, around=head["taken"])


def _check_http(counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1, freed: int = 0) -> None:
    _check_http_ledger(counted, size, how, n_texts, parts)
    assert agree(counted, N_REQUESTS * size, N_REQUESTS, freed), counted


def _check_http_red(counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1) -> None:
    _check_http_ledger(counted, size, how, n_texts, parts)
    assert not agree(counted, N_REQUESTS * size, N_REQUESTS), counted


def _wide(kind: str) -> tuple[str, int]:
    """SQL of a result with long texts, and their total bytes in UTF-16.

    The result has few rows, since one of the drivers fetches only one row at a time.
    """
    text = TEXTS[kind] * 200
    return f"select replicate(N'{TEXTS[kind]}', 200) as x from repeat(400)", 400 * len(text.encode("utf-16-le"))


@pytest.mark.parametrize("form", [*FORMATS, "bson"])
@pytest.mark.parametrize("profile", WIDE)
def test_ledger_and_counter_agree_on_the_command_where_the_driver_is_wide(
    setting: Setting, tmp_path: Path, request: pytest.FixtureRequest, profile: str, form: str
) -> None:
    database = request.getfixturevalue(profile)
    sql, size = _wide("cyrillic")
    body, counted = by_command(setting, tmp_path, "pipe", form, database.odbc, sql)
    assert values(body, form) == [TEXTS["cyrillic"] * 200] * 400
    check(counted, size, handled(form, "cyrillic", "utf-16-le"), 400, PARTS, FREED_BYTES)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("profile", WIDE)
def test_ledger_and_counter_agree_over_http_where_the_driver_is_wide(
    setting: Setting, tmp_path: Path, request: pytest.FixtureRequest, profile: str, form: str
) -> None:
    database = request.getfixturevalue(profile)
    sql, size = _wide("cyrillic")
    bodies, counted = over_http(setting, tmp_path, form, database.odbc, sql)
    for body in bodies:
        assert values(body, form) == [TEXTS["cyrillic"] * 200] * 400
    _check_http(counted, size, handled(form, "cyrillic", "utf-16-le"), 400, PARTS, FREED_BYTES)


@pytest.mark.parametrize("front", ["command", "http"])
@pytest.mark.parametrize("profile", ["postgres", "postgres_ansi", "mariadb"])
def test_ledger_and_counter_agree_where_the_driver_is_narrow(
    setting: Setting, tmp_path: Path, request: pytest.FixtureRequest, profile: str, front: str
) -> None:
    database = request.getfixturevalue(profile)
    # Enough rows that the copies of the startup (the arguments of all commands) are below the
    # tolerance.
    n_rows = 4000
    series = f"seq_0_to_{n_rows - 1}" if profile == "mariadb" else f"generate_series(0, {n_rows - 1})"
    text = TEXTS["cyrillic"]
    sql, size = f"select repeat('{text}', 24) as x from {series}", n_rows * 24 * len(text.encode())
    if front == "command":
        body, counted = by_command(setting, tmp_path, "pipe", "csv", database.odbc, sql)
        check(counted, size, "copied", n_rows, freed=FREED_BYTES)
        bodies = [body]
    else:
        bodies, counted = over_http(setting, tmp_path, "csv", database.odbc, sql)
        _check_http(counted, size, "copied", n_rows, freed=FREED_BYTES)
    assert all(values(body, "csv") == [text * 24] * n_rows for body in bodies)


# The counters detect faults on these paths too.

FAULTS = ["copy", "conversion", "send"]


@pytest.mark.parametrize(("form", "to"), COMMAND)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_in_the_command_is_detected(
    planted: Setting, texts: str, tmp_path: Path, fault: str, form: str, to: str
) -> None:
    body, counted = by_command(planted.with_fault(fault), tmp_path, to, form, texts, "select x from cyrillic")
    assert values(body, form) == [cell("cyrillic", k) for k in range(N_ROWS)]
    check_red(counted, payload("cyrillic"), handled(form, "cyrillic", "utf-8"))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_in_http_is_detected(
    planted: Setting, texts: str, tmp_path: Path, fault: str, form: str
) -> None:
    _, counted = over_http(planted.with_fault(fault), tmp_path, form, texts, "select x from cyrillic")
    _check_http_red(counted, payload("cyrillic"), handled(form, "cyrillic", "utf-8"))


@pytest.mark.parametrize("front", ["command", "http"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("profile", WIDE)
def test_a_planted_fault_in_the_front_ends_is_detected_if_the_driver_is_wide(
    planted: Setting, tmp_path: Path, request: pytest.FixtureRequest, profile: str, fault: str, front: str
) -> None:
    database = request.getfixturevalue(profile)
    sql, size = _wide("cyrillic")
    how = handled("ndjson", "cyrillic", "utf-16-le")
    if front == "command":
        _, counted = by_command(planted.with_fault(fault), tmp_path, "pipe", "ndjson", database.odbc, sql)
        check_red(counted, size, how, 400, PARTS)
    else:
        _, counted = over_http(planted.with_fault(fault), tmp_path, "ndjson", database.odbc, sql)
        _check_http_red(counted, size, how, 400, PARTS)
