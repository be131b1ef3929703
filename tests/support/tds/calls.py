"""Remote procedure calls: what they name, their parameters, and the procedures that the responder has of its own.

onecopy_copy @in, @out output, …     each output parameter gets the value of the one before it; prints; returns 7
onecopy_results @n                   a result of n rows, a message, a second result; returns 0
onecopy_fails @n                     an error of that number; nothing comes back
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.tds import queries, types
from tests.support.tds.results import Message, Result, SqlError
from tests.support.tds.types import Parameter, read_type_and_value

_NUMBERED = {10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 15: "sp_unprepare"}


def read(body: bytes) -> tuple[str, list[Parameter]]:
    """Name and parameters of the call in an RPC message.

    Raises:
        ValueError: a parameter of a type the responder does not know.
    """
    length = struct.unpack_from("<H", body)[0]
    if length == 0xFFFF:
        name, at = _NUMBERED.get(struct.unpack_from("<H", body, 2)[0], ""), 4
    else:
        name, at = body[2 : 2 + 2 * length].decode("utf-16-le").lower().split(".")[-1], 2 + 2 * length
    at += 2  # option flags
    parameters = []
    while at < len(body) and body[at] not in (0x80, 0xFF):
        size = body[at]
        parameter = body[at + 1 : at + 1 + 2 * size].decode("utf-16-le")
        status = body[at + 1 + 2 * size]
        info, raw, at = read_type_and_value(body, at + 2 + 2 * size)
        parameters.append(Parameter(parameter, info, raw, bool(status & 1)))
    return name.strip("[]").partition(";")[0], parameters


def declared(parameter: Parameter | None) -> list[str]:
    """The names in a declaration list such as ``@P1 int,@P2 decimal(10,2)``."""
    text = (parameter.value() if parameter is not None else None) or ""
    names, depth, word = [], 0, ""
    for sign in text + ",":
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            if word.split():
                names.append(word.split()[0])
            word = ""
        else:
            word += sign
    return names


@dataclass
class Called:
    """What a procedure gives: results, values of its output parameters by their places, its return status."""

    results: Iterator[Result]
    outputs: list[tuple[int, Parameter]] = field(default_factory=list)
    status: int = 0


def procedure(name: str, given: list[Parameter]) -> Called:
    """Run one of the responder's own procedures.

    Raises:
        SqlError: there is none of that name, or it fails as it is to.
    """
    if name == "onecopy_copy":
        outputs = [(i, _copied(given[i - 1], one)) for i, one in enumerate(given) if one.is_output and i > 0]
        return Called(iter([Message(0, "copied")]), outputs, 7)
    if name == "onecopy_results":
        n = int(given[0].value())
        return Called(
            queries.statements(f"select N'é' as a from repeat({n}); print N'между'; select 2 as b, 3 as c", {})
        )
    if name == "onecopy_fails":
        raise SqlError(int(given[0].value()), "The procedure failed, as it was asked to.")
    raise SqlError(2812, f"Could not find stored procedure '{name}'.")


def _copied(source: Parameter, target: Parameter) -> Parameter:
    """The output parameter with the value of another."""
    if source.info == target.info:
        return Parameter(target.name, target.info, source.raw)
    kind = types.of_info(target.info)
    return Parameter(target.name, target.info, kind.encode(source.value()))
