"""`Row`: values by index and by name, both of which may be set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

Description = tuple[tuple[str, Any, None, Any, Any, Any, Any], ...]


class Row(list[Any]):
    """A row: values by index, and as attributes by the names of their columns.

    Where two columns have the same name, the attribute is that of the last. Values may be replaced, by index or attribute.
    """

    __slots__ = ()
    __hash__ = None

    cursor_description: ClassVar[Description] = ()
    """The description of the cursor that it came from."""

    __setattr__ = object.__setattr__

    def __getattr__(self, name: str) -> Any:
        # Names of columns are found before; type checkers learn here that there may be any.
        raise AttributeError(f"'Row' object has no attribute '{name}'")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            # All of it is the row itself, as in pyodbc.
            values = list.__getitem__(self, index)
            is_all = len(values) == len(self) and index.step in (None, 1)
            return self if is_all else tuple(values)
        if isinstance(index, str):
            raise TypeError("row indices must be integers, not str")
        return list.__getitem__(self, index)

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, other) if isinstance(other, Row) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return list.__ne__(self, other) if isinstance(other, Row) else NotImplemented

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.cursor_description, tuple(self))


def _again(description: Description, values: tuple[Any, ...]) -> Row:
    return row_class(description)(values)


def _of_column(index: int) -> property:
    def put(row: Row, value: Any) -> None:
        row[index] = value

    return property(lambda row: list.__getitem__(row, index), put)


#: By description: a program has few different ones, and where it has many, they begin anew.
_classes: dict[Description, type[Row]] = {}


def row_class(description: Description) -> Callable[[tuple[Any, ...]], Row]:
    """The class of the rows of a result: made once for results that look alike."""
    if (known := _classes.get(description)) is not None:
        return known
    if len(_classes) >= 256:
        _classes.clear()
    members: dict[str, Any] = {"__slots__": (), "__module__": __name__, "cursor_description": description}
    for i, column in enumerate(description):
        if column[0] not in ("__slots__", "__module__", "__reduce__", "__class__", "cursor_description"):
            members[column[0]] = _of_column(i)
    made = _classes[description] = type("Row", (Row,), members)
    return made
