"""Row factories, for rows that are not tuples, and asynchronous iteration over row streams.

A row factory is called once per result, with the cursor, and returns the function that converts
each tuple:

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

__all__ = ["class_row", "dataclass_row", "dict_row", "namedtuple_row", "names", "prefetch", "scalar_row"]

T = TypeVar("T")


def names(cursor: Cursor) -> list[str]:
    """Return the column names of a cursor's result; empty for a statement without rows."""
    return [column[0] for column in cursor.description or ()]


def dict_row(cursor: Cursor) -> Callable[[tuple[Any, ...]], dict[str, Any]]:
    """Make each row a dict, keyed by column name. If this function is passed as a row factory, it
    is never called, because the extension module creates the dicts itself.

    Raises:
        ProgrammingError: on execution, if two columns have the same name or a column has none.
    """
    keys = _fit_names(cursor)
    return lambda row: dict(zip(keys, row, strict=True))


def namedtuple_row(cursor: Cursor) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Make each row a named tuple. A column name that is not an identifier, or occurs twice, is
    replaced by ``_`` and the index of the column (``_0``, ``_1``, …).

    >>> import onecopy
    >>> con = onecopy.connect("sqlite::memory:", row_factory=namedtuple_row)
    >>> con.execute("select 1 as id, 'Zoë' as name").fetchone()
    Row(id=1, name='Zoë')
    """
    new_class: Callable[..., Any] = collections.namedtuple
    make: Callable[[tuple[Any, ...]], tuple[Any, ...]] = new_class("Row", names(cursor), rename=True)._make
    return make


def dataclass_row(of: type[T]) -> Callable[[Cursor], Callable[[tuple[Any, ...]], T]]:
    """Make each row an instance of the dataclass ``of``: each column is assigned to the field with
    its name.

    Raises:
        TypeError: ``of`` is not a dataclass.
        ProgrammingError: on execution, if a column has no field, or a field without a default has
            no column.

    >>> import dataclasses, onecopy
    >>> @dataclasses.dataclass
    ... class City:
    ...     id: int
    ...     name: str = ""
    >>> con = onecopy.connect("sqlite::memory:", row_factory=dataclass_row(City))
    >>> con.execute("select 'Zoë' as name, 1 as id").fetchone()
    City(id=1, name='Zoë')
    """
    import dataclasses  # Imported on use, as asyncio below: each takes longer to load than onecopy.

    if not (isinstance(of, type) and dataclasses.is_dataclass(of)):
        raise TypeError(f"`{of!r}` is not a dataclass")
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
    """Make each row the result of calling ``of`` (a class or function) with the columns as keyword
    arguments."""

    def of_result(cursor: Cursor) -> Callable[[tuple[Any, ...]], T]:
        keys = _fit_names(cursor)
        return lambda row: of(**dict(zip(keys, row, strict=True)))

    return of_result


def scalar_row(cursor: Cursor) -> Callable[[tuple[Any, ...]], Any]:
    """Make each row the value of its first column, without a tuple.

    >>> import onecopy
    >>> con = onecopy.connect("sqlite::memory:", row_factory=scalar_row)
    >>> con.execute("select 1 union all select 2").fetchall()
    [1, 2]
    """
    return lambda row: row[0]


def _fit_names(cursor: Cursor) -> list[str]:
    """Return the column names; raise an error if a column has no name or two columns have the same
    name."""
    found = names(cursor)
    for i, name in enumerate(found):
        if not name or name in found[:i]:
            what = "appears twice" if name else "has no name"
            raise ProgrammingError(f"column {i} `{name}` {what}\nrename it in the query: `… as name`", column=(i, name))
    return found


def prefetch(stream: RowStream) -> AsyncIterator[bytes]:
    """Return an asynchronous iterator over the chunks of ``stream``, which a thread prefetches
    while the event loop runs. This implements ``async for`` over a `RowStream`.

    The stream is filled by threads, not by an asynchronous driver. Cancelling the task cancels the
    statement. After an iteration that ended early (by ``break`` or an exception), the stream cannot
    be read further.

    Copies: none; a chunk is the ``bytes`` object that cells were converted into.
    """
    from onecopy._prefetch import Prefetcher  # Imported on use: asyncio takes longer to load than onecopy.

    return Prefetcher(stream)
