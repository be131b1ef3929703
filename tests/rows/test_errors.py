"""Every kind of error has its exception class, has its details as attributes, and never contains a
password."""

from __future__ import annotations

import pathlib
import pickle

import pytest

import onecopy
from onecopy import _core
from tests.conftest import Database

PASSWORD = "s3cr3t-Passw0rd"


def test_the_table_of_classes_is_complete() -> None:
    classes = dict(_core.error_classes())
    assert len(classes) >= 11
    for kind, name in classes.items():
        assert name is not None, f"crates/py/src/errors.rs does not know ErrorKind::{kind}"
        assert issubclass(getattr(onecopy, name), onecopy.Error)


@pytest.mark.parametrize(
    ("sql", "error", "native_code"),
    [
        ("selec 1", onecopy.ProgrammingError, 1),
        ("select * from nowhere", onecopy.ProgrammingError, 1),
        ("insert into t values (1)", onecopy.IntegrityError, 2067),
        ("insert into t values (null)", onecopy.IntegrityError, 1299),
        ("select abs(-9223372036854775807 - 1)", onecopy.DatabaseError, 1),
    ],
)
def test_class_and_native_code(con: onecopy.Connection, sql: str, error: type[onecopy.Error], native_code: int) -> None:
    con.execute("create table t (a integer unique not null)")
    con.execute("insert into t values (1)")
    with pytest.raises(error) as caught:
        con.execute(sql).fetchall()
    assert caught.value.native_code == native_code
    assert caught.value.sqlstate == ""
    assert caught.value.column is None
    assert caught.value.row is None


def test_errors_survive_pickling_with_their_attributes() -> None:
    error = onecopy.DataError("m", sqlstate="22003", native_code=7, column=(1, "c"), row=9)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is onecopy.DataError
    assert str(again) == "m"
    assert (again.sqlstate, again.native_code, again.column, again.row) == ("22003", 7, (1, "c"), 9)


def test_errors_can_be_raised_by_user_code() -> None:
    error = onecopy.OperationalError("gone")
    assert (str(error), error.sqlstate, error.native_code, error.column, error.row) == ("gone", "", 0, None, None)


@pytest.mark.parametrize(
    "target",
    [
        f"postgresql://me:{PASSWORD}@127.0.0.1:1/none",
        f"odbc+postgresql://me:{PASSWORD}@127.0.0.1:1/none",
        f"mysql://me:{PASSWORD}@127.0.0.1:1/none",
        f"mssql://me:{PASSWORD}@127.0.0.1:1/none",
        f"Driver=no-such-driver.so;Server=127.0.0.1;Uid=me;Pwd={PASSWORD}",
        f"DSN=no-such-dsn;UID=me;PWD={{{PASSWORD}}}",
        f"sqlite:/no/such/dir/x.db?password={PASSWORD}",
        f"oracle://me:{PASSWORD}@h/d",
        f"nonsense {PASSWORD}",
    ],
)
def test_a_connection_that_fails_is_an_operational_error_without_the_password(target: str) -> None:
    with pytest.raises(onecopy.Error) as caught:
        onecopy.connect(target, connect_timeout=1)
    assert isinstance(caught.value, onecopy.OperationalError | onecopy.ProgrammingError | onecopy.NotSupportedError)
    assert str(caught.value)
    if not target.startswith(("sqlite", "nonsense")):
        assert PASSWORD not in f"{caught.value!r}{caught.value}{caught.value.__dict__}"


def test_a_file_that_is_not_a_database_is_reported(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "x.db"
    file.write_bytes(b"this is no database" * 100)
    with pytest.raises(onecopy.DatabaseError, match="not a database"):
        onecopy.connect(f"sqlite:{file}").execute("select * from t")


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_mariadbs_error_with_the_sqlstate_of_a_warning_is_an_error(mariadb: Database) -> None:
    con = onecopy.connect(mariadb.odbc, autocommit=True)
    con.execute("create temporary table t (v integer)")
    con.execute("insert into t values (?)", ["7"])
    for sql in ("insert into t values (?)", "update t set v = ?"):
        with pytest.raises(onecopy.DataError, match="truncated") as failed:
            con.execute(sql, ["1abc"])
        assert (failed.value.sqlstate, failed.value.native_code) == ("01000", 1265)
    with pytest.raises(onecopy.DataError, match="truncated") as failed:
        con.executemany("insert into t values (?)", [("8",), ("2abc",), ("9",)])
    assert failed.value.row == 1
    assert con.execute("select v from t order by v").fetchall() == [(7,), (8,)]
    con.execute("delete from t where v = 8")
    # Without the strict mode, the server stores the number and reports a warning, not an error.
    con.execute("set sql_mode = ''")
    assert con.execute("update t set v = ?", ["5x"]).rowcount == 1
    assert con.execute("select v from t").fetchall() == [(5,)]
    con.close()
