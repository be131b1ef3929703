"""The columns with random values for SQLite: for onecopy's own driver and for the ODBC driver."""

from __future__ import annotations

from . import draw as d
from .column import Column

#: A column that may hold values of several storage classes.
_MIXED = frozenset({"arrow", "columns"})

SQLITE = [
    Column("integer", d.integer(64)),
    Column("real", d.double),
    Column("text", d.text),
    Column("blob", d.octets),
    Column("", d.any_of(d.integer(64), d.double, d.text, d.octets), refused_by=_MIXED),
    Column("numeric", d.any_of(d.integer(40), d.double), refused_by=_MIXED),
    Column("varchar(10)", d.words),
    Column("boolean", lambda draw: draw.randrange(2)),
    Column("double precision", d.any_of(d.double, d.integer(50))),
    Column("bigint", d.integer(64)),
]

#: The driver truncates doubles to 15 digits, and a column has one type: the declared one.
SQLITE_ODBC = [
    Column("integer", d.integer(32)),
    Column("bigint", lambda draw: draw.randint(-(2**63) + 1, 2**63 - 1)),
    Column("double", lambda draw: draw.randint(-(10**9), 10**9) / 8),
    Column("float", lambda draw: draw.randint(-(10**6), 10**6) / 8),
    Column("text", lambda draw: d.words(draw, 2000 if draw.random() < 0.05 else 40)),
    Column("varchar(40)", d.words),
    Column("blob", d.octets),
]
