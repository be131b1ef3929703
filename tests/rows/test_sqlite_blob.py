"""SQLite blobs that are read and written in place."""

from __future__ import annotations

import pytest

import onecopy


@pytest.fixture
def stored(con: onecopy.Connection) -> onecopy.Connection:
    con.execute("create table t (id integer primary key, x blob)")
    con.execute("insert into t values (7, ?)", [bytes(range(200)) * 10])
    con.commit()
    return con


def test_a_blob_is_read_like_a_file(stored: onecopy.Connection) -> None:
    whole = bytes(range(200)) * 10
    with stored.blob_open("t", "x", 7, read_only=True) as blob:
        assert len(blob) == 2000 and blob.tell() == 0
        assert blob.read(3) == b"\0\1\2" and blob.tell() == 3
        assert blob.seek(-5, 2) == 1995 and blob.read() == whole[-5:]
        assert blob.read() == b"" and blob.read(7) == b""
        assert blob.seek(100) == 100 and blob.seek(-1, 1) == 99 and blob.read(-1) == whole[99:]
        blob.seek(0)
        with pytest.raises(onecopy.Error, match="readonly"):
            blob.write(b"x")


def test_a_blob_is_written_in_place(stored: onecopy.Connection) -> None:
    with stored.blob_open("t", "x", 7) as blob:
        blob.seek(10)
        blob.write(b"abc")
        blob.write(bytearray(b"de"))
        assert blob.tell() == 15
        blob.seek(1999)
        with pytest.raises(ValueError, match="past the end of the value"):
            blob.write(b"xy")
    stored.commit()
    value = (stored.execute("select x from t").fetchone() or [b""])[0]
    assert value[10:15] == b"abcde" and len(value) == 2000 and value[1999:] == b"\xc7"


def test_a_blob_is_closed_with_its_row_table_or_connection(stored: onecopy.Connection) -> None:
    blob = stored.blob_open("t", "x", 7)
    blob.close()
    blob.close()
    with pytest.raises(onecopy.InterfaceError, match="closed"):
        blob.read()
    blob = stored.blob_open("t", "x", 7)
    stored.execute("update t set x = 'other'")
    with pytest.raises(onecopy.OperationalError, match="changed"):
        blob.read()
    blob = stored.blob_open("t", "x", 7)
    stored.close()
    with pytest.raises(onecopy.InterfaceError, match="closed"):
        blob.read()
    blob.close()


@pytest.mark.parametrize(
    ("table", "column", "row"), [("none", "x", 7), ("t", "none", 7), ("t", "x", 8), ("t\0", "x", 7), ("t", "id", 7)]
)
def test_a_missing_blob_is_an_error(stored: onecopy.Connection, table: str, column: str, row: int) -> None:
    with pytest.raises(onecopy.Error):
        stored.blob_open(table, column, row)
    with pytest.raises(ValueError, match="whence"):
        stored.blob_open("t", "x", 7).seek(0, 3)
    with pytest.raises(ValueError, match="outside"):
        stored.blob_open("t", "x", 7).seek(-1)
