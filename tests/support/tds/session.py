"""One connection of the TDS responder: the login, then requests until the client disconnects."""

from __future__ import annotations

import secrets
import socket
import struct
import time

from tests.support.tds import calls, describe, kept, packets, procedures, queries, tokens, types
from tests.support.tds.packets import Cancelled, Channel
from tests.support.tds.results import (
    Affected,
    Called,
    Failure,
    Message,
    Result,
    Rows,
    SqlError,
    Transaction,
    Wait,
    failure,
)
from tests.support.tds.types import Parameter

_TDS_7_3, _TDS_7_4 = 0x730A0003, 0x74000004
#: [MS-TDS] 2.2.6.5: version 16.0, no encryption (2: not supported), no instance, thread id, no
#: MARS.
_PRELOGIN = {0: bytes((16, 0, 0x10, 0, 0, 0)), 1: b"\x02", 2: b"\0", 3: b"", 4: b"\0"}


class Dropped(Exception):
    """The responder reset the connection, as a query requested."""


class Session:
    """The state of one client's connection: its prepared statements and its transaction."""

    def __init__(self, sock: socket.socket, user: str, password: str) -> None:
        self._channel = Channel(sock)
        self._user, self._password = user, password
        #: By handle: text and names of parameters, or only the name of a procedure.
        self._prepared: dict[int, tuple[str, list[str] | None]] = {}
        self._version = _TDS_7_4
        self._work = kept.Work()
        #: The flag for a response that is followed by that of another call in the same message.
        self._more_calls = 0
        self._transaction = b""
        self._implicit = False
        #: The procedure that the current statement has run, whose outputs are still to be sent.
        self._called: Called | None = None

    def run(self) -> None:
        """Serves the client until it disconnects.

        Raises:
            ConnectionError: the client disconnected. Dropped: a query requested a reset of the
                connection.
        """
        if not self._log_in():
            return
        try:
            while True:
                kind, payload = self._channel.receive()
                try:
                    self._request(kind, payload)
                except Cancelled:
                    self._channel.write(tokens.done(tokens.DONE, tokens.ATTENTION))
                self._channel.end()
        finally:
            self._work.end(committed=False)

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
            self._channel.write(tokens.message(18456, message, severity=14) + tokens.done(tokens.DONE, tokens.ERROR))
            self._channel.end()
            return False
        packet_size = min(max(size or 4096, 512), 32767)
        database = _login_text(payload, 68) or "onecopy"
        self._version = min(version, _TDS_7_4)
        self._channel.write(tokens.login_answer(database, packet_size, self._version))
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
            answer = self._begin()
        elif request in (7, 8):  # TM_COMMIT_XACT, TM_ROLLBACK_XACT; bit 0 of the flags: begin a new one.
            answer = self._end(committed=request == 7)
            # The isolation level or name comes first: a byte of length, then the flags.
            flags_at = 2 + 1 + body[2]
            if len(body) > flags_at and body[flags_at] & 1:
                answer += self._begin()
        self._channel.write(answer + struct.pack("<BHHQ", tokens.DONE, 0, 0, 0))

    def _begin(self) -> bytes:
        self._transaction = secrets.token_bytes(8)
        self._work.begin()
        return tokens.transaction_began(self._transaction)

    def _end(self, committed: bool) -> bytes:
        ended, self._transaction = self._transaction or bytes(8), b""
        self._work.end(committed)
        return tokens.transaction_ended(ended, committed)

    def _call(self, body: bytes) -> None:
        """Executes the remote procedure calls of a message, one after another."""
        at = 0
        while at < len(body):
            self._more_calls = 0
            try:
                name, given, at = calls.read(body, at)
                self._more_calls = tokens.MORE if at < len(body) else 0
                self._procedure(name, given)
            except (SqlError, ValueError) as error:
                known = error if isinstance(error, SqlError) else SqlError(8016, str(error))
                self._fail(known, tokens.DONEPROC, bool(self._more_calls))
                if not self._more_calls:
                    return

    def _procedure(self, name: str, given: list[Parameter]) -> None:
        handle: int | None = None
        values: list[Parameter] = []
        sql, names = "", []
        if name == "sp_prepexecrpc":
            handle = len(self._prepared) + 1
            procedure = str(given[1].value())
            self._prepared[handle] = procedure, None
            self._own_procedure(procedures.call(procedure, given[2:]), handle)
            return
        if name == "sp_executesql":
            sql, names = str(given[0].value()), calls.declared(given[1] if len(given) > 1 else None)
            values = given[2:]
        elif name in ("sp_prepexec", "sp_prepare"):
            sql, names = str(given[2].value()), calls.declared(given[1])
            handle = len(self._prepared) + 1
            self._prepared[handle] = sql, names
            values = given[3:] if name == "sp_prepexec" else []
        elif name == "sp_execute":
            if int(given[0].value()) not in self._prepared:
                raise SqlError(8179, f"Could not find prepared statement with handle {given[0].value()}.")
            sql, declared = self._prepared[int(given[0].value())]
            values = given[1:]
            if declared is None:
                self._own_procedure(procedures.call(sql, values))
                return
            names = declared
        elif name in ("sp_describe_first_result_set", "sp_describe_undeclared_parameters"):
            if name.endswith("result_set"):
                result = describe.first_result_set(str(given[0].value()), self._work)
            else:
                result = describe.undeclared_parameters(str(given[0].value()))
            n_rows = self._rows(result, None) or 0
            self._channel.write(tokens.done(tokens.DONEINPROC, tokens.MORE | tokens.COUNT, n_rows))
        elif name == "sp_unprepare":
            self._prepared.pop(int(given[0].value()), None)
        else:
            self._own_procedure(procedures.call(name, given))
            return
        if name == "sp_prepare":
            # A server responds with the columns and no rows.
            columns = describe.columns(sql, self._work)
            self._channel.write(
                tokens.metadata(columns) + tokens.done(tokens.DONEINPROC, tokens.MORE) if columns else b""
            )
            sql = ""
        bound = {known.lower(): value for known, value in zip(names, values, strict=False)}
        self._called = None
        failed = not self._answer(sql, bound, tokens.DONEINPROC)
        tail = tokens.return_status() + (tokens.return_handle(handle) if handle is not None else b"")
        if self._called is not None:
            tail += self._outputs(self._called)
        status = tokens.ERROR if failed else 0
        self._channel.write(tail + struct.pack("<BHHQ", tokens.DONEPROC, self._more_calls | status, 0xE0, 0))

    def _own_procedure(self, called: Called, handle: int | None = None) -> None:
        for result in called.results:
            self._one(result, tokens.DONEINPROC, tokens.MORE, None)
        if called.error is not None:
            raise called.error
        tail = tokens.return_status(called.status) + (tokens.return_handle(handle) if handle is not None else b"")
        ends = struct.pack("<BHHQ", tokens.DONEPROC, self._more_calls, 0xE0, 0)
        self._channel.write(tail + self._outputs(called) + ends)

    def _outputs(self, called: Called) -> bytes:
        return b"".join(tokens.return_value(at, one.name, one.info, one.raw) for at, one in called.outputs)

    def _answer(self, sql: str, parameters: dict[str, Parameter], token: int) -> bool:
        """Sends the results of ``sql``; returns true if all statements succeeded.

        ``token`` is DONE in a batch, whose last DONE ends the response. It is DONEINPROC in a
        procedure, after which more tokens follow.
        """
        in_procedure = token == tokens.DONEINPROC
        good, results = True, []
        fails = failure(sql)
        try:
            # Parsed as a whole before any of it runs, as a server compiles a batch.
            results = list(queries.statements(sql, parameters, self._work))
            for number, result in enumerate(results, 1):
                more = tokens.MORE if in_procedure or number < len(results) else 0
                good = self._one(result, token, more, fails) and good
        except (SqlError, ValueError) as error:
            self._fail(error if isinstance(error, SqlError) else SqlError(8180, str(error)), token, in_procedure)
            return False
        if not results and not in_procedure:
            self._channel.write(struct.pack("<BHHQ", token, 0, 0, 0))
        return good

    def _one(self, result: Result, token: int, more: int, fails: Failure | None) -> bool:
        """Sends one result; returns false for an error after which the batch continues."""
        if isinstance(result, Wait):
            self._wait(result.seconds)
        if isinstance(result, Message):
            return self._message(result, token, more)
        if isinstance(result, Called):
            good = True
            for inner in result.results:
                good = self._one(inner, token, tokens.MORE, None) and good
            if result.error is not None:
                raise result.error
            self._called = result
            self._channel.write(struct.pack("<BHHQ", token, more, 0, 0))
            return good
        if isinstance(result, Transaction):
            self._transact(result)
        elif self._implicit and not self._work.in_transaction:
            self._channel.write(self._begin())
        if isinstance(result, Rows):
            n_rows = self._rows(result, fails)
            if n_rows is None:
                raise SqlError(50000, "The query failed half-way as requested.")
            self._channel.write(tokens.done(token, more | tokens.COUNT, n_rows))
            return True
        count = None
        if isinstance(result, Affected) and result.count is not None:
            count = result.count if result.run is None else result.run()
        elif isinstance(result, Affected) and result.run is not None:
            result.run()
        if count is None:
            self._channel.write(struct.pack("<BHHQ", token, more, 0, 0))
        else:
            self._channel.write(tokens.done(token, more | tokens.COUNT, count, tokens.INSERT))
        return True

    def _message(self, result: Message, token: int, more: int) -> bool:
        is_error = result.severity > 10
        self._channel.write(tokens.message(result.number, result.text, result.severity, result.state))
        if result.severity >= 20:
            self._channel.write(struct.pack("<BHHQ", token, tokens.ERROR, 0, 0))
            self._channel.end()
            raise Dropped
        if not result.goes_on:
            self._channel.write(struct.pack("<BHHQ", token, more | (tokens.ERROR if is_error else 0), 0, 0))
        return not is_error

    def _transact(self, result: Transaction) -> None:
        """Executes a transaction statement.

        Implicit transactions are only switched on here; each begins with the next statement.
        """
        if result.what.startswith("implicit"):
            self._implicit = result.what == "implicit on"
        elif result.what == "begin":
            self._channel.write(self._begin())
        elif result.what == "save":
            self._work.save(result.savepoint)
        elif result.what == "back":
            self._work.back(result.savepoint)
        elif self._work.in_transaction:
            self._channel.write(self._end(result.what == "commit"))

    def _rows(self, result: Rows, fails: Failure | None) -> int | None:
        """Sends a result's rows; returns their number, or None if the caller has to send an
        error."""
        if self._version < _TDS_7_3:
            result = _before_2008(result)
        self._channel.write(tokens.metadata(result.columns))
        sent = 0
        for piece, n_rows in result.slices:
            if fails is not None and sent + n_rows > fails.after:
                self._break(fails)
                return None
            self._channel.write(piece)
            sent += n_rows
        return sent

    def _break(self, fails: Failure) -> None:
        """Causes the requested failure instead of sending the next row; the caller sends an error
        token."""
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
        self._channel.write(tokens.message(error.number, str(error), error.severity, error.state) + status)


def _prelogin_answer() -> bytes:
    at = 5 * len(_PRELOGIN) + 1
    head, body = b"", b""
    for option, value in _PRELOGIN.items():
        head += struct.pack(">BHH", option, at + len(body), len(value))
        body += value
    return head + b"\xff" + body


def _login_text(payload: bytes, place: int) -> str:
    """A text in a LOGIN7 message; its offset and its length in UTF-16 units are at offset
    ``place``."""
    offset, length = struct.unpack_from("<HH", payload, place)
    return payload[offset : offset + 2 * length].decode("utf-16-le")


def _login_password(payload: bytes) -> str:
    offset, length = struct.unpack_from("<HH", payload, 44)
    hidden = payload[offset : offset + 2 * length]
    # For each byte: exclusive-or with 0xA5, then swap the halves.
    return bytes((byte ^ 0xA5) >> 4 | ((byte ^ 0xA5) << 4 & 0xF0) for byte in hidden).decode("utf-16-le", "replace")


def _before_2008(result: Rows) -> Rows:
    """Converts a result for clients of TDS 7.2, which do not support the types of SQL Server 2008.

    Values of those types become text, row by row.
    """
    columns = [column._replace(info=types.before_2008(column.info)) for column in result.columns]
    if columns == result.columns:
        return result

    def rewritten(data: bytes) -> bytes:
        out, at = bytearray(), 0
        while at < len(data):
            out += data[at : at + 1]
            at += 1
            for column in result.columns:
                raw, at = types.read_value(column.info, data, at)
                out += types.as_before_2008(column.info, raw)
        return bytes(out)

    return Rows(columns, ((rewritten(bytes(piece)), n_rows) for piece, n_rows in result.slices))
