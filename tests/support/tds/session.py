"""One connection of the responder: login, then requests until the client leaves."""

from __future__ import annotations

import secrets
import socket
import struct
import time

from tests.support.tds import describe, packets, queries, tokens
from tests.support.tds.packets import Cancelled, Channel
from tests.support.tds.queries import Affected, Rows, SqlError, Wait
from tests.support.tds.types import Parameter, read_type_and_value

_TDS_7_4 = 0x74000004
_PROCEDURES = {10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 15: "sp_unprepare"}
#: [MS-TDS] 2.2.6.5: version 16.0, no encryption (2: not supported), no instance, thread id, no MARS.
_PRELOGIN = {0: bytes((16, 0, 0x10, 0, 0, 0)), 1: b"\x02", 2: b"\0", 3: b"", 4: b"\0"}


class Dropped(Exception):
    """The connection was reset on purpose."""


class Session:
    """What one client has: its statements and its transaction."""

    def __init__(self, sock: socket.socket, user: str, password: str) -> None:
        self._channel = Channel(sock)
        self._user, self._password = user, password
        self._prepared: dict[int, tuple[str, list[str]]] = {}
        self._transaction = b""

    def run(self) -> None:
        """Serve the client until it leaves.

        Raises:
            ConnectionError: it left. Dropped: a query asked for the connection to break.
        """
        if not self._log_in():
            return
        while True:
            kind, payload = self._channel.receive()
            try:
                self._request(kind, payload)
            except Cancelled:
                self._channel.write(tokens.done(tokens.DONE, tokens.ATTENTION))
            self._channel.end()

    def _log_in(self) -> bool:
        kind, payload = self._channel.receive()
        if kind == packets.PRELOGIN:
            self._channel.write(_prelogin_answer())
            self._channel.end()
            kind, payload = self._channel.receive()
        if kind != packets.LOGIN7:
            raise ConnectionError(f"message type {kind} where LOGIN7 belongs")
        version, size = struct.unpack_from("<II", payload, 4)
        if _login_text(payload, 40) != self._user or _login_password(payload) != self._password:
            message = f"Login failed for user '{_login_text(payload, 40)}'."
            self._channel.write(tokens.error(18456, message, severity=14) + tokens.done(tokens.DONE, tokens.ERROR))
            self._channel.end()
            return False
        packet_size = min(max(size or 4096, 512), 32767)
        database = _login_text(payload, 68) or "onecopy"
        self._channel.write(tokens.login_answer(database, packet_size, min(version, _TDS_7_4)))
        self._channel.end()
        self._channel.packet_size = packet_size
        return True

    def _request(self, kind: int, payload: bytes) -> None:
        if kind == packets.ATTENTION:
            raise Cancelled
        # ALL_HEADERS comes first; its first number is its whole length.
        body = payload[struct.unpack_from("<I", payload)[0] :] if payload else b""
        if kind == packets.SQL_BATCH:
            self._answer(body.decode("utf-16-le", "surrogatepass"), {}, tokens.DONE)
        elif kind == packets.RPC:
            self._call(body)
        elif kind == packets.TRANSACTION:
            self._manage_transaction(struct.unpack_from("<H", body)[0], body)
        else:
            self._fail(SqlError(4002, f"message type {kind} is not known"), tokens.DONE)

    def _manage_transaction(self, request: int, body: bytes) -> None:
        answer = b""
        if request == 5:  # TM_BEGIN_XACT
            self._transaction = secrets.token_bytes(8)
            answer = tokens.transaction_began(self._transaction)
        elif request in (7, 8):  # TM_COMMIT_XACT, TM_ROLLBACK_XACT; bit 0 of the flags: begin a new one.
            answer = tokens.transaction_ended(self._transaction or bytes(8), committed=request == 7)
            # Isolation level or name first: a byte of length, then the flags.
            flags_at = 2 + 1 + body[2]
            if len(body) > flags_at and body[flags_at] & 1:
                self._transaction = secrets.token_bytes(8)
                answer += tokens.transaction_began(self._transaction)
        self._channel.write(answer + struct.pack("<BHHQ", tokens.DONE, 0, 0, 0))

    def _call(self, body: bytes) -> None:
        """A remote procedure call: the ones that run statements."""
        length = struct.unpack_from("<H", body)[0]
        if length == 0xFFFF:
            name, at = _PROCEDURES.get(struct.unpack_from("<H", body, 2)[0], ""), 4
        else:
            name, at = body[2 : 2 + 2 * length].decode("utf-16-le").lower().split(".")[-1], 2 + 2 * length
        at += 2  # option flags
        try:
            given = _read_parameters(body, at)
            self._procedure(name.strip("[]"), given)
        except (SqlError, ValueError) as error:
            self._fail(error if isinstance(error, SqlError) else SqlError(8016, str(error)), tokens.DONEPROC)

    def _procedure(self, name: str, given: list[Parameter]) -> None:
        handle: int | None = None
        values: list[Parameter] = []
        sql, names = "", []
        if name == "sp_executesql":
            sql, names = str(given[0].value()), _declared(given[1] if len(given) > 1 else None)
            values = given[2:]
        elif name in ("sp_prepexec", "sp_prepare"):
            sql, names = str(given[2].value()), _declared(given[1])
            handle = len(self._prepared) + 1
            self._prepared[handle] = sql, names
            values = given[3:] if name == "sp_prepexec" else []
        elif name == "sp_execute":
            sql, names = self._prepared[int(given[0].value())]
            values = given[1:]
        elif name in ("sp_describe_first_result_set", "sp_describe_undeclared_parameters"):
            about = describe.first_result_set if name.endswith("result_set") else describe.undeclared_parameters
            result = about(str(given[0].value()))
            n_rows = self._rows(result, None) or 0
            self._channel.write(tokens.done(tokens.DONEINPROC, tokens.MORE | tokens.COUNT, n_rows))
        elif name == "sp_unprepare":
            self._prepared[int(given[0].value())] = "", []
        else:
            raise SqlError(2812, f"Could not find stored procedure '{name}'.")
        if name == "sp_prepare":
            # A server answers with the columns and no rows.
            columns = describe.columns(sql)
            self._channel.write(
                tokens.metadata(columns) + tokens.done(tokens.DONEINPROC, tokens.MORE) if columns else b""
            )
            sql = ""
        bound = {known.lower(): value for known, value in zip(names, values, strict=False)}
        self._answer(sql, bound, tokens.DONEINPROC)
        tail = tokens.return_status() + (tokens.return_handle(handle) if handle is not None else b"")
        self._channel.write(tail + struct.pack("<BHHQ", tokens.DONEPROC, 0, 0xE0, 0))

    def _answer(self, sql: str, parameters: dict[str, Parameter], token: int) -> None:
        """The results of ``sql``; in a batch the last DONE ends the answer, in a procedure more follows."""
        in_procedure = token == tokens.DONEINPROC
        try:
            results = list(queries.statements(sql, parameters))
        except (SqlError, ValueError) as error:
            self._fail(error if isinstance(error, SqlError) else SqlError(8180, str(error)), token, in_procedure)
            return
        fails = queries.failure(sql)
        for number, result in enumerate(results, 1):
            more = tokens.MORE if in_procedure or number < len(results) else 0
            if isinstance(result, Wait):
                self._wait(result.seconds)
            if isinstance(result, Rows):
                n_rows = self._rows(result, fails)
                if n_rows is None:
                    self._fail(SqlError(50000, "The query failed half-way, as it was asked to."), token, in_procedure)
                    return
                self._channel.write(tokens.done(token, more | tokens.COUNT, n_rows))
            elif isinstance(result, Affected) and result.count is not None:
                self._channel.write(tokens.done(token, more | tokens.COUNT, result.count))
            else:
                self._channel.write(struct.pack("<BHHQ", token, more, 0, 0))
        if not results and not in_procedure:
            self._channel.write(struct.pack("<BHHQ", token, 0, 0, 0))

    def _rows(self, result: Rows, fails: queries.Failure | None) -> int | None:
        """Send a result's rows; how many, or None where an error is to follow."""
        self._channel.write(tokens.metadata(result.columns))
        sent = 0
        for piece, n_rows in result.slices:
            if fails is not None and sent + n_rows > fails.after:
                self._break(fails)
                return None
            self._channel.write(piece)
            sent += n_rows
        return sent

    def _break(self, fails: queries.Failure) -> None:
        """What an answer that fails does instead of its next row; an error token is the caller's to send."""
        if fails.how == "drop":
            self._channel.abort()
            raise Dropped
        if fails.how == "stall":
            self._channel.flush()
            self._wait(3600)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._channel.check(left)

    def _fail(self, error: SqlError, token: int, in_procedure: bool = False) -> None:
        more = tokens.MORE if in_procedure else 0
        status = struct.pack("<BHHQ", token, tokens.ERROR | more, 0, 0)
        self._channel.write(tokens.error(error.number, str(error)) + status)


def _prelogin_answer() -> bytes:
    at = 5 * len(_PRELOGIN) + 1
    head, body = b"", b""
    for option, value in _PRELOGIN.items():
        head += struct.pack(">BHH", option, at + len(body), len(value))
        body += value
    return head + b"\xff" + body


def _login_text(payload: bytes, place: int) -> str:
    """A text of LOGIN7 whose offset and length (in units) stand at ``place``."""
    offset, length = struct.unpack_from("<HH", payload, place)
    return payload[offset : offset + 2 * length].decode("utf-16-le")


def _login_password(payload: bytes) -> str:
    offset, length = struct.unpack_from("<HH", payload, 44)
    hidden = payload[offset : offset + 2 * length]
    # Each byte: exclusive-or 0xA5, then the halves change places.
    return bytes((byte ^ 0xA5) >> 4 | ((byte ^ 0xA5) << 4 & 0xF0) for byte in hidden).decode("utf-16-le", "replace")


def _read_parameters(body: bytes, at: int) -> list[Parameter]:
    parameters = []
    while at < len(body) and body[at] not in (0x80, 0xFF):
        size = body[at]
        name = body[at + 1 : at + 1 + 2 * size].decode("utf-16-le")
        at += 1 + 2 * size + 1  # name, status flags
        info, raw, at = read_type_and_value(body, at)
        parameters.append(Parameter(name, info, raw))
    return parameters


def _declared(parameter: Parameter | None) -> list[str]:
    """The names in a declaration list such as ``@P1 int,@P2 decimal(10,2)``."""
    text = (parameter.value() if parameter is not None else None) or ""
    names, depth, word = [], 0, ""
    for sign in text + ",":
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            if word.split():
                names.append(word.split()[0])
            word = ""
        else:
            word += sign
    return names
