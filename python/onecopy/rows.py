"""Row factories: what rows are instead of tuples; and what row streams need of Python, iteration in asyncio.

A row factory is called once for each result, with the cursor, and gives the function that takes each tuple:

>>> import onecopy
>>> con = onecopy.connect("sqlite::memory:", row_factory=dict_row)
>>> con.execute("select 1 as id, 'Zoë' as name").fetchall()
[{'id': 1, 'name': 'Zoë'}]
"""

from __future__ import annotations

import collections
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from onecopy.errors import ProgrammingError

if TYPE_CHECKING:
    from onecopy._core import Cursor, RowStream

__all__ = ["chunks_ahead", "class_row", "dataclass_row", "dict_row", "namedtuple_row", "names", "scalar_row"]

T = TypeVar("T")


def names(cursor: Cursor) -> list[str]:
    """The names of the columns of a cursor's result; none for a statement without rows."""
    return [column[0] for column in cursor.description or ()]


def dict_row(cursor: Cursor) -> Callable[[tuple[Any, ...]], dict[str, Any]]:
    """Rows as dicts by the names of their columns. As a row factory it is made in the extension.

    Raises:
        ProgrammingError: when the statement is executed, where two columns have the same name or one has none.
    """
    keys = _fit_names(cursor)
    return lambda row: dict(zip(keys, row, strict=True))


def namedtuple_row(cursor: Cursor) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Rows as named tuples. A name that is no identifier, or stands twice, becomes ``_0``, ``_1``, … by its place.

    >>> import onecopy
    >>> con = onecopy.connect("sqlite::memory:", row_factory=namedtuple_row)
    >>> con.execute("select 1 as id, 'Zoë' as name").fetchone()
    Row(id=1, name='Zoë')
    """
    new_class: Callable[..., Any] = collections.namedtuple
    make: Callable[[tuple[Any, ...]], tuple[Any, ...]] = new_class("Row", names(cursor), rename=True)._make
    return make


def dataclass_row(of: type[T]) -> Callable[[Cursor], Callable[[tuple[Any, ...]], T]]:
    """Rows as instances of a dataclass: each column goes to the field of its name.

    Raises:
        TypeError: ``of`` is no dataclass.
        ProgrammingError: when the statement is executed, where a column has no field, or a field without a default no column.

    >>> import dataclasses, onecopy
    >>> @dataclasses.dataclass
    ... class City:
    ...     id: int
    ...     name: str = ""
    >>> con = onecopy.connect("sqlite::memory:", row_factory=dataclass_row(City))
    >>> con.execute("select 'Zoë' as name, 1 as id").fetchone()
    City(id=1, name='Zoë')
    """
    import dataclasses  # Here, as asyncio below: each takes longer to load than all the rest.

    if not (isinstance(of, type) and dataclasses.is_dataclass(of)):
        raise TypeError(f"`{of!r}` is no dataclass")
    fields = {field.name: field for field in dataclasses.fields(of) if field.init}
    missing = dataclasses.MISSING
    needed = [name for name, f in fields.items() if f.default is missing and f.default_factory is missing]

    def of_result(cursor: Cursor) -> Callable[[tuple[Any, ...]], T]:
        keys = _fit_names(cursor)
        if strange := [key for key in keys if key not in fields]:
            raise ProgrammingError(f"`{of.__name__}` has no field for the column `{strange[0]}`")
        if wanting := [name for name in needed if name not in keys]:
            raise ProgrammingError(f"the result has no column for the field `{wanting[0]}` of `{of.__name__}`")
        return lambda row: of(**dict(zip(keys, row, strict=True)))

    return of_result


def class_row(of: Callable[..., T]) -> Callable[[Cursor], Callable[[tuple[Any, ...]], T]]:
    """Rows as what ``of`` gives when it is called with the columns by name: a class, or any function."""

    def of_result(cursor: Cursor) -> Callable[[tuple[Any, ...]], T]:
        keys = _fit_names(cursor)
        return lambda row: of(**dict(zip(keys, row, strict=True)))

    return of_result


def scalar_row(cursor: Cursor) -> Callable[[tuple[Any, ...]], Any]:
    """The value of the first column alone.

    >>> import onecopy
    >>> con = onecopy.connect("sqlite::memory:", row_factory=scalar_row)
    >>> con.execute("select 1 union all select 2").fetchall()
    [1, 2]
    """
    return lambda row: row[0]


def _fit_names(cursor: Cursor) -> list[str]:
    """The names, each of which is there, once."""
    found = names(cursor)
    for i, name in enumerate(found):
        if not name or name in found[:i]:
            what = "stands twice" if name else "has no name"
            raise ProgrammingError(
                f"column {i} `{name}` {what}\ngive it another one in the query: `… as name`", column=(i, name)
            )
    return found


def chunks_ahead(stream: RowStream) -> AsyncIterator[bytes]:
    """The chunks of ``stream``, filled ahead by a thread while the event loop runs on: what ``async for chunk in stream`` does.

    It is backed by threads, not by a driver that knows asyncio. When the task is cancelled, the statement is too; a stream that
    is left before its end cannot be read on.

    Copies: none; the chunk is the ``bytes`` that cells were converted into.
    """
    from onecopy.ahead import Ahead  # Here: asyncio takes longer to load than all the rest.

    return Ahead(stream)
