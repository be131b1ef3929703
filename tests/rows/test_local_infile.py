"""`LOAD DATA LOCAL INFILE`: a local file is sent to the server only if the connection allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

import onecopy
from tests.conftest import Database


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_a_file_is_sent_only_with_local_infile(mariadb: Database, tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    load = f"load data local infile '{file}' into table sent (s)"
    for allowed in (False, True):
        con = onecopy.connect(mariadb.odbc, local_infile=allowed)
        con.execute("create temporary table sent (s text)")
        if allowed:
            con.execute(load)
        else:
            for sql in (load, f"/*! {load} */", f"-- a comment\n{load.upper()}"):
                with pytest.raises(onecopy.NotSupportedError, match="local_infile=True"):
                    con.execute(sql)
            with pytest.raises(onecopy.NotSupportedError):
                con.executemany(load, [()])
            assert con.execute("select 'load data local infile'").fetchone() == ("load data local infile",)
        assert con.execute("select count(*) from sent").fetchone() == (2 if allowed else 0,)
        con.close()


def test_a_short_password_is_masked_in_its_field_and_not_in_other_words() -> None:
    with pytest.raises(onecopy.OperationalError) as raised:
        onecopy.connect("Driver=/nonexistent/psqlodbcw.so;Server=port;Pwd=p;Uid=postgres")
    message = str(raised.value)
    assert "Pwd=***;Uid=postgres" in message
    assert "Server=port" in message and "psqlodbcw.so" in message
