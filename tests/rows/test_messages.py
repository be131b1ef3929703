"""Error and warning messages of databases arrive completely, at any length and in any script, with
every driver.

The drivers have limits, which the tests document: psqlodbc keeps 4,095 bytes of an error; MariaDB's
server keeps 128 characters of a message, without characters outside of the Basic Multilingual
Plane; SQLite ODBC keeps 511 bytes, and the driver manager garbles a message that is truncated
inside of a character or has one outside of that plane; FreeTDS stops at a NUL.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import onecopy
from tests.conftest import Database
from tests.support import servers

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

LENGTHS = [1, 511, 512, 1024, 5000]
SCRIPTS = {"ascii": "a", "cyrillic": "я", "cjk": "日", "emoji": "😀"}
#: The size of psqlodbc's buffer, less its own text around the server's.
POSTGRES_BYTES = 4_000
MARIADB_CHARS = 128
#: The size of the driver's buffer, less its own text around the message.
SQLITE_BYTES = 480


@pytest.fixture
def con(database: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(database.odbc)
    yield connection
    connection.close()


def failing(profile: str, text: str) -> str:
    """A statement that fails with the message ``text``."""
    if profile.startswith("postgres"):
        return f"do $do$ begin raise exception using message = '{text}', errcode = '22012'; end $do$"
    if profile == "mariadb":
        return f"signal sqlstate '45000' set message_text = '{text}', mysql_errno = 1644"
    if profile == "sqlite_odbc":
        return f'select * from "{text}"'
    return f"raiserror(N'{text}', 16, 1)"


def warning(profile: str, text: str) -> str:
    """A statement that succeeds and sends the message ``text``."""
    if profile.startswith("postgres"):
        return f"do $do$ begin raise notice using message = '{text}'; end $do$"
    return f"print N'{text}'"


def whole(profile: str, character: str, length: int) -> tuple[str, str]:
    """The message to send, and the part of it that must arrive through this driver."""
    text = f"<{character * length}>"
    if profile.startswith("postgres"):
        return text, text if len(text.encode()) <= POSTGRES_BYTES else text[: POSTGRES_BYTES // len(character.encode())]
    if profile == "mariadb":
        text = text[: MARIADB_CHARS - 1] + ">" if len(text) > MARIADB_CHARS else text
        return text, text.replace("😀", "?")
    if profile == "sqlite_odbc":
        return text, text if len(text.encode()) < SQLITE_BYTES and character != "😀" else "no such table"
    return text, text


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_message_of_an_error_arrives_whole(
    con: onecopy.Connection, database: Database, script: str, length: int
) -> None:
    sent, expected = whole(database.profile, SCRIPTS[script], length)
    with pytest.raises(onecopy.DatabaseError) as caught:
        con.execute(failing(database.profile, sent))
    assert expected in str(caught.value)
    assert caught.value.sqlstate and (caught.value.native_code or database.profile.startswith("postgres"))
    con.rollback()
    assert con.usable
    assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("profile", [p for p in servers.PROFILES if p.startswith(("postgres", "tds"))])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_message_of_a_notice_arrives_whole(
    request: pytest.FixtureRequest, profile: str, script: str, length: int
) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    sent, expected = whole(profile, SCRIPTS[script], length)
    cur = con.execute(warning(profile, sent))
    assert any(expected in str(message) for _, message in cur.messages), cur.messages
    for kind, message in cur.messages:
        assert kind is onecopy.Warning and isinstance(message, onecopy.Warning)
    con.close()


@pytest.mark.parametrize("profile", ["tds_msodbc", "tds_rust", "tds_freetds", "mariadb"])
def test_a_nul_inside_a_message_is_part_of_it(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    sql = "raiserror(N'до' + nchar(0) + N'后', 16, 1)"
    if profile == "mariadb":
        sql = "signal sqlstate '45000' set message_text = 'до\\0后'"
    with pytest.raises(onecopy.DatabaseError) as caught:
        con.execute(sql)
    # FreeTDS and MariaDB's driver end the message there.
    whole = profile in ("tds_msodbc", "tds_rust")
    assert str(caught.value).endswith("до\0后" if whole else "до")
    con.close()


@pytest.mark.parametrize("profile", ["tds_msodbc", "tds_rust", "tds_freetds"])
def test_several_messages_of_one_statement_are_all_reported(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    cur = con.execute("raiserror(N'первое', 1, 1) raiserror(N'второе', 10, 1) raiserror(N'第三', 5, 1)")
    said = [str(message).rpartition("]")[2] for _, message in cur.messages]
    # FreeTDS reports the most severe error first.
    assert said == (["второе", "第三", "первое"] if profile == "tds_freetds" else ["первое", "второе", "第三"])
    with pytest.raises(onecopy.ProgrammingError) as caught:
        con.execute("raiserror(N'первая', 16, 1) raiserror(N'вторая', 14, 1)")
    assert "первая" in str(caught.value) and "вторая" in str(caught.value)
    con.close()


def test_a_warning_of_mariadb_reaches_messages(mariadb: Database) -> None:
    con = onecopy.connect(mariadb.odbc)
    cur = con.execute("signal sqlstate '01000' set message_text = 'осторожно'")
    said = [str(message) for _, message in cur.messages]
    assert said == [] or "осторожно" in said[0]
    con.close()
