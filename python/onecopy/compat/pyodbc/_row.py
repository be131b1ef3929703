"""pyodbc's rows, whose values can be read and replaced by index and by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

Description = tuple[tuple[str, Any, None, Any, Any, Any, Any], ...]


class Row(list[Any]):
    """A row. Its values are accessible by index, and as attributes with the names of the columns.

    If two columns have the same name, the attribute is the value of the last one. Values can be
    replaced by index or attribute.
    """

    __slots__ = ()
    __hash__ = None

    cursor_description: ClassVar[Description] = ()
    """The description of the cursor that returned the row."""
    _indexes: ClassVar[dict[str, int] | None] = None

    __setattr__ = object.__setattr__

    def __init__(self, description: tuple[Any, ...], indexes: dict[str, int], /, *values: Any) -> None:
        """Create a row of ``values``. ``indexes`` is a dict that maps the names of the attributes
        to the indexes of their values.

        A row that pyodbc has pickled is unpickled by calling this constructor.

        Raises:
            TypeError: `description` and ``values`` have different lengths, or ``values`` is empty.
        """
        is_complete = type(description) is tuple and type(indexes) is dict and len(description) == len(values)
        if not is_complete or not values:
            raise TypeError("a row has a description, a dict of indexes by name, and a value for each column")
        list.__init__(self, values)
        self.__class__ = _class_of((description, *indexes.items()), description, indexes)

    def __getattr__(self, name: str) -> Any:
        # Python calls this method only for unknown names. With it, type checkers accept any name.
        raise AttributeError(f"'Row' object has no attribute '{name}'")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            # A slice of the whole row is the row itself, as in pyodbc.
            values = list.__getitem__(self, index)
            is_all = len(values) == len(self) and index.step in (None, 1)
            return self if is_all else tuple(values)
        if isinstance(index, str):
            raise TypeError("row indices must be integers, not str")
        return list.__getitem__(self, index)

    def __delitem__(self, index: Any) -> NoReturn:
        raise TypeError("columns of a row cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, other) if isinstance(other, Row) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return list.__ne__(self, other) if isinstance(other, Row) else NotImplemented

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._indexes is not None:
            return Row, (self.cursor_description, self._indexes, *self)
        return _again, (self.cursor_description, tuple(self))


def _again(description: Description, values: tuple[Any, ...]) -> Row:
    return row_class(description)(values)


def _of_column(index: int) -> property:
    def put(row: Row, value: Any) -> None:
        row[index] = value

    return property(lambda row: list.__getitem__(row, index), put, lambda row: row.__delitem__(index))


#: Names of members of a row class that remain even if a column has the same name.
_RESERVED = ("__init__", "__slots__", "__module__", "__reduce__", "__class__", "_indexes", "cursor_description")
#: Row classes by description. The dict is emptied when it is full, since a program has few
#: descriptions.
_classes: dict[tuple[Any, ...], Any] = {}


def row_class(description: Description) -> Callable[[tuple[Any, ...]], Row]:
    """Return the subclass of `Row` for the columns of a result; it is cached and reused for results
    with the same columns."""
    known: Callable[[tuple[Any, ...]], Row] = _classes.get(description) or _class_of(description, description, None)
    return known


def _class_of(key: tuple[Any, ...], description: tuple[Any, ...], indexes: dict[str, int] | None) -> Any:
    if (known := _classes.get(key)) is not None:
        return known
    if len(_classes) >= 256:
        _classes.clear()
    # A row class is called with the values, by list's own constructor, which is the fastest.
    members: dict[str, Any] = {"__slots__": (), "__module__": __name__, "__init__": list.__init__}
    members |= {"cursor_description": description, "_indexes": indexes}
    names = ((column[0], i) for i, column in enumerate(description)) if indexes is None else indexes.items()
    for name, i in names:
        if name not in _RESERVED:
            # A negative index is replaced by one past the end, since it does not count from the end
            # of the row.
            members[name] = _of_column(i if i >= 0 else sys.maxsize)
    made = _classes[key] = type("Row", (Row,), members)
    return made
