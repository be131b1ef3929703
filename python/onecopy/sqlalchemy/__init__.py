"""Dialects of SQLAlchemy 2 over onecopy, found by SQLAlchemy itself through entry points.

    create_engine("sqlite+onecopy:///cities.db")
    create_engine("postgresql+onecopy://user:password@host/database")
    create_engine("mysql+onecopy://…"), create_engine("mariadb+onecopy://…"), create_engine("mssql+onecopy://…")

They are SQLAlchemy's own dialects of those databases (its public base classes) with onecopy below. In the URL's query
``read_only``, ``autocommit``, ``timeout`` and ``errors`` are options of `onecopy.connect`; others go to the ODBC driver.
``…+onecopy:///?odbc_connect=…`` takes a whole connection string.

SQLAlchemy is not needed by onecopy, and is imported by this package alone.
"""

from __future__ import annotations

from onecopy.sqlalchemy._mssql import MSDialectOnecopy
from onecopy.sqlalchemy._mysql import MariaDBDialectOnecopy, MySQLDialectOnecopy
from onecopy.sqlalchemy._postgresql import PGDialectOnecopy
from onecopy.sqlalchemy._sqlite import SQLiteDialectOnecopy

__all__ = [
    "MSDialectOnecopy",
    "MariaDBDialectOnecopy",
    "MySQLDialectOnecopy",
    "PGDialectOnecopy",
    "SQLiteDialectOnecopy",
]
