"""The procedures that the responder has of its own.

``onecopy_copy @in, @out output, …``    each output parameter gets the value of the one before it; prints; returns 7
``onecopy_results @n``                  a result of n rows, a message, a second result; returns 0
``onecopy_fails @n``                    an error of that number; nothing comes back
"""

from __future__ import annotations

from typing import Any

from tests.support.tds import types
from tests.support.tds.results import Called, Message, Rows, SqlError
from tests.support.tds.tokens import ROW, Column
from tests.support.tds.types import Parameter


def call(name: str, given: list[Parameter]) -> Called:
    """Run one.

    Raises:
        SqlError: there is none of that name, or it fails as it is to.
    """
    if name == "onecopy_copy":
        outputs = [(i, _copied(given[i - 1], one)) for i, one in enumerate(given) if one.is_output and i > 0]
        return Called([Message(0, "copied")], outputs, 7)
    if name == "onecopy_results":
        first = _rows({"a": ("nvarchar(10)", "é")}, int(given[0].value()))
        return Called([first, Message(0, "между"), _rows({"b": ("int", 2), "c": ("int", 3)}, 1)])
    if name == "onecopy_fails":
        raise SqlError(int(given[0].value()), "The procedure failed, as it was asked to.")
    raise SqlError(2812, f"Could not find stored procedure '{name}'.")


def _rows(cells: dict[str, tuple[str, Any]], times: int) -> Rows:
    """A result of equal rows: names to types and values."""
    kinds = {name: types.kind(type_name) for name, (type_name, _) in cells.items()}
    row = ROW + b"".join(kinds[name].encode(value) for name, (_, value) in cells.items())
    return Rows([Column(name, kind.info) for name, kind in kinds.items()], iter([(row, 1)] * times))


def _copied(source: Parameter, target: Parameter) -> Parameter:
    """The output parameter with the value of another."""
    if source.info == target.info:
        return Parameter(target.name, target.info, source.raw)
    kind = types.of_info(target.info)
    return Parameter(target.name, target.info, kind.encode(source.value()))
