"""Hosts, sockets, session attributes, TLS and authentication have the same effect as in libpq,
which psycopg uses."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

import onecopy
from tests.support.process import free_port
from tests.support.scripted import AUTH_OK, READY, Peer, Server, key, message, status
from tests.support.secured import PASSWORD, Secured, keywords

ENCRYPTED = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"


def connect(**values: Any) -> onecopy.Connection:
    """Connects with a connection string of `key=value` pairs."""
    return onecopy.connect("postgresql:" + keywords(**values))


def outcome(sql: str = ENCRYPTED, **values: Any) -> Any:
    """Connects and executes a query; returns its first value, or the SQLSTATE of the connection
    error."""
    try:
        con = connect(**values)
    except onecopy.OperationalError as error:
        return "the password" if PASSWORD in f"{error!r} {error}" else error.sqlstate or "refused"
    try:
        return con.execute(sql).fetchall()[0][0]
    finally:
        con.close()


def reference(sql: str = ENCRYPTED, **values: Any) -> Any:
    """Connects with psycopg and executes a query; returns its first value, or `None` for an
    error."""
    try:
        con = psycopg.connect(keywords(**values))
    except psycopg.OperationalError:
        return None
    with con:
        found = con.execute(sql).fetchone()
        assert found is not None
        return found[0]


def same(**values: Any) -> Any:
    """The result of `outcome`, after a check that psycopg has the same one."""
    ours, theirs = outcome(**values), reference(**values)
    assert ours != "the password"
    assert ours == theirs if theirs is not None else isinstance(ours, str), (ours, theirs)
    return ours


@pytest.fixture
def where(secured: Secured) -> dict[str, Any]:
    """The connection parameters of the server, without a user; all users have the same password."""
    return {
        "host": "localhost",
        "hostaddr": "127.0.0.1",
        "port": secured.port,
        "dbname": "postgres",
        "password": PASSWORD,
    }


MODES = ("disable", "allow", "prefer", "require")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "user", ["scram_user", "md5_user", "password_user", "trust_user", "tls_user", "plain_user", "rejected", "cert_user"]
)
def test_each_method_of_authentication_in_each_mode(where: dict[str, Any], mode: str, user: str) -> None:
    same(user=user, sslmode=mode, **where)


@pytest.mark.parametrize("user", ["scram_user", "md5_user", "password_user"])
def test_a_wrong_password_has_the_servers_sqlstate(where: dict[str, Any], user: str) -> None:
    with pytest.raises(onecopy.OperationalError, match="password authentication failed") as raised:
        connect(user=user, **{**where, "password": "wrong-secret"})
    assert raised.value.sqlstate == "28P01" and "wrong-secret" not in str(raised.value)
    with pytest.raises(onecopy.OperationalError, match="PGPASSWORD"):
        connect(user=user, **{**where, "password": ""})


def test_errors_of_the_login_have_their_sqlstate(where: dict[str, Any]) -> None:
    assert outcome(user="scram_user", **{**where, "dbname": "nowhere"}) == "3D000"
    assert outcome(user="rejected", sslmode="disable", **where) == "28000"
    assert outcome(user="nobody", **where) == "28P01"


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full", "require", "prefer"])
@pytest.mark.parametrize("root", ["root", "other_root", "certificate", "missing", None])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "wrong.example"])
def test_certificates_are_verified_as_by_libpq(
    secured: Secured, where: dict[str, Any], mode: str, root: str | None, host: str
) -> None:
    values = {**where, "host": host}
    if root is not None:
        values["sslrootcert"] = secured.directory / "nothing" if root == "missing" else getattr(secured, root)
    ours = outcome(user="scram_user", sslmode=mode, **values)
    theirs = reference(user="scram_user", sslmode=mode, **values)
    if mode == "prefer":
        # libpq verifies, fails, and continues without TLS if such a file exists; we encrypt.
        assert ours is True
    elif (root, mode) == ("missing", "require"):
        # libpq does not verify then; here a file that was named and does not exist is an error.
        assert (ours, theirs) == ("refused", True)
    elif root != "certificate":
        # If a server's certificate may be its own authority depends on OpenSSL's settings.
        assert ours == theirs if theirs is not None else ours == "refused"


def test_refused_certificates_are_named(secured: Secured, where: dict[str, Any]) -> None:
    full = {**where, "user": "scram_user", "sslmode": "verify-full"}
    with pytest.raises(onecopy.OperationalError, match="none of the authorities in `sslrootcert`"):
        connect(sslrootcert=secured.other_root, **full)
    with pytest.raises(onecopy.OperationalError, match=r"not for the host `wrong\.example`"):
        connect(sslrootcert=secured.root, **{**full, "host": "wrong.example"})
    with pytest.raises(onecopy.OperationalError, match="sslrootcert"):
        connect(**full)


def test_the_systems_authorities(secured: Secured, where: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    system = {**where, "user": "scram_user", "sslrootcert": "system"}
    assert outcome(**system) == "refused"
    monkeypatch.setenv("SSL_CERT_FILE", str(secured.root))
    assert outcome(**system) is True
    assert outcome(**{**system, "host": "wrong.example"}) == "refused"
    with pytest.raises(onecopy.OperationalError, match="verify-full"):
        connect(sslmode="require", **system)


@pytest.mark.parametrize("name", ["right", "other", "wrong"])
@pytest.mark.parametrize("user", ["cert_user", "scram_user"])
def test_client_certificates(secured: Secured, where: dict[str, Any], name: str, user: str) -> None:
    certificate, key_file = secured.client_files[name]
    same(user=user, sslmode="require", sslcert=certificate, sslkey=key_file, **where)


def test_unusable_client_keys_are_named(secured: Secured, where: dict[str, Any], tmp_path: Path) -> None:
    certificate, key_file = secured.client_files["right"]
    values = {**where, "user": "cert_user", "sslmode": "require", "sslcert": certificate}
    with pytest.raises(onecopy.OperationalError, match="has no key: set `sslkey`"):
        connect(**values)
    open_key = tmp_path / "open.key"
    open_key.write_bytes(key_file.read_bytes())
    open_key.chmod(0o644)
    with pytest.raises(onecopy.OperationalError, match="chmod 600"):
        connect(sslkey=open_key, **values)
    encrypted = tmp_path / "encrypted.key"
    command = [
        "openssl",
        "pkcs8",
        "-topk8",
        "-in",
        str(key_file),
        "-out",
        str(encrypted),
        "-passout",
        "pass:key-secret",
    ]
    subprocess.run(command, check=True, capture_output=True)
    encrypted.chmod(0o600)
    assert same(sslkey=encrypted, sslpassword="key-secret", **values) is True
    with pytest.raises(onecopy.OperationalError, match="it is encrypted: set `sslpassword`"):
        connect(sslkey=encrypted, **values)
    with pytest.raises(onecopy.OperationalError, match="is `sslpassword` its password") as raised:
        connect(sslkey=encrypted, sslpassword="wrong-secret", **values)
    assert "wrong-secret" not in f"{raised.value!r} {raised.value}"
    malformed = tmp_path / "malformed.key"
    for content in (
        encrypted.read_bytes()[:-200],
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nYWJj\n-----END ENCRYPTED PRIVATE KEY-----\n",
    ):
        malformed.write_bytes(content)
        malformed.chmod(0o600)
        with pytest.raises(onecopy.OperationalError, match="it cannot be decrypted"):
            connect(sslkey=malformed, sslpassword="key-secret", **values)
    old = tmp_path / "old.key"
    command = ["openssl", "rsa", "-traditional", "-aes256", "-passout", "pass:key-secret"]
    if b"BEGIN EC" in key_file.read_bytes():
        command[1:3] = ["ec"]
    subprocess.run([*command, "-in", str(key_file), "-out", str(old)], check=True, capture_output=True)
    old.chmod(0o600)
    with pytest.raises(onecopy.OperationalError, match="OpenSSL's old form"):
        connect(sslkey=old, sslpassword="key-secret", **values)
    with pytest.raises(onecopy.OperationalError, match=r"missing\.key"):
        connect(sslkey=tmp_path / "missing.key", **values)


@pytest.mark.parametrize("form", ["scrypt", "aes-128-cbc", "aes-256-cbc"])
def test_encrypted_keys_of_each_form(secured: Secured, where: dict[str, Any], tmp_path: Path, form: str) -> None:
    certificate, key_file = secured.client_files["right"]
    encrypted = tmp_path / "encrypted.key"
    how = ["-scrypt"] if form == "scrypt" else ["-v2", form]
    command = ["openssl", "pkcs8", "-topk8", *how, "-in", str(key_file), "-out", str(encrypted)]
    subprocess.run([*command, "-passout", "pass:pässword 1"], check=True, capture_output=True)
    encrypted.chmod(0o600)
    values = {**where, "user": "cert_user", "sslmode": "require", "sslcert": certificate, "sslkey": encrypted}
    assert same(sslpassword="pässword 1", **values) is True


def test_revoked_certificates_are_refused(secured: Secured, where: dict[str, Any], tmp_path: Path) -> None:
    """Revocation lists have no effect unless the certificate is verified.

    In a directory of lists, libpq finds a file by the hash of the issuer.
    """
    found = ["openssl", "x509", "-hash", "-noout", "-in", str(secured.root)]
    issuer = subprocess.run(found, check=True, capture_output=True, text=True).stdout.strip()
    values = {**where, "user": "scram_user", "sslrootcert": secured.root}
    for revokes in (False, True):
        folder = tmp_path / str(revokes)
        folder.mkdir()
        (folder / f"{issuer}.r0").write_bytes(secured.revocation_list(revokes_server=revokes))
        (folder / "folder").mkdir()
        of_each: list[dict[str, Any]] = [{"sslcrl": folder / f"{issuer}.r0"}, {"sslcrldir": folder}]
        for lists in of_each:
            for mode in ("verify-full", "verify-ca", "require", "prefer"):
                verifies = mode != "prefer"
                assert outcome(sslmode=mode, **lists, **values) == ("refused" if revokes and verifies else True)
                if mode != "prefer":
                    assert reference(sslmode=mode, **lists, **values) == (None if revokes else True)
    with pytest.raises(onecopy.OperationalError, match="its certificate was revoked"):
        connect(sslmode="verify-full", sslcrldir=tmp_path / "True", **values)
    with pytest.raises(onecopy.OperationalError, match=r"revocation lists in .*missing"):
        connect(sslmode="verify-full", sslcrldir=tmp_path / "missing", **values)
    (tmp_path / "False" / "wrong.r0").write_text("-----BEGIN X509 CRL-----\nYWJj\n-----END X509 CRL-----\n")
    with pytest.raises(onecopy.OperationalError, match="RFC 5280"):
        connect(sslmode="verify-full", sslcrldir=tmp_path / "False", **values)


def test_a_self_signed_certificate_is_its_own_authority(tmp_path: Path) -> None:
    certificate, key_file = tmp_path / "s.crt", tmp_path / "s.key"
    command = ["openssl", "req", "-new", "-x509", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-out", str(certificate), "-keyout", str(key_file)]
    subprocess.run([*command, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key_file)
    with Server(lambda peer: encrypted_session(peer, context, direct=False)) as server:
        target = f"port={server.port} user=u dbname=d hostaddr=127.0.0.1 sslrootcert={certificate}"
        for rest in ("host=localhost sslmode=verify-full", "host=other sslmode=verify-ca"):
            onecopy.connect(f"postgresql:{target} {rest}").close()
            psycopg.connect(f"{target} {rest}").close()
        with pytest.raises(onecopy.OperationalError, match="not for the host `other`"):
            onecopy.connect(f"postgresql:{target} host=other sslmode=verify-full")


def encrypted_session(peer: Peer, context: ssl.SSLContext, *, direct: bool) -> None:
    """Acts as a server with TLS that accepts any login."""
    if not direct:
        peer.exactly(8)
        peer.send(b"S")
    with context.wrap_socket(peer.sock, server_side=True) as peer.sock:
        if direct:
            assert peer.sock.selected_alpn_protocol() == "postgresql"
        peer.startup()
        peer.send(AUTH_OK + status("server_version", "17.0") + key() + READY)
        peer.until(b"X")


def test_direct_negotiation(secured: Secured) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secured.certificate, secured.directory / "server.key")
    context.set_alpn_protocols(["postgresql"])
    with Server(lambda peer: encrypted_session(peer, context, direct=True)) as server:
        rest = f"port={server.port} user=u dbname=d host=localhost hostaddr=127.0.0.1 sslrootcert={secured.root}"
        target = f"{rest} sslmode=verify-full sslnegotiation=direct"
        psycopg.connect(target).close()
        onecopy.connect("postgresql:" + target).close()
    with pytest.raises(onecopy.OperationalError, match="sslnegotiation"):
        onecopy.connect("postgresql:host=h user=u sslnegotiation=direct")


@pytest.mark.parametrize("versions", [("TLSv1.3", ""), ("", "TLSv1.2"), ("TLSv1.2", "TLSv1.2")])
def test_versions_of_tls(where: dict[str, Any], versions: tuple[str, str]) -> None:
    least, most = versions
    values = {**where, "user": "scram_user", "sslmode": "require"}
    limits = {"ssl_min_protocol_version": least, "ssl_max_protocol_version": most}
    sql = "select version from pg_stat_ssl where pid = pg_backend_pid()"
    assert outcome(sql, **limits, **values) == (most or least) == reference(sql, **limits, **values)


@pytest.mark.parametrize("binding", ["disable", "prefer", "require"])
@pytest.mark.parametrize("mode", ["disable", "require"])
@pytest.mark.parametrize("user", ["scram_user", "md5_user", "password_user", "trust_user"])
def test_channel_binding(where: dict[str, Any], binding: str, mode: str, user: str) -> None:
    same(user=user, sslmode=mode, channel_binding=binding, **where)


METHODS = ["scram-sha-256", "md5", "password", "none", "!none", "!password,!md5", "scram-sha-256,none"]


@pytest.mark.parametrize("methods", METHODS)
@pytest.mark.parametrize("user", ["scram_user", "md5_user", "password_user", "trust_user"])
def test_required_methods_of_authentication(where: dict[str, Any], methods: str, user: str) -> None:
    same(user=user, require_auth=methods, **where)


def test_unix_sockets_and_peer(secured: Secured) -> None:
    where = {"host": secured.sockets, "port": secured.port, "dbname": "postgres"}
    assert same(user="peer_user", **where) is False
    assert same(user="scram_user", password=PASSWORD, sslmode="require", **where) is False
    owner = secured.sockets.owner()
    assert same(user="peer_user", requirepeer=owner, **where) is False
    assert same(user="peer_user", requirepeer="nobody", **where) == "refused"
    assert same(user="peer_user", **{**where, "host": secured.directory}) == "08001"
    url = f"postgresql://peer_user@/postgres?host={secured.sockets}&port={secured.port}"
    onecopy.connect(url).close()


def test_abstract_unix_sockets(secured: Secured) -> None:
    where: dict[str, Any] = {"host": secured.abstract, "port": secured.port, "dbname": "postgres"}
    # libpq itself: psycopg looks the name up before.
    reference = psycopg.pq.PGconn.connect(keywords(user="peer_user", **where).encode())
    assert reference.status == psycopg.pq.ConnStatus.OK
    reference.finish()
    assert outcome(user="peer_user", **where) is False
    assert outcome(user="scram_user", password=PASSWORD, **where) is False
    assert outcome(user="peer_user", **{**where, "host": "@nothing"}) == "08001"
    onecopy.connect(f"postgresql://peer_user@/postgres?host={secured.abstract}&port={secured.port}").close()
    onecopy.connect(f"postgresql://peer_user@%40{secured.abstract[1:]}:{secured.port}/postgres").close()


def test_settings_of_the_session(where: dict[str, Any]) -> None:
    con = connect(user="scram_user", application_name="né", options="-c geqo=off -c work_mem=5MB", **where)
    shown = [con.execute(f"show {name}").fetchall()[0][0] for name in ("application_name", "geqo", "work_mem")]
    # Servers before 16 replace non-ASCII characters.
    assert shown[0] in ("n??", "n\\xc3\\xa9")
    assert shown[1:] == ["off", "5MB"]
    con.close()


def test_keepalives_are_set(where: dict[str, Any]) -> None:
    con = connect(
        user="scram_user", keepalives_idle=11, keepalives_interval=7, keepalives_count=4, tcp_user_timeout=9000, **where
    )
    ours = []
    for name in os.listdir("/proc/self/fd"):
        try:
            sock = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        with sock:
            if sock.family == socket.AF_INET and (peer := peer_of(sock)) and peer[1] == where["port"]:
                options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
                values = [sock.getsockopt(socket.IPPROTO_TCP, option) for option in options]
                ours.append([sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), *values])
    con.close()
    assert [1, 11, 7, 4, 9000] in ours


def peer_of(sock: socket.socket) -> Any:
    """The address of a socket's peer; `None` if the socket is not connected."""
    try:
        return sock.getpeername()
    except OSError:
        return None


ATTRIBUTES = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"]


@pytest.mark.parametrize("wanted", ATTRIBUTES)
@pytest.mark.parametrize("order", ["dead,primary,standby", "standby,primary", "primary", "standby"])
def test_session_attributes_choose_the_server(secured: Secured, wanted: str, order: str) -> None:
    ports = {"primary": secured.port, "standby": secured.standby(), "dead": free_port()}
    names = order.split(",")
    values = {
        "host": ",".join("127.0.0.1" for _ in names),
        "port": ",".join(str(ports[name]) for name in names),
        "dbname": "postgres",
        "user": "scram_user",
        "password": PASSWORD,
        "target_session_attrs": wanted,
    }
    sql = "select current_setting('port')::int"
    ours, theirs = outcome(sql, **values), reference(sql, **values)
    assert ours == theirs if theirs is not None else isinstance(ours, str), (ours, theirs)


def test_a_database_that_is_read_only_by_default(secured: Secured, where: dict[str, Any]) -> None:
    values = {**where, "user": "scram_user", "options": "-c default_transaction_read_only=on"}
    assert same(target_session_attrs="read-only", **values) is True
    assert same(target_session_attrs="read-write", **values) == "refused"


def test_load_balancing_reaches_every_host() -> None:
    reached: list[int] = []

    def script(peer: Peer) -> None:
        reached.append(peer.sock.getsockname()[1])
        peer.startup()
        peer.send(AUTH_OK + key() + READY)
        peer.until(b"X")

    with Server(script) as one, Server(script) as two:
        hosts = f"127.0.0.1:{one.port},127.0.0.1:{two.port}"
        url = f"postgresql://u@{hosts}/d?sslmode=disable"
        for _ in range(4):
            onecopy.connect(url).close()
        assert set(reached) == {one.port}
        # 2 ** -59 is the probability that one of them is never the first.
        for _ in range(60):
            onecopy.connect(url + "&load_balance_hosts=random").close()
        assert set(reached) == {one.port, two.port}


def test_the_errors_of_all_hosts_are_in_the_message() -> None:
    ports = [free_port(), free_port()]
    with pytest.raises(onecopy.OperationalError) as raised:
        onecopy.connect(f"postgresql://u@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/d")
    assert all(str(port) in str(raised.value) for port in ports)


@pytest.mark.parametrize("timeout", ["&connect_timeout=1", ""])
def test_a_silent_host_does_not_use_up_the_time_of_the_next_one(secured: Secured, timeout: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{secured.port}"
        url = f"postgresql://scram_user:{PASSWORD}@{hosts}/postgres?sslmode=prefer{timeout}"
        onecopy.connect(url, connect_timeout=4).close()


def test_the_time_to_connect_is_that_of_the_connection_string() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/d?connect_timeout=1"
        with pytest.raises(onecopy.OperationalError, match="time to connect") as raised:
            onecopy.connect(url, connect_timeout=86400)
    assert raised.value.sqlstate == "08001"


def test_an_unknown_host_is_an_error() -> None:
    with pytest.raises(onecopy.OperationalError, match=r"`nowhere\.invalid`"):
        onecopy.connect("postgresql://u@nowhere.invalid/d")


@pytest.mark.parametrize("database", ["latin1", "ascii"])
def test_databases_of_other_encodings(where: dict[str, Any], database: str) -> None:
    con = connect(user="scram_user", **{**where, "dbname": database})
    assert con.execute("select ?, 'Zürich'", ["é"]).fetchall() == [("é", "Zürich")]
    if database == "latin1":
        # The server's encoding does not have this character.
        with pytest.raises(onecopy.DataError) as raised:
            con.execute("select length(?)", ["東京"]).fetchall()
        assert raised.value.sqlstate == "22P05"
    else:
        # Bytes that are not UTF-8, as such a database may contain.
        with pytest.raises(onecopy.DataError):
            con.execute(r"select convert_from('\xff'::bytea, 'SQL_ASCII')").fetchall()
    con.rollback()
    with pytest.raises(onecopy.DataError, match="NUL") as raised:
        con.execute("select ?", ["a\0b"])
    assert raised.value.sqlstate == "22021"
    with pytest.raises(onecopy.Error, match="NUL"):
        con.execute("select 'a\0b'")
    assert con.execute("select 1").fetchall() == [(1,)]
    con.close()


@pytest.mark.parametrize("request_of", [message(b"R", b"\0\0\0\3"), message(b"R", b"\0\0\0\5abcd"), AUTH_OK])
def test_a_server_that_tries_a_cheaper_method_gets_no_password(request_of: bytes) -> None:
    received: list[bytes] = []

    def script(peer: Peer) -> None:
        peer.startup()
        peer.send(request_of + key() + READY)
        received.append(peer.sock.recv(100))

    with Server(script) as server, pytest.raises(onecopy.OperationalError, match="require_auth"):
        onecopy.connect(server.url(require_auth="scram-sha-256"))
    assert received in ([b""], [])
