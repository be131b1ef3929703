"""Decoding of remote procedure calls, [MS-TDS] 2.2.6.6: their names and parameters."""

from __future__ import annotations

import struct

from tests.support.tds.types import Parameter, read_type_and_value

_NUMBERED = {10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 14: "sp_prepexecrpc"}
_NUMBERED[15] = "sp_unprepare"


def read(body: bytes, at: int = 0) -> tuple[str, list[Parameter], int]:
    """Decodes one call of an RPC message; returns its name, its parameters and the offset after it.

    ``at`` is the offset of the call. The name of a system procedure is returned without schema,
    quotes and number. A message has many calls if a driver binds arrays of parameters; the offset
    after the last call is the message's length.

    Raises:
        ValueError: a parameter has a type that the responder does not support.
    """
    length = struct.unpack_from("<H", body, at)[0]
    at += 2
    if length == 0xFFFF:
        name, at = _NUMBERED.get(struct.unpack_from("<H", body, at)[0], ""), at + 2
    else:
        name, at = body[at : at + 2 * length].decode("utf-16-le"), at + 2 * length
    at += 2  # option flags
    parameters = []
    while at < len(body) and body[at] not in (0x80, 0xFF):
        size = body[at]
        parameter = body[at + 1 : at + 1 + 2 * size].decode("utf-16-le")
        status = body[at + 1 + 2 * size]
        info, raw, at = read_type_and_value(body, at + 2 + 2 * size)
        parameters.append(Parameter(parameter, info, raw, bool(status & 1)))
    plain = plain_name(name)
    # The flag between two calls.
    return plain if plain.startswith("sp_") else name, parameters, at + 1


def plain_name(name: str) -> str:
    """A procedure's name without schema, quotes and number: ``name`` for ``dbo.[Name];1``."""
    return name.lower().split(".")[-1].strip("[]").partition(";")[0]


def declared(parameter: Parameter | None) -> list[str]:
    """The parameter names in a declaration list such as ``@P1 int,@P2 decimal(10,2)``."""
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
