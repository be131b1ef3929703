"""The responder's tables whose rows are stored in memory, and transactions with rollback.

    create table NAME (a int not null primary key, b nvarchar(40), …)
    insert into NAME values (1, @P1), (2, N'x')      values that do not fit are SQL Server's errors
    delete from NAME; drop table NAME

All clients share one set of tables. Transactions are not isolated: a change is visible at once to
all clients, and a rollback reverses it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.support.tds.results import SqlError
from tests.support.tds.tokens import ROW, Column
from tests.support.tds.types import Kind

_LOCK = threading.Lock()
_RANGES = {"tinyint": (0, 255), "smallint": (-(2**15), 2**15 - 1), "int": (-(2**31), 2**31 - 1)}
_RANGES["bigint"] = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Field:
    """A column of a table: its name and SQL type, and if it may be NULL and is the primary key."""

    name: str
    type_name: str
    kind: Kind
    nullable: bool = True
    is_key: bool = False


@dataclass
class Table:
    """A table: its columns, and its rows as Python values."""

    name: str
    fields: list[Field]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def columns(self) -> list[Column]:
        """The columns of the result that selects the whole table."""
        return [Column(one.name, one.kind.info, one.nullable) for one in self.fields]

    def slices(self) -> Iterator[tuple[bytes, int]]:
        """The rows as ROW tokens, each with the number 1.

        They are the rows that the table has when the first one is requested.
        """
        with _LOCK:
            rows = list(self.rows)
        for row in rows:
            yield ROW + b"".join(one.kind.encode(v) for one, v in zip(self.fields, row, strict=True)), 1


class Work:
    """The changes of one session, which a rollback reverses if a transaction is active."""

    tables: dict[str, Table] = {}  # noqa: RUF012, shared by all on purpose

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []
        self._savepoints: dict[str, int] = {}
        self.in_transaction = False

    def begin(self) -> None:
        """Begins a transaction; has no effect if one is active."""
        self.in_transaction = True

    def end(self, committed: bool) -> None:
        """Ends the transaction; unless it is committed, reverses its changes, the last one
        first."""
        with _LOCK:
            while self._undo:
                undo = self._undo.pop()
                if not committed:
                    undo()
        self.in_transaction = False
        self._savepoints.clear()

    def save(self, name: str) -> None:
        """Executes SAVE TRANSACTION: sets a savepoint.

        Raises:
            SqlError: 628: no transaction is active.
        """
        if not self.in_transaction:
            raise SqlError(628, "Cannot issue SAVE TRANSACTION when there is no active transaction.")
        self._savepoints[name] = len(self._undo)

    def back(self, name: str) -> None:
        """Executes ROLLBACK TRANSACTION to the savepoint ``name``.

        Raises:
            SqlError: 6401: there is no such savepoint.
        """
        if not self.in_transaction or name not in self._savepoints:
            raise SqlError(6401, f"Cannot roll back {name}. No transaction or savepoint of that name was found.")
        with _LOCK:
            while len(self._undo) > self._savepoints[name]:
                self._undo.pop()()

    def create(self, table: Table) -> int:
        """Executes CREATE TABLE.

        Raises:
            SqlError: 2714: a table of that name exists.
        """
        if table.name in self.tables:
            raise SqlError(2714, f"There is already an object named '{table.name}' in the database.")
        self.tables[table.name] = table
        self._did(lambda: self.tables.pop(table.name, None))
        return 0

    def drop(self, name: str) -> int:
        """Executes DROP TABLE. A missing table is not an error, since tests begin with this
        statement."""
        table = self.tables.pop(name, None)
        if table is not None:
            self._did(lambda: self.tables.__setitem__(name, table))
        return 0

    def insert(self, table: Table, rows: list[list[Any]]) -> int:
        """Executes INSERT; returns the number of rows.

        Raises:
            SqlError: a row has too few or too many values (213); a value does not fit (8115, 2628,
                8114), is NULL in a NOT NULL column (515), or is a duplicate key (2627).
        """
        whole = [_fitting(table, row) for row in rows]
        with _LOCK:
            for row in whole:
                _check_key(table, row)
                table.rows.append(row)
                self._did(lambda row=row: table.rows.remove(row))  # type: ignore[misc]
        return len(whole)

    def delete(self, table: Table) -> int:
        """Deletes all rows of the table; returns their number."""
        with _LOCK:
            gone, table.rows[:] = list(table.rows), []
        self._did(lambda: table.rows.extend(gone))
        return len(gone)

    def _did(self, undo: Callable[[], object]) -> None:
        if self.in_transaction:
            self._undo.append(undo)


def _fitting(table: Table, row: list[Any]) -> tuple[Any, ...]:
    if len(row) != len(table.fields):
        raise SqlError(213, "Column name or number of supplied values does not match table definition.")
    return tuple(_fit(table, one, value) for one, value in zip(table.fields, row, strict=True))


def _fit(table: Table, one: Field, value: Any) -> Any:
    """``value`` converted to the type of the column ``one``."""
    if value is None:
        if not one.nullable:
            where = f"column '{one.name}', table '{table.name}'"
            raise SqlError(
                515, f"Cannot insert the value NULL into {where}; column does not allow nulls. INSERT fails."
            )
        return None
    base, _, size = one.type_name.rstrip(")").partition("(")
    try:
        if base in _RANGES:
            value = int(value)
            low, high = _RANGES[base]
            if not low <= value <= high:
                raise OverflowError
        elif base in ("decimal", "numeric"):
            precision, _, scale = size.partition(",")
            value = Decimal(str(value))
            if abs(value) >= Decimal(10) ** (int(precision) - int(scale or 0)):
                raise OverflowError
        elif base in ("nvarchar", "varchar", "varbinary") and size != "max":
            length = len(value.encode("utf-16-le", "surrogatepass")) // 2 if isinstance(value, str) else len(value)
            if length > int(size):
                where = f"table '{table.name}', column '{one.name}'"
                raise SqlError(2628, f"String or binary data would be truncated in {where}.")
        one.kind.encode(value)
    except (OverflowError, ArithmeticError):
        raise SqlError(8115, f"Arithmetic overflow error converting expression to data type {base}.") from None
    except (ValueError, TypeError):
        raise SqlError(8114, f"Error converting data type to {base}.") from None
    return value


def _check_key(table: Table, row: tuple[Any, ...]) -> None:
    for index, one in enumerate(table.fields):
        if one.is_key and any(known[index] == row[index] for known in table.rows):
            said = f"Violation of PRIMARY KEY constraint. Cannot insert duplicate key in object '{table.name}'."
            raise SqlError(2627, said, severity=14)
