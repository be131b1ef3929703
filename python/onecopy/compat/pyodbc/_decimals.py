"""Conversion of PostgreSQL's decimals. They can be NaN or infinite and have any number of digits,
which ODBC's `SQL_NUMERIC_STRUCT` cannot represent."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, Overflow
from typing import Any

from onecopy.compat.pyodbc._errors import DataError, ProgrammingError

#: The decimals that fit in the struct: up to 38 digits, of which up to 38 are after the point.
_STRUCT = Context(prec=38, Emin=-1, Emax=37, traps=[Overflow, Inexact])
_REMEDY = "set fast_executemany to False: the value is stored whole"


def parameter(value: Decimal) -> Decimal | str:
    """Convert a decimal parameter to a value that onecopy binds."""
    if value.is_snan():
        raise ProgrammingError("HY000", "[HY000] a signaling NaN cannot be stored")
    return value if value.is_finite() else str(value)


def parameter_in_struct(value: Decimal) -> Decimal:
    """Check that a decimal parameter fits into `SQL_NUMERIC_STRUCT`, the struct in which pyodbc
    sends decimals with `fast_executemany`."""
    if not value.is_finite():
        raise ProgrammingError("HY000", f"[HY000] NaN and infinities do not fit in a SQL_NUMERIC_STRUCT\n{_REMEDY}")
    try:
        _STRUCT.create_decimal(value)
    except Overflow:
        raise ProgrammingError("HY000", f"[HY000] Numeric overflow\n{_REMEDY}") from None
    except Inexact:
        raise ProgrammingError("HY000", f"[HY000] Converting decimal loses precision\n{_REMEDY}") from None
    return value


def cell(value: Any) -> Any:
    """Convert a cell to a `Decimal`. A cell can be a `float`, because onecopy returns NaN and the
    infinities as `float`."""
    return Decimal(value) if isinstance(value, float) else value


def cell_in_struct(value: Any) -> Any:
    """Convert a cell to a `Decimal`, and check that its digits fit into an integer of 128 bits.

    With `decimal_mode = "binary"` pyodbc reads decimals from `SQL_NUMERIC_STRUCT`, which contains
    such an integer.
    """
    value = cell(value)
    if not value.is_finite():
        return value
    _, digits, exponent = value.as_tuple()
    n_digits = len(digits) + max(exponent, 0)
    if n_digits > 38 and int(Decimal((0, digits, max(exponent, 0)))) >= 2**128:
        message = "[22003] the decimal does not fit in a SQL_NUMERIC_STRUCT\nset decimal_mode to 'text'"
        raise DataError("22003", message, sqlstate="22003")
    return value
