"""The responder's built-in procedures, whose parameters are not declared.

    onecopy_copy @in, @out output, …  each output parameter gets the value of the previous
                                      parameter; prints a message; returns 7
    onecopy_results @n                a result of n rows, a message, a second result; returns 0
    onecopy_fails @n                  an error with that number; no results

The module ``declared`` has the procedures with declared parameters.
"""

from __future__ import annotations

from tests.support.tds import calls, declared, types
from tests.support.tds.declared import rows
from tests.support.tds.results import Called, Message, SqlError
from tests.support.tds.types import Parameter


def call(name: str, given: list[Parameter]) -> Called:
    """Runs the built-in procedure ``name`` with the arguments ``given``.

    Raises:
        SqlError: the name does not exist, or the procedure fails as requested.
    """
    routine = declared.called(name.partition(";")[0])
    if routine is not None and routine.kind in ("P", "X"):
        return routine.run(given)
    name = calls.plain_name(name)
    if name == "onecopy_copy":
        outputs = [(i, _copied(given[i - 1], one)) for i, one in enumerate(given) if one.is_output and i > 0]
        return Called([Message(0, "copied")], outputs, 7)
    if name == "onecopy_results":
        first = rows({"a": ("nvarchar(10)", "é")}, int(given[0].value()))
        return Called([first, Message(0, "между"), rows({"b": ("int", 2), "c": ("int", 3)})])
    if name == "onecopy_fails":
        raise SqlError(int(given[0].value()), "The procedure failed as requested.")
    raise SqlError(2812, f"Could not find stored procedure '{name}'.")


def _copied(source: Parameter, target: Parameter) -> Parameter:
    """The output parameter ``target`` with the value of ``source``."""
    if source.info == target.info:
        return Parameter(target.name, target.info, source.raw)
    kind = types.of_info(target.info)
    return Parameter(target.name, target.info, kind.encode(source.value()))
