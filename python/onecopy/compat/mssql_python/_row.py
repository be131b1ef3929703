"""Rows of mssql-python: `Row` and `RowMapping`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from onecopy.compat.pyodbc._row import Description
from onecopy.compat.pyodbc._row import Row as _Row


class RowMapping(Mapping[str, Any]):
    """A row as a mapping, keyed by column name."""

    def __init__(self, row: Row) -> None:
        self._row = row

    def __getitem__(self, name: str) -> Any:
        try:
            return self._row[self._row._places[name]]
        except KeyError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._row._places)

    def __len__(self) -> int:
        return len(self._row._places)

    def __repr__(self) -> str:
        return repr(dict(self))


class Row(_Row):
    """A row; its values are accessible by index, by column name, and as attributes."""

    __slots__ = ()
    __init__ = list.__init__
    _places: dict[str, int] = {}  # noqa: RUF012 - each row class has its own

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            try:
                key = self._places[key]
            except KeyError:
                raise KeyError(key) from None
        return list.__getitem__(self, key)

    @property
    def _mapping(self) -> RowMapping:
        return RowMapping(self)

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, other) if isinstance(other, list) else NotImplemented

    __hash__ = None

    def __str__(self) -> str:
        return "(" + ", ".join(str(value) if type(value).__name__ == "Decimal" else repr(value) for value in self) + ")"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.cursor_description, tuple(self))


def _again(description: Description, values: tuple[Any, ...]) -> Row:
    return row_class(description)(values)


def _column(index: int) -> property:
    get = list.__getitem__

    def put(row: Row, value: Any) -> None:
        row[index] = value

    return property(lambda row: get(row, index), put)


_classes: dict[Description, type[Row]] = {}


def row_class(description: Description) -> Callable[[tuple[Any, ...]], Row]:
    """Return the subclass of `Row` for the columns of a result; it is cached and reused for results
    with the same columns."""
    if (known := _classes.get(description)) is not None:
        return known
    if len(_classes) >= 256:
        _classes.clear()
    places = {column[0]: i for i, column in enumerate(description)}
    members: dict[str, Any] = {name: _column(i) for name, i in places.items() if not name.startswith("_")}
    members |= {"__slots__": (), "__module__": __name__, "cursor_description": description, "_places": places}
    made = _classes[description] = type("Row", (Row,), members)
    return made
