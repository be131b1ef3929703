"""A parser of SQL expressions: literals, parameters, casts, and those functions that drivers and
tests use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.support.tds import declared, types
from tests.support.tds.declared import parts_of
from tests.support.tds.results import SqlError
from tests.support.tds.types import Kind, Parameter

_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.S)
_WORD = r"""(?:\[(?:[^\]]|\]\])*\]|"(?:[^"]|"")*"|[@\w#$]+)"""
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>[Nn]?'(?:[^']|'')*')|(?P<hex>0[xX][0-9a-fA-F]*)|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<name>"""
    + _WORD
    + r"(?:\.+"
    + _WORD
    + r""")*)|(?P<sign>[-+*=(),;<>]))""",
    re.X,
)


@dataclass
class Cell:
    """One value: its type, and its Python value or the parameter from which it was copied."""

    kind: Kind
    value: Any

    def encoded(self) -> bytes:
        """The value in the encoding of a ROW token.

        Raises:
            SqlError: the value does not match the type.
        """
        try:
            return self.kind.encode(self.value)
        except (ValueError, ArithmeticError, OverflowError, TypeError) as error:
            raise SqlError(8114, f"Error converting data type: {error}.") from None

    def plain(self) -> Any:
        """The Python value of the cell; a parameter is decoded.

        Raises:
            SqlError: the parameter has a type that can only be echoed.
        """
        if not isinstance(self.value, Parameter):
            return self.value
        try:
            return self.value.value()
        except ValueError as error:
            raise SqlError(529, str(error)) from None

    def text(self) -> str:
        """The value as a str."""
        return str(self.plain())


def text_kind(text: str | None) -> Kind:
    """The type of a Unicode literal with this text."""
    units = 1 if text is None else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return types.nvarchar(max(units, 1) if units <= 4000 else None)


class Reader:
    """A recursive-descent parser over one list of tokens."""

    def __init__(self, sql: str, parameters: dict[str, Parameter]) -> None:
        self._parameters = parameters
        self._tokens: list[tuple[str, str]] = []
        at = 0
        sql = _COMMENT.sub(" ", sql).strip()
        while at < len(sql):
            match = _TOKEN.match(sql, at)
            if match is None or match.lastgroup is None:
                raise SqlError(102, f"Incorrect syntax near '{sql[at : at + 20]}'.")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._at = 0

    def at_end(self) -> bool:
        """Returns true if no token is left."""
        return self._at >= len(self._tokens)

    def peek(self) -> str:
        """The next token, without skipping it; an empty string at the end."""
        return "" if self.at_end() else self._tokens[self._at][1]

    def take(self, *words: str) -> bool:
        """Skips the next token if it is one of ``words``; returns true if it was."""
        if not self.at_end() and self.peek().lower() in words:
            self._at += 1
            return True
        return False

    def need(self, *words: str) -> None:
        """Skips the tokens ``words``, which must follow in this order.

        Raises:
            SqlError: another token follows.
        """
        for word in words:
            if not self.take(word):
                raise SqlError(102, f"Incorrect syntax near '{self.peek()}'.")

    def next(self) -> tuple[str, str]:
        """Skips the next token; returns its kind and its text.

        Raises:
            SqlError: no token is left.
        """
        if self.at_end():
            raise SqlError(102, "Incorrect syntax: the statement ends too soon.")
        self._at += 1
        return self._tokens[self._at - 1]

    def name(self) -> str:
        """Parses a name; returns it without its quotes and its schema."""
        return (parts_of(self.next()[1]) or [""])[-1]

    def value(self) -> Cell:
        """Parses an expression: terms joined by `+`."""
        cell = self._term()
        while self.take("+"):
            other = self._term()
            joined = None if cell.value is None or other.value is None else _joined(cell.text(), other.text())
            cell = Cell(text_kind(joined), joined)
        return cell

    def number(self) -> int:
        """Parses an expression whose value must be a number."""
        return int(self.value().plain())

    def _term(self) -> Cell:
        group, token = self.next()
        if token == "-":
            cell = self._term()
            return Cell(cell.kind, -cell.value)
        if token == "(":
            cell = self.value()
            self.need(")")
            return cell
        if group == "text":
            return self._text_literal(token)
        if group == "hex":
            data = bytes.fromhex(token[2:])
            return Cell(types.varbinary(max(len(data), 1) if len(data) <= 8000 else None), data)
        if group == "number":
            return self._number(token)
        if token.startswith("@"):
            return self._variable(token)
        return self._function(token.lower())

    def _text_literal(self, token: str) -> Cell:
        wide = token[0] in "nN"
        text = token[2 if wide else 1 : -1].replace("''", "'")
        if wide:
            return Cell(text_kind(text), text)
        data = text.encode("cp1252", "replace")  # Characters outside of the code page become `?`, as on a server.
        return Cell(types.varchar(max(len(data), 1) if len(data) <= 8000 else None), data.decode("cp1252"))

    def _number(self, token: str) -> Cell:
        if "e" in token.lower():
            return Cell(types.kind("float"), float(token))
        if "." in token:
            scale = len(token.partition(".")[2])
            return Cell(types.decimal(max(len(token.replace(".", "")), 1), scale), Decimal(token))
        return Cell(types.kind("int" if int(token) < 2**31 else "bigint"), int(token))

    def _variable(self, token: str) -> Cell:
        known = {"@@version": "Microsoft SQL Server (onecopy's responder)", "@@spid": 51, "@@trancount": 0}
        if token.lower() in known:
            value = known[token.lower()]
            return Cell(text_kind(value) if isinstance(value, str) else types.kind("int"), value)
        parameter = self._parameters.get(token.lower())
        if parameter is None:
            raise SqlError(137, f'Must declare the scalar variable "{token}".')
        return Cell(Kind(parameter.info, lambda _: parameter.raw), parameter)

    def _function(self, name: str) -> Cell:
        if name == "null":
            return Cell(types.kind("int"), None)
        if name == "case":
            return self._case()
        known = {"cast": self._cast, "convert": self._convert, "replicate": self._replicate, "nchar": self._nchar}
        known |= {"len": self._len, "db_name": lambda: Cell(types.nvarchar(128), "onecopy")}
        routine = declared.called(name) if "." in name else None  # Functions require their schema.
        if routine is not None and routine.kind == "FN" and self.peek() == "(":
            return self._of_routine(routine)
        if name not in known:
            raise SqlError(207, f"Invalid column name '{name}'.")
        self.need("(")
        cell = known[name]()
        self.need(")")
        return cell

    def arguments(self) -> list[Parameter]:
        """Parses the arguments of a function: expressions in parentheses."""
        self.need("(")
        given = []
        while not self.take(")"):
            given.append(self.argument())
            self.take(",")
        return given

    def argument(self) -> Parameter:
        """Parses one expression as an argument."""
        cell = self.value()
        return cell.value if isinstance(cell.value, Parameter) else Parameter("", cell.kind.info, cell.encoded())

    def _of_routine(self, routine: declared.Routine) -> Cell:
        """Parses the arguments of a scalar function and calls it; returns the only cell of its
        table."""
        table = routine.table(self.arguments())
        info = table.columns[0].info
        row = b"".join(bytes(piece) for piece, _ in table.slices)
        return Cell(Kind(info, lambda _: row[1:]), Parameter("", info, row[1:]))

    def _case(self) -> Cell:
        """Parses CASE WHEN a = b THEN c ELSE d END; the values a and b are compared as bytes."""
        self.need("when")
        left = self.value()
        self.need("=")
        is_equal = left.plain() == self.value().plain()
        self.need("then")
        cell = self.value()
        self.need("else")
        other = self.value()
        self.need("end")
        return cell if is_equal else other

    def _cast(self) -> Cell:
        cell = self.value()
        self.need("as")
        return _converted(cell, self.type_name())

    def _convert(self) -> Cell:
        name = self.type_name()
        self.need(",")
        return _converted(self.value(), name)

    def _replicate(self) -> Cell:
        text = self.value().text()
        self.need(",")
        return Cell(types.nvarchar(None), text * self.number())

    def _nchar(self) -> Cell:
        group, token = self.next()
        return Cell(types.nvarchar(1), chr(int(token, 16 if group == "hex" else 10)))

    def _len(self) -> Cell:
        units = self.value().text().rstrip(" ").encode("utf-16-le", "surrogatepass")
        return Cell(types.kind("int"), len(units) // 2)

    def type_name(self) -> str:
        """Parses a type in SQL's notation, for example ``decimal(38,10)``."""
        name = self.next()[1].strip("[]").lower()
        if self.take("("):
            name += "(" + self.next()[1].lower()
            while self.take(","):
                name += "," + self.next()[1]
            self.need(")")
            name += ")"
        return name


def _joined(left: str, right: str) -> str:
    """Two texts joined as UTF-16: a lone surrogate at the end and one at the start form one
    character."""
    units = (left + right).encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "surrogatepass")


def known_kind(name: str) -> Kind:
    """The type with the SQL name ``name``.

    Raises:
        SqlError: the name is unknown.
    """
    try:
        return types.kind(name)
    except KeyError:
        raise SqlError(243, f"Type {name} is not a defined system type.") from None


def _converted(cell: Cell, name: str) -> Cell:
    value = cell.plain()
    if name.startswith("varbinary") and isinstance(value, str):
        value = value.encode("utf-16-le", "surrogatepass")
    return Cell(known_kind(name), value)
