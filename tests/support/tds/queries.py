"""What a query's text may say, and the result it gives.

    select * from t31000                     the table `t`; `select id, note from t1000`; `… where id = 7` (or `= @P1`)
    select 1 as a, N'é' as b, null, 0x00ff   literals; `+` joins text
    select cast('1.50' as decimal(38,10))    any type of SQL Server by name; `convert(type, value)` is the same
    select replicate(N'é', 50000000)         long values, sent in pieces
    select nchar(0xD800) + N'x'              a lone surrogate
    select @P1                               a parameter, given back as it came
    select 1 from repeat(100000)             a row that many times
    select N'a' union all select nchar(0xD800)   more rows, in the types of the first
    select 1; select 2                       more than one result
    waitfor delay '00:00:30'                 waits, and can be cancelled

Comments make an answer fail: `/* error after 500 */` sends an error token after 500 rows, `/* drop after 500 */` resets
the connection, `/* stall after 500 */` sends no more until the client cancels or leaves. `insert`, `update` and `delete`
count one row and keep nothing; SET, BEGIN, COMMIT and the like are accepted and mean nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from tests.support.tds import stored, types
from tests.support.tds.tokens import ROW, Column
from tests.support.tds.types import Kind, Parameter

Slice = tuple[bytes | bytearray | memoryview, int]


class SqlError(Exception):
    """An error for the client: SQL Server's number and message."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


@dataclass
class Rows:
    """A result with rows; ``slices`` are bytes of whole rows and their number."""

    columns: list[Column]
    slices: Iterator[Slice]


@dataclass
class Affected:
    """A statement without a result: rows counted, None where it counts none."""

    count: int | None


@dataclass
class Wait:
    """WAITFOR: seconds until done."""

    seconds: float


@dataclass(frozen=True)
class Failure:
    """How an answer is to fail, and after how many rows."""

    how: Literal["error", "drop", "stall"]
    after: int


_FAILURE = re.compile(r"/\*\s*(error|drop|stall) after (\d+)\s*\*/", re.I)
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.S)
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>[Nn]?'(?:[^']|'')*')|(?P<hex>0[xX][0-9a-fA-F]*)|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<name>\[[^\]]*\]|"[^"]*"|[@\w#$.]+)|(?P<sign>[-+*=(),;]))""",
    re.X,
)


def failure(sql: str) -> Failure | None:
    """The failure that a comment in ``sql`` asks for."""
    match = _FAILURE.search(sql)
    return Failure(match[1].lower(), int(match[2])) if match else None  # type: ignore[arg-type]


def statements(sql: str, parameters: dict[str, Parameter]) -> Iterator[Rows | Affected | Wait]:
    """The results of ``sql``, one after the other.

    Raises:
        SqlError: what SQL Server would call an error, or what the responder does not understand.
    """
    # An answer that is to fail after so many rows is sent row by row.
    reader = _Reader(_COMMENT.sub(" ", sql), parameters, one_by_one=failure(sql) is not None)
    while not reader.at_end():
        if reader.take(";"):
            continue
        yield reader.statement()


@dataclass
class _Cell:
    """One value of a select list: its type, and its value or its finished bytes."""

    kind: Kind
    value: Any

    def encoded(self) -> bytes:
        try:
            return self.kind.encode(self.value)
        except (ValueError, ArithmeticError, OverflowError, TypeError) as error:
            raise SqlError(8114, f"Error converting data type: {error}.") from None


def _echo(parameter: Parameter) -> _Cell:
    return _Cell(Kind(parameter.info, lambda _: parameter.raw), parameter)


class _Reader:
    """A reader of the few statements above; recursive descent over one list of tokens."""

    def __init__(self, sql: str, parameters: dict[str, Parameter], one_by_one: bool) -> None:
        self._parameters = parameters
        self._one_by_one = one_by_one
        self._tokens: list[tuple[str, str]] = []
        at = 0
        sql = sql.strip()
        while at < len(sql):
            match = _TOKEN.match(sql, at)
            if match is None or match.lastgroup is None:
                raise SqlError(102, f"Incorrect syntax near '{sql[at : at + 20]}'.")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._at = 0

    def at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def _peek(self) -> str:
        return "" if self.at_end() else self._tokens[self._at][1]

    def take(self, *words: str) -> bool:
        """Step over the next token where it is one of ``words``."""
        if self._peek().lower() in words and not self.at_end():
            self._at += 1
            return True
        return False

    def _need(self, word: str) -> None:
        if not self.take(word):
            raise SqlError(102, f"Incorrect syntax near '{self._peek()}'.")

    def _next(self) -> tuple[str, str]:
        if self.at_end():
            raise SqlError(102, "Incorrect syntax: the statement ends too soon.")
        self._at += 1
        return self._tokens[self._at - 1]

    def statement(self) -> Rows | Affected | Wait:
        if self.take("select"):
            return self._select()
        if self.take("waitfor"):
            self._need("delay")
            hours, minutes, seconds = self._next()[1].strip("N'").split(":")
            return Wait(int(hours) * 3600 + int(minutes) * 60 + float(seconds))
        word = self._next()[1].lower()
        known = [
            "set",
            "begin",
            "commit",
            "rollback",
            "if",
            "use",
            "declare",
            "save",
            "create",
            "drop",
            "truncate",
            "print",
            "go",
        ]
        if word not in (*known, "insert", "update", "delete"):
            raise SqlError(2812, f"Could not find stored procedure '{word}'.")
        # What belongs to it goes up to the next `;`, or to a SELECT that follows a SET without one.
        while not self.at_end() and self._peek() != ";":
            if word in ("set", "use", "if") and self._peek().lower() == "select":
                break
            self._at += 1
        return Affected(1 if word in ("insert", "update", "delete") else None)

    def _select(self) -> Rows:
        start = self._at
        if self.take("*"):
            return self._from_table(None)
        # A list of bare names is a projection of `t`; anything else is a list of values.
        names = [self._next()[1].strip('[]"')]
        while self.take(","):
            names.append(self._next()[1].strip('[]"'))
        plain = all(re.fullmatch(r"[a-z]\w*", name, re.I) for name in names) and names != ["null"]
        table = self._tokens[self._at + 1][1] if self._at + 1 < len(self._tokens) else ""
        if plain and self._peek().lower() == "from" and re.fullmatch(r"\[?t\d+\]?", table, re.I):
            return self._from_table(names)
        self._at = start
        return self._values()

    def _from_table(self, names: list[str] | None) -> Rows:
        self._need("from")
        table = self._next()[1].strip('[]"').split(".")[-1]
        match = re.fullmatch(r"t(\d+)", table, re.I)
        if match is None:
            raise SqlError(208, f"Invalid object name '{table}'.")
        n_rows = int(match[1])
        only: int | None = None
        if self.take("where"):
            self._need("id")
            self._need("=")
            value = self._value().value
            found = value.value() if isinstance(value, Parameter) else value
            only = -1 if found is None else int(found)  # NULL equals nothing; no row has the id -1.
        if self.take("order"):
            self._need("by")
            self._need("id")
        if names is not None:
            try:
                columns, encoded = stored.some_columns(n_rows, names)
            except KeyError as error:
                raise SqlError(207, f"Invalid column name {error}.") from None
            return Rows(columns, ((row, 1) for number, row in enumerate(encoded, 1) if only in (None, number)))
        if only is not None:
            row = stored.one_row(n_rows, only)
            return Rows(stored.T_COLUMNS, iter([(row, 1)] if row else []))
        return Rows(stored.T_COLUMNS, stored.table_rows(n_rows, 1 if self._one_by_one else stored.ROWS_A_SLICE))

    def _values(self) -> Rows:
        cells, names, times = self._select_list()
        columns = [Column(name, cell.kind.info) for name, cell in zip(names, cells, strict=True)]
        slices = [self._slices(cells, times)]
        while self.take("union"):
            self._need("all")
            self._need("select")
            others, _, times = self._select_list()
            if len(others) != len(cells):
                raise SqlError(205, "All queries combined using a UNION must have an equal number of expressions.")
            slices.append(self._slices([_Cell(a.kind, b.value) for a, b in zip(cells, others, strict=True)], times))
        return Rows(columns, itertools.chain.from_iterable(slices))

    def _slices(self, cells: list[_Cell], times: int) -> Iterator[Slice]:
        row = ROW + b"".join(cell.encoded() for cell in cells)
        return _repeat(row, times, 1 if self._one_by_one else max(1, 65_536 // len(row)))

    def _select_list(self) -> tuple[list[_Cell], list[str], int]:
        """The values of one row, their names, and how often the row comes."""
        cells: list[_Cell] = []
        names: list[str] = []
        while True:
            cells.append(self._value())
            name = ""
            if self.take("as") or (
                not self.at_end()
                and self._tokens[self._at][0] == "name"
                and self._peek().lower() not in ("from", "select", "union")
            ):
                name = self._next()[1].strip('[]"')
            names.append(name)
            if not self.take(","):
                break
        times = 1
        if self.take("from"):
            self._need("repeat")
            self._need("(")
            times = int(self._next()[1])
            self._need(")")
        return cells, names, times

    def _value(self) -> _Cell:
        cell = self._term()
        while self.take("+"):
            other = self._term()
            joined = None if cell.value is None or other.value is None else _text(cell) + _text(other)
            cell = _Cell(_text_kind(joined), joined)
        return cell

    def _term(self) -> _Cell:
        group, token = self._next()
        if token == "-":
            cell = self._term()
            return _Cell(cell.kind, -cell.value)
        if group == "text":
            return self._text_literal(token)
        if group == "hex":
            data = bytes.fromhex(token[2:])
            return _Cell(types.varbinary(max(len(data), 1) if len(data) <= 8000 else None), data)
        if group == "number":
            return self._number(token)
        if token.startswith("@"):
            return self._variable(token)
        return self._function(token.lower())

    def _text_literal(self, token: str) -> _Cell:
        wide = token[0] in "nN"
        text = token[2 if wide else 1 : -1].replace("''", "'")
        if wide:
            return _Cell(_text_kind(text), text)
        data = text.encode("cp1252", "replace")  # What has no place in the code page becomes `?`, as on a server.
        return _Cell(types.varchar(max(len(data), 1) if len(data) <= 8000 else None), data.decode("cp1252"))

    def _number(self, token: str) -> _Cell:
        if "e" in token.lower():
            return _Cell(types.kind("float"), float(token))
        if "." in token:
            digits = Decimal(token)
            scale = len(token.partition(".")[2])
            return _Cell(types.decimal(max(len(token.replace(".", "")), 1), scale), digits)
        return _Cell(types.kind("int" if int(token) < 2**31 else "bigint"), int(token))

    def _variable(self, token: str) -> _Cell:
        known = {"@@version": "Microsoft SQL Server (onecopy's responder)", "@@spid": 51, "@@trancount": 0}
        if token.lower() in known:
            value = known[token.lower()]
            return _Cell(_text_kind(value) if isinstance(value, str) else types.kind("int"), value)
        parameter = self._parameters.get(token.lower())
        if parameter is None:
            raise SqlError(137, f'Must declare the scalar variable "{token}".')
        return _echo(parameter)

    def _function(self, name: str) -> _Cell:
        if name == "null":
            return _Cell(types.kind("int"), None)
        if name not in ("cast", "convert", "replicate", "nchar", "db_name"):
            raise SqlError(207, f"Invalid column name '{name}'.")
        self._need("(")
        if name == "cast":
            cell = self._value()
            self._need("as")
            result = _Cell(self._type(), _plain(cell))
        elif name == "convert":
            kind = self._type()
            self._need(",")
            result = _Cell(kind, _plain(self._value()))
        elif name == "replicate":
            text = _text(self._value())
            self._need(",")
            long = text * int(self._next()[1])
            result = _Cell(types.nvarchar(None), long)
        elif name == "nchar":
            group, token = self._next()
            unit = chr(int(token, 16 if group == "hex" else 10))
            result = _Cell(types.nvarchar(1), unit)
        else:
            result = _Cell(types.nvarchar(128), "onecopy")
        self._need(")")
        return result

    def _type(self) -> Kind:
        name = self._next()[1]
        if self.take("("):
            name += "(" + self._next()[1]
            while self.take(","):
                name += "," + self._next()[1]
            self._need(")")
            name += ")"
        try:
            return types.kind(name)
        except KeyError:
            raise SqlError(243, f"Type {name} is not a defined system type.") from None


def _plain(cell: _Cell) -> Any:
    """A cell's Python value, a parameter read."""
    if not isinstance(cell.value, Parameter):
        return cell.value
    try:
        return cell.value.value()
    except ValueError as error:
        raise SqlError(529, str(error)) from None


def _text(cell: _Cell) -> str:
    return str(_plain(cell))


def _text_kind(text: str | None) -> Kind:
    units = 1 if text is None else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return types.nvarchar(max(units, 1) if units <= 4000 else None)


def _repeat(row: bytes, times: int, many: int) -> Iterator[Slice]:
    block = row * min(many, times)
    for first in range(0, times, many):
        here = min(many, times - first)
        yield (block if here == many or times < many else row * here), here
