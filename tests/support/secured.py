"""A PostgreSQL server with TLS, a unix socket, a user for each authentication method, and a
standby."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from tests.support import servers
from tests.support.process import Process, free_port, spawn, stop, wait_for_port

PASSWORD = servers.PASSWORD

#: Users are named after their method in pg_hba.conf.
HBA = """
local   all  peer_user                peer map=tests
local   all  all                      scram-sha-256
host    replication  all  127.0.0.1/32  trust
hostnossl all tls_user   127.0.0.1/32 reject
hostssl all  plain_user  127.0.0.1/32 reject
hostssl all  cert_user   127.0.0.1/32 cert
host    all  rejected    127.0.0.1/32 reject
host    all  trust_user  127.0.0.1/32 trust
host    all  md5_user    127.0.0.1/32 md5
host    all  password_user 127.0.0.1/32 password
host    all  all         127.0.0.1/32 scram-sha-256
"""
USERS = ("peer_user", "tls_user", "plain_user", "cert_user", "rejected", "trust_user", "password_user", "scram_user")
IDENT = "tests {system} peer_user\n"


class Secured:
    """A PostgreSQL server with TLS, its standby, and the certificates and keys for clients."""

    def __init__(self) -> None:
        initdb = servers._program("/usr/lib/postgresql/*/bin/initdb", "initdb")
        self._program = servers._program("/usr/lib/postgresql/*/bin/postgres", "postgres")
        self._backup = servers._program("/usr/lib/postgresql/*/bin/pg_basebackup", "pg_basebackup")
        self.directory = Path(tempfile.mkdtemp(prefix="onecopy-pg-"))
        self.directory.chmod(0o755)
        self.processes: list[Process] = []
        self.user = servers._owner("postgres", self.directory)
        self.sockets = self._own(self.directory / "sockets")
        self.abstract = f"@{self.directory.name}"
        self._tls()
        self.port, data = free_port(), self.directory / "data"
        log = self.directory / "initdb.log"
        secret = self.directory / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        command = [initdb, "-D", str(data), "-U", "admin", f"--pwfile={secret}", "-A", "scram-sha-256"]
        servers._as_user([*command, "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"], self.user, log)
        (data / "pg_hba.conf").write_text(HBA, encoding="utf-8")
        system = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        (data / "pg_ident.conf").write_text(IDENT.format(system=system), encoding="utf-8")
        self._start(data, self.port)
        with self.admin() as con:
            for user in USERS:
                con.execute(f"create role {user} login password '{PASSWORD}'")
            con.execute("set password_encryption = 'md5'")
            con.execute(f"create role md5_user login password '{PASSWORD}'")
            for name, encoding in (("latin1", "LATIN1"), ("ascii", "SQL_ASCII")):
                sql = f"create database {name} template template0 encoding '{encoding}' locale 'C'"
                con.execute(sql)
        self._standby: int | None = None

    def _own(self, path: Path, data: bytes | None = None, mode: int = 0o755) -> Path:
        path.mkdir() if data is None else path.write_bytes(data)
        path.chmod(mode)
        if self.user is not None:
            shutil.chown(path, self.user, self.user)
        return path

    def _tls(self) -> None:
        authority, other = trustme.CA(), trustme.CA()
        # The certificate's name is `localhost`: 127.0.0.1 does not match.
        server = authority.issue_cert("localhost")
        self.authority = authority
        self.server_certificate = server.cert_chain_pems[0].bytes()
        self.certificate = self._own(self.directory / "server.crt", server.cert_chain_pems[0].bytes())
        self._own(self.directory / "server.key", server.private_key_pem.bytes(), 0o600)
        self.root, self.other_root = self.directory / "root.crt", self.directory / "other.crt"
        self._own(self.root, authority.cert_pem.bytes())
        self._own(self.other_root, other.cert_pem.bytes())
        self.client_files: dict[str, tuple[Path, Path]] = {}
        for name, by, user in (
            ("right", authority, "cert_user"),
            ("other", authority, "scram_user"),
            ("wrong", other, "cert_user"),
        ):
            made = by.issue_cert("client.example", common_name=user)
            files = self.directory / f"{name}.crt", self.directory / f"{name}.key"
            files[0].write_bytes(made.cert_chain_pems[0].bytes())
            files[1].write_bytes(made.private_key_pem.bytes())
            files[1].chmod(0o600)
            self.client_files[name] = files

    def revocation_list(self, *, revokes_server: bool) -> bytes:
        """A certificate revocation list (PEM) of the test authority.

        It contains the server's certificate if ``revokes_server`` is true.
        """
        issuer = x509.load_pem_x509_certificate(self.authority.cert_pem.bytes())
        key = serialization.load_pem_private_key(self.authority.private_key_pem.bytes(), None)
        at = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.subject)
        builder = builder.last_update(at - datetime.timedelta(1)).next_update(at + datetime.timedelta(1))
        if revokes_server:
            revoked = x509.load_pem_x509_certificate(self.server_certificate)
            entry = x509.RevokedCertificateBuilder().serial_number(revoked.serial_number).revocation_date(at)
            builder = builder.add_revoked_certificate(entry.build())
        # RFC 5280 requires both extensions.
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())  # type: ignore[arg-type]
        builder = builder.add_extension(identifier, critical=False)
        builder = builder.add_extension(x509.CRLNumber(1), critical=False)
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)  # type: ignore[arg-type]

    def _start(self, data: Path, port: int) -> None:
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            # The second one is in the abstract namespace of Linux.
            "unix_socket_directories": f"{self.sockets},{self.abstract}",
            "fsync": "off",
            "ssl": "on",
            "ssl_cert_file": self.directory / "server.crt",
            "ssl_key_file": self.directory / "server.key",
            "ssl_ca_file": self.root,
            "max_wal_senders": 4,
            "logging_collector": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = self.directory / f"{data.name}.log"
        process = spawn([self._program, "-D", str(data), *options], log, self.user, cwd=self.directory)
        self.processes.append(process)
        wait_for_port(port, process, log)
        # It refuses connections while it starts.
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                psycopg.connect(host="127.0.0.1", port=port, user="admin", password=PASSWORD, dbname="postgres").close()
            except psycopg.OperationalError:
                continue
            return
        raise RuntimeError("the server does not become ready")

    def admin(self) -> psycopg.Connection[Any]:
        """A psycopg connection as the superuser, with autocommit."""
        where = {"host": "127.0.0.1", "port": self.port, "dbname": "postgres"}
        return psycopg.connect(user="admin", password=PASSWORD, autocommit=True, **where)  # type: ignore[arg-type]

    def standby(self) -> int:
        """The port of a hot standby of the server; the first call starts the standby."""
        if self._standby is None:
            data, port = self.directory / "standby", free_port()
            where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "admin", "-D", str(data)]
            command = [self._backup, *where, "--checkpoint=fast", "--no-sync", "-R", "-X", "stream"]
            servers._as_user(command, self.user, self.directory / "backup.log")
            self._start(data, port)
            self._standby = port
        return self._standby

    def close(self) -> None:
        """Stops the server and the standby, and removes their files."""
        for process in reversed(self.processes):
            stop(process, signal.SIGINT)
        shutil.rmtree(self.directory, ignore_errors=True)


def keywords(**values: object) -> str:
    """A connection string in libpq's `key=value` format."""

    def quoted(value: object) -> str:
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"

    return " ".join(f"{name}={quoted(value)}" for name, value in values.items())


def environment(**variables: str) -> dict[str, str]:
    """The environment of this process without its `PG*` variables, with ``variables`` added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, **variables}
