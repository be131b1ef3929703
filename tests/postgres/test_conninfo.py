"""Connection strings have the same meaning as in libpq: psycopg and onecopy connect to one server
with the same strings."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

import onecopy
from tests.support.scripted import AUTH_OK, READY, Peer, Server, key, message, status

#: The values that the last client sent.
Said = dict[str, Any]


class Recorder:
    """A scripted server that requests a cleartext password, and records the values that a client
    sends."""

    def __init__(self) -> None:
        self.said: Said = {}
        self.server = Server(self._script)

    def _script(self, peer: Peer) -> None:
        peer.startup()
        names = ("user", "database", "application_name", "options")
        said: Said = {name: peer.parameters.get(name) for name in names}
        said["tls"] = peer.requested_tls
        peer.send(message(b"R", struct.pack(">i", 3)))
        said["password"] = peer.message()[1]
        self.said = said
        greeting = [status("server_version", "15.0"), status("client_encoding", "UTF8"), key(), READY]
        peer.send(AUTH_OK + b"".join(greeting))
        with contextlib.suppress(ConnectionResetError):
            peer.until(b"X")

    def of_psycopg(self, target: str) -> Said | None:
        """The values that psycopg sends with this connection string.

        `None` if psycopg refuses the string or has no password.
        """
        self.said = {}
        try:
            psycopg.connect(target, connect_timeout=5).close()
        except (psycopg.Error, UnicodeDecodeError):  # the latter for an escape that is not UTF-8
            return None
        return self.said

    def of_onecopy(self, target: str) -> Said:
        """The values that onecopy sends with this connection string."""
        self.said = {}
        onecopy.connect("postgresql:" + target.removeprefix("postgresql:")).close()
        # The default application name differs between the clients.
        if self.said["application_name"] == "onecopy":
            self.said["application_name"] = None
        return self.said


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    with made.server:
        yield made


TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=12)
VALUES = {
    "user": TEXTS,
    "password": TEXTS,
    "dbname": st.text(
        st.characters(blacklist_categories=["Cs"], blacklist_characters="\0=:/"), min_size=1, max_size=12
    ),
    "application_name": st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20),
    "options": TEXTS,
    "sslmode": st.sampled_from(["disable", "prefer", "allow"]),
    "target_session_attrs": st.just("any"),
    "load_balance_hosts": st.sampled_from(["disable", "random"]),
    "connect_timeout": st.sampled_from(["5", "0", "-1", " 7 "]),
    "keepalives": st.sampled_from(["0", "1"]),
    "keepalives_idle": st.sampled_from(["10", "0"]),
    "tcp_user_timeout": st.sampled_from(["0", "20000"]),
    "gssencmode": st.just("disable"),
    "sslsni": st.sampled_from(["0", "1"]),
}
KEYWORDS = st.fixed_dictionaries(
    {"user": VALUES["user"], "password": VALUES["password"]},
    optional={name: values for name, values in VALUES.items() if name not in ("user", "password")},
)


def escaped(text: str, data: st.DataObject) -> str:
    """The text with percent-encoding of the characters that require it, and of some others at
    random."""
    safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+ é"
    some = data.draw(st.sets(st.sampled_from(safe), max_size=5))
    return "".join(c if c in safe and c not in some else "".join(f"%{b:02x}" for b in c.encode()) for c in text)


@settings(max_examples=60, deadline=None)
@given(values=KEYWORDS)
@example(values={"user": "it's", "password": "a\\b c\u00a0d"})
def test_pairs_mean_the_same(recorder: Recorder, values: dict[str, str]) -> None:
    target = make_conninfo(host="127.0.0.1", port=recorder.server.port, **values)
    theirs = recorder.of_psycopg(target)
    assume(theirs is not None)
    assert recorder.of_onecopy(target) == theirs


@settings(max_examples=60, deadline=None)
@given(values=KEYWORDS, in_query=st.booleans(), data=st.data())
def test_urls_mean_the_same(recorder: Recorder, values: dict[str, str], in_query: bool, data: st.DataObject) -> None:
    host = data.draw(st.sampled_from(["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]))
    where = f"{host}:{recorder.server.port}"
    user = f"{escaped(values.pop('user'), data)}:{escaped(values.pop('password'), data)}@"
    database = "" if in_query else escaped(values.pop("dbname", ""), data)
    query = "&".join(f"{name}={escaped(value, data)}" for name, value in values.items())
    target = f"postgresql://{user}{where}/{database}" + ("?" + query if query else "")
    theirs = recorder.of_psycopg(target)
    assume(theirs is not None)
    assert recorder.of_onecopy(target) == theirs


@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(
            [
                "user",
                "password",
                "=",
                "'",
                "\\",
                " ",
                "\t",
                "\v",
                "a",
                "é",
                "\u00a0",
                "?",
                "&",
                "@",
                ":",
                "/",
                "%41",
                "%",
                "x",
            ]
        ),
        max_size=14,
    ),
    is_url=st.booleans(),
)
@example(parts=["user", ":", "a", "?", "x"], is_url=True)
def test_whatever_libpq_accepts_means_the_same(recorder: Recorder, parts: list[str], is_url: bool) -> None:
    text = "".join(parts)
    if is_url:
        target = f"postgresql://{text}@127.0.0.1:{recorder.server.port}/d?sslmode=disable"
    else:
        target = f"host=127.0.0.1 port={recorder.server.port} password=p sslmode=disable {text}"
    theirs = recorder.of_psycopg(target)
    if theirs is None:
        # A difference from libpq need not be wrong: a password that contains `@` is read whole.
        with contextlib.suppress(onecopy.OperationalError):
            recorder.of_onecopy(target)
        return
    assert recorder.of_onecopy(target) == theirs


@pytest.mark.parametrize(
    ("variables", "target"),
    [
        ({"PGUSER": "eve", "PGPASSWORD": "pä ss", "PGDATABASE": "db"}, ""),
        ({"PGUSER": "eve", "PGPASSWORD": "p", "PGOPTIONS": "-c geqo=off", "PGAPPNAME": "app"}, "user=mallory"),
        ({"PGUSER": "eve", "PGPASSWORD": "p", "PGSSLMODE": "disable"}, "dbname=''"),
        ({"PGPASSWORD": "p"}, ""),
    ],
)
@pytest.mark.parametrize("form", ["pairs", "url"])
def test_variables_mean_the_same(
    recorder: Recorder, variables: dict[str, str], target: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGHOST": "127.0.0.1", "PGPORT": str(recorder.server.port), **variables}.items():
        monkeypatch.setenv(name, value)
    if form == "url":
        target = "postgresql://"
    theirs = recorder.of_psycopg(target)
    assert theirs is not None
    assert recorder.of_onecopy(target) == theirs


LINES = """\
# comment:*:*:*:no
127.0.0.1:1:*:*:wrong port
other:*:*:*:wrong host
127.0.0.1:*:*:e\\:ve:a\\\\b\\:c
*:*:d\u00e9:*:of the database
"""


@pytest.mark.parametrize(("user", "database"), [("e:ve", "x"), ("bob", "d\u00e9"), ("e:ve", "d\u00e9")])
@pytest.mark.parametrize("where", ["home", "PGPASSFILE", "passfile"])
def test_the_password_file_means_the_same(
    recorder: Recorder, user: str, database: str, where: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"host": "127.0.0.1", "port": recorder.server.port, "user": user, "dbname": database}
    file = tmp_path / ".pgpass"
    file.write_text(LINES, encoding="utf-8")
    file.chmod(0o600)
    if where == "home":
        monkeypatch.setenv("HOME", str(tmp_path))
    elif where == "PGPASSFILE":
        monkeypatch.setenv("PGPASSFILE", str(file))
    else:
        values["passfile"] = str(file)
    target = make_conninfo(sslmode="disable", **values)  # type: ignore[arg-type]
    if where == "home":
        # libpq uses the directory of the user's passwd entry, not HOME, if they differ.
        theirs = recorder.of_psycopg(make_conninfo(target, passfile=str(file)))
    else:
        theirs = recorder.of_psycopg(target)
    assert theirs is not None
    assert recorder.of_onecopy(target) == theirs


def test_a_world_readable_password_file_is_ignored_and_the_message_says_so(recorder: Recorder, tmp_path: Any) -> None:
    file = tmp_path / "pass"
    file.write_text("*:*:*:*:open-secret\n", encoding="utf-8")
    file.chmod(0o644)
    target = f"postgresql://u@127.0.0.1:{recorder.server.port}/d?sslmode=disable&passfile={file}"
    with pytest.raises(onecopy.OperationalError, match="chmod 600") as raised:
        onecopy.connect(target)
    assert raised.value.sqlstate == "28P01" and "open-secret" not in str(raised.value)


SERVICES = """\
# services
[other]
user=nobody

[mine]
port={port}
host=127.0.0.1
user=of the service
password=p
sslmode=disable
dbname=d
"""


@pytest.mark.parametrize("by", ["PGSERVICE", "service", "url"])
@pytest.mark.parametrize("rest", ["", "user=own", "dbname=own application_name=a"])
def test_a_service_means_the_same(
    recorder: Recorder, by: str, rest: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "services.conf"
    file.write_text(SERVICES.format(port=recorder.server.port), encoding="utf-8")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    monkeypatch.setenv("PGUSER", "of the environment")
    target = rest
    if by == "PGSERVICE":
        monkeypatch.setenv("PGSERVICE", "mine")
    elif by == "service":
        target += " service=mine"
    else:
        target = "postgresql://?service=mine&" + rest.replace(" ", "&")
        target = target.rstrip("&")
    theirs = recorder.of_psycopg(target)
    assert theirs is not None
    assert recorder.of_onecopy(target) == theirs


def test_a_service_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSYSCONFDIR", "/nonexistent")
    with pytest.raises(onecopy.OperationalError, match="`nowhere`"):
        onecopy.connect("postgresql:service=nowhere")


def test_no_message_has_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for target in (
        f"postgresql://u:secret-word@127.0.0.1:{port}/d",
        f"postgresql:user=u password=secret-word host=127.0.0.1 port={port}",
        "postgresql://u:secret-word@h:port/d",
        "postgresql://u:secret-word@[h/d",
        "postgresql://u:secret-word%zz@h/d",
        "postgresql:password='secret-word",
        "postgresql://u@h/d?password=secret-word&sslmode=x",
        "postgresql://u@h/d?passwort=secret-word",
    ):
        with pytest.raises(onecopy.OperationalError) as raised:
            onecopy.connect(target)
        assert "secret-word" not in f"{raised.value!r} {raised.value}"
