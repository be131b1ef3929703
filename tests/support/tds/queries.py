"""The queries that the responder supports, and their results.

    select * from t31000                    the table `t`; also some columns (`id, note`), and
                                            `where id = 7` (or `= @P1`)
    select 1 as a, N'é' as b, null, 0x00ff  literals; `+` joins text
    select cast('1.50' as decimal(38,10))   any type of SQL Server by name, also by `convert`
    select replicate(N'é', 50000000)        long values, sent in parts
    select nchar(0xD800) + N'x'             a lone surrogate
    select @P1                              a parameter, returned unchanged
    select 1 from repeat(100000)            100,000 equal rows; also by `top` and `sys.all_columns`
    select N'a' union all select N'b'       more rows, with the types of the first
    select 1; select 2                      more than one result
    waitfor delay '00:00:30'                waits, and can be cancelled
    print N'é'; raiserror(N'é', 16, 1)      messages; above severity 10 errors, from 20 on the
                                            connection ends
    raiserror(…) raiserror(…)               several messages of one statement, without `;`
    throw 50001, N'é', 1                    an error that ends the response; the text may be an
                                            expression
    declare @a int = @P1; exec p @a output  variables, and procedures: see `declared`
    select dbo.add_up(1, @P1)               a scalar function
    select * from calls.many(3)             a function that returns a table
    … from sys.all_objects … object_id(…)   the catalog entry of a procedure or function
    create table k (a int, …)               a table that stores its rows: see `kept`

Comments make a response fail: `/* error after 500 */` sends an error token after 500 rows, `/* drop
after 500 */` resets the connection, `/* stall after 500 */` sends no more until the client cancels
or disconnects. `insert`, `update` and `delete` of a table that was not created count one row and
store nothing; SET and similar statements are accepted and have no effect.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.support.tds import declared, kept, procedures, stored
from tests.support.tds.reader import Cell, Reader, known_kind
from tests.support.tds.results import (
    Affected,
    Message,
    Result,
    Rows,
    Slice,
    SqlError,
    Transaction,
    Wait,
    failure,
)
from tests.support.tds.tokens import ROW, Column
from tests.support.tds.types import Parameter

__all__ = ["Affected", "Rows", "SqlError", "Wait", "failure", "statements"]

_SKIPPED = ("set", "if", "use", "truncate", "go")


def statements(
    sql: str, parameters: dict[str, Parameter], work: kept.Work | None = None, *, describes: bool = False
) -> Iterator[Result]:
    """Parses ``sql``; yields the result of each statement in order.

    A statement that changes a table of ``work`` does so only when its result is executed. If
    ``describes`` is true, procedures are not called and have no results.

    Raises:
        SqlError: an error of SQL Server, or an unsupported statement.
    """
    # A response that fails after so many rows is sent row by row.
    reader = _Statements(sql, parameters, work or kept.Work(), one_by_one=failure(sql) is not None)
    reader.describes = describes
    while not reader.at_end():
        if not reader.take(";"):
            yield reader.statement()


class _Statements(Reader):
    """A parser for the statements that the responder supports."""

    def __init__(self, sql: str, parameters: dict[str, Parameter], work: kept.Work, one_by_one: bool) -> None:
        super().__init__(sql, dict(parameters))
        self._variables: dict[str, str] = {}  # Names to types.
        self.describes = False
        self._work, self._one_by_one = work, one_by_one
        self._made: dict[str, kept.Table] = {}  # Tables of this text, whose statements have not run yet.

    def statement(self) -> Result:
        if self.take("select"):
            return self._select()
        if self.take("waitfor"):
            self.need("delay")
            hours, minutes, seconds = self.next()[1].strip("N'").split(":")
            return Wait(int(hours) * 3600 + int(minutes) * 60 + float(seconds))
        if self.take("print"):
            return Message(0, self.value().text())
        if self.take("raiserror"):
            self.need("(")
            text, severity, state = self._three()
            self.need(")")
            return Message(50000, text, int(severity), int(state), goes_on=self.peek().lower() == "raiserror")
        if self.take("throw"):
            number, text, state = self._three()
            raise SqlError(int(number), text, state=int(state))
        if self.take("exec", "execute"):
            return self._exec()
        if self.take("declare"):
            return self._declare()
        start = self._at
        word = self.next()[1].lower()
        found = self._of_table(word) if word in ("create", "drop", "insert", "delete") else self._of_transaction(word)
        if found is not None:
            return found
        self._at = start + 1
        if word not in (*_SKIPPED, "create", "drop", "insert", "update", "delete"):
            raise SqlError(2812, f"Could not find stored procedure '{word}'.")
        # A statement extends to the next `;`, or to a SELECT after a SET without one.
        while not self.at_end() and self.peek() != ";":
            if word in ("set", "use", "if") and self.peek().lower() == "select":
                break
            self._at += 1
        return Affected(1 if word in ("insert", "update", "delete") else None)

    def _declare(self) -> Affected:
        """Parses DECLARE; the variables are visible in later statements."""
        while True:
            name, type_name = self.next()[1].lower(), self.type_name()
            value = self.value().plain() if self.take("=") else None
            self._assign(name, type_name, value)
            if not self.take(","):
                return Affected(None)

    def _assign(self, name: str, type_name: str, value: Any) -> None:
        kind = known_kind(type_name)
        raw = kind.encode(declared.converted(value, type_name))
        self._parameters[name], self._variables[name] = Parameter(name, kind.info, raw), type_name

    def _exec(self) -> Result:
        """Executes EXEC of a procedure; its outputs are assigned to variables or to parameters of
        the statement."""
        name, given = self.next()[1], []
        while not self.at_end() and self.peek() != ";":
            given.append(replace(self.argument(), is_output=self.take("output", "out")))
            self.take(",")
        if self.describes:
            return Affected(None)
        called = procedures.call(name, given)
        for place, value in called.outputs:
            if (variable := given[place].name) in self._variables:
                self._assign(variable, self._variables[variable], value.value())
        left = [(place, value) for place, value in called.outputs if given[place].name not in self._variables]
        return replace(called, outputs=left)

    def _three(self) -> tuple[str, str, str]:
        first = self.value().text()
        self.need(",")
        second = self.value().text()
        self.need(",")
        return first, second, self.value().text()

    def _of_transaction(self, word: str) -> Transaction | None:
        """Parses a transaction statement; returns None for any other statement.

        The statements are BEGIN TRAN, COMMIT, ROLLBACK (also after `IF @@TRANCOUNT > 0`), SAVE TRAN
        and SET IMPLICIT_TRANSACTIONS.
        """
        if word == "if" and self.take("@@trancount"):
            self.need(">", "0")
            word = self.next()[1].lower()
        if word == "set" and self.take("implicit_transactions"):
            return Transaction("implicit on" if self.next()[1].lower() == "on" else "implicit off")
        if word not in ("begin", "commit", "rollback", "save"):
            return None
        is_named = self.take("tran", "transaction") and not self.at_end() and self.peek() != ";"
        if word in ("rollback", "save") and is_named:
            return Transaction("save" if word == "save" else "back", self.name())
        self.take("work")
        return Transaction("begin" if word == "begin" else "commit" if word == "commit" else "rollback")

    def _of_table(self, word: str) -> Affected | None:
        """Parses CREATE, DROP, INSERT or DELETE of a table in memory; returns None for any other
        statement."""
        work = self._work
        if word == "create":
            self.need("table")
            table = kept.Table(self.name(), self._fields())
            self._made[table.name] = table
            return Affected(None, lambda: work.create(table))
        if word == "drop":
            self.need("table")
            if self.take("if"):
                self.need("exists")
            name = self.name()
            return Affected(None, lambda: work.drop(name))
        self.take("into" if word == "insert" else "from")
        found = self._table(self.name())
        if found is None:
            return None
        if word == "delete":
            return Affected(0, lambda: work.delete(found))
        if self.take("("):
            while not self.take(")"):
                self.next()
        self.need("values")
        rows = [self._tuple()]
        while self.take(","):
            rows.append(self._tuple())
        return Affected(0, lambda: work.insert(found, [[cell.plain() for cell in row] for row in rows]))

    def _table(self, name: str) -> kept.Table | None:
        return self._made.get(name) or self._work.tables.get(name)

    def _tuple(self) -> list[Cell]:
        self.need("(")
        cells = [self.value()]
        while self.take(","):
            cells.append(self.value())
        self.need(")")
        return cells

    def _fields(self) -> list[kept.Field]:
        self.need("(")
        fields = []
        while True:
            name, type_name = self.name(), self.type_name()
            not_null = self.take("not")
            self.take("null")
            is_key = self.take("primary")
            if is_key:
                self.need("key")
            fields.append(kept.Field(name, type_name, known_kind(type_name), not (not_null or is_key), is_key))
            if not self.take(","):
                break
        self.need(")")
        return fields

    def _select(self) -> Rows:
        start = self._at
        words = [word.lower() for _, word in self._tokens[start:]]
        source = next((word for word in words if word.endswith("sys.all_objects")), None)
        if source is not None:
            return self._catalog(source)
        if self.take("*"):
            return self._from_table(None)
        # A list of bare names is a projection of `t`; anything else is a list of values.
        names = [self.name()]
        while self.take(","):
            names.append(self.name())
        plain = all(re.fullmatch(r"[a-z]\w*", name, re.I) for name in names) and names != ["null"]
        table = self._tokens[self._at + 1][1] if self._at + 1 < len(self._tokens) else ""
        if plain and self.peek().lower() == "from" and re.fullmatch(r"\[?t\d+\]?", table, re.I):
            return self._from_table(names)
        self._at = start
        return self._values()

    def _from_table(self, names: list[str] | None) -> Rows:
        self.need("from")
        routine = declared.find(self.peek())
        table = self.name()
        if routine is not None and routine.kind == "TF" and self.peek() == "(":
            return routine.table(self.arguments())
        known = self._table(table)
        if known is not None and names is None:
            return Rows(known.columns(), known.slices())
        match = re.fullmatch(r"t(\d+)", table, re.I)
        if match is None:
            raise SqlError(208, f"Invalid object name '{table}'.")
        n_rows = int(match[1])
        only: int | None = None
        if self.take("where"):
            self.need("id", "=")
            found = self.value().plain()
            only = -1 if found is None else int(found)  # NULL equals nothing; no row has the id -1.
        if self.take("order"):
            self.need("by", "id")
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

    def _catalog(self, source: str) -> Rows:
        """Parses the rest of the catalog query; returns the entry of a routine in a database."""
        while self.next()[1].lower() != "object_id":
            pass
        self.need("(")
        name = self.value().plain()
        while not self.at_end() and self.peek() != ";":
            self._at += 1
        *database, _, _ = declared.parts_of(source)
        return declared.catalog("".join(database), name)

    def _values(self) -> Rows:
        cells, names, times = self._select_list()
        columns = [Column(name, cell.kind.info) for name, cell in zip(names, cells, strict=True)]
        slices = [self._slices(cells, times)]
        while self.take("union"):
            self.need("all", "select")
            others, _, times = self._select_list()
            if len(others) != len(cells):
                raise SqlError(205, "All queries combined using a UNION must have an equal number of expressions.")
            slices.append(self._slices([Cell(a.kind, b.value) for a, b in zip(cells, others, strict=True)], times))
        return Rows(columns, itertools.chain.from_iterable(slices))

    def _slices(self, cells: list[Cell], times: int) -> Iterator[Slice]:
        row = ROW + b"".join(cell.encoded() for cell in cells)
        return _repeat(row, times, 1 if self._one_by_one else max(1, 65_536 // len(row)))

    def _select_list(self) -> tuple[list[Cell], list[str], int]:
        """Parses a SELECT list; returns the cells of one row, their names, and the number of
        rows."""
        times = 1
        if self.take("top"):
            self.need("(")
            times = self.number()
            self.need(")")
        cells: list[Cell] = []
        names: list[str] = []
        while True:
            cells.append(self.value())
            name = ""
            if self.take("as") or (
                not self.at_end()
                and self._tokens[self._at][0] == "name"
                and self.peek().lower() not in ("from", "select", "union")
            ):
                name = self.next()[1].strip('[]"')
            names.append(name)
            if not self.take(","):
                break
        if self.take("from"):
            if self.take("sys.all_columns"):
                while not self.at_end() and self.peek() != ";":
                    self._at += 1
            else:
                self.need("repeat", "(")
                times = int(self.next()[1])
                self.need(")")
        return cells, names, times


def _repeat(row: bytes, times: int, many: int) -> Iterator[Slice]:
    block = row * min(many, times)
    for first in range(0, times, many):
        here = min(many, times - first)
        yield (block if here == many or times < many else row * here), here
