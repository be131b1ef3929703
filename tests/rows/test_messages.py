"""What databases say arrives whole: errors and warnings of any length and script, on every driver.

Below us there are limits that nothing here can lift, and the tests say where: psqlodbc keeps 4,095 bytes of an error;
MariaDB's server 128 characters of a message, none of them outside the Basic Multilingual Plane; SQLite's has no NUL.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

LENGTHS = [1, 511, 512, 1024, 5000]
SCRIPTS = {"ascii": "a", "cyrillic": "я", "cjk": "日", "emoji": "😀"}
PROFILES = ["postgres", "postgres_ansi", "mariadb", "sqlite_odbc", "tds_freetds", "tds_msodbc", "tds_rust"]
#: Of psqlodbc's buffer, less its own words around the server's.
POSTGRES_BYTES = 4_000
MARIADB_CHARS = 128


@pytest.fixture(params=PROFILES)
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def con(database: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(database.odbc)
    yield connection
    connection.close()


def failing(profile: str, text: str) -> str:
    """A statement that fails with this text."""
    if profile.startswith("postgres"):
        return f"do $do$ begin raise exception using message = '{text}', errcode = '22012'; end $do$"
    if profile == "mariadb":
        return f"signal sqlstate '45000' set message_text = '{text}', mysql_errno = 1644"
    if profile == "sqlite_odbc":
        return f'select * from "{text}"'
    return f"raiserror(N'{text}', 16, 1)"


def warning(profile: str, text: str) -> str:
    """A statement that succeeds and says this text beside its result."""
    if profile.startswith("postgres"):
        return f"do $do$ begin raise notice using message = '{text}'; end $do$"
    return f"print N'{text}'"


def whole(profile: str, character: str, length: int) -> tuple[str, str]:
    """The text to send, and what of it must arrive."""
    text = f"<{character * length}>"
    if profile.startswith("postgres"):
        return text, text if len(text.encode()) <= POSTGRES_BYTES else text[: POSTGRES_BYTES // len(character.encode())]
    if profile == "mariadb":
        text = text[: MARIADB_CHARS - 1] + ">" if len(text) > MARIADB_CHARS else text
        return text, text.replace("😀", "?")
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


@pytest.mark.parametrize("profile", [p for p in PROFILES if p.startswith(("postgres", "tds"))])
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
