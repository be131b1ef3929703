"""Each way to read a result from Python: the ledger has the promised counts, and the copy counter
confirms them.

docs/concepts/ledger.md documents the promises; `tests.copies.counting.check` asserts them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.copies.counting import (
    AHEAD_BYTES,
    N_ROWS,
    ONCE_BYTES,
    PARTS,
    TEXTS,
    Setting,
    agree,
    check,
    check_ledger,
    check_red,
    handled,
    payload,
)
from tests.copies.paths import PATHS

#: One path of each kind: a `str` by block, by row; a chunk that is returned, written, sent.
MAIN = [
    "str by fetchall",
    "str by iteration",
    "json in memory",
    "ndjson to a socket",
    "csv to a file",
    "bson to a file",
]


@pytest.mark.parametrize("kind", ["ascii", "cyrillic"])
@pytest.mark.parametrize("path", PATHS)
def test_ledger_and_counter_agree_on_sqlite(setting: Setting, texts: str, path: str, kind: str) -> None:
    check(setting.count(path, texts, f"select x from {kind}"), payload(kind), handled(path, kind, "utf-8"))


@pytest.mark.parametrize("kind", sorted(set(TEXTS) - {"ascii", "cyrillic"}))
@pytest.mark.parametrize("path", MAIN)
def test_text_of_each_kind_is_handled_once(setting: Setting, texts: str, path: str, kind: str) -> None:
    check(setting.count(path, texts, f"select x from {kind}"), payload(kind), handled(path, kind, "utf-8"))


def _literal_rows(kind: str) -> str:
    """An SQL expression of PostgreSQL and MariaDB for the text of row ``k``, the same as `cell`."""
    text = TEXTS[kind].replace("'", "''")
    return f"concat(k, ': ', repeat('{text}', 24 + mod(k, 5)))"


@pytest.mark.parametrize("kind", ["ascii", "cyrillic"])
@pytest.mark.parametrize("path", MAIN)
@pytest.mark.parametrize("profile", ["postgres", "postgres_ansi"])
def test_ledger_and_counter_agree_on_postgres(
    setting: Setting, request: pytest.FixtureRequest, profile: str, path: str, kind: str
) -> None:
    database = request.getfixturevalue(profile)
    sql = f"select cast({_literal_rows(kind)} as varchar(4000)) as x from generate_series(0, {N_ROWS - 1}) as g(k)"
    check(setting.count(path, database.odbc, sql), payload(kind), handled(path, kind, "utf-8"))


@pytest.mark.parametrize("path", MAIN)
def test_ledger_and_counter_agree_on_mariadb(setting: Setting, mariadb: Any, path: str) -> None:
    sql = f"select {_literal_rows('cyrillic')} as x from (select seq as k from seq_0_to_{N_ROWS - 1}) s"
    check(setting.count(path, mariadb.odbc, sql), payload("cyrillic"), handled(path, "cyrillic", "utf-8"))


# Drivers with UTF-16 results. The TDS responder returns one row many times.

WIDE = ["tds_msodbc", "tds_freetds", "tds_rust"]


def _wide(kind: str, declared: str) -> tuple[str, int, int]:
    """SQL of a result with long texts, their total bytes in UTF-16, and their number.

    ``declared`` is the type of the column. The driver fetches values of `nvarchar(max)` in parts;
    they are longer and fewer than those of `nvarchar(n)`, because Microsoft's Rust driver returns
    one row per fetch, and each fetch moves 720 bytes of the driver's structures.
    """
    if declared == "nvarchar(max)":
        times, n = 24_000 // len(TEXTS[kind].encode("utf-16-le")), 400
        sql, text = f"select replicate(N'{TEXTS[kind]}', {times}) as x from repeat({n})", TEXTS[kind] * times
    else:
        text, n = TEXTS[kind] * 30, N_ROWS
        sql = f"select N'{text}' as x from repeat({n})"
    return sql, n * len(text.encode("utf-16-le")), n


@pytest.mark.parametrize("kind", ["ascii", "cyrillic", "astral"])
@pytest.mark.parametrize("path", MAIN)
@pytest.mark.parametrize(
    ("profile", "declared"),
    [*((profile, "nvarchar(max)") for profile in WIDE), ("tds_msodbc", "nvarchar(n)"), ("tds_freetds", "nvarchar(n)")],
)
def test_ledger_and_counter_agree_on_drivers_of_utf_16(
    setting: Setting, request: pytest.FixtureRequest, profile: str, declared: str, path: str, kind: str
) -> None:
    database = request.getfixturevalue(profile)
    sql, size, n = _wide(kind, declared)
    check(setting.count(path, database.odbc, sql), size, handled(path, kind, "utf-16-le"), n, PARTS)


# Cells of some megabytes: in parts through a small chunk, or gathered for a `str`.

N_LONG, TIMES = 8, 20_000
#: The size to which a chunk of BSON grows for a row that exceeds it.
BSON_CHUNK_BYTES = 64 << 20


@pytest.mark.parametrize(
    "path",
    ["str by fetchall", "json in memory", "csv to a socket", "ndjson by read", "bson in memory", "bson to a file"],
)
@pytest.mark.parametrize("profile", ["sqlite", "postgres", "mariadb", *WIDE])
def test_ledger_and_counter_agree_on_long_cells(
    setting: Setting, request: pytest.FixtureRequest, profile: str, path: str
) -> None:
    encoding = "utf-16-le" if profile in WIDE else "utf-8"
    # A `str` from such a long cell is a plain copy by our own code in one pass, which the counter
    # cannot see.
    kind = "ascii" if profile in WIDE and path.startswith("str") else "cyrillic"
    text = TEXTS[kind]
    target = "sqlite::memory:" if profile == "sqlite" else request.getfixturevalue(profile).odbc
    sql = {
        "sqlite": f"with recursive n(k) as (select 1 union all select k + 1 from n where k < {N_LONG}) "
        f"select replace(hex(zeroblob({TIMES // 2})), '0', '{text}') as x from n",
        "postgres": f"select repeat('{text}', {TIMES}) as x from generate_series(1, {N_LONG})",
        "mariadb": f"select repeat('{text}', {TIMES}) as x from seq_1_to_{N_LONG}",
    }.get(profile, f"select replicate(N'{text}', {TIMES}) as x from repeat({N_LONG})")
    one = len(text.encode(encoding)) * TIMES
    counted = setting.count(path, target, sql)
    check_ledger(counted, N_LONG * one, handled(path, kind, encoding), N_LONG, parts=one // (16 << 10) + 2)
    # The buffer in which a value is gathered for a `str` grows to at most twice its size, for each
    # value.
    gathered = 2 * N_LONG * one if path.startswith("str") else 0
    # A document is contiguous in its chunk, which grows in reserved address space.
    chunk = BSON_CHUNK_BYTES if path == "bson to a file" else 0
    assert agree(counted, N_LONG * one, 1 + gathered // ONCE_BYTES, freed=chunk), counted


# A result of many blocks, which a thread prefetches.

N_AHEAD = 10_000
READ_AHEAD = ["str by fetchall", "json in memory", "csv to a file"]


def _many_rows(profile: str) -> tuple[str, int]:
    """SQL of a result with `N_AHEAD` rows, and the total bytes of its texts."""
    text = TEXTS["cyrillic"] * 30
    if profile == "postgres":
        sql = f"select cast(repeat('{TEXTS['cyrillic']}', 30) as varchar(4000)) as x from generate_series(1, {N_AHEAD})"
        return sql, N_AHEAD * len(text.encode())
    return f"select N'{text}' as x from repeat({N_AHEAD})", N_AHEAD * len(text.encode("utf-16-le"))


@pytest.mark.reads_ahead
@pytest.mark.parametrize("path", READ_AHEAD)
@pytest.mark.parametrize("profile", ["postgres", "tds_msodbc"])
def test_ledger_and_counter_agree_on_prefetched_blocks(
    setting: Setting, request: pytest.FixtureRequest, profile: str, path: str
) -> None:
    encoding = "utf-8" if profile == "postgres" else "utf-16-le"
    sql, size = _many_rows(profile)
    counted = setting.count(path, request.getfixturevalue(profile).odbc, sql)
    check(counted, size, handled(path, "cyrillic", encoding), N_AHEAD, PARTS, freed=AHEAD_BYTES)


# Arrow batches are in memory that we allocate, which the counter sees.


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_ledger_and_counter_agree_on_arrow(setting: Setting, texts: str, kind: str) -> None:
    path = "arrow in batches"
    counted = setting.count(path, texts, f"select x from {kind}")
    check(counted, payload(kind), handled(path, kind, "utf-8"), freed=_batches(payload(kind)))


@pytest.mark.parametrize("kind", ["ascii", "cyrillic"])
def test_ledger_and_counter_agree_on_arrow_of_drivers(
    setting: Setting, postgres: Any, tds_msodbc: Any, kind: str
) -> None:
    path = "arrow in batches"
    sql = f"select cast({_literal_rows(kind)} as varchar(4000)) as x from generate_series(0, {N_ROWS - 1}) as g(k)"
    counted = setting.count(path, postgres.odbc, sql)
    check(counted, payload(kind), handled(path, kind, "utf-8"), freed=_batches(payload(kind)))
    sql, size, n = _wide(kind, "nvarchar(n)")
    counted = setting.count(path, tds_msodbc.odbc, sql)
    check(counted, size, handled(path, kind, "utf-16-le"), n, PARTS, freed=_batches(size))


@pytest.mark.parametrize("fault", ["copy", "conversion"])
def test_a_planted_fault_in_arrow_is_detected(planted: Setting, texts: str, fault: str) -> None:
    path = "arrow in batches"
    counted = planted.with_fault(fault).count(path, texts, "select x from cyrillic")
    check_ledger(counted, payload("cyrillic"), handled(path, "cyrillic", "utf-8"))
    assert not agree(counted, payload("cyrillic"), freed=_batches(payload("cyrillic"))), counted


def _batches(size: int) -> int:
    """The bytes that Arrow batches may allocate for ``size`` bytes of text.

    It is a quarter more than the text, the factor by which each batch exceeds the previous one.
    """
    return size + size // 4


# The counters detect faults.


SENDING = [path for path in PATHS if not path.startswith("str")]


@pytest.mark.parametrize(
    ("fault", "path"),
    [(fault, path) for fault in ("copy", "conversion") for path in PATHS] + [("send", path) for path in SENDING],
)
def test_a_planted_fault_in_a_path_is_detected(planted: Setting, texts: str, path: str, fault: str) -> None:
    counted = planted.with_fault(fault).count(path, texts, "select x from cyrillic")
    check_red(counted, payload("cyrillic"), handled(path, "cyrillic", "utf-8"))


@pytest.mark.parametrize("fault", ["copy", "conversion"])
@pytest.mark.parametrize("path", MAIN)
@pytest.mark.parametrize("profile", WIDE)
def test_a_planted_fault_turns_the_path_red_on_drivers_of_utf_16(
    planted: Setting, request: pytest.FixtureRequest, profile: str, path: str, fault: str
) -> None:
    database = request.getfixturevalue(profile)
    sql, size, n = _wide("cyrillic", "nvarchar(max)")
    counted = planted.with_fault(fault).count(path, database.odbc, sql)
    check_red(counted, size, handled(path, "cyrillic", "utf-16-le"), n, PARTS)


@pytest.mark.reads_ahead
@pytest.mark.parametrize("fault", ["copy", "conversion"])
@pytest.mark.parametrize("path", READ_AHEAD)
def test_a_planted_fault_in_prefetching_is_detected(planted: Setting, tds_msodbc: Any, path: str, fault: str) -> None:
    sql, size = _many_rows("tds_msodbc")
    counted = planted.with_fault(fault).count(path, tds_msodbc.odbc, sql)
    check_ledger(counted, size, handled(path, "cyrillic", "utf-16-le"), N_AHEAD, PARTS)
    assert not agree(counted, size, freed=AHEAD_BYTES), counted
